// Recall with an embedding endpoint: only recalls cause calls to it, and while it is down words are compared.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy } from '../lib/ledger.mjs';
import { startModelServer, status } from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { postTrades, postTradesAtOnce, recall, recallAll } from '../lib/situations.mjs';
import { suite } from '../lib/suite.mjs';

const models = await startModelServer({ dimension: 32, synonyms: { surge: 'breakout' } });
const s = suite({ env: models.embeddingEnv(), args: ['--loops', '1'] });
after(() => models.close());

const endpointDown = () => models.embeddings.always(status(401)); // 401 is not retried, so the tests are fast
const TRADES = [
  { symbol: 'BTC', reason: 'volume breakout', percent: 1 },
  { symbol: 'ETH', reason: 'funding extreme', percent: -1 },
];

/** Creates a deployment with the given trades. */
async function deployWithTrades() {
  const { id } = await deploy(s.api, { mode: 'sim' });
  await postTrades(s.api, id, TRADES);
  return id;
}

/** Brings the endpoint back and waits until the service calls it again. */
async function endpointUp(id) {
  models.embeddings.reset();
  await until(async () => (await recall(s.api, id, { text: 'anything' })).degraded === null, 'the endpoint is called again');
}

const inputs = () => models.embeddings.requests.flatMap(({ body }) => body.input);

test('ticks never call the endpoint; a recall does, for its query and, in the background, for the situations it left out', async () => {
  models.embeddings.reset();
  const id = await deployWithTrades();
  assert.equal(models.embeddings.requests.length, 0);
  const first = await recall(s.api, id, { text: 'volume surge' });
  assert.deepEqual([first.compared, first.pending], [0, 2]);
  const { items, model, pending } = await recallAll(s.api, id, { text: 'volume surge' });
  assert.deepEqual([items[0].symbol, model, pending], ['BTC', 'test-embedding', 0]);
  assert.equal(inputs().filter((text) => text !== 'volume surge').length, 2, 'each situation is embedded once');
});

test('situations of a bulk upload stay pending until a recall of their deployment', async () => {
  models.embeddings.reset();
  const many = Array.from({ length: 36 }, (_, i) => ({ from: i / 10, hours: 0.05, reason: `breakout ${i}` }));
  const [{ id }, { id: other }] = [await deploy(s.api, { mode: 'sim' }), await deploy(s.api, { mode: 'sim' })];
  for (const at of [id, other]) await postTradesAtOnce(s.api, at, many);
  assert.equal(models.embeddings.requests.length, 0);
  const all = await recallAll(s.api, id, { text: 'breakout' });
  assert.deepEqual([all.compared, all.pending], [36, 0]);
  const [{ n }] = await s.query('select count(*)::int as n from daybook.situations where deployment_id = $1 and vector is null', [other]);
  assert.equal(n, 36);
});

test('with --backfill all, situations are embedded without a recall', async () => {
  const service = await s.another({ env: models.embeddingEnv({ DAYBOOK_BACKFILL: 'all' }) });
  await until(async () => (await s.query('select count(*)::int as n from daybook.situations where vector is null'))[0].n === 0, 'all are embedded');
  await service.stop();
});

test('while the endpoint is down words are compared, and the response says so; pending situations are embedded once it is back', async () => {
  const id = await deployWithTrades();
  endpointDown();
  const { degraded, model, pending, items, effective_sample_size, markdown } = await recall(s.api, id, { text: 'a volume breakout again' });
  assert.deepEqual({ degraded, model, pending }, { degraded: 'embedder_unavailable', model: null, pending: 2 });
  assert.deepEqual(items.map(({ symbol, similarity }) => [symbol, similarity]), [['BTC', 1]]);
  assert.equal(effective_sample_size, 1);
  assert.match(markdown, /^## Similar past situations\n/);
  assert.deepEqual((await recall(s.api, id, { text: 'an unrelated sandwich' })).items, []);
  assert.deepEqual((await recall(s.api, id, { text: 'of the' })).items, [], 'stop words find nothing');
  await endpointUp(id);
  const again = await recallAll(s.api, id, { text: 'volume surge' });
  assert.deepEqual([again.degraded, again.pending, again.compared], [null, 0, 2]);
});

test('matching by words respects min_similarity, filters and as_of', async () => {
  const id = await deployWithTrades();
  endpointDown();
  const found = async (body) => (await recall(s.api, id, { text: 'volume breakout or extreme wind', ...body })).items.map(({ symbol, similarity }) => [symbol, similarity]);
  assert.deepEqual(await found({}), [['BTC', 0.5]], 'BTC has two of four words; the other has only one');
  assert.deepEqual(await found({ min_similarity: 0.2 }), [['BTC', 0.5], ['ETH', 0.25]]);
  assert.deepEqual(await found({ min_similarity: 0.2, symbol: 'ETH' }), [['ETH', 0.25]]);
  assert.deepEqual(await found({ min_similarity: 0.2, scope: 'skill' }), [['BTC', 0.5], ['ETH', 0.25]]);
  assert.deepEqual(await found({ min_similarity: 0.2, as_of: '2026-06-04T11:00:00Z' }), [['BTC', 0.5]]);
  await endpointUp(id);
});

test('after a change of model, a recall finds only rebuilt situations', async () => {
  const id = await deployWithTrades();
  await endpointUp(id);
  await recallAll(s.api, id, { text: 'anything' });
  const service = await s.another({ env: models.embeddingEnv({ DAYBOOK_EMBEDDING_MODEL: 'newer-embedding' }) });
  const api = makeClient(service.base);
  try {
    const before = await recall(api, id, { text: 'volume surge' });
    assert.deepEqual([before.model, before.compared, before.outdated, before.items], ['newer-embedding', 0, 2, []]);
    const { text } = await api.post('/v1/embeddings/rebuild', {}, { status: 200 });
    assert.equal(JSON.parse(text.trimEnd().split('\n').at(-1)).remaining, 0);
    const after_ = await recall(api, id, { text: 'volume surge' });
    assert.deepEqual([after_.compared, after_.outdated, after_.items[0].symbol], [2, 0, 'BTC']);
  } finally {
    api.close();
    await service.stop();
  }
});
