// Searches over memories, theses and lessons: one ranking, filters, versions, scores, scripts, clocks and the budget of the text.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allEmbedded } from '../lib/backfill.mjs';
import { holding, openThesis, remember, searchMemories } from '../lib/journal.mjs';
import { deploy, postTick } from '../lib/ledger.mjs';
import { create as createLesson, day, faults, OUTCOME, UNKNOWN_ID } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
after(() => stranger?.close());
const M = {};
let sim, other, stranger;
const AS_OF = day(20);
const find = (body, options) => searchMemories(s.api, { as_of: AS_OF, k: 100, ...body }, options);
const nameOf = ({ id }) => Object.keys(M).find((name) => M[name].id === id) ?? id;
const names = async (body) => (await find(body)).items.map(nameOf);
const sorted = async (body) => (await names(body)).toSorted();
const hit = async (id, body) => (await find(body)).items.find((x) => x.id === id);
const micro = (x) => Math.round(x * 1e6);
/** What the words of the query found, best first: a search has no minimum score, so its hits go on with what only resembles the query. */
const byWords = async (body) => (await find(body)).items.filter((x) => x.parts.text > 0).map(nameOf);

async function prepare() {
  const [local, strangers] = [await createKey(s.url, 'local', 'agent'), await createKey(s.url, 'stranger', 'agent')];
  stranger = s.api.as(strangers.key);
  s.api.close();
  s.api = s.api.as(local.key);
  sim = (await deploy(s.api, { mode: 'sim', at: day(1) })).id;
  other = (await deploy(s.api, { mode: 'sim', at: day(1) })).id;
  const make = async (name, post, changes) => (M[name] = await post(s.api, changes));
  const about = (words) => ({ text: words, symbol: 'BTC', deployment_id: sim });
  await make('note', remember, { ...about('Funding flipped before the breakout of the range.'), kind: 'note', tags: ['funding', 'perp'], at: day(2) });
  await make('proposal', remember, { ...about('Buy the breakout once funding cools.'), kind: 'proposal', agent_name: 'scout', at: day(3) });
  await make('risk', remember, { ...about('A breakout with hot funding often fails.'), kind: 'risk_note', tags: ['perp'], at: day(4) });
  await make('decision', remember, { ...about('Skipped the breakout: funding too hot.'), kind: 'decision', action: 'skip', at: day(5) });
  await make('thesis', openThesis, { ...about('Breakout continuation while funding stays flat.'), invalidation: 'zirconium below 61,000', target: 'palladium at 80,000', horizon: 'one fortnight', at: day(6) });
  await make('lesson', createLesson, { takeaway: 'A breakout with negative funding tends to last.', context: 'osmium cases', outcome: 'iridium result', tags: ['perp'], at: day(7) });
  await make('shared', remember, { text: 'Retailers sit on too much stock, so orders will shrink.', symbol: 'ACME', at: day(8) });
  await make('elsewhere', remember, { text: 'Breakout funding of another deployment.', deployment_id: other, symbol: 'ETH', at: day(9) });
  await make('closed', openThesis, { symbol: 'SOL', text: 'Validators migrate this quarter.', deployment_id: sim, at: day(10) });
  await s.api.post(`/v1/theses/${M.closed.id}/close`, { reason: 'migrated', outcome: { metric: 'return', value: 0.5 }, at: day(12) }, { status: 200 });
  await allEmbedded(s.api);
}

test('notes, proposals, risk notes, decisions, theses and lessons are in one ranking, each once', async () => {
  const { items, model, exact, degraded, pending } = await find({ text: 'breakout and funding', deployment_id: sim });
  assert.equal(items.length, 8);
  assert.equal(new Set(items.map((x) => x.id)).size, 8);
  assert.deepEqual(items.slice(0, 6).map((x) => x.kind).toSorted(), ['decision', 'lesson', 'note', 'proposal', 'risk_note', 'thesis']);
  assert.deepEqual([exact, degraded, pending], [true, null, 0]);
  assert.equal(model, (await s.api.get('/v1/embeddings')).json.model);
});

test('a hit is the memory in full, as its own resource shows it', async () => {
  for (const [name, path] of [['decision', 'memories'], ['thesis', 'theses'], ['lesson', 'lessons']]) {
    const stored = (await s.api.get(`/v1/${path}/${M[name].id}`, { status: 200 })).json;
    const { score, parts, ...found } = await hit(M[name].id, { text: 'breakout' });
    const shared = Object.keys(found).filter((key) => key in stored && (name !== 'lesson' || key !== 'outcome'));
    assert.ok(shared.length >= 6);
    for (const key of shared) assert.deepEqual(found[key], stored[key], `${name}.${key}`);
  }
  assert.equal((await hit(M.lesson.id, { text: 'breakout' })).text, M.lesson.takeaway);
  assert.deepEqual((await hit(M.closed.id, { text: 'validators' })).outcome, { metric: 'return', value: 0.5, baseline: null, sample_size: 1, note: null });
});

test('with a deployment and a symbol, the open thesis is a hit whatever its rank, unless a filter excludes it', async () => {
  const query = { text: 'hot funding often fails', k: 1, symbol: 'BTC' };
  const found = async (body) => (await find({ ...query, ...body })).items.map(nameOf);
  assert.deepEqual(await found({}), ['risk']);
  assert.deepEqual(await found({ deployment_id: sim }), ['thesis']);
  assert.deepEqual(await found({ deployment_id: sim, k: 2 }), ['risk', 'thesis']);
  assert.deepEqual(await found({ deployment_id: sim, k: 3 }), (await found({ deployment_id: sim, k: 100 })).filter((name, i) => i < 2 || name === 'thesis').slice(0, 3));
  assert.deepEqual(await found({ deployment_id: sim, kind: ['risk_note'] }), ['risk']);
  assert.deepEqual(await found({ deployment_id: sim, as_of: day(5) }), ['risk'], 'it was not open yet');
  assert.deepEqual(await found({ deployment_id: other }), [], 'it is of another deployment');
  assert.deepEqual(await found({ deployment_id: sim, text: undefined }), ['thesis']);
  assert.deepEqual(await found({ deployment_id: sim, text: undefined, since: day(2), until: day(6) }), ['decision']);
  assert.deepEqual(await found({ deployment_id: sim, symbol: 'SOL', kind: ['thesis'] }), ['closed']);
});

test('words match by their stem, in all parts of a thesis and of a lesson', async () => {
  for (const [text, name] of [['retailer', 'shared'], ['zirconium', 'thesis'], ['palladium', 'thesis'], ['fortnights', 'thesis'], ['osmium', 'lesson'], ['iridium', 'lesson'], ['lasting', 'lesson']])
    assert.deepEqual(await byWords({ text }), [name], text);
  assert.equal((await names({ text: 'zirconium' }))[0], 'thesis');
});

test('meaning finds a memory that shares no word with the query', async () => {
  const { items } = await find({ text: 'shops hold excess inventory' });
  assert.equal(nameOf(items[0]), 'shared');
  assert.ok(items[0].parts.cosine > 0 && items[0].parts.text === 0);
});

test('the score is the sum of its parts, digit for digit, and hits are sorted by it', async () => {
  const { items } = await find({ text: 'funding was hot before the breakout failed' });
  assert.ok(items.filter((x) => x.parts.text > 0 && x.parts.cosine !== null).length >= 5);
  for (const { score, parts } of items) assert.equal(micro(score), micro(parts.cosine) + micro(parts.text));
  assert.deepEqual(items.map((x) => x.score), items.map((x) => x.score).toSorted((a, b) => b - a));
});

const FILTERS = [
  [{ kind: ['note'] }, ['elsewhere', 'note', 'shared']],
  [{ kind: ['risk_note', 'lesson'] }, ['lesson', 'risk']],
  [{ symbol: 'BTC' }, ['decision', 'note', 'proposal', 'risk', 'thesis']],
  [{ symbol: 'btc' }, []],
  [{ status: ['open'] }, ['thesis']],
  [{ status: ['closed'] }, ['closed']],
  [{ status: ['open', 'closed', 'proposed'] }, ['closed', 'lesson', 'thesis']],
  [{ status: ['active'], symbol: 'ETH' }, ['elsewhere']],
  [{ tags: ['perp'] }, ['lesson', 'note', 'risk']],
  [{ tags: ['nothing', 'funding'] }, ['note']],
  [{ since: day(8), until: day(10) }, ['elsewhere', 'shared']],
  [{ since: day(10) }, ['closed']],
  [{ until: day(2) }, []],
  [{ kind: ['risk_note'], symbol: 'BTC', tags: ['perp'], status: ['active'], since: day(4) }, ['risk']],
];
for (const text of ['breakout', undefined])
  for (const [filter, expected] of FILTERS)
    test(`the filter ${JSON.stringify(filter)} works ${text ? 'with' : 'without'} a text`, async () => assert.deepEqual(await sorted({ text, ...filter }), expected));

test('a deployment finds its own memories, those of none, and lessons', async () => {
  for (const text of ['breakout', undefined]) {
    assert.deepEqual(await sorted({ text, deployment_id: other }), ['elsewhere', 'lesson', 'shared']);
    assert.ok(!(await names({ text, deployment_id: sim })).includes('elsewhere'));
  }
});

test('without a text the newest come first, with scores of 0', async () => {
  const { items, model, exact } = await find({});
  assert.deepEqual(items.map(nameOf), ['closed', 'elsewhere', 'shared', 'lesson', 'thesis', 'decision', 'risk', 'proposal', 'note']);
  for (const { score, parts } of items) assert.deepEqual({ score, parts }, { score: 0, parts: { cosine: null, text: 0 } });
  assert.deepEqual([model, exact], [null, null]);
  assert.deepEqual(await names({ k: 2 }), ['closed', 'elsewhere']);
});

test('at most k memories are returned, the best ones', async () => {
  const all = await names({ text: 'breakout' });
  for (const k of [1, 3, 100]) assert.deepEqual(await names({ text: 'breakout', k }), all.slice(0, k));
  assert.equal((await searchMemories(s.api, { text: 'breakout', as_of: AS_OF })).items.length, 5, 'the default');
});

test('a text that was replaced never matches, and as of before the change it does', async () => {
  const { id } = await openThesis(s.api, { symbol: 'CHG', text: 'Tungsten demand doubles.', invalidation: 'molybdenum rises', at: day(2) });
  await s.api('PATCH', `/v1/theses/${id}`, { body: { text: 'Rhenium demand doubles.', at: day(5) }, status: 200 });
  await s.api('PATCH', `/v1/theses/${id}`, { body: { invalidation: 'hafnium rises', at: day(7) }, status: 200 });
  await s.api.post(`/v1/theses/${id}/close`, { reason: 'over', at: day(9) }, { status: 200 });
  await allEmbedded(s.api);
  const at = async (text, n) => {
    const items = (await find({ text, as_of: day(n), symbol: 'CHG' })).items;
    assert.ok(items.length <= 1, 'one hit for a memory');
    return items[0] && [items[0].version, items[0].status, items[0].parts.text > 0];
  };
  assert.equal(await at('tungsten', 1), undefined);
  assert.deepEqual([await at('tungsten', 4), await at('rhenium', 4), await at('molybdenum', 4)], [[1, 'open', true], [1, 'open', false], [1, 'open', true]]);
  assert.deepEqual([await at('tungsten', 5), await at('rhenium', 5), await at('molybdenum', 6)], [[2, 'open', false], [2, 'open', true], [2, 'open', true]]);
  assert.deepEqual([await at('molybdenum', 8), await at('hafnium', 8)], [[3, 'open', false], [3, 'open', true]]);
  assert.deepEqual([await at('tungsten', 10), await at('hafnium rhenium', 10)], [[4, 'closed', false], [4, 'closed', true]]);
  const [cosine, before] = await Promise.all([10, 4].map(async (n) => (await find({ text: 'Tungsten demand doubles. molybdenum rises', as_of: day(n), symbol: 'CHG' })).items[0].parts.cosine));
  assert.ok(before > 0.99 && cosine < 0.9, `the vector is that of the version: ${before}, ${cosine}`);
});

test('a retracted memory is never found, and as of before it is', async () => {
  const { id } = await remember(s.api, { text: 'Ytterbium is scarce.', at: day(2) });
  await allEmbedded(s.api);
  assert.equal((await find({ text: 'ytterbium' })).items[0].id, id);
  await s.api.post(`/v1/memories/${id}/retract`, { reason: 'wrong', at: day(6) }, { status: 200 });
  for (const body of [{ text: 'ytterbium' }, {}, { status: ['active'] }]) assert.equal(await hit(id, body), undefined, JSON.stringify(body));
  assert.equal((await find({ text: 'ytterbium', as_of: day(5) })).items[0].id, id);
});

test('lessons are found with their status; retired and superseded ones only if they are asked for', async () => {
  const [kept, retired, replaced] = await Promise.all(['kept', 'retired', 'replaced'].map((word) => createLesson(s.api, { takeaway: `Lutetium was ${word} in the test of statuses`, tags: ['lutetium'], at: day(2) })));
  await s.api.post(`/v1/lessons/${kept.id}/validate`, { outcome: OUTCOME, at: day(4) }, { status: 200 });
  await s.api.post(`/v1/lessons/${retired.id}/retire`, { reason: 'over', at: day(4) }, { status: 200 });
  await s.api.post(`/v1/lessons/${replaced.id}/supersede`, { by: kept.id, at: day(4) }, { status: 200 });
  const statuses = async (body) => (await find({ text: 'lutetium', tags: ['lutetium'], ...body })).items.map((x) => x.status).toSorted();
  assert.deepEqual(await statuses({}), ['validated']);
  assert.deepEqual(await statuses({ status: ['retired', 'superseded'] }), ['retired', 'superseded']);
  assert.deepEqual(await statuses({ as_of: day(3) }), ['proposed', 'proposed', 'proposed']);
});

test('nothing of the future is found', async () => {
  for (const text of ['breakout', undefined]) assert.deepEqual(await sorted({ text, symbol: 'BTC', as_of: day(4) }), ['note', 'proposal', 'risk']);
  assert.equal((await hit(M.closed.id, { as_of: day(11) })).status, 'open');
  assert.deepEqual(await names({ as_of: day(0) }), []);
});

test('ids, symbols, tags, authors and the names of fields, kinds and actions are not text', async () => {
  const { id } = await remember(s.api, { kind: 'decision', action: 'reduce', text: 'Quiet.', symbol: 'QQQQ', tags: ['dysprosium'], evidence: ['erbium'], agent_name: 'holmium', model_call_id: 'thulium', at: day(2) });
  await allEmbedded(s.api);
  for (const text of [id, id.slice(0, 8), 'QQQQ', 'dysprosium', 'erbium', 'holmium', 'thulium', 'decision', 'reduce', 'active', 'symbol evidence agent_name'])
    assert.equal((await hit(id, { text, tags: ['dysprosium'] })).parts.text, 0, text);
  assert.ok((await hit(id, { text: 'quiet', tags: ['dysprosium'] })).parts.text > 0);
});

const SCRIPTS = {
  'Greek, whatever the case and the accents': ['Η ζήτηση για μετοχές αυξάνεται, λέει ο Ευρωπαίος αναλυτής', ['ζήτηση', 'ΖΗΤΗΣΗ', 'αναλυτησ', 'ευρωπαιος']],
  'Cyrillic, whatever the case': ['Спрос на золото растёт', ['спрос', 'ЗОЛОТО', 'растет']],
  'Chinese, a part of a text without spaces': ['比特币的需求超过了矿工的供应', ['矿工', '需求超过', '供应比特币']],
  'Japanese, in all of its scripts': ['ビットコインの需要が高まっています。', ['需要', 'ビットコイン', 'ﾋﾞｯﾄｺｲﾝ']],
  'Korean, with and without particles': ['비트코인이 하락했다', ['비트코인', '하락']],
  'accents, with and without them, composed or not': ['Zürich prévoit une reprise à Łódź', ['zurich', 'ZÜRICH', 'Zu\u0308rich', 'prevoit']],
  'full width letters': ['ＢＴＣ ｐｅｒｐ', ['btc', 'perp']],
  'Arabic and Hebrew, whole words': ['ارتفع سعر الذهب أمس، זהב עלה', ['الذهب', 'זהב']],
  'characters beyond 16 bits': ['𠮷野家 raised prices 🚀', ['𠮷']],
};
for (const [what, [text, queries]] of Object.entries(SCRIPTS))
  test(`words are found in ${what}`, async () => {
    const { id } = await remember(s.api, { text, symbol: 'SCRIPT', at: day(2) });
    const lesson = await createLesson(s.api, { takeaway: text, tags: ['script'], at: day(2) });
    for (const query of queries) {
      assert.ok((await hit(id, { text: query, symbol: 'SCRIPT' })).parts.text > 0, query);
      assert.ok((await hit(lesson.id, { text: query, kind: ['lesson'], tags: ['script'] })).parts.text > 0, `${query} in a lesson`);
    }
    const { items } = await find({ text: queries[0], symbol: 'SCRIPT' });
    assert.equal(items.find((x) => x.id === id).text, text, 'what is returned is the text as it was sent');
  });

test('a part of a text in a script without spaces is found before what shares fewer of its characters', async () => {
  const texts = ['矿工卖出库存', '工厂停工', '金矿停产'];
  const ids = [];
  for (const text of texts) ids.push((await remember(s.api, { text, symbol: 'HAN', at: day(2) })).id);
  await allEmbedded(s.api);
  const { items } = await find({ text: '矿工', symbol: 'HAN' });
  assert.deepEqual(items.map((x) => ids.indexOf(x.id)).slice(0, 1), [0]);
  const texted = items.toSorted((a, b) => b.parts.text - a.parts.text);
  assert.equal(texted[0].id, ids[0]);
  assert.ok(texted[0].parts.text > texted[1].parts.text);
});

test('operators of the query language are plain text', async () => {
  for (const text of ["O'Neil's \\ breakout", "'breakout", '!breakout & (', 'breakout:*', '\\', '矿\'工 & !']) assert.ok(Array.isArray((await find({ text })).items), text);
  assert.ok((await byWords({ text: "!breakout & '" })).length > 0);
  assert.deepEqual(await byWords({ text: 'the of and' }), [], 'stop words');
});

test('a long text, and one without spaces, can be stored and found', async () => {
  const { id } = await remember(s.api, { text: `${'x'.repeat(15_000)} gadolinium ${'界'.repeat(4000)}`, symbol: 'LONG', at: day(2) });
  for (const text of ['gadolinium', '界', 'x'.repeat(200)]) assert.ok((await hit(id, { text, symbol: 'LONG' })).parts.text > 0, text.slice(0, 20));
});

test('the clock: as_of, else the last tick of a simulation, else the server\'s clock', async () => {
  const { id } = await deploy(s.api, { mode: 'sim', at: day(1) });
  const clock = async (body) => (await searchMemories(s.api, body)).as_of;
  assert.equal(await clock({ deployment_id: id }), day(1));
  await postTick(s.api, id, day(4));
  assert.equal(await clock({ deployment_id: id }), day(4));
  assert.equal(await clock({ deployment_id: id, as_of: day(3, '10:00:00') }), day(3, '10:00:00'));
  const before = new Date().toISOString();
  const { id: live } = await deploy(s.api, { mode: 'live', at: day(1) });
  for (const body of [{}, { deployment_id: live }]) assert.ok(Date.parse(await clock(body)) >= Date.parse(before), JSON.stringify(body));
  await remember(s.api, { deployment_id: id, symbol: 'LATER', text: 'Promethium, later.', at: day(6) });
  const found = async (body) => (await searchMemories(s.api, { text: 'promethium', symbol: 'LATER', deployment_id: id, ...body })).items.length;
  assert.equal(await found({}), 0, 'the simulation is at day 4');
  assert.equal(await found({ as_of: day(6) }), 1);
});

test('a search that returned the open thesis of a held symbol ends the warning of orders on it', async () => {
  const deployment_id = await holding(s.api, 'HELD');
  const thesis = await openThesis(s.api, { symbol: 'HELD', text: 'Terbium is short.', deployment_id, at: day(2) });
  const warnings = async (n) => (await s.api.post('/v1/orders', { deployment_id, symbol: 'HELD', action: 'add', side: 'long', at: day(n) }, { status: 201 })).json.warnings.map((x) => x.thesis_id);
  assert.deepEqual(await warnings(3), [thesis.id]);
  const { items } = await searchMemories(s.api, { kind: ['thesis'], symbol: 'HELD', status: ['open'], deployment_id, as_of: day(4) });
  assert.deepEqual(items.map((x) => x.id), [thesis.id]);
  assert.deepEqual(await warnings(5), []);
  assert.deepEqual(await warnings(6), [thesis.id], 'once per order');
});

test('the same search gives the same hits, scores and text', async () => {
  const body = { text: 'breakout and funding', kind: ['note', 'thesis', 'lesson'] };
  const [{ retrieval_id: a, ...first }, { retrieval_id: b, ...again }] = [await find(body), await find(body)];
  assert.deepEqual(again, first);
  assert.notEqual(a, b);
});

test('another owner finds nothing, and changes no number of a search', async () => {
  const { retrieval_id, ...before } = await find({ text: 'breakout funding' });
  assert.deepEqual((await searchMemories(stranger, { text: 'breakout', as_of: AS_OF })).items, []);
  for (let n = 0; n < 5; n++) await remember(stranger, { text: `Breakout funding ${n}`, at: day(2) });
  await allEmbedded(stranger);
  assert.equal((await searchMemories(stranger, { text: 'breakout', as_of: AS_OF })).items.length, 5);
  const { retrieval_id: _, ...after } = await find({ text: 'breakout funding' });
  assert.deepEqual(after, before);
  await stranger.post('/v1/memories/search', { deployment_id: sim }, { status: 404 });
  await stranger.get(`/v1/memory_retrievals/${retrieval_id}`, { status: 404 });
});

test('a search with bad members names each of them, and is not recorded', async () => {
  const count = async () => Number((await s.query("select count(*) from daybook.memory_retrievals"))[0].count) + Number((await s.query("select count(*) from daybook.memory_events"))[0].count);
  const before = await count();
  const refused = async (body) => faults(await s.api.post('/v1/memories/search', body, { status: 422, check: false }));
  assert.deepEqual(await refused({ text: '', k: 0, max_tokens: 99, kind: [], symbol: '', status: ['gone'], tags: ['a,b'], deployment_id: 'x', since: '2026-01-01', until: 'now', as_of: 5, colour: 1 }), [
    'as_of: wrong_type',
    'colour: unknown_field',
    'deployment_id: invalid_uuid',
    'k: out_of_range',
    'kind: too_few',
    'max_tokens: out_of_range',
    'since: invalid_time',
    'status[0]: not_a_choice',
    'symbol: too_short',
    'tags[0]: invalid_character',
    'text: too_short',
    'until: invalid_time',
  ]);
  assert.deepEqual(await refused({ kind: ['note', 'memory'], status: ['retracted'] }), ['kind[1]: not_a_choice', 'status[0]: not_a_choice']);
  assert.deepEqual(await refused({ k: -5 }), ['k: out_of_range']);
  assert.deepEqual(await refused({ k: 101, max_tokens: 20_001, text: 'x'.repeat(4001) }), ['k: out_of_range', 'max_tokens: out_of_range', 'text: too_long']);
  assert.deepEqual(await refused({ text: ' \n ' }), ['text: too_short']);
  assert.deepEqual(await refused({ vector: [1, 0] }), ['model: required']);
  assert.deepEqual(await refused({ model: 'two' }), ['vector: required']);
  assert.deepEqual(await refused({ vector: [0, 0], model: 'two' }), ['vector: invalid_vector']);
  const unknown = await s.api.post('/v1/memories/search', { deployment_id: UNKNOWN_ID }, { status: 404 });
  assert.ok(unknown.json.detail.includes(`deployment ${UNKNOWN_ID}`));
  assert.equal(await count(), before);
});
