// Valid and hostile traffic for as long as asked: node soak.mjs --minutes N. The memory and the descriptors of the service at the end are those of
// the start. Its build must not be sanitized, because a sanitizer keeps what was freed.
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { makeClient } from '../lib/client.mjs';
import { metric, settled, sleep } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';
import { randomOf } from '../lib/ticks.mjs';
import { attack, HOSTILE } from './hostile.mjs';
import { verify } from './verify.mjs';
import { makeWorld } from './world.mjs';
import { startWriters } from './writers.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '2' }, seed: { type: 'string', default: '1' } } });
const WARM_UP = 0.25; // of the time, at most:
const WARM_UP_MS = 120_000;
const ATTACKERS = 8;
const READERS = 4;
const GROWTH = 0.1; // of the resident memory, and:
const GROWTH_KB = 4096;

const say = (text) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);
const random = randomOf(Number(values.seed));

const READS = ['/v1/lessons?limit=20', '/v1/lessons/block', '/v1/lessons?text=writer', '/v1/episodic?limit=20', '/v1/decision_snapshots?limit=20', '/v1/trade_history?limit=20', '/v1/nothing', '/metrics', '/openapi.json'];

function startTraffic(world) {
  const counts = { reads: 0, exports: 0, searches: 0, attacks: 0 };
  const apis = world.services.map((s) => makeClient(`http://127.0.0.1:${s.process.port}`));
  let going = true;
  const each = (count, work) => Array.from({ length: count }, async (_, i) => {
    for (let n = i; going; n++) await work(apis[n % apis.length], n);
  });
  const all = [
    ...each(READERS, async (api, n) => {
      await api.get(READS[n % READS.length], { check: false });
      counts.reads++;
      await sleep(5);
    }),
    ...each(1, async (api) => {
      await api.get('/v1/lessons/export?format=jsonl&tags=w0', { check: false });
      counts.exports++;
      await sleep(200);
    }),
    ...each(1, async (api, n) => {
      await api.post('/v1/episodic/search', { text: `Question ${n}`, k: 5 }, { check: false });
      counts.searches++;
      await sleep(50);
    }),
    ...each(ATTACKERS, async (_, n) => {
      await attack(world.services[n % 2].process.port, HOSTILE[Math.floor(random() * HOSTILE.length)], random);
      counts.attacks++;
    }),
  ];
  const done = Promise.all(all);
  done.catch(() => {}); // reported by stop()
  return { counts, stop: async () => ((going = false), await done, apis.forEach((api) => api.close())) };
}

/** What each service holds once nothing is under way: {rss, descriptors, sessions}. */
async function sample(world) {
  const all = [];
  for (const { process, proxy } of world.services) {
    const api = makeClient(`http://127.0.0.1:${process.port}`);
    proxy.reset(); // the writers' idle connections
    await settled(api, { connections: 1, requests: 1 });
    await sleep(2_500); // streams return their memory a second after the last one
    const sessions = await metric(api, 'daybook_db_connections', '{lane="read"}') + await metric(api, 'daybook_db_connections', '{lane="write"}') + await metric(api, 'daybook_db_connections', '{lane="slow"}');
    const rss = Number(readFileSync(`/proc/${process.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]);
    all.push({ rss, descriptors: readdirSync(`/proc/${process.pid}/fd`).length, sessions });
    api.close();
  }
  return all;
}

const begun = Date.now();
const problems = [];
const unexpected = [];
const total = Number(values.minutes) * 60_000;
const world = await makeWorld({ disks: false, args: ['--max-spool-bytes', '1000000000'] });
try {
  say(`seed ${values.seed}, ${values.minutes} minutes, ${HOSTILE.length} kinds of hostile clients`);
  /** Runs all traffic until then, and stops it for a sample. */
  const phase = async (end, from) => {
    const writers = await startWriters(world, unexpected, from);
    const traffic = startTraffic(world);
    await until(() => Date.now() >= end || world.crashes.length, 'the time is over', total + 60_000);
    await Promise.all(writers.map((w) => w.stop()));
    await traffic.stop();
    return { writers, counts: traffic.counts, samples: await sample(world) };
  };
  const first = await phase(begun + Math.min(total * WARM_UP, WARM_UP_MS), 0);
  say(`warm: ${JSON.stringify(first.counts)}`);
  const last = await phase(begun + total, 100);
  say(`done: ${JSON.stringify(last.counts)}`);

  for (const [i, { name, process }] of world.services.entries()) {
    const [a, b] = [first.samples[i], last.samples[i]];
    const most = Math.round(a.rss * (1 + GROWTH) + GROWTH_KB);
    console.log(`service ${name}: resident ${a.rss} KB, then ${b.rss} KB (at most ${most}); descriptors ${a.descriptors}, then ${b.descriptors}; database connections ${a.sessions}, then ${b.sessions}`);
    if (b.rss > most) problems.push(`leak: service ${name} grew from ${a.rss} to ${b.rss} KB`);
    if (a.descriptors !== b.descriptors) problems.push(`leak: service ${name} has ${b.descriptors} descriptors instead of ${a.descriptors}`);
    if (process.child.exitCode !== null) problems.push(`crash: service ${name}`);
  }
  const checked = await verify(world, last.writers);
  problems.push(...checked.lost.map((l) => `lost: ${l}`), ...checked.doubled.map((l) => `doubled: ${l}`));
  for (const service of world.services) await service.stop().catch((error) => problems.push(`crash: ${error.message}`));
  problems.push(...world.crashes.map((l) => `crash: ${l}`), ...unexpected.map((l) => `unexpected answer: ${l}`));
  console.log(`${((Date.now() - begun) / 60_000).toFixed(1)} minutes; acknowledged ${JSON.stringify(checked.acknowledged)}; lost ${checked.lost.length}, doubled ${checked.doubled.length}, crashes ${world.crashes.length}, unexpected answers ${unexpected.length}`);
} finally {
  await world.close();
}
for (const problem of problems.slice(0, 20)) console.log(problem);
console.log(problems.length ? `soak: failed, ${problems.length} problems` : 'soak: passed');
process.exitCode = problems.length ? 1 : 0;
