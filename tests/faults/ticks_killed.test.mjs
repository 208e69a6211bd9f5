// The service, and sometimes PostgreSQL, is killed with -9 at random moments under a stream of ticks. The runners retry until they are
// answered, and the ledger is in the end the one that nobody interrupted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { sleep } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';
import { deploy, exact, hashOf, ledgerOf, postBulk, randomOf, tickOf, ticksPath } from '../lib/ticks.mjs';

const KILLS = 50;
const EVERY_NTH_BOTH = 10; // of them: PostgreSQL goes too
const RUNNERS = 5; // the last one posts many ticks at once
const BULK_LINES = 10;
const random = randomOf(20260604);

let cluster, database, service;
const query = (sql, values) => cluster.query(database, sql, values);

before(async () => {
  cluster = await startCluster({ durable: true, settings: { timezone: 'UTC' } });
  database = await cluster.createDatabase();
});
after(async () => {
  try {
    await service?.stop();
  } finally {
    await cluster?.close();
  }
});

const BARS = Array.from({ length: 12 }, (_, i) => 100 + i);

/** The nth tick of a runner: opens, adds, partial closes, flips, closes, fees, several days. */
function tickAt(runner, n) {
  const dice = randomOf(runner * 1_000_003 + n);
  const positions = [];
  for (const symbol of ['BTC', 'ETH', 'SOL', 'DOGE'])
    if (dice() < 0.65) positions.push([symbol, dice() < 0.75 ? 'long' : 'short', `${1 + Math.floor(dice() * 5)}.25`, `${50 + Math.floor(dice() * 100)}.0001`]);
  return tickOf(n * 61, positions, {
    marks: { BTC: 100, ETH: 101, SOL: exact('102.50'), DOGE: exact('0.0000964') },
    fees: positions.map(([symbol]) => ({ symbol, fees_usd: exact('0.013') })),
    bars: { BTC: BARS },
    proposed_action: { kind: dice() < 0.5 ? 'adjust_position' : 'hold', reason: `runner ${runner}, step ${n}` },
    engine: { kind: dice() < 0.8 ? 'executed' : 'rejected', rule: 'R3_POSITION_CAP' },
  });
}

const RETRIED = ['database_unavailable', 'outcome_unknown', 'shutting_down', 'overloaded', 'idempotency_in_progress', 'request_timeout'];

const isNetwork = (error) => (error.code && error.code !== 'ERR_ASSERTION' ? null : Promise.reject(error));

/** One tick, with a key or without: {text, replayed}, or null when it was not answered. */
async function sendOne({ number, deployment }, n) {
  const headers = number % 2 ? { 'idempotency-key': `runner-${number}-${n}` } : {};
  const answer = await service?.api.post(ticksPath(deployment), tickAt(number, n), { headers, check: n % 7 === 0 }).catch(isNetwork);
  if (answer?.status === 200) return [{ text: answer.text, replayed: answer.json.replayed }];
  if (answer) assert.ok(RETRIED.includes(answer.json.code), answer.text);
  return [];
}

/** The next few ticks in one body: those that were answered before it broke off. */
async function sendMany({ number, deployment }, n) {
  const ticks = Array.from({ length: BULK_LINES }, (_, i) => tickAt(number, n + i));
  const answer = await (service && postBulk(service.api, deployment, ticks, { status: undefined, check: false }).catch(isNetwork));
  if (!answer?.lines) {
    if (answer) assert.ok(RETRIED.includes(answer.json.code), answer.text);
    return [];
  }
  const { problem } = answer.lines.at(-1);
  if (problem) assert.ok(RETRIED.includes(problem.code), JSON.stringify(problem));
  return answer.lines.filter((l) => !l.problem).map(({ line, ...rest }) => ({ text: JSON.stringify(rest), replayed: rest.replayed }));
}

/** Posts ticks in order, each until it is answered. Every other runner sends an Idempotency-Key, the last one many at once. */
function startRunner(number, deployment) {
  const runner = { number, deployment, answers: [], retries: 0, replays: 0 };
  const send = number === RUNNERS - 1 ? sendMany : sendOne;
  let going = true;
  const done = (async () => {
    for (let answered = []; going || !answered.length; ) { // what was sent last may be stored without an answer: it is asked for again
      answered = await send(runner, runner.answers.length);
      for (const { text, replayed } of answered) {
        runner.answers.push(text);
        runner.replays += replayed;
      }
      if (answered.length) continue;
      runner.retries++;
      await sleep(10);
    }
  })();
  done.catch(() => {}); // seen by stop()
  runner.stop = () => ((going = false), done);
  return runner;
}

async function begin() {
  service = await startService(cluster.url(database));
  service.api = makeClient(service.base);
}

async function killAll({ both }) {
  const dying = service;
  service = null;
  if (both) await Promise.all([cluster.kill(), dying.kill()]);
  else await dying.kill();
  dying.api.close();
  if (both) await cluster.start();
}

test(`killed ${KILLS} times under a stream of ticks, the ledger is the one of a runner that nobody interrupted`, async (t) => {
  const begun = Date.now();
  await begin();
  const runners = [];
  for (let i = 0; i < RUNNERS; i++) runners.push(startRunner(i, await deploy(query, { cadence: 'per_n_trades', everyN: 5 })));
  const total = () => runners.reduce((sum, r) => sum + r.answers.length, 0);
  let both = 0;
  for (let i = 0; i < KILLS; i++) {
    const before = total();
    await until(() => total() > before, 'ticks are taken', 30_000);
    await sleep(random() * 100);
    const postgres = i % EVERY_NTH_BOTH === EVERY_NTH_BOTH - 1;
    both += postgres;
    await killAll({ both: postgres });
    await begin();
  }
  await Promise.all(runners.map((r) => r.stop()));
  const killed = (Date.now() - begun) / 1000;

  for (const { number, deployment, answers } of runners) {
    const quiet = await deploy(query, { cadence: 'per_n_trades', everyN: 5 });
    for (const [n, text] of answers.entries()) {
      const again = await service.api.post(ticksPath(deployment), tickAt(number, n), { status: 200, check: false });
      assert.equal(again.text, text.replace(/"replayed":false}$/, '"replayed":true}'), `runner ${number}, tick ${n}: what was answered is what is stored`);
      await service.api.post(ticksPath(quiet), tickAt(number, n), { status: 200, check: false });
    }
    const [ledger, expected] = [await ledgerOf(query, deployment), await ledgerOf(query, quiet)];
    assert.equal(hashOf(ledger), hashOf(expected), `runner ${number}`);
    assert.equal(ledger, expected);
  }
  const sum = (of) => runners.reduce((n, r) => n + r[of], 0);
  t.diagnostic(`${KILLS} kills, ${both} with PostgreSQL: ${total()} ticks, ${sum('retries')} retries, ${sum('replays')} ticks that were stored and not answered; ${killed.toFixed(1)} s under fire, ${((Date.now() - begun) / 1000).toFixed(1)} s in all`);
  assert.ok(total() > KILLS && sum('retries') >= KILLS, 'the kills were seen');
});
