// Searches by text, vector and entry: modes, filters, scores, recorded searches and pending entries.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { until } from '../lib/processes.mjs';
import { axis, search, store } from '../lib/searches.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const E = {};
const AS_OF = '2026-07-01T00:00:00Z';
const find = (body, options) => search(s.api, { as_of: AS_OF, ...body }, options);
const nameOf = ({ id }) => Object.keys(E).find((name) => E[name].id === id) ?? id;
const names = async (body) => (await find(body)).items.map(nameOf);
const near = (a, b) => Math.abs(a - b) < 0.002; // stored vectors have 16-bit numbers

const CORPUS = {
  buyback: { ticker: 'ACME', question: 'Will ACME announce a share buyback?', answer: 'Management hinted at a repurchase programme of two billion.', source: 'tool_verified', created_at: '2026-06-01T00:00:00Z' },
  margin: { ticker: 'ACME', question: 'Are gross margins under pressure?', answer: 'Freight costs weigh on gross margins until winter.', task_type: 'margins', created_at: '2026-06-02T00:00:00Z', confidence: 0.9 },
  drug: { ticker: 'PILL', question: 'Does the trial readout come this quarter?', answer: 'The company guided to a phase three readout in autumn.', created_at: '2026-06-03T00:00:00Z', source: 'external' },
  rates: { ticker: 'BANK', question: 'How sensitive is net interest income to rate cuts?', answer: 'A cut of 100 basis points costs four percent of income.', created_at: '2026-06-04T00:00:00Z', regime_tag: { rates: 'cutting', vol: 'low' } },
  hikes: { ticker: 'BANK', question: 'How sensitive is net interest income to rate hikes?', answer: 'A hike of 100 basis points adds three percent of income.', created_at: '2026-06-05T00:00:00Z', regime_tag: { rates: 'hiking', vol: 'low' } },
};

async function prepare() {
  for (const [name, body] of Object.entries(CORPUS)) E[name] = await store(s.api, body);
}

test('a text finds the entry it is about, in full and with its score', async () => {
  const { mode, model, exact, degraded, retrieval_id, items } = await find({ text: 'share buyback of ACME' });
  assert.deepEqual({ mode, exact, degraded, retrieval_id }, { mode: 'hybrid', exact: true, degraded: null, retrieval_id: null });
  assert.equal(model, E.buyback.embedding_model);
  const { score, parts, regime_mismatch, ...entry } = items[0];
  const { duplicate, ...stored } = E.buyback;
  assert.deepEqual(entry, stored);
  assert.deepEqual(regime_mismatch, []);
  assert.ok(parts.cosine > 0 && parts.text > 0 && parts.regime_penalty === 0);
  assert.equal(items.length, 5, 'the others follow: there is no minimum score');
});

test('the score is computed from its parts, digit for digit, and items are sorted by it', async () => {
  const { items } = await find({ text: 'income and rate cuts of ACME', regime: { rates: 'hiking' }, k: 100 });
  const micro = (x) => Math.round(x * 1e6);
  for (const { score, parts } of items) assert.equal(micro(score), micro(parts.cosine) + micro(parts.text) - micro(parts.regime_penalty));
  const scores = items.map((x) => x.score);
  assert.deepEqual(scores, scores.toSorted((a, b) => b - a));
});

test('the same search gives the same bytes', async () => {
  const body = { text: 'gross margins under pressure', regime: { rates: 'cutting' }, as_of: AS_OF };
  const first = await s.api.post('/v1/episodic/search', body, { status: 200 });
  const again = await s.api.post('/v1/episodic/search', body, { status: 200 });
  assert.deepEqual(again.bytes, first.bytes);
});

test('words match by their stem, and one match is enough', async () => {
  assert.deepEqual(await names({ text: 'repurchases', mode: 'text' }), ['buyback']);
  assert.deepEqual((await names({ text: 'nothing of this but freight', mode: 'text' })), ['margin']);
});

test('stop words alone find nothing by words', async () => {
  const { items, exact, model } = await find({ text: 'the of and', mode: 'text' });
  assert.deepEqual({ items, exact, model }, { items: [], exact: null, model: null });
});

test('operators of the query language are plain text', async () => {
  for (const text of ["O'Neil's \\ buyback", "'buyback", '!buyback & (', 'buyback:*', '\\']) assert.ok(Array.isArray((await find({ text })).items), text);
  assert.equal((await names({ text: "!buyback & '", mode: 'text' }))[0], 'buyback');
});

test('mode text compares only words, mode vector only meaning', async () => {
  const words = await find({ text: 'buyback', mode: 'text' });
  assert.deepEqual(words.items.map((x) => [nameOf(x), x.parts.cosine]), [['buyback', null]]);
  const meaning = await find({ text: 'buyback', mode: 'vector' });
  assert.equal(meaning.items.length, 5);
  for (const { parts } of meaning.items) assert.ok(parts.cosine !== null && parts.text === 0);
});

test('mode hybrid scores both, also for entries that were found only by words', async () => {
  const [hit] = (await find({ text: 'net interest income sensitivity to hikes', k: 1 })).items;
  const [meaning] = (await find({ text: 'net interest income sensitivity to hikes', k: 1, mode: 'vector' })).items;
  assert.equal(nameOf(hit), 'hikes');
  assert.ok(hit.score > meaning.score);
  assert.equal(hit.parts.cosine, meaning.parts.cosine);
});

test('a rare word scores higher than a common one', async () => {
  const of = async (text) => (await find({ text, mode: 'text' })).items[0].parts.text;
  assert.ok((await of('freight')) > (await of('income')));
});

test('at most k entries are returned', async () => {
  assert.equal((await find({ text: 'income', k: 2 })).items.length, 2);
  assert.equal((await find({ text: 'income', k: 100 })).items.length, 5);
  const all = await names({ text: 'income', k: 5 });
  assert.deepEqual(await names({ text: 'income', k: 3 }), all.slice(0, 3));
});

test('a search by ID finds similar entries, never the entry itself', async () => {
  const { items, model, degraded } = await find({ id: E.rates.id });
  assert.equal(model, E.rates.embedding_model);
  assert.equal(degraded, null);
  assert.deepEqual(nameOf(items[0]), 'hikes');
  assert.ok(!items.map(nameOf).includes('rates'));
  assert.ok(items[0].parts.text > 0, 'the words of its question count');
  assert.equal((await find({ id: E.rates.id, mode: 'vector' })).items[0].parts.text, 0);
  assert.equal((await find({ id: E.rates.id, mode: 'text' })).items[0].parts.cosine, null);
});

const FILTERS = [
  [{ ticker: 'BANK' }, ['hikes', 'rates']],
  [{ ticker: 'bank' }, []],
  [{ task_type: 'margins' }, ['margin']],
  [{ source: 'external' }, ['drug']],
  [{ min_confidence: 0.9 }, ['buyback', 'margin']],
  [{ min_confidence: 0.91 }, []],
  [{ since: '2026-06-03T00:00:00Z', until: '2026-06-05T00:00:00Z' }, ['drug', 'rates']],
  [{ since: '2026-06-03T00:00:00.000001Z' }, ['hikes', 'rates']],
  [{ ticker: 'ACME', task_type: 'margins', source: 'agent_inferred', min_confidence: 0.5 }, ['margin']],
  [{ regime: { vol: 'low' }, regime_only: true }, ['hikes', 'rates']],
  [{ regime: { rates: 'cutting', vol: 'low' }, regime_only: true }, ['rates']],
  [{ regime: { rates: 'cutting', vol: 'high' }, regime_only: true }, []],
];
for (const mode of ['hybrid', 'vector'])
  for (const [filter, expected] of FILTERS)
    test(`the filter ${JSON.stringify(filter)} works in mode ${mode}`, async () => {
      assert.deepEqual((await names({ text: 'company', mode, ...filter, k: 100 })).toSorted(), expected);
    });
test('filters apply to matches by words too', async () => {
  assert.deepEqual(await names({ text: 'income', mode: 'text', ticker: 'ACME' }), []);
  assert.deepEqual(await names({ text: 'income', mode: 'text', since: '2026-06-05T00:00:00Z' }), ['hikes']);
});

test('an entry of another regime ranks lower by the penalty, but is still found', async () => {
  const text = 'How sensitive is net interest income to rate changes?';
  for (const [regime, first] of [['cutting', 'rates'], ['hiking', 'hikes']]) {
    const { items } = await find({ text, regime: { rates: regime }, regime_penalty: 0.5, k: 100 });
    assert.equal(nameOf(items[0]), first);
    assert.equal(items.length, 5);
    const other = items.find((x) => nameOf(x) === (first === 'rates' ? 'hikes' : 'rates'));
    assert.deepEqual([other.parts.regime_penalty, other.regime_mismatch], [0.5, ['rates']]);
    for (const hit of items.filter((x) => !x.regime_tag.rates)) assert.deepEqual([hit.parts.regime_penalty, hit.regime_mismatch], [0, []]);
  }
});

test('the regime penalty can be set; it defaults to 0.1, and 0 disables it', async () => {
  const hits = async (more) => (await find({ text: 'income', regime: { rates: 'cutting', vol: 'low', day: 'monday' }, ticker: 'BANK', ...more })).items.find((x) => nameOf(x) === 'hikes');
  assert.equal((await hits({})).parts.regime_penalty, 0.05, 'one of two shared keys differs');
  assert.equal((await hits({ regime_penalty: 0 })).parts.regime_penalty, 0);
  assert.equal((await hits({ regime_penalty: 1 })).parts.regime_penalty, 0.5);
  assert.deepEqual((await hits({ regime_penalty: 0 })).regime_mismatch, ['rates']);
});

test('numbers and booleans in a regime are compared by value and type', async () => {
  const { id } = await store(s.api, { ticker: 'REGIME', regime_tag: { level: 1.5, open: true, text: '1.5' } });
  const mismatch = async (regime) => {
    const [hit] = (await find({ text: 'x', ticker: 'REGIME', mode: 'vector', regime })).items;
    assert.equal(hit.id, id);
    return hit.regime_mismatch;
  };
  assert.deepEqual(await mismatch({ level: 1.5, open: true, text: '1.5' }), []);
  assert.deepEqual(await mismatch({ level: 1.50, open: true }), []);
  assert.deepEqual(await mismatch({ level: 15e-1 }), []);
  assert.deepEqual(await mismatch({ level: '1.5', open: 'true', text: 1.5 }), ['level', 'open', 'text']);
  assert.deepEqual(await mismatch({ level: 2, open: false }), ['level', 'open']);
});

test('vectors of every dimension coexist and are compared only within their dimension', async () => {
  const dims = [1, 3, 384, 385, 612, 1536, 2000, 3072, 4000];
  for (const dim of dims) {
    const model = `model-${dim}`;
    E[`own-${dim}`] = await store(s.api, { ticker: 'DIMS', embedding: axis(dim, 0), embedding_model: model });
    if (dim > 2) {
      E[`near-${dim}`] = await store(s.api, { ticker: 'DIMS', embedding: axis(dim, 0, { [dim - 1]: 1 }), embedding_model: model });
      E[`far-${dim}`] = await store(s.api, { ticker: 'DIMS', embedding: axis(dim, dim - 1).map((x) => -x), embedding_model: model });
    }
  }
  for (const dim of dims) {
    const { items, model, exact } = await find({ vector: axis(dim, 0).map((x) => 7 * x), model: `model-${dim}`, k: 100 });
    assert.deepEqual([model, exact], [`model-${dim}`, true]);
    assert.deepEqual(items.map(nameOf), dim > 2 ? [`own-${dim}`, `near-${dim}`, `far-${dim}`] : [`own-${dim}`]);
    const expected = [1, Math.SQRT1_2, 0].slice(0, items.length);
    for (const [i, { score, parts }] of items.entries()) assert.ok(near(score, expected[i]) && score === parts.cosine, `${dim}: ${score}`);
  }
});

test('a model with vectors in two dimensions does not fail a search that matches none of them', async () => {
  const model = 'two-dims';
  const three = await store(s.api, { ticker: 'TWO', embedding: [1, 2, 3], embedding_model: model });
  await store(s.api, { ticker: 'TWO', embedding: [1, 2], embedding_model: model });
  assert.deepEqual((await find({ vector: [1, 2, 3], model, ticker: 'NONE' })).items, []);
  assert.deepEqual((await find({ id: three.id, mode: 'vector' })).items, []);
});

test('vectors of different models are never compared, even with the same dimension', async () => {
  const vector = axis(5, 2);
  const a = await store(s.api, { embedding: vector, embedding_model: 'five-a' });
  const b = await store(s.api, { embedding: vector, embedding_model: 'five-b' });
  for (const [model, entry] of [['five-a', a], ['five-b', b]]) assert.deepEqual((await find({ vector, model })).items.map((x) => x.id), [entry.id]);
  assert.deepEqual((await find({ vector, model: 'five-c' })).items, []);
  assert.deepEqual((await find({ id: a.id, mode: 'vector' })).items, []);
});

test('with text and vector, words come from the text and meaning from the vector', async () => {
  const model = 'together';
  const a = await store(s.api, { question: 'Zinc smelters?', answer: 'They close.', embedding: [1, 0, 0], embedding_model: model });
  const b = await store(s.api, { question: 'Copper mines?', answer: 'They open.', embedding: [0, 1, 0], embedding_model: model });
  const ids = async (body) => (await find({ model, ...body })).items.map((x) => x.id);
  assert.deepEqual(await ids({ vector: [1, 0.9, 0] }), [a.id, b.id]);
  assert.deepEqual(await ids({ vector: [1, 0.9, 0], text: 'copper' }), [b.id, a.id]);
  assert.deepEqual(await ids({ vector: [1, 0.9, 0], text: 'copper', mode: 'vector' }), [a.id, b.id]);
  assert.deepEqual(await ids({ vector: [1, 0.9, 0], text: 'copper', mode: 'text' }), [b.id]);
});

test('a recorded search has the query, the filters, the candidates with their scores, and the results', async () => {
  const body = { text: 'income', k: 1, ticker: 'BANK', min_confidence: 0.1, regime: { rates: 'cutting' }, as_of: AS_OF, record: true };
  const { retrieval_id, items } = await search(s.api, body);
  const [row] = await s.query('select * from daybook.memory_retrievals where id = $1', [retrieval_id]);
  assert.deepEqual([row.owner, row.kind, row.at.toISOString()], ['local', 'episodic', new Date(AS_OF).toISOString()]);
  assert.deepEqual(row.query, { text: 'income', vector: null, model: null, id: null, mode: 'hybrid', k: 1 });
  const { ticker, task_type, min_confidence, regime, regime_only, regime_penalty } = row.filters;
  assert.deepEqual([ticker, task_type, min_confidence, regime, regime_only, regime_penalty], ['BANK', null, 0.1, { rates: 'cutting' }, false, 0.1]);
  assert.deepEqual(row.selection, items.map((x) => x.id));
  assert.deepEqual(row.candidates.map((c) => nameOf(c)), ['rates', 'hikes']);
  const { score, parts } = items[0];
  assert.deepEqual(row.candidates[0], { id: items[0].id, score, parts });
});

test('without record no search is stored', async () => {
  const count = async () => (await s.query('select count(*)::int as n from daybook.memory_retrievals'))[0].n;
  const before = await count();
  assert.equal((await find({ text: 'income', record: false })).retrieval_id, null);
  assert.equal(await count(), before);
});

test('a retry of a recorded search stores nothing, and gets the first response', async () => {
  const count = async () => (await s.query('select count(*)::int as n from daybook.memory_retrievals'))[0].n;
  const post = (body, status = 200) => s.api.post('/v1/episodic/search', body, { status, headers: { 'idempotency-key': 'recorded' } });
  const body = { text: 'income', record: true };
  const before = await count();
  const first = await post(body);
  const again = await post(body);
  assert.deepEqual([again.bytes, again.headers['idempotency-replayed']], [first.bytes, 'true']);
  assert.equal(await count(), before + 1);
  assert.equal((await post({ ...body, k: 1 }, 409)).json.code, 'idempotency_conflict');
});

test('retries of a recorded search that run together store it once', async () => {
  const stored = async () => (await s.query("select id from daybook.memory_retrievals where query ->> 'text' = 'together'")).map((row) => row.id);
  const headers = { 'idempotency-key': 'recorded-together' };
  const answers = await Promise.all(Array.from({ length: 4 }, () => s.api.post('/v1/episodic/search', { text: 'together', record: true }, { headers })));
  const ids = answers.filter(({ status }) => status === 200).map(({ json }) => json.retrieval_id);
  for (const { status, json } of answers) assert.ok(status === 200 || json.code === 'idempotency_in_progress', JSON.stringify(json));
  assert.deepEqual([...new Set(ids)], await stored());
});

test('a key is not stored with a search that is not recorded', async () => {
  const headers = { 'idempotency-key': 'unrecorded' };
  for (const text of ['income', 'margins']) {
    const answer = await s.api.post('/v1/episodic/search', { text }, { status: 200, headers });
    assert.equal(answer.headers['idempotency-replayed'], undefined);
  }
  assert.deepEqual(await s.query("select key from daybook.idempotency_keys where key = 'unrecorded'"), []);
});

test('a search does not count as a read', async () => {
  await find({ id: E.rates.id });
  const { items } = await find({ text: 'income', ticker: 'BANK' });
  for (const { read_count, last_read_at } of items) assert.deepEqual([read_count, last_read_at], [0, null]);
});

test('a search counts entries without a vector, is not cacheable, and makes no vectors itself', async () => {
  const service = await s.another({ env: { DAYBOOK_BACKFILL: 'off' } });
  const api = makeClient(service.base);
  const { id } = await store(s.api, { ticker: 'WAITS', question: 'Tungsten?' });
  await s.query("update daybook.episodic_memory set embedding_status = 'pending', embedding_model = null, embedding_dim = null where id = $1", [id]);
  await s.query('delete from daybook.episodic_vectors where episode_id = $1', [id]);
  try {
    for (const [changes, pending] of [[{}, 1], [{ ticker: 'WAITS' }, 1], [{ ticker: 'OTHER' }, 0], [{ mode: 'text' }, 0], [{ vector: [1], model: 'one' }, 0]]) {
      const { json, headers } = await api.post('/v1/episodic/search', { text: 'Tungsten', ...changes }, { status: 200 });
      assert.deepEqual([json.pending, headers['cache-control']], [pending, pending ? 'no-store' : undefined], JSON.stringify(changes));
    }
    assert.equal((await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json.embedding_status, 'pending');
  } finally {
    api.close();
    await service.stop();
  }
  await until(async () => (await find({ text: 'Tungsten', ticker: 'WAITS' })).pending === 0, 'the entry is embedded');
  assert.equal((await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json.embedding_status, 'embedded');
  assert.deepEqual((await find({ text: 'Tungsten', ticker: 'WAITS', mode: 'vector' })).items.map((x) => x.id), [id]);
});
