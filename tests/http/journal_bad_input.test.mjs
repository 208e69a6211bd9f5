// Invalid requests to the journal: each fault is named, and no table of the journal changes.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { holding, newMemory, newOrder, newThesis, openThesis, order, remember } from '../lib/journal.mjs';
import { deploy, newTick, position } from '../lib/ledger.mjs';
import { create as createLesson, day, faults, newLesson, OUTCOME, UNKNOWN_ID } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const as = {};
const E = {}; // ids of what exists
const s = suite({
  prepare: async () => {
    for (const role of ['reader', 'researcher', 'agent']) as[role] = s.api.as((await createKey(s.url, 'local', role)).key);
    s.api.close();
    s.api = as.agent;
    E.deployment = await holding(s.api);
    E.other = (await deploy(s.api, { mode: 'sim', at: day(1) })).id;
    E.thesis = (await openThesis(s.api, { symbol: 'BTC', deployment_id: E.deployment, at: day(3) })).id;
    E.closed = (await openThesis(s.api, { symbol: 'ETH', at: day(3) })).id;
    await s.api.post(`/v1/theses/${E.closed}/close`, { reason: 'over', at: day(4) }, { status: 200 });
    E.decision = (await remember(s.api, { kind: 'decision', action: 'add', symbol: 'BTC', deployment_id: E.deployment, at: day(3) })).id;
    E.note = (await remember(s.api, { symbol: 'BTC', at: day(3) })).id;
    E.order = (await order(s.api, { deployment_id: E.deployment, client_order_id: 'desk-1', at: day(4) })).id;
    E.lesson = (await createLesson(s.api, { at: day(3) })).id;
  },
});
after(() => [as.reader, as.researcher].forEach((client) => client?.close()));

const TABLES = ['memories', 'memory_events', 'memory_retrievals', 'orders', 'lessons', 'decision_snapshots', 'trade_history', 'deployments', 'idempotency_keys'];
/** The rows of every table that a journal call may change, and the versions that are current. */
const stored = async () => {
  const counts = TABLES.map((table) => `(select count(*) from daybook.${table}) as ${table}`);
  const current = "(select md5(string_agg(concat_ws(' ', id, version, status, text, known_until), '' order by id, version)) from daybook.memories) as versions";
  return (await s.query(`select ${[...counts, current, "(select md5(string_agg(concat_ws(' ', id, outcome), '' order by id)) from daybook.orders) as outcomes"]}`))[0];
};

/** Sends a request that must be refused; returns the answer. */
async function refused(status, method, path, body, { api = s.api, headers } = {}) {
  const before = await stored();
  const answer = await api(method, path, { body, headers, status, check: status !== 422 && status !== 400 });
  assert.equal(answer.headers['content-type'], 'application/problem+json');
  assert.deepEqual(await stored(), before, `${method} ${path} stored something`);
  return answer;
}
const thesisPath = (what = '') => `/v1/theses/${E.thesis}${what}`;
const memory = (changes) => ['POST', '/v1/memories', newMemory(changes)];
const thesis = (changes) => ['POST', '/v1/theses', newThesis(changes)];
const patch = (body) => ['PATCH', thesisPath(), body];
const close = (body) => ['POST', thesisPath('/close'), { reason: 'x', ...body }];
const intent = (changes) => ['POST', '/v1/orders', newOrder({ deployment_id: E.deployment, at: day(5), ...changes })];
const outcome = (body) => ['POST', `/v1/orders/${E.order}/outcome`, { outcome: 'filled', ...body }];
const search = (body) => ['POST', '/v1/memories/search', body];
const long = (n) => 'x'.repeat(n);

const FIELDS = {
  'an empty memory': [() => memory({ text: '' }), ['text: too_short']],
  'a memory of white space': [() => memory({ text: ' \n\t' }), ['text: too_short']],
  'a memory of 100,001 characters': [() => memory({ text: long(100_001) }), ['text: too_long']],
  'a memory of one character too many': [() => memory({ text: '界'.repeat(20_001) }), ['text: too_long']],
  'a memory with a control character': [() => memory({ text: 'a\u0007b' }), ['text: control_character']],
  'a memory that is a number': [() => memory({ text: 5, symbol: 7, tags: 'x', evidence: [1], at: 3 }), ['at: wrong_type', 'evidence[0]: wrong_type', 'symbol: wrong_type', 'tags: wrong_type', 'text: wrong_type']],
  'unknown fields of a memory': [() => memory({ note: 'x', Text: 'y', status: 'active' }), ['Text: unknown_field', 'note: unknown_field', 'status: unknown_field']],
  'an unknown kind': [() => memory({ kind: 'thesis' }), ['kind: not_a_choice']],
  'a naive time': [() => memory({ at: '2026-01-03T00:00:00' }), ['at: invalid_time']],
  'a day that does not exist': [() => memory({ at: '2026-02-30T00:00:00Z' }), ['at: invalid_time']],
  'a decision without an action': [() => memory({ kind: 'decision' }), ['action: required']],
  'a risk note with an action': [() => memory({ kind: 'risk_note', action: 'sell' }), ['action: not_together']],
  'an unknown action': [() => memory({ kind: 'decision', action: 'short' }), ['action: not_a_choice']],
  'a memory about an unknown thesis': [() => memory({ thesis_id: UNKNOWN_ID }), ['thesis_id: unknown_reference']],
  'a memory about a note': [() => memory({ thesis_id: E.note }), ['thesis_id: unknown_reference']],
  'a memory before its thesis': [() => memory({ thesis_id: E.thesis, at: day(2) }), ['thesis_id: unknown_reference']],
  'a memory on another symbol than its thesis': [() => memory({ thesis_id: E.thesis, symbol: 'ETH', at: day(5) }), ['symbol: not_together']],
  'a memory of another deployment than its thesis': [() => memory({ thesis_id: E.thesis, deployment_id: E.other, at: day(5) }), ['deployment_id: not_together']],
  'an id that is none': [() => memory({ thesis_id: 'x', deployment_id: '7' }), ['deployment_id: invalid_uuid', 'thesis_id: invalid_uuid']],

  'an empty thesis': [() => thesis({ text: '', symbol: '', invalidation: '', reason: 'x' }), ['invalidation: too_short', 'reason: unknown_field', 'symbol: too_short', 'text: too_short']],
  'a thesis of 100,001 characters': [() => thesis({ text: long(100_001) }), ['text: too_long']],
  'a thesis without a symbol': [() => thesis({ symbol: undefined }), ['symbol: required']],
  'a thesis on both sides': [() => thesis({ side: 'both', parallel: 'yes' }), ['parallel: wrong_type', 'side: not_a_choice']],
  'a thesis at a naive time': [() => thesis({ at: '2026-01-03 00:00:00' }), ['at: invalid_time']],
  'a change to nothing': [() => patch({ text: '' }), ['text: too_short']],
  'a text that is cleared': [() => patch({ text: null }), ['text: required']],
  'a change of 100,001 characters': [() => patch({ text: long(100_001) }), ['text: too_long']],
  'a change of the symbol': [() => patch({ symbol: 'ETH' }), ['symbol: unknown_field']],
  'a close without a reason': [() => close({ reason: '' }), ['reason: too_short']],
  'a close with a bad outcome': [() => close({ outcome: { value: 'high', won: true } }), ['outcome.metric: required', 'outcome.value: wrong_type', 'outcome.won: unknown_field']],
  'a close that validates without an outcome': [() => close({ validates: [E.lesson] }), ['outcome: required']],
  'a close that validates what is no lesson': [() => close({ outcome: OUTCOME, validates: [E.lesson, E.note] }), ['validates: unknown_reference']],

  'an order with bad members': [() => intent({ symbol: '', action: 'hold', side: 'both', size: 0, client_order_id: '', colour: 1 }), ['action: not_a_choice', 'client_order_id: too_short', 'colour: unknown_field', 'side: not_a_choice', 'size: out_of_range', 'symbol: too_short']],
  'an order without members': [() => ['POST', '/v1/orders', {}], ['action: required', 'deployment_id: required', 'side: required', 'symbol: required']],
  'an order with a negative size': [() => intent({ size: -1 }), ['size: out_of_range']],
  'an order with a size that is text': [() => intent({ size: '1' }), ['size: wrong_type']],
  'an order at a naive time': [() => intent({ at: '2026-01-05T00:00:00' }), ['at: invalid_time']],
  'an order on another symbol than its thesis': [() => intent({ symbol: 'ETH', thesis_id: E.thesis }), ['symbol: not_together']],
  'an order on another symbol than its decision': [() => intent({ symbol: 'ETH', decision_id: E.decision }), ['symbol: not_together']],
  'an order of another deployment than its thesis': [() => intent({ deployment_id: E.other, thesis_id: E.thesis }), ['deployment_id: not_together']],
  'an order that follows an unknown thesis and a note as its decision': [() => intent({ thesis_id: UNKNOWN_ID, decision_id: E.note }), ['decision_id: unknown_reference', 'thesis_id: unknown_reference']],
  'an order before its thesis and its decision': [() => intent({ thesis_id: E.thesis, decision_id: E.decision, at: day(2) }), ['decision_id: unknown_reference', 'thesis_id: unknown_reference']],
  'an outcome with bad members': [() => outcome({ outcome: 'done', filled_size: 0, average_price: -1, price: 1 }), ['average_price: out_of_range', 'filled_size: out_of_range', 'outcome: not_a_choice', 'price: unknown_field']],

  'a search for nothing': [() => search({ text: '' }), ['text: too_short']],
  'a search with a limit of 0': [() => search({ k: 0, max_tokens: 0 }), ['k: out_of_range', 'max_tokens: out_of_range']],
  'a search with a limit of -5': [() => search({ k: -5, max_tokens: -5 }), ['k: out_of_range', 'max_tokens: out_of_range']],
  'a search of 100,001 characters': [() => search({ text: long(100_001) }), ['text: too_long']],
  'a search at a naive time': [() => search({ as_of: '2026-01-03T00:00:00', since: '2026-01-03' }), ['as_of: invalid_time', 'since: invalid_time']],
  'a search with unknown fields and kinds as text': [() => search({ kind: 'note', limit: 5 }), ['kind: wrong_type', 'limit: unknown_field']],
  'a retraction without a reason': [() => ['POST', `/v1/memories/${E.note}/retract`, {}], ['reason: required']],
};
for (const [what, [request, expected]] of Object.entries(FIELDS))
  test(`${what} is refused by name and stores nothing`, async () => {
    const answer = await refused(422, ...request());
    assert.deepEqual(faults(answer), expected);
    assert.equal(answer.json.code, 'invalid_fields');
    for (const { detail } of answer.json.errors) assert.ok(detail.length > 5);
  });

const CODES = {
  'an unknown thesis, changed': [404, 'not_found', () => ['PATCH', `/v1/theses/${UNKNOWN_ID}`, { text: 'x' }], () => `thesis ${UNKNOWN_ID}`],
  'an unknown thesis, closed': [404, 'not_found', () => ['POST', `/v1/theses/${UNKNOWN_ID}/close`, { reason: 'x' }], () => `thesis ${UNKNOWN_ID}`],
  'a decision, changed as a thesis': [404, 'not_found', () => ['PATCH', `/v1/theses/${E.decision}`, { text: 'x' }], () => E.decision],
  'a closed thesis, changed': [409, 'invalid_transition', () => ['PATCH', `/v1/theses/${E.closed}`, { text: 'x' }], () => E.closed],
  'a closed thesis, closed again': [409, 'invalid_transition', () => ['POST', `/v1/theses/${E.closed}/close`, { reason: 'x' }], () => E.closed],
  'a second open thesis on a symbol': [409, 'thesis_open', () => thesis({ symbol: 'BTC', deployment_id: E.deployment, at: day(5) }), () => E.thesis],
  'a change before the current version': [409, 'time_order', () => patch({ text: 'x', at: day(2) }), () => E.thesis],
  'a thesis, retracted': [404, 'not_found', () => ['POST', `/v1/memories/${E.thesis}/retract`, { reason: 'x' }], () => E.thesis],
  'an unknown memory, retracted': [404, 'not_found', () => ['POST', `/v1/memories/${UNKNOWN_ID}/retract`, { reason: 'x' }], () => `memory ${UNKNOWN_ID}`],
  'a memory for an unknown deployment': [404, 'not_found', () => memory({ deployment_id: UNKNOWN_ID }), () => `deployment ${UNKNOWN_ID}`],
  'a thesis for an unknown deployment': [404, 'not_found', () => thesis({ deployment_id: UNKNOWN_ID }), () => `deployment ${UNKNOWN_ID}`],
  'an order for an unknown deployment': [404, 'not_found', () => intent({ deployment_id: UNKNOWN_ID }), () => `deployment ${UNKNOWN_ID}`],
  'a search for an unknown deployment': [404, 'not_found', () => search({ deployment_id: UNKNOWN_ID }), () => `deployment ${UNKNOWN_ID}`],
  'the outcome of an unknown order': [404, 'not_found', () => ['POST', `/v1/orders/${UNKNOWN_ID}/outcome`, { outcome: 'filled' }], () => `order ${UNKNOWN_ID}`],
  'another order with a client_order_id that was used': [409, 'order_conflict', () => intent({ client_order_id: 'desk-1', symbol: 'ETH' }), () => E.order],
};
for (const [what, [status, code, request, named]] of Object.entries(CODES))
  test(`${what} is ${status} ${code} and stores nothing`, async () => {
    const { json } = await refused(status, ...request());
    assert.equal(json.code, code);
    assert.ok(json.detail.includes(named()), json.detail);
  });

const BODIES = {
  'half a document': ['{"kind":"note","text":"x"', 400, 'invalid_json'],
  'a list': ['[]', 400, 'invalid_json'],
  'the same key twice': ['{"kind":"note","text":"a","text":"b"}', 400, 'duplicate_key'],
  'a NUL character': ['{"kind":"note","text":"a\\u0000"}', 400, 'null_character'],
  'invalid UTF-8': [Buffer.from('{"kind":"note","text":"\xff"}', 'latin1'), 400, 'invalid_utf8'],
  'half a surrogate pair': ['{"kind":"note","text":"\\ud800"}', 400, 'invalid_json'],
  'NaN': ['{"kind":"note","text":NaN}', 400, 'invalid_json'],
};
for (const [what, [body, status, code]] of Object.entries(BODIES))
  test(`a body with ${what} is ${code} and stores nothing`, async () => {
    for (const path of ['/v1/memories', '/v1/theses', '/v1/orders', '/v1/memories/search'])
      assert.equal((await refused(status, 'POST', path, body)).json.code, code, path);
  });

/** What the key of a role may not send. The answer names the role that is needed and the one that the key has. */
const REFUSED = {
  researcher: [
    ['a decision', () => memory({ kind: 'decision', action: 'buy' })],
    ['a thesis', () => thesis()],
    ['a change of a thesis', () => patch({ text: 'x' })],
    ['a close of a thesis', () => close()],
    ['an order', () => intent()],
    ['an outcome', () => outcome()],
    ['the retraction of a decision', () => ['POST', `/v1/memories/${E.decision}/retract`, { reason: 'x' }]],
    ['a tick', () => ['POST', `/v1/deployments/${E.deployment}/ticks`, newTick(day(8), { positions: [position('BTC', 110)] })]],
  ],
  reader: [
    ['a note', () => memory()],
    ['a proposal', () => memory({ kind: 'proposal' })],
    ['a risk note', () => memory({ kind: 'risk_note' })],
    ['a retraction', () => ['POST', `/v1/memories/${E.note}/retract`, { reason: 'x' }]],
    ['a lesson', () => ['POST', '/v1/lessons', newLesson()]],
    ['a decision', () => memory({ kind: 'decision', action: 'buy' })],
    ['a thesis', () => thesis()],
    ['an order', () => intent()],
    ['a tick', () => ['POST', `/v1/deployments/${E.deployment}/ticks`, newTick(day(8))]],
  ],
};
for (const [role, requests] of Object.entries(REFUSED))
  for (const [what, request] of requests)
    test(`the key of a ${role} cannot send ${what}`, async () => {
      const { json } = await refused(403, ...request(), { api: as[role] });
      assert.equal(json.code, 'forbidden');
      assert.match(json.detail, new RegExp(`the role (researcher|agent); the key has the role ${role}`));
    });

test('a key of a researcher may send notes, proposals, risk notes and lessons, and search', async () => {
  for (const kind of ['note', 'proposal', 'risk_note']) {
    const { id } = await remember(as.researcher, { kind, symbol: 'BTC', thesis_id: E.thesis, at: day(5) });
    await as.researcher.post(`/v1/memories/${id}/retract`, { reason: 'x', at: day(6) }, { status: 200 });
  }
  assert.equal((await createLesson(as.researcher)).status, 'proposed');
  await as.researcher.post('/v1/memories/search', { text: 'x' }, { status: 200 });
});

test('a key of a reader may read and search, which only leaves the record of the search', async () => {
  const before = await stored();
  for (const path of ['memories', 'theses', 'orders', 'memory_events', 'memory_retrievals', 'memory_state']) await as.reader.get(`/v1/${path}`, { status: 200 });
  const { retrieval_id } = (await as.reader.post('/v1/memories/search', { symbol: 'BTC' }, { status: 200 })).json;
  await as.reader.get(`/v1/memory_retrievals/${retrieval_id}`, { status: 200 });
  const count = (name) => String(Number(before[name]) + 1);
  assert.deepEqual(await stored(), { ...before, memory_retrievals: count('memory_retrievals'), memory_events: count('memory_events') });
});

test('a limit of 0 or -5 of any list is named', async () => {
  for (const list of ['memories', `memories/${E.note}/history`, 'theses', `theses/${E.thesis}/history`, 'orders', 'memory_events', 'memory_retrievals'])
    for (const limit of [0, -5, 201, 'x']) {
      const answer = await s.api.get(`/v1/${list}?limit=${limit}`, { status: 422, check: false });
      assert.deepEqual(faults(answer), [limit === 'x' ? 'limit: wrong_type' : 'limit: out_of_range'], `${list} ${limit}`);
    }
});

test('a request that was refused does not use up its Idempotency-Key', async () => {
  const headers = { 'idempotency-key': 'refused-first' };
  await refused(422, ...memory({ text: '' }), { headers });
  await s.api.post('/v1/memories', newMemory(), { headers, status: 201 });
});
