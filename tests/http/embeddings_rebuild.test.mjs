// Rebuilding vectors: in batches, interrupted and continued, while other requests are served.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { search, store } from '../lib/searches.mjs';
import { faults } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const rebuild = async (body = {}) => lines((await s.api.post('/v1/embeddings/rebuild', body, { status: 200 })).text);
const state = async () => (await s.api.get('/v1/embeddings', { status: 200 })).json;
const own = ({ model, spaces }) => spaces.find((x) => x.model === model)?.entries ?? 0;

/** Creates entries with vectors of a model that the service used before. */
async function createOutdated(count, ticker = 'OLD') {
  await s.query(
    `with made as (
       insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, confidence, source, embedding_status, embedding_model, embedding_dim, content_hash)
       select 'local', gen_random_uuid(), $2, 'guidance_tone', timestamptz '2026-01-01' + n * interval '1 minute', $2 || ' question ' || n, 'Answer ' || n, 0.6, 'agent_inferred',
         'embedded', 'former', 2, $2 || n || random() from generate_series(1, $1::int) n returning id)
     insert into daybook.episodic_vectors (owner, episode_id, model, dim, v384) select 'local', id, 'former', 2, ('[1' || repeat(',0', 383) || ']')::public.halfvec from made`,
    [count, ticker],
  );
}
const clear = () => s.query('delete from daybook.episodic_memory');

test('the state names the embedder and counts the entries of each model and dimension', async () => {
  await clear();
  await store(s.api, {});
  await store(s.api, { embedding: [1, 2, 3], embedding_model: 'three' });
  await store(s.api, { embedding: [1, 2, 3, 4], embedding_model: 'four' });
  const { model, dim, kind, available, pending, outdated: old, spaces } = await state();
  assert.deepEqual({ kind, available, pending, old }, { kind: 'builtin', available: true, pending: 0, old: 0 });
  assert.deepEqual(spaces, [{ model, dim, entries: 1 }, { model: 'four', dim: 4, entries: 1 }, { model: 'three', dim: 3, entries: 1 }]);
});

test('a rebuild with nothing to do reports that', async () => {
  await clear();
  assert.deepEqual(await rebuild(), [{ done: true, embedded: 0, refused: 0, remaining: 0 }]);
});

test('after a change of model every entry gets a new vector, in batches, newest first', async () => {
  await clear();
  await createOutdated(25);
  const before = await state();
  assert.deepEqual([before.outdated, own(before)], [25, 0]);
  assert.deepEqual(before.spaces, [{ model: 'former', dim: 2, entries: 25 }]);
  const [first] = await rebuild({ batch: 10, max: 10 });
  assert.deepEqual(first, { embedded: 10, failed: 0, remaining: 15 });
  const newest = await s.query("select question from daybook.episodic_memory where embedding_model <> 'former' order by created_at");
  assert.deepEqual(newest.map((x) => x.question), Array.from({ length: 10 }, (_, i) => `OLD question ${i + 16}`));
  assert.deepEqual(await rebuild({ batch: 10 }), [
    { embedded: 10, failed: 0, remaining: 5 },
    { embedded: 5, failed: 0, remaining: 0 },
    { done: true, embedded: 15, refused: 0, remaining: 0 },
  ]);
  const after = await state();
  assert.deepEqual(after.spaces, [{ model: after.model, dim: after.dim, entries: 25 }], 'the old vectors are replaced');
  assert.equal(after.outdated, 0);
  const { items } = await search(s.api, { text: 'OLD question 7', mode: 'vector', k: 1 });
  assert.equal(items[0].question, 'OLD question 7');
});

test('entries that are not rebuilt yet are found by words and never compared', async () => {
  await clear();
  await createOutdated(3);
  await rebuild({ max: 1 });
  const { items } = await search(s.api, { text: 'OLD question', k: 10 });
  assert.deepEqual(items.map((x) => x.parts.cosine === null).toSorted(), [false, true, true]);
  assert.ok(items.every((x) => x.parts.text > 0));
});

test('a rebuild embeds at most max entries', async () => {
  await clear();
  await createOutdated(7);
  assert.deepEqual(await rebuild({ batch: 3, max: 4 }), [
    { embedded: 3, failed: 0, remaining: 4 },
    { embedded: 1, failed: 0, remaining: 3 },
    { done: true, embedded: 4, refused: 0, remaining: 3 },
  ]);
});

test('pending entries get their first vector', async () => {
  await clear();
  const { id } = await store(s.api, { question: 'Cobalt?' });
  await s.query("update daybook.episodic_memory set embedding_status = 'pending', embedding_model = null, embedding_dim = null");
  await s.query('delete from daybook.episodic_vectors');
  assert.equal((await state()).pending, 1);
  assert.deepEqual((await rebuild()).at(-1), { done: true, embedded: 1, refused: 0, remaining: 0 });
  const { embedding_status, embedding_model } = (await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json;
  assert.deepEqual([embedding_status, embedding_model], ['embedded', (await state()).model]);
});

test('a supplied vector stays; only include_supplied adds one of the service', async () => {
  await clear();
  const { id } = await store(s.api, { embedding: [1, 2, 3], embedding_model: 'three' });
  assert.deepEqual(await rebuild(), [{ done: true, embedded: 0, refused: 0, remaining: 0 }]);
  assert.equal((await rebuild({ include_supplied: true })).at(-1).embedded, 1);
  const { model, dim, spaces } = await state();
  assert.deepEqual(spaces, [{ model, dim, entries: 1 }, { model: 'three', dim: 3, entries: 1 }]);
  for (const body of [{ vector: [1, 2, 3], model: 'three' }, { text: 'question', mode: 'vector' }]) assert.deepEqual((await search(s.api, body)).items.map((x) => x.id), [id]);
  assert.deepEqual(await rebuild({ include_supplied: true }), [{ done: true, embedded: 0, refused: 0, remaining: 0 }]);
});

/** Starts a rebuild, waits for `count` lines and closes the connection. */
function abortedRebuild(body, count) {
  return new Promise((resolve, reject) => {
    const request = http.request(`${s.service.base}/v1/embeddings/rebuild`, { method: 'POST', headers: { 'content-type': 'application/json' } });
    let text = '';
    request.on('error', reject);
    request.on('response', (response) => {
      response.on('error', () => {});
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        if (text.split('\n').length <= count) return;
        request.destroy();
        resolve(lines(text.slice(0, text.lastIndexOf('\n') + 1)));
      });
    });
    request.end(JSON.stringify(body));
  });
}

test('a client that disconnects ends the rebuild; finished batches stay, and the next request continues', async () => {
  await clear();
  await createOutdated(600);
  const seen = await abortedRebuild({ batch: 1 }, 3);
  assert.deepEqual(seen.slice(0, 3).map((x) => x.remaining), [599, 598, 597]);
  await until(() => /rebuild status=499 /.test(s.service.log), 'the log has the aborted request');
  const done = own(await state());
  assert.ok(done >= 3 && done < 500, `${done} of 600`);
  const rest = await rebuild({ batch: 256 });
  const { embedded, ...end } = rest.at(-1);
  assert.deepEqual(end, { done: true, refused: 0, remaining: 0 });
  assert.ok(embedded <= 600 - done && embedded >= 599 - done, `${done} before, ${embedded} after: at most the batch that was under way`);
  assert.equal(own(await state()), 600);
});

test('other requests are served during a rebuild and see each batch once it is stored', async () => {
  await clear();
  await createOutdated(400);
  let running = true;
  const all = rebuild({ batch: 16 }).finally(() => (running = false));
  const seen = new Set();
  for (let asked = 0; running || asked === 0; asked++) {
    seen.add(own(await state()));
    await search(s.api, { text: 'OLD question 3', k: 1 });
  }
  assert.equal((await all).at(-1).remaining, 0);
  assert.ok([...seen].some((n) => n > 0 && n < 400), `only ${[...seen]}`);
});

test('concurrent rebuilds embed each entry once', async () => {
  await clear();
  await createOutdated(200);
  const both = await Promise.all([rebuild({ batch: 8 }), rebuild({ batch: 8 })]);
  assert.equal(both[0].at(-1).embedded + both[1].at(-1).embedded, 200);
  assert.equal(own(await state()), 200);
});

test('invalid parameters are rejected', async () => {
  const refused = async (body) => faults(await s.api.post('/v1/embeddings/rebuild', body, { status: 422 }));
  assert.deepEqual(await refused({ batch: 0 }), ['batch: out_of_range']);
  assert.deepEqual(await refused({ batch: 257, max: 0, all: true }), ['all: unknown_field', 'batch: out_of_range', 'max: out_of_range']);
});
