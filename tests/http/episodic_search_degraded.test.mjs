// Searches and rebuilds while the embedding endpoint is down, and after a change of model.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allEmbedded } from '../lib/backfill.mjs';
import { makeClient } from '../lib/client.mjs';
import { startModelServer, status } from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { search, store } from '../lib/searches.mjs';
import { suite } from '../lib/suite.mjs';

const models = await startModelServer({ dimension: 32 });
const s = suite({ env: models.embeddingEnv(), args: ['--loops', '1'] });
after(() => models.close());

const endpointDown = () => models.embeddings.always(status(401)); // 401 is not retried, so the tests are fast
const state = async (api = s.api) => (await api.get('/v1/embeddings', { status: 200 })).json;
const rebuild = async (body = {}, api = s.api) =>
  (await api.post('/v1/embeddings/rebuild', body, { status: 200 })).text.split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** Brings the endpoint back and waits until the service calls it again. */
async function endpointUp() {
  models.embeddings.reset();
  await until(async () => (await search(s.api, { text: 'anything' })).degraded === null, 'the endpoint is called again');
}

test('a hybrid search uses words only, and says so', async () => {
  await endpointUp();
  await store(s.api, { ticker: 'WORDS', question: 'Selenium?', answer: 'A rare one.' });
  const whole = await search(s.api, { text: 'selenium', ticker: 'WORDS' });
  assert.deepEqual([whole.degraded, whole.model, whole.exact], [null, 'test-embedding', true]);
  endpointDown();
  const { degraded, model, exact, items } = await search(s.api, { text: 'selenium', ticker: 'WORDS' });
  assert.deepEqual({ degraded, model, exact }, { degraded: 'embedder_unavailable', model: null, exact: null });
  const { cosine, text } = items[0].parts;
  assert.deepEqual({ cosine, text }, { cosine: null, text: whole.items[0].parts.text });
  assert.deepEqual(items, (await search(s.api, { text: 'selenium', ticker: 'WORDS', mode: 'text' })).items);
});

test('a search in mode vector is 503', async () => {
  endpointDown();
  const { json } = await s.api.post('/v1/episodic/search', { text: 'selenium', mode: 'vector' }, { status: 503 });
  assert.equal(json.code, 'embedder_unavailable');
});

test('searches that need no embedder work: by words, by a given vector, by an entry with a vector', async () => {
  await endpointUp();
  const { id } = await store(s.api, { ticker: 'HAS', question: 'Gallium?' });
  await store(s.api, { ticker: 'HAS', question: 'Gallium again?' });
  await store(s.api, { ticker: 'HAS', embedding: [1, 0], embedding_model: 'two' });
  endpointDown();
  for (const body of [{ text: 'gallium', mode: 'text' }, { text: 'gallium', vector: [1, 0], model: 'two' }, { id, mode: 'vector' }])
    assert.equal((await search(s.api, { ticker: 'HAS', ...body })).degraded, null, JSON.stringify(body));
});

test('a search by an entry without a vector uses its words', async () => {
  await endpointUp();
  const other = await store(s.api, { ticker: 'LACKS', question: 'Germanium now?' });
  endpointDown();
  const { id, embedding_status } = await store(s.api, { ticker: 'LACKS', question: 'Germanium?' });
  assert.equal(embedding_status, 'pending');
  const { degraded, items } = await search(s.api, { id, ticker: 'LACKS' });
  assert.deepEqual([degraded, items.map((x) => x.id)], ['no_vector', [other.id]]);
  assert.equal((await s.api.post('/v1/episodic/search', { id, mode: 'vector' }, { status: 503 })).json.code, 'embedder_unavailable');
  await endpointUp();
  await allEmbedded(s.api);
  assert.equal((await search(s.api, { id, ticker: 'LACKS', mode: 'vector' })).degraded, null);
});

test('a rebuild without an embedder is 503 before its first line', async () => {
  endpointDown();
  await store(s.api, {});
  assert.equal((await s.api.post('/v1/embeddings/rebuild', {}, { status: 503 })).json.code, 'embedder_unavailable');
});

test('a rebuild that loses its embedder says so in its last line, and the next one continues', async () => {
  await endpointUp();
  await rebuild();
  await s.query("update daybook.episodic_memory set embedding_model = 'former' where embedding_status = 'embedded'");
  await s.query("update daybook.episodic_vectors set model = 'former' where model = 'test-embedding'");
  const { outdated } = await state();
  assert.ok(outdated > 4);
  const works = models.embeddings.fallback;
  models.embeddings.next(works, works);
  endpointDown();
  const lines = await rebuild({ batch: 1 });
  assert.deepEqual(lines.slice(0, 2), [{ embedded: 1, failed: 0, remaining: outdated - 1 }, { embedded: 1, failed: 0, remaining: outdated - 2 }]);
  const { error, ...end } = lines.at(-1);
  assert.equal(error.code, 'embedder_unavailable');
  assert.deepEqual(end, { done: false, embedded: 2, refused: 0, remaining: outdated - 2 });
  await endpointUp();
  const rest = await rebuild();
  assert.deepEqual(rest.at(-1), { done: true, embedded: outdated - 2, refused: 0, remaining: 0 });
});

test('after a change of model, entries are found by words until they are rebuilt', async () => {
  await endpointUp();
  await store(s.api, { ticker: 'MODEL', question: 'Indium?' });
  const service = await s.another({ env: models.embeddingEnv({ DAYBOOK_EMBEDDING_MODEL: 'newer-embedding' }) });
  const api = makeClient(service.base);
  try {
    const before = await search(api, { text: 'indium', ticker: 'MODEL' });
    assert.deepEqual([before.model, before.degraded, before.items[0].parts.cosine], ['newer-embedding', null, null]);
    const { outdated } = await state(api);
    assert.ok(outdated > 0);
    assert.deepEqual((await rebuild({}, api)).at(-1), { done: true, embedded: outdated, refused: 0, remaining: 0 });
    const after = await search(api, { text: 'indium', ticker: 'MODEL' });
    assert.ok(after.items[0].parts.cosine > 0);
    assert.equal(after.items[0].embedding_model, 'newer-embedding');
  } finally {
    api.close();
    await service.stop();
  }
});
