// Vectors of situations are made in the background or by a rebuild, never before a tick is answered and never by a read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy } from '../lib/ledger.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { until } from '../lib/processes.mjs';
import { hour, postTrades, postTradesAtOnce, recall } from '../lib/situations.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const ALL = { text: 'a breakout', min_similarity: 0, k: 50 };
const newSimulation = async () => (await deploy(s.api, { mode: 'sim' })).id;
const pendingOf = async (id) => (await s.query('select count(*)::int as n from daybook.situations where deployment_id = $1 and vector is null', [id]))[0].n;
const state = async () => (await s.api.get('/v1/embeddings', { status: 200 })).json.situations;
const rebuild = async (body = {}) =>
  (await s.api.post('/v1/embeddings/rebuild', body, { status: 200 })).text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const many = (count) => Array.from({ length: count }, (_, i) => ({ from: i / 10, hours: 0.05, reason: `breakout ${i}` }));

/** Runs `use` with a service that makes no vectors in the background. */
async function withoutBackfill(use) {
  const service = await s.another({ env: { DAYBOOK_BACKFILL: 'off' } });
  const api = makeClient(service.base);
  try {
    return await use(api);
  } finally {
    api.close();
    await service.stop();
  }
}

/** Creates a deployment with that many trades, posted in one body. */
async function deployWithTrades(api, count) {
  const { id } = await deploy(api, { mode: 'sim' });
  await postTradesAtOnce(api, id, many(count));
  return id;
}
const clear = () => s.query('delete from daybook.deployments');

test('the situation of a new trade is embedded in the background', async () => {
  const id = await newSimulation();
  await postTrades(s.api, id, [{ reason: 'breakout' }]);
  await until(async () => (await pendingOf(id)) === 0, 'the situation is embedded');
  const [{ model, dim, dims, length }] = await s.query(
    'select model, dim, public.vector_dims(vector) as dims, round(public.l2_norm(vector)::numeric, 2)::float8 as length from daybook.situations where deployment_id = $1',
    [id],
  );
  assert.deepEqual([model, dims, length], ['builtin-1', dim, 1]);
});

test('after a bulk upload every situation is embedded without another request', async () => {
  const id = await newSimulation();
  await postTradesAtOnce(s.api, id, many(100));
  await until(async () => (await pendingOf(id)) === 0, 'all are embedded');
  const { compared, pending } = await recall(s.api, id, { ...ALL, as_of: hour(0.25) });
  assert.deepEqual([compared, pending], [3, 0]);
});

test('a recall makes no vectors itself: it reports what it left out, also in its text, and is not cacheable', async () => {
  const id = await withoutBackfill((api) => deployWithTrades(api, 6));
  await withoutBackfill(async (api) => {
    for (const body of [ALL, { ...ALL, scope: 'skill' }]) {
      const { json, headers } = await api.post(`/v1/deployments/${id}/recall`, body, { status: 200 });
      assert.deepEqual([json.compared, json.pending, json.items], [0, 6, []]);
      assert.equal(json.markdown, '## Similar past situations\n(6 past situations are not indexed yet and were left out)\n');
      assert.equal(headers['cache-control'], 'no-store');
    }
    assert.equal(await pendingOf(id), 6);
  });
});

test('a context that left situations out says so, and has no ETag until it is complete', async () => {
  const id = await withoutBackfill((api) => deployWithTrades(api, 3));
  const path = `/v1/deployments/${id}/context?recall=breakout`;
  await withoutBackfill(async (api) => {
    const { json, headers } = await api.get(path, { status: 200 });
    assert.equal(json.recall.pending, 3);
    assert.ok(json.markdown.endsWith('\n## Similar past situations\n(3 past situations are not indexed yet and were left out)\n'), json.markdown);
    assert.ok(json.tokens <= json.max_tokens);
    assert.deepEqual([headers.etag, headers['cache-control']], [undefined, 'no-store']);
    await api.get(path, { status: 200, headers: { 'if-none-match': '*' } });
  });
  const { etag } = await until(async () => {
    const { headers } = await s.api.get(path, { status: 200 });
    return headers.etag && headers;
  }, 'it is whole');
  await s.api.get(path, { status: 304, headers: { 'if-none-match': etag } });
  assert.equal(await pendingOf(id), 0);
});

test('a starting service embeds what another one left pending', async () => {
  const id = await withoutBackfill((api) => deployWithTrades(api, 5));
  const service = await s.another();
  try {
    await until(async () => (await pendingOf(id)) === 0, 'all are embedded');
  } finally {
    await service.stop();
  }
});

test('a service stopped during the background job exits cleanly, and the next one continues', async () => {
  const id = await withoutBackfill((api) => deployWithTrades(api, 300));
  const service = await s.another();
  await until(async () => (await pendingOf(id)) < 300, 'the job has started');
  await service.stop();
  const next = await s.another();
  await until(async () => (await pendingOf(id)) === 0, 'all are embedded');
  await until(() => /backfill embedded=\d+ refused=0 /.test(next.log), 'the log has the count');
  await next.stop();
});

test('requests are served while the background job runs', async () => {
  const id = await withoutBackfill((api) => deployWithTrades(api, 400));
  const service = await s.another();
  const api = makeClient(service.base);
  try {
    const seen = new Set();
    await until(async () => {
      const { compared, pending } = await recall(api, id, { ...ALL, k: 1 });
      seen.add(compared);
      return pending === 0;
    }, 'all are embedded');
    assert.ok([...seen].some((n) => n > 0 && n < 400), `only ${[...seen]}`);
    const metrics = await metricsOf(api);
    assert.ok(metrics.get('daybook_backfill_embedded_total') >= 400);
    await until(async () => (await metricsOf(api)).get('daybook_backfill_pending') === 0, 'the gauge is 0 again');
  } finally {
    api.close();
    await service.stop();
  }
});

test('a rebuild embeds pending situations and those of another model', async () => {
  await clear();
  const id = await withoutBackfill((api) => deployWithTrades(api, 7));
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

test('one rebuild embeds entries, then situations, and max counts both', async () => {
  await clear();
  await withoutBackfill((api) => deployWithTrades(api, 3));
  await s.api.post('/v1/episodic', { ticker: 'A', task_type: 't', question: 'q?', answer: 'a', created_at: '2026-01-01T00:00:00Z' }, { status: 201 });
  await s.query("update daybook.episodic_memory set embedding_status = 'pending', embedding_model = null, embedding_dim = null");
  await s.query('delete from daybook.episodic_vectors');
  assert.deepEqual(await rebuild({ max: 2 }), [
    { embedded: 1, failed: 0, remaining: 3 },
    { embedded: 1, failed: 0, remaining: 2 },
    { done: true, embedded: 2, refused: 0, remaining: 2 },
  ]);
});
