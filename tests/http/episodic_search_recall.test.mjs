// Recall of the vector index: searches in thousands of entries, with any filter, against a comparison of every vector.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillVectors, queryVectors } from '../../bench/lib/vectors.mjs';
import { search, store } from '../lib/searches.mjs';
import { suite } from '../lib/suite.mjs';

const COUNT = 10_400; // even half of these exceed the limit for an exact search
const DIM = 96;
const K = 5;
const s = suite({ prepare });
let rows;
let queries;

async function prepare() {
  const client = await s.cluster.connect(s.database);
  try {
    await fillVectors(client, { count: COUNT, dim: DIM });
    await client.query("update daybook.episodic_memory set regime_tag = regime_tag || jsonb_build_object('half', (regime_tag ->> 'industry')::int % 2)");
    queries = await queryVectors(client, { count: 40 });
    const found = await client.query(
      `select m.id, m.ticker, m.task_type, m.created_at, m.regime_tag, (v.v384::real[])[1:${DIM}] as vector
       from daybook.episodic_vectors v join daybook.episodic_memory m on m.owner = v.owner and m.id = v.episode_id`,
    );
    rows = found.rows;
  } finally {
    await client.end();
  }
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** The IDs of the `K` nearest rows that pass the filter. */
const truth = (vector, passes) =>
  rows
    .filter(passes)
    .map((row) => [row.id, dot(row.vector, vector)])
    .sort((a, b) => b[1] - a[1])
    .slice(0, K)
    .map(([id]) => id);

/** The share of the nearest entries that searches with a filter find, and how many searches were exact. */
async function recall(t, filterOf, passesOf) {
  let found = 0;
  let wanted = 0;
  let exact = 0;
  for (const [i, { vector, cluster }] of queries.entries()) {
    const answer = await search(s.api, { vector, model: 'bench', mode: 'vector', k: K, ...filterOf(cluster, i) });
    const want = truth(vector, passesOf(cluster, i));
    const got = new Set(answer.items.map((x) => x.id));
    found += want.filter((id) => got.has(id)).length;
    wanted += want.length;
    exact += answer.exact ? 1 : 0;
  }
  t.diagnostic(`recall@${K} ${(found / wanted).toFixed(3)}, ${exact} of ${queries.length} searches were exact`);
  return { recall: found / wanted, exact };
}

test('without a filter the index finds at least 97 % of the nearest entries', async (t) => {
  const { recall: share, exact } = await recall(t, () => ({}), () => () => true);
  assert.ok(share >= 0.97, share);
  assert.equal(exact, 0);
});

test('with a filter of 1 in 20 or 1 in 200 every match is compared, and nothing is missed', async (t) => {
  for (const [filterOf, passesOf] of [
    [(_, i) => ({ ticker: `T${i % 20}` }), (_, i) => (row) => row.ticker === `T${i % 20}`],
    [(_, i) => ({ task_type: `U${i % 60}` }), (_, i) => (row) => row.task_type === `U${i % 60}`],
    [(c) => ({ regime: { sector: c % 20 }, regime_only: true }), (c) => (row) => row.regime_tag.sector === c % 20],
    [(c) => ({ regime: { sector: (c + 1) % 20 }, regime_only: true }), (c) => (row) => row.regime_tag.sector === (c + 1) % 20],
    [(c) => ({ regime: { industry: (c + 1) % 200 }, regime_only: true }), (c) => (row) => row.regime_tag.industry === (c + 1) % 200],
  ]) {
    const { recall: share, exact } = await recall(t, filterOf, passesOf);
    assert.ok(share >= 0.99, share); // 16-bit numbers may swap two that are equally near
    assert.equal(exact, queries.length);
  }
});

const SINCE = '2026-01-01T01:00:00Z'; // 6,800 entries are later
test('with a filter that matches too many entries to compare, the index misses almost nothing', async (t) => {
  const { recall: share, exact } = await recall(t, () => ({ since: SINCE }), () => (row) => row.created_at >= new Date(SINCE));
  assert.ok(share >= 0.95, share);
  assert.equal(exact, 0);
});

test('a filter that excludes all near neighbours still finds the nearest matches', async (t) => {
  const { recall: share } = await recall(t, (c) => ({ regime: { half: (c + 1) % 2 }, regime_only: true }), (c) => (row) => row.regime_tag.half === (c + 1) % 2);
  assert.ok(share >= 0.95, share);
});

test('an as_of before most entries still finds the nearest known ones', async (t) => {
  const as_of = '2026-01-01T01:25:00Z'; // 5,101 entries are known by then
  const { recall: share } = await recall(t, () => ({ as_of }), () => (row) => row.created_at <= new Date(as_of));
  assert.ok(share >= 0.95, share);
});

test('a few entries of one model among many of another are all found', async () => {
  for (let i = 0; i < 7; i++) await store(s.api, { embedding: queries[i].vector, embedding_model: 'rare-model' });
  const { items, exact } = await search(s.api, { vector: queries[3].vector, model: 'rare-model', k: 100 });
  assert.equal(items.length, 7);
  assert.equal(exact, true);
});

test('if the index finds too few matches, all are compared', async () => {
  const vector = queries[0].vector;
  await s.query(
    `with made as (
       insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, confidence, source, embedding_status, embedding_model, embedding_dim, content_hash)
       select 'local', gen_random_uuid(), 'FAR', 'far', '2026-01-01', 'Far ' || n, 'away', 0.6, 'agent_inferred', 'supplied', 'far', ${DIM}, 'far ' || n from generate_series(1, 1100) n returning id
     )
     insert into daybook.episodic_vectors (owner, episode_id, model, dim, v384)
     select 'local', id, 'far', ${DIM}, public.l2_normalize((
       (select array_agg(-x + 0.01 * random() order by i) from unnest($1::real[]) with ordinality as u (x, i) where id is not null) || array_fill(0::float8, array[384 - ${DIM}]))::public.halfvec) from made`,
    [vector],
  );
  const { items, exact } = await search(s.api, { vector, model: 'far', mode: 'vector', k: 100 });
  assert.equal(items.length, 100);
  assert.ok(items[0].score < -0.9, 'opposite to the query, so last in the index');
  assert.equal(exact, true);
});
