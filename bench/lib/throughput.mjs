// Requests a second and CPU time: contenders take turns on the same machine and data, round after round.
import { endedChildrenUs, machineUs, processUs, treeUs } from './cpu.mjs';
import { pgbench, preparePgbench, refillPgbench } from './pgbench.mjs';
import { wrk } from './wrk.mjs';

export const CONNECTIONS = 64;
const CLIENTS = 16;
const PIPELINED_CLIENTS = 4;

/** CPU of everything that takes part, as of now. `own` is the contender itself, `generator` what puts load on it. */
function cpuNow(stage, own, generator) {
  const us = {
    own: own(),
    generator: generator(),
    postgres: treeUs(stage.postmaster),
    runner: processUs(process.pid),
    ...machineUs(),
  };
  return { ...us, at: performance.now() };
}

/** Per request, in µs, and what anything else took of the machine meanwhile. */
function cpuUsed(before, after, requests) {
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

function httpContender(stage, name, server, own, kind, connections) {
  return {
    name,
    async measure(seconds) {
      const before = cpuNow(stage, own, endedChildrenUs);
      const { requests, failed, seconds: took, p50, p99 } = await wrk(stage, server.base, kind, connections, seconds);
      const after = cpuNow(stage, own, endedChildrenUs);
      return { rps: requests / took, failed, p50, p99, cpu: cpuUsed(before, after, requests) };
    },
  };
}

function pgbenchContender(stage, name, kind, clients, pipelined) {
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
      const { requests, seconds: took } = await pgbench(stage, kind, {
        clients,
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
        failed: 0,
        mean: pipelined ? undefined : (clients / rps) * 1e6,
        cpu: cpuUsed(before, after, requests),
      };
    },
  };
}

function contenders(stage, kind, connections, clients) {
  const all = [
    httpContender(stage, 'daybook', stage.service, () => processUs(stage.service.pid), kind, connections),
    pgbenchContender(stage, 'pgbench', kind, clients, false),
    httpContender(stage, 'fastify', stage.fastify, () => treeUs(stage.fastify.pid), kind, connections),
  ];
  if (kind !== 'create' && clients > 1) all.push(pgbenchContender(stage, 'pipelined', kind, PIPELINED_CLIENTS, true));
  return all;
}

/** Everyone gets the same start, then is measured; each round begins with another contender. */
async function rounds(stage, kind, all, count, seconds) {
  const runs = Object.fromEntries(all.map(({ name }) => [name, []]));
  const once = async (contender, time) => {
    await refillPgbench(stage, kind, time);
    // Pages that change for the first time after a checkpoint are logged whole: nobody shall find that done by another.
    if (kind === 'create') await stage.query('checkpoint');
    return contender.measure(time);
  };
  for (const contender of all) await once(contender, Math.min(seconds, 2)); // warm: caches, plans, compiled code
  for (let round = 0; round < count; round++)
    for (let i = 0; i < all.length; i++) {
      const contender = all[(round + i) % all.length];
      runs[contender.name].push(await once(contender, seconds));
    }
  return runs;
}

export async function measureThroughput(stage, plan, kind) {
  await preparePgbench(stage, kind);
  return rounds(stage, kind, contenders(stage, kind, CONNECTIONS, CLIENTS), plan.rounds, plan.seconds);
}

/** One request at a time: {get, list}. */
export async function measureLatency(stage, plan) {
  const results = {};
  for (const kind of ['get', 'list']) {
    await preparePgbench(stage, kind);
    results[kind] = await rounds(stage, kind, contenders(stage, kind, 1, 1), plan.rounds, plan.oneConnectionSeconds);
  }
  return results;
}
