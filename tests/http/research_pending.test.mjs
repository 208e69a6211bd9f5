// Research prompts while earlier answers have no vector yet: the response and the prompt say how many were left out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { day } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { block, commit, prepare } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ env: { DAYBOOK_BACKFILL: 'off' } });
const QUESTION = 'Do fuel hedges protect the margin?';

/** Commits an answer on another ticker. */
const answer = async (task_type, ticker, text = 'Hedges protect the margin.') =>
  (await commit(s.api, { ticker, task_type, question: 'Fuel hedges?', answer: text })).episode.id;

/** Makes entries look like those stored while the embedder was unavailable. */
async function makePending(...ids) {
  await s.query('DELETE FROM daybook.episodic_vectors WHERE episode_id = ANY ($1)', [ids]);
  await s.query(`UPDATE daybook.episodic_memory SET embedding_status = 'pending', embedding_model = NULL, embedding_dim = NULL WHERE id = ANY ($1)`, [ids]);
}

const ask = async (task_type, changes = {}, api = s.api) => {
  const body = { ticker: 'SELF', task_type, question: QUESTION, as_of: day(12), days_threshold: 1, ...changes };
  const { json, headers } = await api.post('/v1/research/prepare', body, { status: 200 });
  return { ...json, ids: json.analogous.map(({ id }) => id), cache: headers['cache-control'], cases: block(json.system, 'analogous_cases') };
};

test('if every case was compared nothing is pending, and the prompt does not mention it', async () => {
  const id = await answer('whole', 'ONE');
  const { ids, pending, cache, cases } = await ask('whole');
  assert.deepEqual([ids, pending, cache], [[id], 0, undefined]);
  assert.ok(!cases.includes('left out'), cases);
});

test('pending cases are counted in the response and in the prompt, and the response is not cacheable', async () => {
  const [kept, first, second] = [await answer('some', 'KEPT'), await answer('some', 'ONE'), await answer('some', 'TWO')];
  await makePending(first);
  const one = await ask('some');
  assert.deepEqual([new Set(one.ids), one.pending, one.degraded, one.cache], [new Set([kept, second]), 1, null, 'no-store']);
  assert.ok(one.cases.endsWith('\n(1 earlier answer is not indexed yet and was left out)\n'), one.cases);

  await makePending(second);
  const two = await ask('some');
  assert.deepEqual([two.ids, two.pending, two.cache], [[kept], 2, 'no-store']);
  assert.ok(two.cases.endsWith('\n(2 earlier answers are not indexed yet and were left out)\n'), two.cases);
});

test('only entries that could be a case count: of other tickers, of the task, known at as_of, and only if cases are wanted', async () => {
  await makePending(await answer('scope', 'ONE'), await answer('scope', 'SELF'), await answer('other', 'ONE'));
  await answer('scope', 'KEPT');
  assert.equal((await ask('scope')).pending, 1);
  assert.equal((await ask('scope', { as_of: day(9) })).pending, 0);
  const without = await ask('scope', { k: 0 });
  assert.deepEqual([without.pending, without.cache, without.cases], [0, undefined, undefined]);
});

test('if no case has a vector, words are compared and nothing is left out; if no word matches either, the prompt says what is pending', async () => {
  const id = await answer('none', 'ONE');
  await makePending(id);
  const worded = await ask('none');
  assert.deepEqual([worded.ids, worded.degraded, worded.pending, worded.cache], [[id], 'no_vector', 0, undefined]);
  const unlike = await ask('none', { question: 'Zinc smelters in drought' });
  assert.deepEqual([unlike.ids, unlike.degraded, unlike.pending, unlike.cache], [[], null, 1, 'no-store']);
  assert.ok(unlike.cases.endsWith('\n(1 earlier answer is not indexed yet and was left out)\n'), unlike.cases);
  assert.ok(!unlike.cases.includes('no analogous cases yet'), unlike.cases);
});

test('a prompt that left entries out starts the backfill, and the next one has them', async () => {
  const [kept, id] = [await answer('filled', 'KEPT'), await answer('filled', 'ONE')];
  const service = await s.another({ env: { DAYBOOK_BACKFILL: 'auto' } });
  const api = makeClient(service.base);
  try {
    await until(async () => (await s.query(`SELECT count(*)::int AS n FROM daybook.episodic_memory WHERE embedding_status = 'pending'`))[0].n === 0, 'its first round is over');
    await makePending(id);
    await until(async () => (await ask('filled', {}, api)).pending === 0, 'the vector is there');
    const { ids, cache } = await ask('filled', {}, api);
    assert.deepEqual([new Set(ids), cache], [new Set([kept, id]), undefined]);
  } finally {
    api.close();
    await service.stop();
  }
});
