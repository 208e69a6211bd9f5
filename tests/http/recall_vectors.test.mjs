// When situations get their vectors: after a tick when there is time, by the next recall, by a rebuild; never before a tick is answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy } from '../lib/ledger.mjs';
import { until } from '../lib/processes.mjs';
import { hour, postTrades, postTradesAtOnce, recall } from '../lib/situations.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const ALL = { text: 'a breakout', min_similarity: 0, k: 50 };
const sim = async () => (await deploy(s.api, { mode: 'sim' })).id;
const waiting = async (id) => (await s.query('select count(*)::int as n from daybook.situations where deployment_id = $1 and vector is null', [id]))[0].n;
const state = async () => (await s.api.get('/v1/embeddings', { status: 200 })).json.situations;
const rebuild = async (body = {}) =>
  (await s.api.post('/v1/embeddings/rebuild', body, { status: 200 })).text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const many = (count) => Array.from({ length: count }, (_, i) => ({ from: i / 10, hours: 0.05, reason: `breakout ${i}` }));
const clear = () => s.query('delete from daybook.deployments');

test('after a tick that opened something, the loop embeds it when it has nothing else to do', async () => {
  const id = await sim();
  await postTrades(s.api, id, [{ reason: 'breakout' }]);
  await until(async () => (await waiting(id)) === 0, 'it has its vector');
  const [{ model, dim, dims, length }] = await s.query(
    'select model, dim, daybook.vector_dims(vector) as dims, round(daybook.l2_norm(vector)::numeric, 2)::float8 as length from daybook.situations where deployment_id = $1',
    [id],
  );
  assert.deepEqual([model, dims, length], ['builtin-1', dim, 1]);
});

test('a recall about the past embeds what it is about', async () => {
  const id = await sim();
  await postTradesAtOnce(s.api, id, many(8));
  const { compared, pending } = await recall(s.api, id, { ...ALL, as_of: hour(0.25) });
  assert.deepEqual([compared, pending, await waiting(id)], [3, 0, 5]);
});

test('of recalls at once one embeds what waits, and the others say what they went on without', async () => {
  const id = await sim();
  await postTradesAtOnce(s.api, id, many(6));
  const answers = await Promise.all(Array.from({ length: 4 }, () => recall(s.api, id, ALL)));
  for (const { compared, pending } of answers) assert.equal(compared + pending, 6);
  assert.ok(answers.some(({ pending }) => pending === 0));
  const { compared, pending } = await recall(s.api, id, ALL);
  assert.deepEqual([compared, pending], [6, 0]);
});

test('a rebuild embeds those that wait, and those of another model', async () => {
  await clear();
  const id = await sim();
  await postTradesAtOnce(s.api, id, many(7));
  assert.deepEqual(await state(), { embedded: 0, pending: 7, outdated: 0 });
  assert.deepEqual(await rebuild({ batch: 5 }), [
    { embedded: 5, failed: 0, remaining: 2 },
    { embedded: 2, failed: 0, remaining: 0 },
    { done: true, embedded: 7, refused: 0, remaining: 0 },
  ]);
  await s.query("update daybook.situations set model = 'former', dim = 2, vector = '[1,0]'");
  assert.deepEqual(await state(), { embedded: 0, pending: 0, outdated: 7 });
  const before = await recall(s.api, id, ALL);
  assert.deepEqual([before.compared, before.pending, before.outdated, before.items], [0, 0, 7, []], "another model's vectors are never compared");
  assert.deepEqual((await rebuild({ max: 3 })).at(-1), { done: true, embedded: 3, refused: 0, remaining: 4 });
  assert.deepEqual((await rebuild()).at(-1), { done: true, embedded: 4, refused: 0, remaining: 0 });
  assert.deepEqual(await state(), { embedded: 7, pending: 0, outdated: 0 });
  const after = await recall(s.api, id, ALL);
  assert.deepEqual([after.compared, after.outdated, after.items.length], [7, 0, 7]);
});

test('a rebuild goes from entries to situations in one request, and max counts both', async () => {
  await clear();
  const id = await sim();
  await postTradesAtOnce(s.api, id, many(3));
  await s.api.post('/v1/episodic', { ticker: 'A', task_type: 't', question: 'q?', answer: 'a', created_at: '2026-01-01T00:00:00Z' }, { status: 201 });
  await s.query("update daybook.episodic_memory set embedding_status = 'pending', embedding_model = null, embedding_dim = null");
  await s.query('delete from daybook.episodic_vectors');
  assert.deepEqual(await rebuild({ max: 2 }), [
    { embedded: 1, failed: 0, remaining: 3 },
    { embedded: 1, failed: 0, remaining: 2 },
    { done: true, embedded: 2, refused: 0, remaining: 2 },
  ]);
});
