// Search quality: finance memories, and questions about them in other words.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { postEpisodes } from '../lib/episodes.mjs';
import { TESTS } from '../lib/paths.mjs';
import { search } from '../lib/searches.mjs';
import { suite } from '../lib/suite.mjs';

const lines = (name) => readFileSync(join(TESTS, 'data/retrieval', name), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const memories = lines('memories.jsonl');
const queries = lines('queries.jsonl');
const names = new Map(); // by stored ID
const s = suite({
  prepare: async () => {
    const { lines: stored } = await postEpisodes(s.api, memories.map(({ id, ...entry }) => ({ ...entry, created_at: '2026-06-01T00:00:00Z' })));
    for (const [i, { id }] of stored.entries()) names.set(id, memories[i].id);
  },
});

/** For each query the rank of the first relevant memory among the first ten, or 0. */
async function ranksOf(mode) {
  const ranks = [];
  for (const { query, relevant } of queries) {
    const { items } = await search(s.api, { text: query, mode, k: 10 });
    ranks.push(items.findIndex((x) => relevant.includes(names.get(x.id))) + 1);
  }
  return ranks;
}

/** The share of queries with a relevant memory among the first five, and the mean reciprocal rank. */
const measure = (ranks) => ({
  recall: ranks.filter((rank) => rank >= 1 && rank <= 5).length / ranks.length,
  mrr: ranks.reduce((sum, rank) => sum + (rank && 1 / rank), 0) / ranks.length,
});

test('the data has enough memories and queries, also queries that share no word with their memory', () => {
  assert.ok(memories.length >= 100 && queries.length >= 60);
  assert.ok(queries.filter((x) => x.shares_no_word).length >= 20);
});

test('a hybrid search finds more than words or meaning alone, also paraphrases that share no word', async (t) => {
  const results = {};
  for (const mode of ['hybrid', 'vector', 'text']) {
    const ranks = await ranksOf(mode);
    for (const [name, some] of [['all', ranks], ['no shared word', ranks.filter((_, i) => queries[i].shares_no_word)]]) {
      const { recall, mrr } = (results[`${mode}, ${name}`] = measure(some));
      t.diagnostic(`${mode}, ${name} (${some.length}): recall@5 ${recall.toFixed(3)}, MRR ${mrr.toFixed(3)}`);
    }
  }
  const hybrid = results['hybrid, all'];
  assert.ok(hybrid.recall >= 0.7, `recall ${hybrid.recall}`);
  assert.ok(hybrid.mrr >= 0.6, `MRR ${hybrid.mrr}`);
  for (const mode of ['vector', 'text']) assert.ok(hybrid.mrr > results[`${mode}, all`].mrr, mode);
  assert.ok(results['hybrid, no shared word'].recall >= 0.5, 'paraphrases that share no word are found');
});
