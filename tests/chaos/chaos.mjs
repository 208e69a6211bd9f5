// Inflicts every fault again and again under writers that retry, for as long as asked: node chaos.mjs --minutes N. Nothing that was acknowledged may
// be lost or stored twice, no service may crash or leak, and every writer must recover.
import { parseArgs } from 'node:util';
import { makeClient } from '../lib/client.mjs';
import { settled, sleep } from '../lib/faults.mjs';
import { until, within } from '../lib/processes.mjs';
import { randomOf } from '../lib/ticks.mjs';
import { FAULTS } from './faults.mjs';
import { verify } from './verify.mjs';
import { makeWorld } from './world.mjs';
import { startWriters } from './writers.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '2' }, seed: { type: 'string', default: String(Date.now() % 1e6) }, only: { type: 'string' } } });
const HOLD_MS = 3_000; // a fault lasts up to this long
const PAUSE_MS = 500; // and the next one follows after up to this long
const RECOVER_MS = 120_000;

const say = (text) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);
const random = randomOf(Number(values.seed));
const seconds = (ms) => (ms / 1000).toFixed(2).padStart(8);

function shuffled(list) {
  const left = [...list];
  return Array.from(list, () => left.splice(Math.floor(random() * left.length), 1)[0]);
}

/** Inflicts the fault, heals it, and waits until every writer has written again; returns how long each took. */
async function runFault(world, writers, fault) {
  const heal = await fault.inflict(world, random);
  if (heal) await sleep(random() * HOLD_MS);
  const healed = Date.now();
  const times = new Map();
  for (const writer of writers) writer.onWrite = () => times.has(writer) || times.set(writer, Date.now() - healed);
  await heal?.();
  await until(() => times.size === writers.length, `every writer has recovered from: ${fault.kind}`, RECOVER_MS).catch((error) => {
    const stuck = writers.filter((w) => !times.has(w)).map((w) => `${w.number} (${w.kind})`);
    throw new Error(`${error.message}; these have not: ${stuck.join(', ')}`);
  });
  return [...times.values()];
}

async function runFaults(world, writers, faults, end, recovery) {
  for (let queue = []; Date.now() < end; ) {
    if (!queue.length) queue = shuffled(faults);
    const fault = queue.pop();
    const times = await runFault(world, writers, fault);
    recovery.get(fault.kind).push(times);
    say(`${fault.kind}: recovered in ${(Math.max(...times) / 1000).toFixed(2)} s`);
    if (world.crashes.length) return;
    await sleep(random() * PAUSE_MS);
  }
}

function summarize(recovery, writers, checked, begun) {
  console.log(`\n${'fault'.padEnd(32)}  times    median s   worst s   to recover, over all writers`);
  let inflicted = 0;
  for (const [kind, rounds] of recovery) {
    const all = rounds.flat().sort((a, b) => a - b);
    inflicted += rounds.length;
    if (all.length) console.log(`${kind.padEnd(32)}  ${String(rounds.length).padStart(5)}    ${seconds(all[all.length >> 1])}  ${seconds(all.at(-1))}`);
  }
  const total = Object.values(checked.acknowledged).reduce((a, b) => a + b, 0);
  console.log(`\n${inflicted} faults in ${((Date.now() - begun) / 60_000).toFixed(1)} minutes; ${total} acknowledged writes (${Object.entries(checked.acknowledged).map(([kind, n]) => `${n} ${kind}`).join(', ')}); ${writers.reduce((n, w) => n + w.retries, 0)} retries`);
}

const begun = Date.now();
const problems = [];
const unexpected = [];
const faults = FAULTS.filter((f) => !values.only || values.only.split(',').includes(f.kind));
const world = await makeWorld();
try {
  const usable = faults.filter((f) => {
    const why = f.unless?.(world);
    if (why) say(`skipped: ${f.kind} (${why})`);
    return !why;
  });
  const recovery = new Map(usable.map((f) => [f.kind, []]));
  say(`seed ${values.seed}, ${values.minutes} minutes, ${usable.length} kinds of faults`);
  const writers = await startWriters(world, unexpected);
  await until(() => writers.every((w) => w.ids.length > 5), 'every writer writes');
  await runFaults(world, writers, usable, begun + Number(values.minutes) * 60_000, recovery).catch((error) => problems.push(error.message));
  await within(RECOVER_MS, Promise.all(writers.map((w) => w.stop())), 'the last writes').catch((error) => problems.push(error.message));

  say('comparing');
  const checked = await verify(world, writers);
  for (const service of world.services) {
    const api = makeClient(`http://127.0.0.1:${service.process.port}`);
    service.proxy.reset();
    await settled(api, { connections: 1, requests: 1 }).catch((error) => problems.push(`leak: service ${service.name}: ${error.message}`));
    api.close();
    await service.stop().catch((error) => problems.push(`crash or leak: ${error.message}`));
  }
  await world.assertNothingLeft().catch((error) => problems.push(`leak: ${error.message}`));
  summarize(recovery, writers, checked, begun);
  problems.push(...checked.lost.map((l) => `lost: ${l}`), ...checked.doubled.map((l) => `doubled: ${l}`), ...world.crashes.map((l) => `crash: ${l}`), ...unexpected.map((l) => `unexpected answer: ${l}`));
  console.log(`lost ${checked.lost.length}, doubled ${checked.doubled.length}, crashes ${world.crashes.length}, leaks ${problems.filter((p) => p.includes('leak')).length}, unexpected answers ${unexpected.length}`);
} finally {
  await world.close();
}
for (const problem of problems.slice(0, 20)) console.log(problem);
console.log(problems.length ? `chaos: failed, ${problems.length} problems` : 'chaos: passed');
process.exitCode = problems.length ? 1 : 0;
