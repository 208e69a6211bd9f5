// POST /v1/regime: six buckets, unknown, and configurable thresholds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from '../lib/lessons.mjs';
import { exact, ledgerSuite, deploy, post, tickOf } from '../lib/ticks.mjs';

const s = ledgerSuite();
const classify = async (bars, thresholds) => (await s.api.post('/v1/regime', { bars, thresholds }, { status: 200 })).json;
const refused = async (body) => faults(await s.api.post('/v1/regime', body, { status: 422 }));

/** Closes that move by `move` in total and swing by `swing` around that path. */
const walk = (move, swing, count = 101) =>
  Array.from({ length: count }, (_, i) => 100 * (1 + (move * i) / (count - 1)) * (i % 2 ? 1 + swing : 1));

const BUCKETS = {
  trend_up_lowvol: walk(0.01, 0.001),
  trend_up_hivol: walk(0.01, 0.01),
  trend_down_lowvol: walk(-0.01, 0.001),
  trend_down_hivol: walk(-0.01, 0.01),
  chop_lowvol: walk(0.001, 0.001),
  chop_hivol: walk(-0.001, 0.01),
};

test('each of the six buckets is recognised', async () => {
  for (const [tag, bars] of Object.entries(BUCKETS))
    assert.deepEqual(await classify(bars), { regime: tag, bars: 101, thresholds: { trend: 0.005, vol: 0.004, min_bars: 12 } });
});

test('a tick stores the regime that this endpoint returns', async () => {
  const deployment = await deploy(s.query);
  const { ops } = (await post(s.api, deployment, tickOf(0, Object.keys(BUCKETS).map((tag) => [tag, 'long', '1', '10']), { bars: BUCKETS }))).json;
  assert.deepEqual(ops.map((op) => op.entry_regime_tag), Object.keys(BUCKETS).sort());
});

test('too few bars are unknown', async () => {
  const bars = walk(0.01, 0.001);
  for (const count of [0, 1, 11]) assert.equal((await classify(bars.slice(0, count))).regime, 'unknown', `${count} bars`);
  assert.equal((await classify(walk(0.01, 0.001, 12))).regime, 'trend_up_lowvol');
  assert.equal((await classify(walk(0.01, 0.001, 2), { min_bars: 2 })).regime, 'trend_up_lowvol'); // a single return has no deviation
  assert.equal((await classify(bars, { min_bars: 102 })).regime, 'unknown');
});

test('exactly at its threshold a move is chop and a deviation is high', async () => {
  const move = (last) => [100, ...Array(10).fill(100), last];
  assert.match((await classify(move(100.5), { vol: 1 })).regime, /^chop/);
  assert.match((await classify(move(100.51), { vol: 1 })).regime, /^trend_up/);
  assert.match((await classify(move(99.5), { vol: 1 })).regime, /^chop/);
  assert.match((await classify(move(99.49), { vol: 1 })).regime, /^trend_down/);
  assert.equal((await classify(Array(12).fill(100), { trend: 0, vol: 0 })).regime, 'chop_hivol');
});

test('each threshold can be set separately and is returned as it was set', async () => {
  const bars = BUCKETS.trend_up_lowvol;
  assert.deepEqual(await classify(bars, { trend: 0.02 }), { regime: 'chop_lowvol', bars: 101, thresholds: { trend: 0.02, vol: 0.004, min_bars: 12 } });
  assert.deepEqual(await classify(bars, { vol: 0.0005, trend: null, min_bars: null }), { regime: 'trend_up_hivol', bars: 101, thresholds: { trend: 0.005, vol: 0.0005, min_bars: 12 } });
  const answer = await s.api.post('/v1/regime', { bars, thresholds: { trend: exact('0.0050'), vol: exact('4e-3') } }, { status: 200 });
  assert.ok(answer.text.includes('"trend":0.0050,"vol":4e-3,"min_bars":12'), answer.text);
  assert.equal((await classify(bars, {})).regime, 'trend_up_lowvol');
  assert.equal((await classify(bars, null)).regime, 'trend_up_lowvol');
});

test('an invalid window of closes is rejected by name', async () => {
  assert.deepEqual(await refused({}), ['bars: required']);
  assert.deepEqual(await refused({ bars: null }), ['bars: required']);
  assert.deepEqual(await refused({ bars: '1,2' }), ['bars: wrong_type']);
  assert.deepEqual(await refused({ bars: [1, 0, -2, '3', null] }), ['bars[1]: out_of_range', 'bars[2]: out_of_range', 'bars[3]: wrong_type', 'bars[4]: wrong_type']);
  assert.deepEqual(await refused({ bars: Array(50_001).fill(1) }), ['bars: too_many']);
  assert.deepEqual(await refused({ bars: [1], window: 5 }), ['window: unknown_field']);
  assert.deepEqual(await refused({ bars: [1], thresholds: { trend: -1, vol: 101, min_bars: 1, mood: 1 } }), ['thresholds.min_bars: out_of_range', 'thresholds.mood: unknown_field', 'thresholds.trend: out_of_range', 'thresholds.vol: out_of_range']);
  assert.deepEqual(await refused({ bars: [1], thresholds: { min_bars: 2.5 } }), ['thresholds.min_bars: wrong_type']);
  assert.equal((await s.api.post('/v1/regime', '{"bars":[1,NaN]}', { status: 400 })).json.code, 'invalid_json');
  assert.equal((await s.api.post('/v1/regime', '{"bars":[1,1e999]}', { status: 400 })).json.code, 'number_out_of_range');
  assert.equal((await s.api.post('/v1/regime', JSON.stringify({ bars: Array(1_000_000).fill(1) }), { status: 413 })).json.code, 'body_too_large');
});

test('prices near the limits of a double are classified', async () => {
  const scaled = (factor) => BUCKETS.trend_down_hivol.map((close) => exact(`${close.toFixed(6)}e${factor}`));
  for (const factor of [-300, -20, 20, 300]) assert.equal((await classify(scaled(factor))).regime, 'trend_down_hivol', `e${factor}`);
  assert.equal((await classify([exact('1e-300'), ...Array(11).fill(exact('1e300'))])).regime, 'unknown');
  assert.equal((await classify(Array(50_000).fill(1))).bars, 50_000);
});

test('the same window yields the same bytes', async () => {
  const { text, headers } = await s.api.post('/v1/regime', { bars: BUCKETS.chop_hivol });
  for (let i = 0; i < 3; i++) assert.equal((await s.api.post('/v1/regime', { bars: BUCKETS.chop_hivol }, { headers: { 'idempotency-key': `regime-${i}` } })).text, text);
  assert.equal(headers['idempotency-replayed'], undefined);
});
