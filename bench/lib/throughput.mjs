// Requests per second and CPU time: contenders take turns on the same machine and data.
import { endedChildrenUs, machineUs, processUs, treeUs } from './cpu.mjs';
import { pgbench, preparePgbench, refillPgbench } from './pgbench.mjs';
import { skipVectors } from './stage.mjs';
import { wrk } from './wrk.mjs';

export const CONNECTIONS = 64;
export const CLIENTS = 16;
const PIPELINED_CLIENTS = 4;

/** CPU time so far of everything involved: `own` is the contender, `generator` the load generator. */
export function cpuNow(stage, own, generator) {
  const us = {
    own: own(),
    generator: generator(),
    postgres: treeUs(stage.postmaster),
    runner: processUs(process.pid),
    ...machineUs(),
  };
  return { ...us, at: performance.now() };
}

/** µs per request, and the share of the machine that other programs used. */
export function cpuUsed(before, after, requests) {
  const used = (what) => after[what] - before[what];
  const ours = used('own') + used('postgres') + used('generator') + used('runner');
  const wallUs = (after.at - before.at) * 1000;
  return {
    own: used('own') / requests,
    postgres: used('postgres') / requests,
    generator: used('generator') / requests,
    others: Math.max(0, used('busy') - ours) / wallUs,
    steal: used('steal') / wallUs,
  };
}

/** `more` are further arguments of wrk's script. */
function httpContender(stage, name, server, own, kind, connections, { more = [] } = {}) {
  return {
    name,
    async measure(seconds) {
      const before = cpuNow(stage, own, endedChildrenUs);
      const { requests, seconds: took, ...said } = await wrk(stage, server.base, kind, connections, seconds, more);
      const after = cpuNow(stage, own, endedChildrenUs);
      return { rps: requests / took, requests, ...said, cpu: cpuUsed(before, after, requests) };
    },
  };
}

export const daybookContender = (stage, name, kind, connections, { service = stage.service, ...options } = {}) =>
  httpContender(stage, name, service, () => processUs(service.pid), kind, connections, options);

export function pgbenchContender(stage, name, kind, clients, { mode, pipelined = false } = {}) {
  return {
    name,
    async measure(seconds) {
      let pid;
      let before;
      let after;
      const now = () =>
        cpuNow(
          stage,
          () => processUs(pid),
          () => 0,
        );
      const {
        requests,
        seconds: took,
        ...times
      } = await pgbench(stage, kind, {
        clients,
        mode,
        pipelined,
        seconds,
        atStart: (id) => {
          pid = id;
          before = now();
        },
        atEnd: () => (after = now()),
      });
      const rps = requests / took;
      return {
        rps,
        requests,
        failed: 0,
        ...times,
        mean: pipelined ? undefined : (clients / rps) * 1e6,
        cpu: cpuUsed(before, after, requests),
      };
    },
  };
}

function contenders(stage, kind, connections, clients) {
  const all = [
    daybookContender(stage, 'daybook', kind, connections),
    pgbenchContender(stage, 'pgbench', kind, clients),
    httpContender(stage, 'fastify', stage.fastify, () => treeUs(stage.fastify.pid), kind, connections),
  ];
  if (kind !== 'create' && clients > 1)
    all.push(pgbenchContender(stage, 'pipelined', kind, PIPELINED_CLIENTS, { pipelined: true }));
  return all;
}

/** Prepares each contender equally (`before`) and measures it; each round starts with another contender. */
export async function rounds(all, count, seconds, before = () => {}) {
  const runs = Object.fromEntries(all.map(({ name }) => [name, []]));
  const once = async (contender, time) => {
    await before(contender, time);
    return contender.measure(time);
  };
  for (const contender of all) await once(contender, Math.min(seconds, 2)); // warm-up: caches, plans, compiled code
  for (let round = 0; round < count; round++)
    for (let i = 0; i < all.length; i++) {
      const contender = all[(round + i) % all.length];
      runs[contender.name].push(await once(contender, seconds));
    }
  return runs;
}

const refill = (stage, kind) => async (contender, seconds) => {
  await refillPgbench(stage, kind, seconds);
  // The first change of a page after a checkpoint logs the whole page, so every contender starts after a checkpoint.
  if (kind !== 'create') return;
  await skipVectors(stage.query);
  await stage.query('checkpoint');
};

export async function measureThroughput(stage, plan, kind) {
  await preparePgbench(stage, kind);
  return rounds(contenders(stage, kind, CONNECTIONS, CLIENTS), plan.rounds, plan.seconds, refill(stage, kind));
}

/** One request at a time: {get, list}. */
export async function measureLatency(stage, plan) {
  const results = {};
  for (const kind of ['get', 'list']) {
    await preparePgbench(stage, kind);
    results[kind] = await rounds(
      contenders(stage, kind, 1, 1),
      plan.rounds,
      plan.oneConnectionSeconds,
      refill(stage, kind),
    );
  }
  return results;
}
