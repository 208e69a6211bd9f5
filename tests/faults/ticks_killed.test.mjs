// The service, and sometimes PostgreSQL, is killed with -9 at random moments under a stream of ticks. The runners retry until they get a
// response, and the final ledger equals that of an uninterrupted run.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerTo, assertRetried, killUnder, startWriter } from '../lib/killed.mjs';
import { suite } from '../lib/suite.mjs';
import { deploy, exact, hashOf, ledgerOf, postBulk, randomOf, tickOf, ticksPath } from '../lib/ticks.mjs';

const KILLS = 50;
const EVERY_NTH_BOTH = 10; // of the kills also kill PostgreSQL
const RUNNERS = 5; // the last one posts in bulk
const BULK_LINES = 10;

const s = suite({ cluster: { durable: true, settings: { timezone: 'UTC' } } });

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

/** Posts one tick, with or without a key: {text, replayed} if there was a response. */
async function sendOne(number, deployment, n) {
  const headers = number % 2 ? { 'idempotency-key': `runner-${number}-${n}` } : {};
  const answer = await answerTo(s, (api) => api.post(ticksPath(deployment), tickAt(number, n), { headers, check: n % 7 === 0 }));
  return answer ? [{ text: answer.text, replayed: answer.json.replayed }] : [];
}

/** Posts the next few ticks in one body; returns the lines received before it broke off. */
async function sendMany(number, deployment, n) {
  const ticks = Array.from({ length: BULK_LINES }, (_, i) => tickAt(number, n + i));
  const answer = await answerTo(s, (api) => postBulk(api, deployment, ticks, { status: undefined, check: false }));
  if (!answer) return [];
  const { problem } = answer.lines.at(-1);
  if (problem) assertRetried(problem);
  return answer.lines.filter((l) => !l.problem).map(({ line, ...rest }) => ({ text: JSON.stringify(rest), replayed: rest.replayed }));
}

/** Posts ticks in order. Every other runner sends an Idempotency-Key, the last one posts in bulk. */
async function startRunner(number) {
  const deployment = await deploy(s.query, { cadence: 'per_n_trades', everyN: 5 });
  const send = number === RUNNERS - 1 ? sendMany : sendOne;
  return Object.assign(startWriter(number, (n) => send(number, deployment, n)), { deployment });
}

test(`killed ${KILLS} times under a stream of ticks, the ledger equals that of an uninterrupted run`, async (t) => {
  const begun = Date.now();
  const runners = [];
  for (let i = 0; i < RUNNERS; i++) runners.push(await startRunner(i));
  await killUnder(s, runners, { kills: KILLS, nthBoth: EVERY_NTH_BOTH, seed: 20260604 });
  const killed = (Date.now() - begun) / 1000;

  for (const { name: number, deployment, answers } of runners) {
    const quiet = await deploy(s.query, { cadence: 'per_n_trades', everyN: 5 });
    for (const [n, { text }] of answers.entries()) {
      const again = await s.api.post(ticksPath(deployment), tickAt(number, n), { status: 200, check: false });
      assert.equal(again.text, text.replace(/"replayed":false}$/, '"replayed":true}'), `runner ${number}, tick ${n}: what was answered is what is stored`);
      await s.api.post(ticksPath(quiet), tickAt(number, n), { status: 200, check: false });
    }
    const [ledger, expected] = [await ledgerOf(s.query, deployment), await ledgerOf(s.query, quiet)];
    assert.equal(hashOf(ledger), hashOf(expected), `runner ${number}`);
    assert.equal(ledger, expected);
  }
  const answers = runners.flatMap((r) => r.answers);
  const retries = runners.reduce((n, r) => n + r.retries, 0);
  t.diagnostic(`${KILLS} kills, ${KILLS / EVERY_NTH_BOTH} with PostgreSQL: ${answers.length} ticks, ${retries} retries, ${answers.filter((a) => a.replayed).length} ticks that were stored and not answered; ${killed.toFixed(1)} s under fire, ${((Date.now() - begun) / 1000).toFixed(1)} s in all`);
});
