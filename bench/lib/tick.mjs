// Ticks that open a trade and ticks that update three, one per request or in bulk.
import http from 'node:http';
import { processUs } from './cpu.mjs';
import { holdingDeployments, newDeployments, postTick, updateTick, writeIds } from './ledger.mjs';
import { preparePgbench } from './pgbench.mjs';
import { recordStatements } from './statements.mjs';
import {
  CLIENTS,
  CONNECTIONS,
  cpuNow,
  cpuUsed,
  daybookContender,
  pgbenchContender,
  rounds,
} from './throughput.mjs';

export const LEVELS = [1, 16, CONNECTIONS];
const DEPLOYMENTS = 1024; // far more than connections: see wrk/deployments.lua
const OPENS_A_SECOND = 10_000; // more than a machine with two cores can commit

/** Creates pgbench's deployments and records what the service sends to the database for a tick of each. */
async function recordTicks(stage) {
  const ids = await holdingDeployments(stage, CLIENTS);
  const { tick_write } = await recordStatements(stage, ['tick_write'], async (base) => {
    for (const id of ids) await postTick(base, id, updateTick(1));
  });
  return tick_write.sent.map((values) => Object.fromEntries(tick_write.params.map((param, i) => [param, values[i]])));
}

/**
 * Stores the recorded ticks for pgbench (`sent`: values by parameter, one tick per client) as templates for new ids and times. `texts` are
 * the parameters that contain these. Each client has its own deployment.
 */
async function prepareTicks(stage, sent) {
  const marks = ({ snapshot_id, tick_at }) => [snapshot_id, tick_at.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)];
  const texts = Object.keys(sent[0]).filter((param) => marks(sent[0]).some((mark) => sent[0][param]?.includes(mark)));
  const variables = Object.fromEntries(
    Object.entries(sent[0]).filter(([param, value]) => value !== null && !texts.includes(param)),
  );
  stage.tick = { texts, variables };
  await stage.query(
    `create table bench.ticks (n integer primary key, id uuid, ${texts.map((text) => `${text} text`).join(', ')}) with (toast_tuple_target = 8160)`,
  );
  for (const [n, values] of sent.entries()) {
    const [id, at] = marks(values);
    const templates = texts.map((text) =>
      values[text].replaceAll('%', '%%').replaceAll(id, '%1$s').replaceAll(at, '%2$s'),
    );
    const places = ['$1', '$2', ...texts.map((_, i) => `$${i + 3}`)];
    await stage.query(`insert into bench.ticks values (${places.join(', ')})`, [n, values.id, ...templates]);
  }
  // Ids in ascending order, like those of the service.
  await stage.query(
    `create function bench.next_tick(deployment uuid, nth integer, out id text, out at text) language plpgsql as $$
     declare
       ms text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0');
     begin
       id := left(ms, 8) || '-' || right(ms, 4) || '-7' || substr(gen_random_uuid()::text, 16);
       at := (select to_char(a.last_tick_at + nth * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS')
              from daybook.agent_state as a where a.owner = 'local' and a.deployment_id = deployment);
     end $$`,
  );
  await stage.query('vacuum analyze bench.ticks');
}

/** Daybook opening trades, each in a new deployment. */
function openContender(stage, connections) {
  const contender = daybookContender(stage, `open ${connections}`, 'tick_open', connections, { more: ['tick_open.txt'] });
  return {
    ...contender,
    async before(seconds) {
      const missing = seconds * OPENS_A_SECOND - stage.fresh.length;
      if (missing > 0) stage.fresh.push(...(await newDeployments(stage, missing)));
      writeIds(stage, 'tick_open.txt', stage.fresh);
    },
    async measure(seconds) {
      const run = await contender.measure(seconds);
      stage.fresh.splice(0, run.requests + run.failed + connections); // some were still in flight at the end
      return run;
    },
  };
}

/** Rejected and replayed ticks do not count. */
function allStored(stage, contender) {
  const stored = async () => Number((await stage.query('select sum(ticks) as n from daybook.agent_state'))[0].n);
  const measure = async (seconds) => {
    const before = await stored();
    const run = await contender.measure(seconds);
    const ticks = (await stored()) - before;
    if (run.refused || ticks < run.requests)
      throw new Error(
        `${contender.name}: ${run.requests} ticks were answered, ${ticks} stored, ${run.refused ?? 0} refused`,
      );
    return run;
  };
  return { ...contender, measure };
}

/** Posts the lines in one body; resolves with the last line of the response. */
function postLines(base, path, lines) {
  return new Promise((resolve, reject) => {
    const req = http.request(
      base + path,
      { method: 'POST', headers: { 'content-type': 'application/x-ndjson', 'content-length': Buffer.byteLength(lines) } },
      (res) => {
        let last = '';
        res
          .setEncoding('utf8')
          .on('data', (part) => (last = (last + part).slice(-1000)))
          .on('end', () => resolve(last.trimEnd().split('\n').at(-1)));
      },
    );
    req.on('error', reject);
    req.end(lines);
  });
}

/** One body with many ticks of a new deployment, however long it takes. */
function bulkContender(stage, name, count) {
  const { base, pid } = stage.service;
  const lines = Array.from({ length: count }, (_, i) => `${JSON.stringify(updateTick(i + 1))}\n`).join('');
  const now = () =>
    cpuNow(
      stage,
      () => processUs(pid),
      () => 0,
    );
  let id;
  return {
    name,
    before: async () => ([id] = await holdingDeployments(stage, 1)),
    async measure() {
      const start = now();
      const last = await postLines(base, `/v1/deployments/${id}/ticks/bulk`, lines);
      const end = now();
      const { done, applied } = JSON.parse(last);
      if (!done || applied !== count) throw new Error(`bulk: ${last}`);
      return { rps: (count / (end.at - start.at)) * 1000, requests: count, failed: 0, cpu: cpuUsed(start, end, count) };
    },
  };
}

/**
 * {name of the contender: runs}: `open` and `update` with the number of connections, pgbench doing the
 * updates, and Daybook with many of them in one body.
 */
export async function measureTick(stage, plan) {
  await prepareTicks(stage, await recordTicks(stage));
  await preparePgbench(stage, 'tick_update');
  writeIds(stage, 'tick_update.txt', await holdingDeployments(stage, DEPLOYMENTS));
  for (const table of ['deployments', 'agent_state', 'decision_snapshots', 'trade_history'])
    await stage.query(`vacuum analyze daybook.${table}`);

  stage.fresh = []; // deployments that have never ticked
  const all = [
    ...LEVELS.map((connections) =>
      daybookContender(stage, `update ${connections}`, 'tick_update', connections, { more: ['tick_update.txt'] }),
    ),
    pgbenchContender(stage, 'update pgbench', 'tick_update', CLIENTS),
    bulkContender(stage, 'update bulk', plan.bulkTicks),
    ...LEVELS.map((connections) => openContender(stage, connections)),
  ];
  return rounds(
    all.map((contender) => allStored(stage, contender)),
    plan.rounds,
    plan.ledgerSeconds,
    async (contender, time) => {
      await contender.before?.(time);
      await stage.query('checkpoint'); // as for POST /v1/lessons
    },
  );
}
