// Clients that write through one service, retry until they are acknowledged, and remember what was.
import assert from 'node:assert/strict';
import { makeClient } from '../lib/client.mjs';
import { sleep } from '../lib/faults.mjs';
import { assertRetried } from '../lib/killed.mjs';
import { distinctTakeaway, newLesson } from '../lib/lessons.mjs';
import { eventually } from '../lib/processes.mjs';
import { deploy, tickOf, ticksPath } from '../lib/ticks.mjs';

const PAUSE_MS = 100; // between the writes of a writer: load is not the point

let numbers = 0;

/** Sends `ask` until one of the statuses answers; anything but a success must be an error that a failover can cause. */
async function acknowledged(ask, status, goesOn) {
  for (;;) {
    const answer = await ask().catch((error) => (error.code && error.code !== 'ERR_ASSERTION' ? null : Promise.reject(error)));
    if (answer?.status === status) return true;
    if (answer) assertRetried(answer.json);
    if (!goesOn()) return false;
    await sleep(PAUSE_MS);
  }
}

/**
 * Two writers of lessons with keys and one of ticks. `lessons` and `ticks` are what was acknowledged, `at` when.
 * `stop()` lets each get its last answer.
 */
export async function startWriters(name, service, query) {
  const api = makeClient(service.base);
  const deployment = await deploy(query);
  const writers = { name, deployment, lessons: [], ticks: [], at: [] };
  let going = true;
  let givenUp = false;
  const goesOn = () => !givenUp;

  const keep = async (list, item, ask, status) => {
    if (!(await acknowledged(ask, status, goesOn))) return;
    list.push(item);
    writers.at.push(Date.now());
    await sleep(PAUSE_MS);
  };
  const lessons = async () => {
    while (going) {
      const takeaway = distinctTakeaway(numbers++);
      const options = { headers: { 'idempotency-key': `ha-${numbers}` } };
      const body = newLesson({ takeaway, tags: ['ha'] });
      await keep(writers.lessons, takeaway, () => api.post('/v1/lessons', body, options), 201);
    }
  };
  const ticks = async () => {
    for (let n = 0; going; n++) {
      const tick = tickOf(n, n % 3 ? [['BTC', 'long', 1 + (n % 5), 100 + (n % 7)]] : [], { marks: { BTC: 100 } });
      await keep(writers.ticks, Date.parse(tick.tick_at), () => api.post(ticksPath(deployment), tick), 200);
    }
  };
  const all = Promise.all([lessons(), lessons(), ticks()]);
  all.catch((error) => (writers.failed = error)); // reported by stop()

  writers.stop = async () => {
    going = false;
    try {
      await eventually(all, `the writers through ${name} are answered`);
    } finally {
      givenUp = true;
      api.close();
    }
  };
  return writers;
}

/** The longest time in milliseconds between two acknowledgements, of those that overlap with [from, to]. */
export function longestGap(at, from, to) {
  let longest = 0;
  for (let i = 1; i < at.length; i++) if (at[i] > from && at[i - 1] < to) longest = Math.max(longest, at[i] - at[i - 1]);
  return longest;
}

/** Compares what was acknowledged until now with the rows: {acknowledged, lost, doubled}. */
export async function compare(all, query) {
  const acked = all.map(({ deployment, lessons, ticks }) => ({ deployment, lessons: [...lessons], ticks: [...ticks] }));
  const lessons = new Map(
    (await query("SELECT takeaway, count(*)::int AS n FROM daybook.lessons WHERE version = 1 AND 'ha' = ANY (tags) GROUP BY takeaway")).map((r) => [r.takeaway, r.n]),
  );
  // The count of ticks in the same statement: it must be that of the snapshots.
  const snapshots = await query(
    `SELECT deployment_id AS id, extract(epoch FROM tick_at)::float8 * 1000 AS at, count(*)::int AS n,
            (SELECT s.ticks::int FROM daybook.agent_state AS s WHERE s.deployment_id = d.deployment_id) AS counted
       FROM daybook.decision_snapshots AS d GROUP BY 1, 2`,
  );
  const ticks = new Map(snapshots.map((r) => [`${r.id} ${r.at}`, r.n]));
  const found = { acknowledged: 0, lost: [], doubled: [...lessons, ...ticks].filter(([, n]) => n > 1).map(([what]) => what) };
  for (const { deployment } of acked) {
    const own = snapshots.filter((r) => r.id === deployment);
    if (own.some((r) => r.counted !== own.length)) found.doubled.push(`${own[0].counted} ticks counted, ${own.length} stored`);
  }
  for (const { lessons: ls, ticks: ts, deployment } of acked) {
    found.acknowledged += ls.length + ts.length;
    found.lost.push(...ls.filter((takeaway) => !lessons.has(takeaway)), ...ts.map((at) => `${deployment} ${at}`).filter((tick) => !ticks.has(tick)));
  }
  return found;
}

/** Fails if a writer has failed. */
export const assertWriting = (all) => all.forEach(({ failed, name }) => assert.equal(failed, undefined, `${name}: ${failed?.stack}`));
