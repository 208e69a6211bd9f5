// One run: sets up the stage, measures the requested parts, prints the tables and closes the stage.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { measureAb } from './ab.mjs';
import { measureBeside } from './beside.mjs';
import { measureContext } from './context.mjs';
import { measureEntries, measureRerun } from './episodic.mjs';
import { measureJournal } from './journal.mjs';
import { machine } from './machine.mjs';
import { measureMemories } from './memories.mjs';
import { measureMemory } from './memory.mjs';
import { measureModels } from './models.mjs';
import { measureReflect } from './reflect.mjs';
import { render } from './report.mjs';
import { buildMillion, measureSearch } from './search.mjs';
import { makeStage, openStage } from './stage.mjs';
import { measureStartup } from './startup.mjs';
import { measureTick } from './tick.mjs';
import { measureLatency, measureThroughput } from './throughput.mjs';

const FULL = {
  rounds: 5,
  seconds: 4,
  ledgerSeconds: 2,
  oneConnectionSeconds: 2,
  lessons: 10_000,
  spares: 4_000,
  ledgers: [1_000, 100_000, 1_000_000],
  bulkTicks: 5_000,
  journals: [1_000, 100_000, 1_000_000],
  journalSearch: { count: 50_000, dim: 384 },
  memories: [
    { count: 10_000, dim: 1536 },
    { count: 50_000, dim: 1536, seed: true },
  ],
  queries: 40,
  seedSearches: 5,
  reflecting: 64,
  ab: { trades: 100_000, revisions: 50 },
  abSeconds: 4,
  modelSeconds: 30,
  starts: 10,
  privateStarts: 5,
  minutes: 65,
};
const QUICK = {
  rounds: 2,
  seconds: 1,
  ledgerSeconds: 1,
  oneConnectionSeconds: 1,
  lessons: 2_000,
  spares: 800,
  ledgers: [1_000, 10_000, 50_000],
  bulkTicks: 2_000,
  journals: [1_000, 10_000, 50_000],
  journalSearch: { count: 5_000, dim: 384 },
  memories: [
    { count: 2_000, dim: 1536 },
    { count: 10_000, dim: 1536, seed: true },
  ],
  queries: 20,
  seedSearches: 2,
  reflecting: 64,
  ab: { trades: 20_000, revisions: 50 },
  abSeconds: 2,
  modelSeconds: 30,
  starts: 3,
  privateStarts: 2,
  minutes: 14,
};

const PARTS = {
  get: (stage, plan) => measureThroughput(stage, plan, 'get'),
  list: (stage, plan) => measureThroughput(stage, plan, 'list'),
  latency: measureLatency,
  memory: measureMemory,
  startup: measureStartup,
  beside: measureBeside,
  create: (stage, plan) => measureThroughput(stage, plan, 'create'), // last of these: it makes the library grow
  context: measureContext,
  tick: measureTick, // after that: it makes the ledger grow
  rerun: measureRerun,
  entries: measureEntries, // after that: it makes the memory grow
  memories: measureMemories,
  search: measureSearch,
  journal: measureJournal,
  reflect: measureReflect,
  ab: measureAb,
  models: measureModels,
};

const { values: options, positionals } = parseArgs({
  options: {
    daybookd: { type: 'string' },
    quick: { type: 'boolean', default: false },
    'build-million': { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const plan = options.quick ? QUICK : FULL;
const names = Object.keys(PARTS).filter((name) => positionals.length === 0 || positionals.includes(name));
const say = (text) => process.stderr.write(`bench: ${text}\n`);

const stage = makeStage(options.daybookd, plan);
let leaving = false;

/** Stops everything that was started and removes the data, exactly once. */
async function leave(status, why) {
  if (leaving) return;
  leaving = true;
  if (why) say(why);
  await stage.close();
  process.exit(status);
}

process.on('SIGINT', () => leave(130, 'interrupted'));
process.on('SIGTERM', () => leave(143, 'ended'));
const minutes = options['build-million'] ? 120 : plan.minutes;
setTimeout(() => leave(1, `not done within ${minutes} minutes; nothing was written`), minutes * 60_000);

try {
  if (options['build-million']) {
    say('building the memory of a million entries …');
    await buildMillion(stage);
    await leave(0);
  }
  const started = Date.now();
  await openStage(stage, plan, say);
  const results = {};
  for (const name of names) {
    say(`${name} …`);
    results[name] = await PARTS[name](stage, plan);
  }
  const text = render(results, plan, await machine(stage), (Date.now() - started) / 1000);
  process.stdout.write(text);
  if (!options.quick && positionals.length === 0) writeFileSync(new URL('../RESULTS.md', import.meta.url), text);
  await leave(0);
} catch (error) {
  await leave(1, error.stack);
}
