// Searches of the journal with an embedding endpoint: meaning, vectors of the caller, pending memories, and the endpoint being down.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allEmbedded } from '../lib/backfill.mjs';
import { openThesis, remember, searchMemories } from '../lib/journal.mjs';
import { day, faults } from '../lib/lessons.mjs';
import { embedText, startModelServer, status } from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const models = await startModelServer({ dimension: 64, synonyms: { autos: 'cars', 汽车: 'cars' } });
const s = suite({ env: models.embeddingEnv(), args: ['--loops', '1'] });
after(() => models.close());

const AS_OF = day(20);
const MODEL = 'test-embedding';
const post = (body, options) => s.api.post('/v1/memories/search', { as_of: AS_OF, k: 100, ...body }, options);
const find = (body) => searchMemories(s.api, { as_of: AS_OF, k: 100, ...body });
const ids = async (body) => (await find(body)).items.map((x) => x.id);
const endpointDown = () => models.embeddings.always(status(401)); // 401 is not retried, so the tests are fast

/** Brings the endpoint back, and waits until the service calls it again and everything is embedded. */
async function endpointUp() {
  models.embeddings.reset();
  await until(async () => (await find({ text: 'anything' })).degraded === null, 'the endpoint is called again');
  await allEmbedded(s.api);
}

test('meaning finds a memory that shares no word with the query, in any script', async () => {
  await endpointUp();
  const { id } = await remember(s.api, { text: 'autos autos', symbol: 'WHEELS', at: day(2) });
  await remember(s.api, { text: 'bonds yields curve', symbol: 'WHEELS', at: day(2) });
  await allEmbedded(s.api);
  for (const text of ['cars', '汽车']) {
    const { items, model, degraded } = await find({ text, symbol: 'WHEELS' });
    assert.deepEqual([items[0].id, items[0].parts.text, model, degraded], [id, 0, MODEL, null]);
  }
});

test('a vector of the caller is compared with vectors of its model only', async () => {
  await endpointUp();
  const { id } = await remember(s.api, { text: 'copper supply', symbol: 'METAL', at: day(2) });
  await remember(s.api, { text: 'wheat harvest', symbol: 'METAL', at: day(2) });
  await allEmbedded(s.api);
  const vector = embedText('copper supply', 64);
  const { items, model } = await find({ vector, model: MODEL, symbol: 'METAL' });
  assert.deepEqual([items[0].id, model, items[0].parts.text], [id, MODEL, 0]);
  assert.ok(items[0].parts.cosine > 0.99);
  assert.deepEqual(await ids({ vector: [1, 0], model: 'another', symbol: 'METAL' }), []);
  assert.deepEqual(await ids({ vector: [1, 0], model: 'another', text: 'copper', symbol: 'METAL' }), [id], 'by its word');
  assert.deepEqual(faults(await post({ vector: [1, 0], model: MODEL }, { status: 422 })), ['vector: invalid_vector']);
});

test('the vector of a text that was replaced is not compared', async () => {
  await endpointUp();
  const { id } = await openThesis(s.api, { symbol: 'OLD', text: 'tungsten demand doubles', at: day(2) });
  await s.api('PATCH', `/v1/theses/${id}`, { body: { text: 'rhenium inventories shrink', at: day(5) }, status: 200 });
  await allEmbedded(s.api);
  const cosine = async (text, n) => (await find({ vector: embedText(text, 64), model: MODEL, symbol: 'OLD', as_of: day(n) })).items[0].parts.cosine;
  assert.ok((await cosine('tungsten demand doubles', 4)) > 0.99);
  assert.ok((await cosine('rhenium inventories shrink', 5)) > 0.99);
  assert.ok((await cosine('tungsten demand doubles', 5)) < 0.5);
  assert.ok((await cosine('rhenium inventories shrink', 4)) < 0.5);
});

test('without the endpoint, words decide alone and the answer and the record say so', async () => {
  await endpointUp();
  const { id } = await remember(s.api, { text: 'selenium is rare', symbol: 'WORDS', at: day(2) });
  await remember(s.api, { text: 'an unrelated note', symbol: 'WORDS', at: day(2) });
  await allEmbedded(s.api);
  const whole = await find({ text: 'selenium', symbol: 'WORDS' });
  assert.equal(whole.items.length, 2);
  endpointDown();
  const { items, degraded, model, exact, rendered, retrieval_id } = await find({ text: 'selenium', symbol: 'WORDS' });
  assert.deepEqual([degraded, model, exact], ['embedder_unavailable', null, null]);
  assert.deepEqual(items.map((x) => [x.id, x.parts, x.score]), [[id, { cosine: null, text: whole.items[0].parts.text }, whole.items[0].parts.text]]);
  const record = (await s.api.get(`/v1/memory_retrievals/${retrieval_id}`, { status: 200 })).json;
  assert.deepEqual([record.rendered, record.selection], [rendered, [id]]);
});

test('without the endpoint, the words of a text that was replaced find nothing, and as of before they do', async () => {
  await endpointUp();
  const { id } = await openThesis(s.api, { symbol: 'THEN', text: 'Bismuth demand doubles.', at: day(2) });
  await s.api('PATCH', `/v1/theses/${id}`, { body: { text: 'Antimony demand doubles.', at: day(5) }, status: 200 });
  await allEmbedded(s.api);
  endpointDown();
  for (const [text, n, found] of [['bismuth', 1, []], ['bismuth', 4, [id]], ['bismuth', 5, []], ['antimony', 4, []], ['antimony', 5, [id]]])
    assert.deepEqual(await ids({ text, as_of: day(n), symbol: 'THEN' }), found, `${text} on day ${n}`);
});

test('searches that need no embedder work without it', async () => {
  await endpointUp();
  const { id } = await remember(s.api, { text: 'gallium', symbol: 'HAS', at: day(2) });
  await allEmbedded(s.api);
  endpointDown();
  for (const body of [{}, { vector: embedText('gallium', 64), model: MODEL }]) {
    const { items, degraded } = await find({ symbol: 'HAS', ...body });
    assert.deepEqual([items.map((x) => x.id), degraded], [[id], null]);
  }
});

test('a memory without a vector is found by its words, else last; it is counted as pending, and such an answer is not cached', async () => {
  await endpointUp();
  endpointDown();
  const { id } = await remember(s.api, { text: 'germanium', symbol: 'WAITS', at: day(2) });
  const { id: wordless } = await remember(s.api, { text: 'niobium', symbol: 'WAITS', at: day(3) });
  const query = { text: 'germanium', vector: embedText('germanium', 64), model: MODEL, symbol: 'WAITS' };
  const { json, headers } = await post(query, { status: 200 });
  assert.deepEqual([json.pending, json.items.map((x) => [x.id, x.parts.cosine])], [2, [[id, null], [wordless, null]]]);
  assert.ok(json.items[0].parts.text > 0 && json.items[1].score === 0);
  assert.equal(headers['cache-control'], 'no-store');
  assert.equal((await find({ ...query, symbol: 'HAS' })).pending, 0, 'those that pass the filter');
  assert.deepEqual((await find({ vector: [1, 0], model: 'another', symbol: 'WAITS' })).items, [], 'they will have no vector of that model');
  await endpointUp();
  const later = await find(query);
  assert.deepEqual([later.pending, later.items[0].parts.cosine > 0.99], [0, true]);
});

test('a memory is stored while the endpoint is down', async () => {
  endpointDown();
  await remember(s.api, { text: 'indium', at: day(2) });
  await openThesis(s.api, { text: 'indium', at: day(2) });
  await endpointUp();
});
