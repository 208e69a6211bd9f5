// Searches and rebuilds while the embedding endpoint is away, and after its model has changed.
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

const away = () => models.embeddings.always(status(401)); // a refusal is not repeated, so that it is quick
const state = async (api = s.api) => (await api.get('/v1/embeddings', { status: 200 })).json;
const rebuild = async (body = {}, api = s.api) =>
  (await api.post('/v1/embeddings/rebuild', body, { status: 200 })).text.split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** The endpoint works, and is asked again. */
async function back() {
  models.embeddings.reset();
  await until(async () => (await search(s.api, { text: 'anything' })).degraded === null, 'the endpoint is asked again');
}

test('a hybrid search counts words alone, and says so', async () => {
  await back();
  await store(s.api, { ticker: 'WORDS', question: 'Selenium?', answer: 'A rare one.' });
  const whole = await search(s.api, { text: 'selenium', ticker: 'WORDS' });
  assert.deepEqual([whole.degraded, whole.model, whole.exact], [null, 'test-embedding', true]);
  away();
  const { degraded, model, exact, items } = await search(s.api, { text: 'selenium', ticker: 'WORDS' });
  assert.deepEqual({ degraded, model, exact }, { degraded: 'embedder_unavailable', model: null, exact: null });
  const { cosine, text } = items[0].parts;
  assert.deepEqual({ cosine, text }, { cosine: null, text: whole.items[0].parts.text });
  assert.deepEqual(items, (await search(s.api, { text: 'selenium', ticker: 'WORDS', mode: 'text' })).items);
});

test('a search for meaning alone is refused', async () => {
  away();
  const { json } = await s.api.post('/v1/episodic/search', { text: 'selenium', mode: 'vector' }, { status: 503 });
  assert.equal(json.code, 'embedder_unavailable');
});

test('what needs no embedder misses nothing: words, a vector that comes along, an entry that has one', async () => {
  await back();
  const { id } = await store(s.api, { ticker: 'HAS', question: 'Gallium?' });
  await store(s.api, { ticker: 'HAS', question: 'Gallium again?' });
  await store(s.api, { ticker: 'HAS', embedding: [1, 0], embedding_model: 'two' });
  away();
  for (const body of [{ text: 'gallium', mode: 'text' }, { text: 'gallium', vector: [1, 0], model: 'two' }, { id, mode: 'vector' }])
    assert.equal((await search(s.api, { ticker: 'HAS', ...body })).degraded, null, JSON.stringify(body));
});

test('an entry that has no vector yet is compared by its words', async () => {
  await back();
  const other = await store(s.api, { ticker: 'LACKS', question: 'Germanium now?' });
  away();
  const { id, embedding_status } = await store(s.api, { ticker: 'LACKS', question: 'Germanium?' });
  assert.equal(embedding_status, 'pending');
  const { degraded, items } = await search(s.api, { id, ticker: 'LACKS' });
  assert.deepEqual([degraded, items.map((x) => x.id)], ['no_vector', [other.id]]);
  assert.equal((await s.api.post('/v1/episodic/search', { id, mode: 'vector' }, { status: 503 })).json.code, 'embedder_unavailable');
  await back();
  await allEmbedded(s.api);
  assert.equal((await search(s.api, { id, ticker: 'LACKS', mode: 'vector' })).degraded, null);
});

test('a rebuild without an embedder is refused before it begins', async () => {
  away();
  await store(s.api, {});
  assert.equal((await s.api.post('/v1/embeddings/rebuild', {}, { status: 503 })).json.code, 'embedder_unavailable');
});

test('a rebuild that loses its embedder tells so in its last line, and the next one goes on', async () => {
  await back();
  await rebuild();
  await s.query("update daybook.episodic_memory set embedding_model = 'former' where embedding_status = 'embedded'");
  await s.query("update daybook.episodic_vectors set model = 'former' where model = 'test-embedding'");
  const { outdated } = await state();
  assert.ok(outdated > 4);
  const works = models.embeddings.fallback;
  models.embeddings.next(works, works);
  away();
  const lines = await rebuild({ batch: 1 });
  assert.deepEqual(lines.slice(0, 2), [{ embedded: 1, failed: 0, remaining: outdated - 1 }, { embedded: 1, failed: 0, remaining: outdated - 2 }]);
  const { error, ...end } = lines.at(-1);
  assert.equal(error.code, 'embedder_unavailable');
  assert.deepEqual(end, { done: false, embedded: 2, refused: 0, remaining: outdated - 2 });
  await back();
  const rest = await rebuild();
  assert.deepEqual(rest.at(-1), { done: true, embedded: outdated - 2, refused: 0, remaining: 0 });
});

test('when the model of the configuration changes, entries are found by words until they are rebuilt', async () => {
  await back();
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
