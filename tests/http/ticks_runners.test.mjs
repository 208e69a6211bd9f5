// Several runners post ticks of one deployment to two services concurrently: one order, no lost update, the ledger of a single runner.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { until } from '../lib/processes.mjs';
import { bytesOf, deploy, exact, ledgerOf, ledgerSuite, post, randomOf, rowsOf, tickOf, ticksPath } from '../lib/ticks.mjs';

let other, apis;
const s = ledgerSuite({
  prepare: async () => {
    other = await s.another();
    apis = [s.api, makeClient(other.base)];
  },
});
after(() => other?.stop());

const BAR = Array.from({ length: 12 }, (_, i) => 100 + i);

/** A stream with opens, adds, partial closes, flips, closes and fees. */
function stream(count, seed = 1) {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, i) => {
    const positions = [];
    for (const symbol of ['BTC', 'ETH', 'SOL'])
      if (random() < 0.7) positions.push([symbol, random() < 0.8 ? 'long' : 'short', `${1 + Math.floor(random() * 4)}.5`, `${100 + Math.floor(random() * 50)}.25`]);
    return tickOf(i * 37, positions, { marks: { BTC: 110, ETH: 120, SOL: 130 }, bars: { BTC: BAR }, fees: [{ symbol: 'BTC', fees_usd: exact('0.10') }], proposed_action: { kind: 'propose_order', reason: `step ${i}` }, engine: { kind: 'executed' } });
  });
}

/** The ledger of a single runner that posts exactly these ticks. */
async function alone(ticks) {
  const deployment = await deploy(s.query, { cadence: 'per_n_trades', everyN: 3 });
  for (const tick of ticks) await post(s.api, deployment, tick);
  return ledgerOf(s.query, deployment);
}

const contended = () => deploy(s.query, { cadence: 'per_n_trades', everyN: 3 });

test('the same ticks from six runners are stored once, and all runners get the same responses', async () => {
  const ticks = stream(60);
  const deployment = await contended();
  const runner = async (n) => {
    const answers = [];
    for (const tick of ticks) answers.push((await post(apis[n % 2], deployment, tick)).text);
    return answers;
  };
  const answers = await Promise.all([0, 1, 2, 3, 4, 5].map(runner));
  for (const i of ticks.keys()) {
    const texts = answers.map((a) => a[i]);
    assert.equal(texts.filter((text) => text.endsWith('"replayed":false}')).length, 1, `tick ${i} was stored by one of them`);
    assert.equal(new Set(texts.map((text) => text.replace('"replayed":true', '"replayed":false'))).size, 1, `tick ${i} has one answer`);
  }
  assert.equal(await ledgerOf(s.query, deployment), await alone(ticks));
});

test('interleaved different ticks: the ledger is that of the accepted ticks, in their order', async () => {
  let stored = 0;
  let late = 0;
  for (let round = 0; round < 4; round++) {
    const ticks = stream(80, 10 + round);
    const deployment = await contended();
    const kept = [];
    const runner = async (n) => {
      for (let i = n; i < ticks.length; i += 4) {
        const answer = await apis[n % 2].post(ticksPath(deployment), ticks[i]);
        if (answer.status === 200) kept.push(i);
        else {
          assert.deepEqual([answer.status, answer.json.code], [409, 'tick_out_of_order'], answer.text);
          late++;
        }
      }
    };
    await Promise.all([0, 1, 2, 3].map(runner));
    kept.sort((a, b) => a - b);
    stored += kept.length;
    assert.equal((await rowsOf(s.query, 'decision_snapshots', deployment)).length, kept.length);
    assert.ok(kept.includes(79), 'the last tick is never late');
    assert.equal(await ledgerOf(s.query, deployment), await alone(kept.map((i) => ticks[i])));
  }
  assert.equal(stored + late, 4 * 80);
});

/** Runs `work` with its tick writes blocked until `waiting` of them are pending, then releases them all at once. */
async function releaseTogether(deployment, waiting, work) {
  const holder = await s.cluster.connect(s.database);
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM daybook.agent_state WHERE deployment_id = $1 FOR UPDATE', [deployment]);
    const done = work();
    done.catch(() => {}); // awaited by the caller
    await until(async () => (await s.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND wait_event_type = 'Lock'")).length >= waiting, 'the writes wait');
    await holder.query('ROLLBACK');
    return await done;
  } finally {
    await holder.end();
  }
}

test('of ticks computed from the same state one wins, and the others are recomputed', async () => {
  for (let round = 0; round < 6; round++) {
    const ticks = stream(9, 100 + round);
    const deployment = await contended();
    await post(s.api, deployment, ticks[0]);
    const answers = await releaseTogether(deployment, 2, () => Promise.all(ticks.slice(1).map((tick, n) => apis[n % 2].post(ticksPath(deployment), tick))));
    const kept = [ticks[0], ...ticks.slice(1).filter((_, n) => answers[n].status === 200)];
    for (const answer of answers) if (answer.status !== 200) assert.equal(answer.json.code, 'tick_out_of_order', answer.text);
    assert.equal(answers.at(-1).status, 200, 'the latest is never rejected');
    assert.equal(await ledgerOf(s.query, deployment), await alone(kept));
  }
});

test('the same tick sent concurrently with and without a key is stored once', async () => {
  for (let round = 0; round < 4; round++) {
    const [first, second] = stream(2, 200 + round);
    const deployment = await contended();
    await post(s.api, deployment, first);
    const headers = (n) => (n % 2 ? { 'idempotency-key': `round-${round}-${n}` } : {});
    const answers = await releaseTogether(deployment, 2, () => Promise.all([0, 1, 2, 3, 4, 5].map((n) => apis[n % 2].post(ticksPath(deployment), second, { headers: headers(n), status: 200 }))));
    assert.equal(answers.filter((a) => a.json.replayed === false).length, 1);
    assert.equal(new Set(answers.map((a) => a.json.snapshot_id)).size, 1);
    assert.equal(await ledgerOf(s.query, deployment), await alone([first, second]));
  }
});

test('of concurrent ticks with different content for one instant, one is stored and the others are 409', async () => {
  const deployment = await contended();
  const versions = [1, 2, 3, 4].map((size) => tickOf(0, [['BTC', 'long', `${size}`, '100']]));
  const answers = await releaseTogether(deployment, 2, () => Promise.all(versions.map((tick, n) => apis[n % 2].post(ticksPath(deployment), tick))));
  assert.deepEqual(answers.map((a) => (a.status === 200 ? 'stored' : a.json.code)).sort(), ['stored', 'tick_conflict', 'tick_conflict', 'tick_conflict']);
  const winner = answers.findIndex((a) => a.status === 200);
  assert.equal(await ledgerOf(s.query, deployment), await alone([versions[winner]]));
});

test('ticks of one deployment do not wait for those of another', async () => {
  const [held, free] = [await contended(), await contended()];
  const [tick] = stream(1);
  await releaseTogether(held, 1, async () => {
    const waits = post(s.api, held, tick);
    for (const api of apis) for (let i = 0; i < 20; i++) await post(api, free, tickOf(i + (api === apis[1]) * 50));
    return waits;
  });
});

test('a deployment deleted while runners post is 404 for them, and nothing is left', async () => {
  for (let round = 0; round < 3; round++) {
    const deployment = await contended();
    const ticks = stream(200, 300 + round);
    let taken = 0;
    const runner = async (n) => {
      for (const tick of ticks) {
        const answer = await apis[n % 2].post(ticksPath(deployment), tick);
        // 409 is possible once: when the deployment is deleted between the two reads that detect an existing tick.
        assert.ok([200, 404, 409].includes(answer.status), answer.text);
        if (answer.status === 404) return true;
        taken++;
      }
    };
    const runners = Promise.all([0, 1, 2, 3].map(runner));
    await until(() => taken > 20, 'ticks are taken');
    await apis[round % 2]('DELETE', `/v1/deployments/${deployment}`, { status: 204 });
    assert.deepEqual(await runners, [true, true, true, true]);
    assert.equal((await bytesOf(s.query, deployment)).replaceAll(/[\n-]/g, ''), '');
  }
});
