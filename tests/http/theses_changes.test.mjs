// Theses: one open per deployment and symbol, changes that keep what they do not name, and closing with an outcome.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf, newThesis, openThesis, remember } from '../lib/journal.mjs';
import { deploy, postTick } from '../lib/ledger.mjs';
import { create as createLesson, day, everyItem, faults, OUTCOME, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const read = async (id, query = '') => (await s.api.get(`/v1/theses/${id}${query}`, { status: 200 })).json;
const patch = (id, body, options) => s.api('PATCH', `/v1/theses/${id}`, { body, ...options });
const close = (id, body, options) => s.api.post(`/v1/theses/${id}/close`, { reason: 'done', ...body }, options);
const count = async () => Number((await s.query('SELECT count(*) FROM daybook.memory_events'))[0].count);

const FULL = {
  symbol: 'BTC',
  side: 'long',
  text: 'Der Ausbruch trägt: 需求 absorbs supply.',
  invalidation: 'A daily close below 62,000',
  target: '74,000',
  horizon: 'four weeks',
  evidence: ['ETF inflows'],
  tags: ['breakout', 'btc'],
  agent_name: 'pm',
  model_call_id: 'call-1',
};

test('an opened thesis is stored with every member, and its event has the full content', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const { json, headers } = await s.api.post('/v1/theses', { ...FULL, deployment_id, at: day(3) }, { status: 201 });
  const { id, created_at, ...rest } = json;
  assert.deepEqual(rest, {
    ...FULL,
    version: 1,
    status: 'open',
    status_reason: null,
    at: day(3),
    deployment_id,
    parallel: false,
    outcome: null,
    validates: [],
    known_from: day(3),
  });
  assert.equal(headers.location, `/v1/theses/${id}`);
  assert.deepEqual(await read(id), json);
  const [event] = await eventsOf(s.query, id);
  const { symbol, agent_name, model_call_id, ...content } = FULL;
  assert.deepEqual(event.data, { ...content, version: 1, parallel: false });
  assert.deepEqual([event.kind, event.symbol, event.agent_name, event.model_call_id], ['thesis.opened', symbol, agent_name, model_call_id]);
  assert.equal((await s.query('SELECT journal_id FROM daybook.memory_events WHERE subject_id = $1', [id]))[0].journal_id, deployment_id);
});

test('of a deployment and a symbol, one thesis is open at a time', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { id: other } = await deploy(s.api);
  for (const of of [{ deployment_id }, {}]) {
    const first = await openThesis(s.api, { symbol: 'ONE', at: day(1), ...of });
    const before = await count();
    const second = await s.api.post('/v1/theses', newThesis({ symbol: 'ONE', ...of }), { status: 409 });
    assert.equal(second.json.code, 'thesis_open');
    assert.ok(second.json.detail.includes(first.id), second.json.detail);
    assert.equal(await count(), before);
    await openThesis(s.api, { symbol: 'TWO', ...of });
    await close(first.id, { at: day(2) }, { status: 200 });
    await openThesis(s.api, { symbol: 'ONE', at: day(2), ...of });
  }
  await openThesis(s.api, { symbol: 'ONE', deployment_id: other });
});

test('no past shows two open theses of a symbol: one that is dated before another was closed is refused', async () => {
  const { id } = await openThesis(s.api, { symbol: 'PAST', at: day(1) });
  await s.api.post(`/v1/theses/${id}/close`, { reason: 'done', at: day(10) }, { status: 200 });
  const early = await s.api.post('/v1/theses', newThesis({ symbol: 'PAST', at: day(5) }), { status: 409 });
  assert.deepEqual([early.json.code, early.json.detail.includes(id)], ['thesis_open', true]);
  await openThesis(s.api, { symbol: 'PAST', at: day(5), parallel: true });
  await openThesis(s.api, { symbol: 'PAST2', at: day(5) });
});

test('parallel opens a thesis beside another one, and only then', async () => {
  const first = await openThesis(s.api, { symbol: 'PAR' });
  const second = await openThesis(s.api, { symbol: 'PAR', parallel: true });
  assert.equal(second.parallel, true);
  await close(first.id, {}, { status: 200 });
  const third = await s.api.post('/v1/theses', newThesis({ symbol: 'PAR' }), { status: 409 });
  assert.ok(third.json.detail.includes(second.id));
});

test('of many concurrent requests to open a thesis, one succeeds and the others name it', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const answers = await Promise.all(Array.from({ length: 8 }, () => s.api.post('/v1/theses', newThesis({ symbol: 'RACE', deployment_id }))));
  assert.deepEqual(answers.map((a) => a.status).sort(), [201, 409, 409, 409, 409, 409, 409, 409]);
  const { id } = answers.find((a) => a.status === 201).json;
  for (const { status, json } of answers) if (status === 409) assert.ok(json.code === 'thesis_open' && json.detail.includes(id), json.detail);
});

test('a change keeps what it does not name, tags too', async () => {
  const before = await openThesis(s.api, { ...FULL, symbol: 'KEEP', at: day(1) });
  const after = (await patch(before.id, { invalidation: 'A daily close below 64,000', at: day(2) }, { status: 200 })).json;
  assert.deepEqual(after, {
    ...before,
    version: 2,
    invalidation: 'A daily close below 64,000',
    agent_name: null,
    model_call_id: null,
    known_from: day(2),
    created_at: after.created_at,
  });
  assert.deepEqual(await read(before.id), after);
  assert.deepEqual(await read(before.id, `?as_of=${day(1, '23:59:59')}`), before);
  assert.deepEqual(await everyItem(s.api, `/v1/theses/${before.id}/history?limit=1`), [before, after]);
  assert.deepEqual(
    (await eventsOf(s.query, before.id)).map((e) => [e.kind, e.data.version, e.data.invalidation]),
    [
      ['thesis.opened', 1, FULL.invalidation],
      ['thesis.changed', 2, 'A daily close below 64,000'],
    ],
  );
});

test('an explicit null clears an optional member, and the text cannot be cleared', async () => {
  const { id } = await openThesis(s.api, { ...FULL, symbol: 'NULLS', at: day(1) });
  const cleared = (await patch(id, { side: null, invalidation: null, target: null, horizon: null, evidence: null, tags: null, at: day(2) }, { status: 200 })).json;
  assert.deepEqual(
    [cleared.side, cleared.invalidation, cleared.target, cleared.horizon, cleared.evidence, cleared.tags, cleared.text],
    [null, null, null, null, [], [], FULL.text],
  );
  assert.deepEqual(faults(await patch(id, { text: null, at: day(3) }, { status: 422, check: false })), ['text: required']);
  assert.equal((await read(id)).version, 2);
});

test('a change that changes nothing adds no version, so it can be sent again', async () => {
  const thesis = await openThesis(s.api, { ...FULL, symbol: 'SAME', at: day(1) });
  for (const body of [{}, { text: FULL.text, tags: FULL.tags, at: day(2) }, { side: 'long', model_call_id: 'call-2', at: day(2) }])
    assert.deepEqual((await patch(thesis.id, body, { status: 200 })).json, thesis);
  const first = (await patch(thesis.id, { target: '80,000', at: day(3) }, { status: 200 })).json;
  assert.deepEqual((await patch(thesis.id, { target: '80,000', at: day(3) }, { status: 200 })).json, first);
  assert.equal((await eventsOf(s.query, thesis.id)).length, 2);
});

test('only a change of words makes a new text to embed', async () => {
  const { id } = await openThesis(s.api, { ...FULL, symbol: 'WORDS', at: day(1) });
  await patch(id, { tags: ['other'], at: day(2) }, { status: 200 });
  await patch(id, { horizon: 'a year', at: day(3) }, { status: 200 });
  const rows = await s.query('SELECT text_id, embedding_status AS state FROM daybook.memories WHERE id = $1 ORDER BY version', [id]);
  assert.equal(rows[0].text_id, id);
  assert.equal(rows[1].text_id, id);
  assert.equal(rows[1].state, 'none');
  assert.notEqual(rows[2].text_id, id);
  assert.notEqual(rows[2].state, 'none');
});

test('an unknown thesis is 404, a note is no thesis, and a closed thesis takes no change', async () => {
  const note = await remember(s.api);
  for (const id of [UNKNOWN_ID, note.id]) {
    for (const path of ['', '/history']) await s.api.get(`/v1/theses/${id}${path}`, { status: 404 });
    await patch(id, { text: 'x' }, { status: 404 });
    await close(id, {}, { status: 404 });
  }
  const { id } = await openThesis(s.api, { at: day(1) });
  const closed = (await close(id, { reason: 'invalidated', at: day(2) }, { status: 200 })).json;
  assert.deepEqual([closed.status, closed.status_reason, closed.version, closed.outcome], ['closed', 'invalidated', 2, null]);
  const before = await count();
  assert.equal((await patch(id, { text: 'x', at: day(3) }, { status: 409 })).json.code, 'invalid_transition');
  assert.equal((await close(id, { at: day(3) }, { status: 409 })).json.code, 'invalid_transition');
  assert.equal(await count(), before);
  assert.deepEqual(await read(id), closed);
});

test('a change dated before the current version is 409 time_order', async () => {
  const { id } = await openThesis(s.api, { at: day(10) });
  assert.equal((await patch(id, { text: 'x', at: day(9) }, { status: 409 })).json.code, 'time_order');
  await patch(id, { text: 'x', at: day(10) }, { status: 200 });
  await patch(id, { text: 'y', at: day(12) }, { status: 200 });
  assert.equal((await close(id, { at: day(11) }, { status: 409 })).json.code, 'time_order');
});

test('without a time, a thesis of a simulation has the time of its last tick', async () => {
  const { id: deployment_id } = await deploy(s.api, { mode: 'sim', at: day(1) });
  const thesis = await openThesis(s.api, { deployment_id });
  assert.equal(thesis.at, day(1));
  await postTick(s.api, deployment_id, day(4));
  assert.equal((await patch(thesis.id, { text: 'x' }, { status: 200 })).json.known_from, day(4));
  assert.equal((await close(thesis.id, {}, { status: 200 })).json.known_from, day(4));
});

test('closing with an outcome validates lessons in the same transaction', async () => {
  const { id } = await openThesis(s.api, { at: day(1) });
  const [a, b] = [await createLesson(s.api, { at: day(1) }), await createLesson(s.api, { at: day(1) })];
  const outcome = { metric: 'return', value: 0.138 };
  const author = { agent_name: 'pm', model_call_id: 'call-7' };
  const closed = (await close(id, { outcome, validates: [a.id, b.id], at: day(5), ...author }, { status: 200 })).json;
  const stored = { ...outcome, baseline: null, sample_size: 1, note: null };
  assert.deepEqual([closed.outcome, closed.validates], [stored, [a.id, b.id]]);
  for (const lesson of [a, b]) {
    const { status, validation, status_at, status_reason } = (await s.api.get(`/v1/lessons/${lesson.id}`)).json;
    assert.deepEqual([status, validation, status_at], ['validated', stored, day(5)]);
    assert.ok(status_reason.includes(id));
    const [, { kind, agent_name, model_call_id }] = await eventsOf(s.query, lesson.id);
    assert.deepEqual({ kind, agent_name, model_call_id }, { kind: 'lesson.validated', ...author });
  }
  const [, event] = await eventsOf(s.query, id);
  assert.deepEqual([event.kind, event.data], ['thesis.closed', { version: 2, reason: 'done', outcome: stored, validates: [a.id, b.id] }]);
});

test('a lesson that cannot be validated keeps the thesis open and the other lessons as they were', async () => {
  const { id } = await openThesis(s.api, { at: day(1) });
  const [good, retired] = [await createLesson(s.api, { at: day(1) }), await createLesson(s.api, { at: day(1) })];
  await s.api.post(`/v1/lessons/${retired.id}/retire`, { reason: 'x', at: day(2) }, { status: 200 });
  const refused = (validates, status, body = { outcome: OUTCOME }) => close(id, { validates, at: day(3), ...body }, { status });
  assert.deepEqual(faults(await refused([good.id, UNKNOWN_ID], 422)), ['validates: unknown_reference']);
  assert.equal((await refused([good.id, retired.id], 409)).json.code, 'invalid_transition');
  assert.deepEqual(faults(await refused([good.id], 422, {})), ['outcome: required']);
  assert.equal((await s.api.get(`/v1/lessons/${good.id}`)).json.status, 'proposed');
  assert.equal((await read(id)).status, 'open');
});

test('a thesis with bad members names each of them and stores nothing', async () => {
  const before = await count();
  const refused = async (body) => faults(await s.api.post('/v1/theses', body, { status: 422, check: false }));
  assert.deepEqual(await refused({}), ['symbol: required', 'text: required']);
  assert.deepEqual(await refused(newThesis({ text: '', side: 'up', horizon: 'a\nb', tags: ['a', 'a'], evidence: [''], validates: [] })), [
    'evidence[0]: too_short',
    'horizon: several_lines',
    'side: not_a_choice',
    'tags[1]: duplicate_item',
    'text: too_short',
    'validates: unknown_field',
  ]);
  assert.deepEqual(await refused(newThesis({ text: 'x'.repeat(100_001), symbol: 'x'.repeat(65) })), ['symbol: too_long', 'text: too_long']);
  const unknown = await s.api.post('/v1/theses', newThesis({ deployment_id: UNKNOWN_ID }), { status: 404 });
  assert.ok(unknown.json.detail.includes(`deployment ${UNKNOWN_ID}`));
  assert.deepEqual(faults(await patch(UNKNOWN_ID, { symbol: 'ETH' }, { status: 422, check: false })), ['symbol: unknown_field']);
  assert.equal(await count(), before);
});

test('the list filters by status, symbol, tags, deployment and author, page by page, at any instant', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const make = (n, changes) => openThesis(s.api, { deployment_id, at: day(n), tags: ['all'], ...changes });
  const made = [
    await make(1, { symbol: 'A', tags: ['all', 'x'], agent_name: 'pm' }),
    await make(2, { symbol: 'B', tags: ['all', 'x', 'y'], model_call_id: 'call-9' }),
    await make(3, { symbol: 'C', side: 'short' }),
  ];
  await close(made[0].id, { at: day(6) }, { status: 200 });
  const names = async (query) => (await everyItem(s.api, `/v1/theses?deployment_id=${deployment_id}&limit=1&${query}`)).map((x) => x.symbol).join('');
  for (const [query, found] of [
    ['', 'CBA'],
    ['status=open', 'CB'],
    ['status=closed', 'A'],
    [`status=open&as_of=${day(5)}`, 'CBA'],
    [`as_of=${day(2)}`, 'BA'],
    ['symbol=B', 'B'],
    ['tags=x', 'BA'],
    ['tags=y,z', 'B'],
    ['tags_all=x,y', 'B'],
    ['model_call_id=call-9', 'B'],
    [`since=${day(2)}&until=${day(3)}`, 'B'],
    ['agent_name=nobody', ''],
  ])
    assert.equal(await names(query), found, query);
  for (const limit of [0, -5]) assert.deepEqual(faults(await s.api.get(`/v1/theses?limit=${limit}`, { status: 422, check: false })), ['limit: out_of_range']);
});
