// Kills, switchovers and a paused leader on three nodes, under writers through two services: every acknowledged write is there, once.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { sleep } from '../lib/faults.mjs';
import { ROOT } from '../lib/paths.mjs';
import { until } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';
import { missing, REST, startParts } from './parts.mjs';
import { assertWriting, compare, longestGap, startWriters } from './writers.mjs';

const MINUTES = Number(process.env.TEST_MINUTES ?? 0);
const ROUNDS = MINUTES ? Infinity : Number(process.env.TEST_ROUNDS ?? 12);
const TTL_MS = parse(readFileSync(join(ROOT, 'docker/ha/patroni.yml'), 'utf8')).bootstrap.dcs.ttl * 1000;

const say = (text) => console.log(`ha: ${text}`);
let ha;
const services = [];
const writers = [];

after(async () => {
  try {
    for (const each of writers) await each.stop().catch(() => {});
    for (const service of services) await service.kill();
  } finally {
    await ha?.close();
  }
});

/** Resolves once another node leads. */
const another = (old) =>
  until(async () => {
    const leader = await ha.leader();
    return leader && leader !== old && leader;
  }, 'another node leads');

/** Every service has acknowledged a few more writes. */
async function written(all, what) {
  const before = all.map((w) => w.at.length);
  await until(() => (assertWriting(all), all.every((w, i) => w.at.length > before[i] + 5)), `writes succeed again (${what})`);
}

/** What can happen to a set-up, by the name under which it is counted. Each undoes itself. */
const KINDS = {
  async 'node killed'(leader) {
    await leader.kill();
    await another(leader);
    leader.start();
  },
  async 'postmaster killed'(leader) {
    leader.killPostmaster();
  },
  async 'switchover'(leader) {
    const answer = await leader.rest('/switchover', { method: 'POST', headers: REST, body: JSON.stringify({ leader: leader.name }), signal: AbortSignal.timeout(60_000) });
    assert.equal(answer.status, 200, await answer.text());
    await another(leader);
  },
  async 'leader paused'(leader) {
    leader.pause();
    try {
      await Promise.all([another(leader), sleep(TTL_MS * 1.25)]);
      await written([writers[0]], 'through HAProxy, while the old leader is paused');
    } finally {
      leader.resume();
    }
  },
  async 'standby paused'() {
    const standby = await ha.synchronousStandby();
    standby.pause();
    try {
      await sleep(TTL_MS * 1.25);
      await written(writers, 'while the synchronous standby is paused');
    } finally {
      standby.resume();
    }
  },
  async 'etcd killed'(leader, round) {
    const member = ha.etcd[round % ha.etcd.length];
    await member.kill();
    await sleep(TTL_MS / 2);
    member.start();
  },
};

const median = (sorted) => sorted[Math.floor((sorted.length - 1) / 2)];
const seconds = (ms) => (ms / 1000).toFixed(1);

function report(rounds, found) {
  const count = (kind) => rounds.filter((r) => r.kind === kind).length;
  const kills = ['node killed', 'postmaster killed', 'etcd killed'].map((kind) => `${kind} ${count(kind)}`).join(', ');
  say(`${rounds.length} rounds: ${kills}, switchovers ${count('switchover')}, pauses ${count('leader paused') + count('standby paused')}`);
  say(`acknowledged ${found.acknowledged}, lost ${found.lost.length}, doubled ${found.doubled.length}`);
  say(`seconds without writes, median and worst:  ${writers.map((w) => w.name.padEnd(16)).join('')}`);
  for (const kind of Object.keys(KINDS).filter(count)) {
    const gaps = writers.map((_, i) => rounds.filter((r) => r.kind === kind).map((r) => r.gaps[i]).sort((a, b) => a - b));
    say(`  ${kind.padEnd(41)}${gaps.map((g) => `${seconds(median(g))} ${seconds(g.at(-1))}`.padEnd(16)).join('')}`);
  }
}

async function oneRound(kind, number) {
  const leader = await ha.leader();
  const from = Date.now();
  await KINDS[kind](leader, number);
  await ha.whole(kind);
  await written(writers, kind);
  const to = Date.now();
  const found = await compare(writers, (await ha.leader()).query);
  const gaps = writers.map((w) => longestGap(w.at, from, to));
  const without = writers.map((w, i) => `${w.name} ${seconds(gaps[i])} s`).join(', ');
  say(`round ${number + 1}: ${kind} (${leader.name}), without writes: ${without}; lost ${found.lost.length}, doubled ${found.doubled.length}`);
  return { kind, gaps };
}

test('no acknowledged write is lost or doubled on three nodes, and every writer recovers', async (t) => {
  const absent = missing();
  if (absent.length) {
    say(`skipped, because these are not installed: ${absent.join(', ')} (tools/setup ha)`);
    return t.skip();
  }
  ha = await startParts();
  for (const name of Object.keys(ha.url)) {
    const service = await startService(ha.url[name], { args: ['--loops', '1', '--log-format', 'json'] });
    services.push(service);
    writers.push(await startWriters(name, service, (await ha.leader()).query));
  }
  await written(writers, 'at the start');

  const kinds = Object.keys(KINDS);
  const end = Date.now() + MINUTES * 60_000;
  const rounds = [];
  for (let n = 0; n < ROUNDS && (!MINUTES || Date.now() < end); n++) rounds.push(await oneRound(kinds[n % kinds.length], n));

  for (const each of writers) await each.stop();
  const found = await compare(writers, (await ha.leader()).query);
  report(rounds, found);
  assert.deepEqual(found.lost.slice(0, 20), [], 'acknowledged but lost');
  assert.deepEqual(found.doubled.slice(0, 20), [], 'stored twice');
  for (const service of services) await service.stop();
});
