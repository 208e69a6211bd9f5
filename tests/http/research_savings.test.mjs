// Savings by reuse: counted by task type, at the cost per call that callers reported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, faults } from '../lib/lessons.mjs';
import { commit, prepare } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const savings = async (query = '') => (await s.api.get(`/v1/research/savings${query}`, { status: 200 })).json;

test('without reuse the savings are zero', async () => {
  assert.deepEqual(await savings(), {
    items: [],
    total: { calls_saved: 0, calls_made: 0, reuse_rate: null, calls_priced: 0, saved_usd: null },
    truncated: false,
  });
});

test('reads count as saved calls, entries as made calls, and costs add up exactly', async () => {
  for (const [task_type, n] of [
    ['tone', 2],
    ['odds', 1],
    ['never', 3],
  ])
    for (let i = 0; i < n; i++) await commit(s.api, { ticker: `T${i}`, task_type, created_at: day(10) });
  const reuse = (task_type, at, cost_usd) => prepare(s.api, { ticker: 'T0', task_type, as_of: day(at), cost_usd });
  for (const [at, cost] of [
    [11, 0.1],
    [12, 0.2],
    [13, undefined],
  ])
    assert.equal((await reuse('tone', at, cost)).source, 'cached');
  await reuse('odds', 12);
  // A rerun saves nothing.
  assert.equal((await prepare(s.api, { ticker: 'T0', task_type: 'odds', as_of: day(12), new_signals: { new_filing_since: true }, cost_usd: 9 })).source, 'fresh');
  const answer = await savings();
  assert.deepEqual(answer, {
    items: [
      { task_type: 'tone', calls_saved: 3, calls_made: 2, reuse_rate: 0.6, calls_priced: 2, saved_usd: 0.3 },
      { task_type: 'odds', calls_saved: 1, calls_made: 1, reuse_rate: 0.5, calls_priced: 0, saved_usd: null },
      { task_type: 'never', calls_saved: 0, calls_made: 3, reuse_rate: 0, calls_priced: 0, saved_usd: null },
    ],
    total: { calls_saved: 4, calls_made: 6, reuse_rate: 0.4, calls_priced: 2, saved_usd: 0.3 },
    truncated: false,
  });
});

test('a reuse by should_rerun counts as a saved call', async () => {
  const before = await savings('?task_type=odds');
  const { json } = await s.api.post('/v1/episodic/should_rerun', { ticker: 'T0', task_type: 'odds', as_of: day(13), cost_usd: 1.25 }, { status: 200 });
  assert.equal(json.rerun, false);
  const after = await savings('?task_type=odds');
  assert.deepEqual([after.total.calls_saved, after.total.saved_usd], [before.total.calls_saved + 1, 1.25]);
});

test('savings can be filtered by task type, time span and as_of', async () => {
  assert.deepEqual((await savings('?task_type=tone')).items.map((i) => i.task_type), ['tone']);
  assert.deepEqual((await savings('?task_type=tone')).total, {
    calls_saved: 3,
    calls_made: 2,
    reuse_rate: 0.6,
    calls_priced: 2,
    saved_usd: 0.3,
  });
  const tone = async (query) => (await savings(`?task_type=tone&${query}`)).total;
  assert.deepEqual(await tone(`as_of=${day(11)}`), { calls_saved: 1, calls_made: 2, reuse_rate: 0.333333, calls_priced: 1, saved_usd: 0.1 });
  assert.deepEqual(await tone(`as_of=${day(9)}`), { calls_saved: 0, calls_made: 0, reuse_rate: null, calls_priced: 0, saved_usd: null });
  assert.deepEqual(await tone(`since=${day(12)}`), { calls_saved: 2, calls_made: 0, reuse_rate: 1, calls_priced: 1, saved_usd: 0.2 });
  assert.deepEqual(await tone(`until=${day(12)}`), { calls_saved: 1, calls_made: 2, reuse_rate: 0.333333, calls_priced: 1, saved_usd: 0.1 });
});

test('savings survive the eviction or deletion of entries', async () => {
  const before = await savings('?task_type=tone');
  const { json } = await s.api.post('/v1/episodic/evict', { policies: ['time'], max_age_days: 1, task_type: 'tone', at: day(20), dry_run: false }, { status: 200 });
  assert.equal(json.evicted, 2);
  assert.deepEqual(await savings('?task_type=tone'), before);
  const { items } = (await s.api.get('/v1/episodic?ticker=T0&task_type=odds', { status: 200 })).json;
  await s.api('DELETE', `/v1/episodic/${items[0].id}`, { status: 204 });
  const odds = (await savings('?task_type=odds')).total;
  assert.deepEqual([odds.calls_saved, odds.calls_made], [2, 0]);
});

test('the response has an ETag, and every invalid parameter is reported', async () => {
  const { headers } = await s.api.get('/v1/research/savings', { status: 200 });
  await s.api.get('/v1/research/savings', { status: 304, headers: { 'if-none-match': headers.etag } });
  const answer = await s.api.get('/v1/research/savings?task_type=&since=x&until=y&as_of=z&limit=3', { status: 422 });
  assert.deepEqual(faults(answer), [
    'as_of: invalid_time',
    'limit: unknown_field',
    'since: invalid_time',
    'task_type: too_short',
    'until: invalid_time',
  ]);
});

test('task types over the limit of one response are still counted in the total', async () => {
  await s.query(`INSERT INTO daybook.episodic_reads (owner, id, episode_id, task_type, read_at, cost_usd)
    SELECT 'local', gen_random_uuid(), gen_random_uuid(), 'many ' || n, '2026-01-02', 0.01 FROM generate_series(1, 600) AS n`);
  const { items, total, truncated } = await savings(`?as_of=${day(3)}`);
  assert.deepEqual([items.length, total.calls_saved, total.saved_usd, truncated], [500, 600, 6, true]);
});
