// Entries without a vector: the background job embeds each of them once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { createEpisode, newEpisode, postEpisodes, vectorsOf } from '../lib/episodes.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const BATCH = 16; // entries that the job embeds at a time
const pending = async (owner = 'local') =>
  (await s.query(`SELECT count(*)::int AS n FROM daybook.episodic_memory WHERE owner = $1 AND embedding_status = 'pending'`, [owner]))[0].n;

/** Stores an entry, which makes the service look for pending entries, and waits until none are left. */
async function storeAndWait(api = s.api) {
  await createEpisode(api);
  await until(async () => (await pending()) === 0, 'nothing is pending');
}

/** Creates entries as an unreachable embedder leaves them. */
async function leavePending(count) {
  const { lines } = await postEpisodes(s.api, Array.from({ length: count }, () => newEpisode({ ticker: 'WAITS' })));
  const ids = lines.map((l) => l.id);
  await s.query('DELETE FROM daybook.episodic_vectors WHERE episode_id = ANY ($1)', [ids]);
  await s.query(`UPDATE daybook.episodic_memory SET embedding_status = 'pending', embedding_model = NULL, embedding_dim = NULL WHERE id = ANY ($1)`, [ids]);
  return ids;
}

test('an entry without a vector is pending and has no model', async () => {
  const [id] = await leavePending(1);
  const { embedding_status, embedding_model, embedding_dim } = (await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json;
  assert.deepEqual([embedding_status, embedding_model, embedding_dim], ['pending', null, null]);
  assert.deepEqual((await s.api.get('/v1/episodic?embedding_status=pending', { status: 200 })).json.items.map((e) => e.id), [id]);
  await storeAndWait();
  const after = (await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json;
  assert.equal(after.embedding_status, 'embedded');
  const [{ model, dim, length }] = await vectorsOf(s.query, id);
  assert.deepEqual([model, dim, length], [after.embedding_model, after.embedding_dim, 1]);
});

test('a vector made later equals one made immediately', async () => {
  const body = newEpisode({ ticker: 'SAME' });
  const first = (await s.api.post('/v1/episodic', { ...body, created_at: '2026-01-01T00:00:00Z' }, { status: 201 })).json;
  const second = (await s.api.post('/v1/episodic', { ...body, created_at: '2026-01-02T00:00:00Z' }, { status: 201 })).json;
  await s.query('DELETE FROM daybook.episodic_vectors WHERE episode_id = $1', [second.id]);
  await s.query(`UPDATE daybook.episodic_memory SET embedding_status = 'pending', embedding_model = NULL, embedding_dim = NULL WHERE id = $1`, [second.id]);
  await storeAndWait();
  const rows = await s.query(`SELECT DISTINCT coalesce(v384::text, v768::text, v1024::text, v1536::text) AS v FROM daybook.episodic_vectors WHERE episode_id = ANY ($1)`, [[first.id, second.id]]);
  assert.equal(rows.length, 1);
});

test('any request that stores an entry gets all pending entries embedded: single, bulk, with an Idempotency-Key, with its own vector', async () => {
  const own = newEpisode({ created_at: '2026-01-01T00:00:00Z', embedding: [1], embedding_model: 'm' });
  for (const request of [
    () => createEpisode(s.api),
    () => createEpisode(s.api, {}, { headers: { 'idempotency-key': 'pending-1' } }),
    () => postEpisodes(s.api, [newEpisode()]),
    () => s.api.post('/v1/episodic', own, { status: 201 }),
  ]) {
    const ids = await leavePending(3 * BATCH + 5);
    await request();
    await until(async () => (await pending()) === 0, 'all are embedded');
    for (const id of ids) assert.equal((await vectorsOf(s.query, id)).length, 1);
  }
});

test('two services that embed the same entries concurrently store one vector each', async () => {
  const other = await s.another();
  const api = makeClient(other.base);
  try {
    for (let round = 0; round < 5; round++) {
      const ids = await leavePending(BATCH);
      await Promise.all([s.api, api, s.api, api].map((a) => storeAndWait(a)));
      for (const id of ids) assert.equal((await vectorsOf(s.query, id)).length, 1);
    }
  } finally {
    api.close();
    await other.stop();
  }
});

test('an entry that was deleted or embedded in the meantime is left alone', async () => {
  const [gone, given, waits] = await leavePending(3);
  await s.query('DELETE FROM daybook.episodic_memory WHERE id = $1', [gone]);
  await s.query(`UPDATE daybook.episodic_memory SET embedding_status = 'supplied', embedding_model = 'theirs', embedding_dim = 1 WHERE id = $1`, [given]);
  await storeAndWait();
  assert.equal((await s.api.get(`/v1/episodic/${given}`, { status: 200 })).json.embedding_model, 'theirs');
  assert.equal((await s.api.get(`/v1/episodic/${waits}`, { status: 200 })).json.embedding_status, 'embedded');
});
