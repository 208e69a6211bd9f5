// Searches with as_of: nothing that happens later changes a byte of the response.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axis, search, store } from '../lib/searches.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const AT = '2026-03-01T00:00:00Z';
const LATER = '2026-03-01T00:00:00.000001Z';
let made = 0;

/** Creates three entries of a new ticker before AT. */
async function createEntries() {
  const ticker = `T${made++}`;
  const entries = [];
  for (const [i, word] of ['alpha', 'beta', 'gamma'].entries())
    entries.push(await store(s.api, { ticker, question: `${word} demand?`, answer: `${word} demand rises.`, created_at: `2026-02-0${i + 1}T00:00:00Z`, regime_tag: { rates: 'cutting' } }));
  return { ticker, entries };
}

/** Checks that searches of every kind at AT return the same bytes before and after `change`. */
async function unchanged(setup, change) {
  const { ticker, entries } = setup;
  const bodies = [
    { text: 'beta demand', regime: { rates: 'hiking' } },
    { text: 'beta demand', mode: 'text' },
    { text: 'beta demand', mode: 'vector' },
    { id: entries[0].id },
    { text: 'beta demand', ticker },
  ].map((body) => ({ k: 100, ...body, as_of: AT }));
  const answers = () => Promise.all(bodies.map(async (body) => (await s.api.post('/v1/episodic/search', body, { status: 200 })).text));
  const before = await answers();
  await change();
  const after = await answers();
  for (const [i, text] of after.entries()) assert.equal(text, before[i], JSON.stringify(bodies[i]));
  return before;
}

test('a later entry changes nothing, not even how rare a word is', async () => {
  const setup = await createEntries();
  await unchanged(setup, async () => {
    for (let i = 0; i < 30; i++) await store(s.api, { ticker: setup.ticker, question: `beta demand ${i}?`, answer: 'beta demand beta', created_at: LATER });
  });
  const { items } = await search(s.api, { text: 'beta demand', ticker: setup.ticker, as_of: LATER, k: 100 });
  assert.equal(items.length, 33, 'they are found one instant later');
});

test('a later eviction changes nothing before its instant', async () => {
  const setup = await createEntries();
  const evict = (at) => s.api.post('/v1/episodic/evict', { policies: ['time'], max_age_days: 1, ticker: setup.ticker, dry_run: false, at }, { status: 200 });
  await unchanged(setup, () => evict(LATER));
  assert.deepEqual((await search(s.api, { text: 'demand', ticker: setup.ticker, as_of: LATER })).items, []);
});

test('a later read does not change read_count', async () => {
  const setup = await createEntries();
  await unchanged(setup, async () => {
    const { json } = await s.api.post(
      '/v1/episodic/should_rerun',
      { ticker: setup.ticker, task_type: 'guidance_tone', days_threshold: 3650, new_signals: { rates: 'cutting' }, as_of: LATER },
      { status: 200 },
    );
    assert.equal(json.rerun, false, JSON.stringify(json));
  });
  const { items } = await search(s.api, { text: 'demand', ticker: setup.ticker, as_of: LATER });
  assert.deepEqual(items.map((x) => x.read_count).toSorted(), [0, 0, 1]);
});

test('an entry is found until it expires', async () => {
  const ticker = 'EXPIRES';
  await store(s.api, { ticker, created_at: '2026-02-28T00:00:00Z', ttl_seconds: 86400 });
  const found = async (as_of) => (await search(s.api, { text: 'answer', ticker, as_of })).items.length;
  assert.deepEqual([await found('2026-02-27T23:59:59Z'), await found('2026-02-28T00:00:00Z'), await found('2026-02-28T23:59:59.999999Z'), await found(AT)], [0, 1, 1, 0]);
});

test('a search by the ID of a later entry is rejected', async () => {
  const { id } = await store(s.api, { created_at: LATER });
  await s.api.post('/v1/episodic/search', { id, as_of: AT }, { status: 422 });
  await s.api.post('/v1/episodic/search', { id, as_of: LATER }, { status: 200 });
});

test('a dimension that a model uses later does not fail a search', async () => {
  const ask = (as_of) => s.api.post('/v1/episodic/search', { vector: axis(3, 0), model: 'later-model', as_of });
  await store(s.api, { created_at: LATER, embedding: axis(4, 0), embedding_model: 'later-model' });
  assert.equal((await ask(AT)).status, 200);
  assert.equal((await ask(LATER)).status, 422);
});

test('as_of defaults to the server clock: entries dated later are not found', async () => {
  const ticker = 'TOMORROW';
  await store(s.api, { ticker, created_at: '2999-01-01T00:00:00Z' });
  assert.deepEqual((await search(s.api, { text: 'answer', ticker })).items, []);
  assert.equal((await search(s.api, { text: 'answer', ticker, as_of: '2999-01-01T00:00:00Z' })).items.length, 1);
});
