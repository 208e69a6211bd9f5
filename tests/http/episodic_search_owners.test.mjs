// Searches by owner and role.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { search, store } from '../lib/searches.mjs';
import { faults } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const AS_OF = '2026-07-01T00:00:00Z';
const as = {};

async function prepare() {
  for (const [name, owner, role] of [['ann', 'ann', 'agent'], ['bob', 'bob', 'agent'], ['reader', 'ann', 'reader'], ['researcher', 'ann', 'researcher']])
    as[name] = (await createKey(s.url, owner, role, name)).key;
  await s.service.stop();
  s.service = await s.another(); // started after the keys were created
  for (const name of Object.keys(as)) as[name] = makeClient(s.service.base).as(as[name]);
}

test('owners find only their own entries, by words, by meaning and by ID', async () => {
  const entry = await store(as.ann, { question: 'Palladium?', answer: 'Scarce.', embedding: [1, 2, 3], embedding_model: 'shared' });
  const other = await store(as.bob, { question: 'Palladium?', answer: 'Plenty.', embedding: [3, 2, 1], embedding_model: 'shared' });
  for (const body of [{ text: 'palladium' }, { text: 'palladium', mode: 'text' }, { vector: [1, 2, 3], model: 'shared' }])
    for (const [client, own] of [[as.ann, entry], [as.bob, other], [as.reader, entry]])
      assert.deepEqual((await search(client, { ...body, as_of: AS_OF })).items.map((x) => x.id), [own.id]);
  assert.deepEqual(faults(await as.bob.post('/v1/episodic/search', { id: entry.id, as_of: AS_OF }, { status: 422 })), ['id: unknown_reference']);
});

test("the rarity of a word depends only on the owner's entries", async () => {
  await store(as.ann, { ticker: 'RARE', question: 'Rhodium?' });
  const bytes = async () => (await as.ann.post('/v1/episodic/search', { text: 'rhodium', as_of: AS_OF }, { status: 200 })).text;
  const before = await bytes();
  for (let i = 0; i < 5; i++) await store(as.bob, { question: `Rhodium ${i}?` });
  assert.equal(await bytes(), before);
});

test("dimensions of another owner's vectors do not fail a search", async () => {
  await store(as.bob, { embedding: [1, 2], embedding_model: 'of-bob' });
  await search(as.ann, { vector: [1, 2, 3], model: 'of-bob', as_of: AS_OF });
  assert.deepEqual(faults(await as.bob.post('/v1/episodic/search', { vector: [1, 2, 3], model: 'of-bob', as_of: AS_OF }, { status: 422 })), ['vector: invalid_vector']);
});

test('a reader may search and record the search', async () => {
  const { retrieval_id } = await search(as.reader, { text: 'anything', record: true });
  const [row] = await s.query('select owner from daybook.memory_retrievals where id = $1', [retrieval_id]);
  assert.equal(row.owner, 'ann');
});

test('without a key a search is 401', async () => {
  await makeClient(s.service.base).post('/v1/episodic/search', { text: 'a' }, { status: 401 });
});

test('a reader may read the state of the embeddings, only an agent may rebuild them', async () => {
  assert.equal((await as.reader.get('/v1/embeddings', { status: 200 })).json.pending, 0);
  for (const client of [as.reader, as.researcher]) await client.post('/v1/embeddings/rebuild', {}, { status: 403 });
  const { text } = await as.ann.post('/v1/embeddings/rebuild', {}, { status: 200 });
  assert.deepEqual(JSON.parse(text), { done: true, embedded: 0, refused: 0, remaining: 0 });
});

test('the state of the embeddings counts only the entries of the owner', async () => {
  const [ann, bob] = await Promise.all([as.ann, as.bob].map(async (client) => (await client.get('/v1/embeddings', { status: 200 })).json));
  assert.ok(!ann.spaces.some(({ model }) => model === 'of-bob'));
  assert.deepEqual(bob.spaces.filter(({ model }) => model !== bob.model), [{ model: 'of-bob', dim: 2, entries: 1 }, { model: 'shared', dim: 3, entries: 1 }]);
  await s.query("update daybook.episodic_memory set embedding_model = 'former' where owner = 'bob' and embedding_status = 'embedded'");
  assert.deepEqual(JSON.parse((await as.ann.post('/v1/embeddings/rebuild', {}, { status: 200 })).text), { done: true, embedded: 0, refused: 0, remaining: 0 });
  assert.equal((await as.bob.get('/v1/embeddings', { status: 200 })).json.outdated, 5);
});
