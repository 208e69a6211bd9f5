// The merge of what a session knows: its corrections win and are marked, and what contradicts them is listed, not decided.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { historyOf, putFact, readFact } from '../lib/facts.mjs';
import { remember } from '../lib/journal.mjs';
import { create as createLesson, day, faults, OUTCOME } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const as = {};
const s = suite({
  prepare: async () => {
    for (const role of ['reader', 'agent']) as[role] = s.api.as((await createKey(s.url, 'local', role)).key);
    s.api.close();
    s.api = as.agent;
  },
});
after(() => as.reader.close());
let scopes = 0;
const newScope = () => `merge/${scopes++}`;
const merge = async (body, options) => (await s.api.post('/v1/facts/merge', body, { status: 200, ...options })).json;
const short = (list) => list.map(({ kind, scope, value, text, source }) => [kind, scope ?? text, value ?? null, source]);

test('without corrections, the merge is what is stored and found', async () => {
  const scope = newScope();
  await putFact(s.api, 'b', { value: { x: 1.1 }, source: 'agent_inferred', at: day(2) }, { scope });
  await putFact(s.api, 'a', { value: 1, ttl_seconds: 60, at: day(2) }, { scope });
  await putFact(s.api, 'expired', { ttl_seconds: 1, at: day(1) }, { scope });
  assert.deepEqual(await merge({ scope, as_of: day(2, '00:00:30') }), {
    scope,
    complete: true,
    stored: false,
    facts: [
      { key: 'a', scope, value: 1, source: 'user_stated', confidence: 1, needs_verification: false, stale: false, written_at: day(2), expires_at: day(2, '00:01:00'), corrected: false },
      { key: 'b', scope, value: { x: 1.1 }, source: 'agent_inferred', confidence: 0.6, needs_verification: true, stale: false, written_at: day(2), expires_at: null, corrected: false },
    ],
    conflicts: [],
    memories: null,
  });
  assert.deepEqual((await merge({ scope })).facts.map((f) => f.key), ['b']);
});

test('a correction overrides the stored value and is marked; the store is not changed unless asked', async () => {
  const scope = newScope();
  await putFact(s.api, 'tz', { value: 'Berlin', at: day(2) }, { scope });
  const body = { scope, corrections: [{ key: 'tz', value: 'Paris' }, { key: 'new', value: 2 }], at: day(3) };
  const { facts, conflicts } = await merge(body);
  assert.deepEqual(facts.map((f) => [f.key, f.value, f.source, f.confidence, f.written_at, f.corrected]), [
    ['new', 2, 'in_session_correction', 1, day(3), true],
    ['tz', 'Paris', 'in_session_correction', 1, day(3), true],
  ]);
  assert.deepEqual(conflicts.map((c) => [c.key, short(c.statements)]), [
    ['tz', [['correction', scope, 'Paris', 'in_session_correction'], ['fact', scope, 'Berlin', 'user_stated']]],
  ]);
  assert.equal((await readFact(s.api, 'tz', { scope })).value, 'Berlin');
  assert.equal((await merge({ ...body, store: true })).stored, true);
  assert.deepEqual((await historyOf(s.api, 'tz', { scope })).map((f) => [f.value, f.source]), [['Berlin', 'user_stated'], ['Paris', 'user_correction']]);
  assert.equal((await readFact(s.api, 'new', { scope })).value, 2);
  assert.equal((await merge({ ...body, store: true })).conflicts.length, 0);
  assert.equal((await historyOf(s.api, 'tz', { scope })).length, 2);
});

test('a correction that says what is stored is no conflict, in any notation of a number', async () => {
  const scope = newScope();
  await putFact(s.api, 'limit', { value: 5, at: day(2) }, { scope });
  assert.deepEqual((await merge(`{"scope":"${scope}","corrections":[{"key":"limit","value":5.00}]}`)).conflicts, []);
});

test('facts of the scope global, memories and lessons that say otherwise are listed, the better sourced and newer first', async () => {
  const scope = newScope();
  await putFact(s.api, 'rate.view', { value: 'cutting', source: 'agent_inferred', at: day(5) }, { scope });
  await putFact(s.api, 'rate.view', { value: 'hiking', source: 'tool_verified', at: day(2) });
  await remember(s.api, { text: 'The bank is hiking.', tags: ['rate.view'], at: day(6) });
  await remember(s.api, { text: 'The bank is Cutting, we think.', tags: ['rate.view'], at: day(6) });
  await remember(s.api, { text: 'Hiking, said an old note.', tags: ['rate.view'], at: day(3) });
  await remember(s.api, { text: 'This expired: hiking', tags: ['rate.view'], ttl_days: 1, at: day(4) });
  const lesson = await createLesson(s.api, { tags: ['rate.view'], takeaway: 'Assume hiking after a hot print', at: day(1) });
  await s.api.post(`/v1/lessons/${lesson.id}/validate`, { outcome: OUTCOME, at: day(4) }, { status: 200 });
  const { conflicts } = await merge({ scope, as_of: day(10) });
  assert.deepEqual(conflicts.map((c) => [c.key, short(c.statements)]), [
    ['rate.view', [
      ['fact', 'global', 'hiking', 'tool_verified'],
      ['lesson', 'Assume hiking after a hot print', null, 'tool_verified'],
      ['note', 'The bank is hiking.', null, 'agent_inferred'],
      ['fact', scope, 'cutting', 'agent_inferred'],
      ['note', 'Hiking, said an old note.', null, 'agent_inferred'],
    ]],
  ]);
  assert.deepEqual((await merge({ scope, as_of: day(5, '12:00:00') })).conflicts[0].statements.map((x) => x.kind), ['fact', 'lesson', 'fact', 'note']);
  assert.deepEqual((await merge({ scope: 'global', prefix: 'rate.', as_of: day(10) })).conflicts.map((c) => c.statements.map((x) => x.text ?? x.value)), [['hiking', 'The bank is Cutting, we think.']]);
});

test('related memories stand beside the facts, and their retrieval is recorded', async () => {
  const note = await remember(s.api, { text: 'Liquidity in the yen dries up before lunch', at: day(2) });
  const { memories } = await merge({ scope: newScope(), text: 'yen liquidity', k: 20, max_tokens: 2000 });
  assert.ok(memories.items.some((m) => m.id === note.id));
  assert.ok(memories.rendered.includes('dries up') && memories.tokens <= 2000);
  const record = (await s.api.get(`/v1/memory_retrievals/${memories.retrieval_id}`, { status: 200 })).json;
  assert.ok(record.selection.includes(note.id));
});

test('all corrections are stored or none, and a retry with the same key stores nothing again', async () => {
  const scope = newScope();
  const corrections = [{ key: 'a', value: 1 }, { key: 'b', value: 2, observation_type: 'intermediate_reasoning' }];
  const { json } = await s.api.post('/v1/facts/merge', { scope, corrections, store: true }, { status: 422 });
  assert.equal(json.code, 'write_denied');
  assert.equal(await readFact(s.api, 'a', { scope }), undefined);
  const headers = { 'idempotency-key': `merge-${scope}` };
  const body = { scope, corrections: corrections.slice(0, 1), store: true, text: 'anything' };
  const first = await s.api.post('/v1/facts/merge', body, { headers, status: 200 });
  const again = await s.api.post('/v1/facts/merge', body, { headers, status: 200 });
  assert.equal(again.text, first.text);
  assert.equal((await historyOf(s.api, 'a', { scope })).length, 1);
});

test('a reader merges, and cannot store', async () => {
  const corrections = [{ key: 'a', value: 1 }];
  await as.reader.post('/v1/facts/merge', { corrections }, { status: 200 });
  assert.equal((await as.reader.post('/v1/facts/merge', { corrections, store: true }, { status: 403 })).json.code, 'forbidden');
});

test('more facts than the limit are said to be left out', async () => {
  const scope = newScope();
  for (const key of ['a', 'b', 'c']) await putFact(s.api, key, {}, { scope });
  const { facts, complete } = await merge({ scope, limit: 2 });
  assert.deepEqual([facts.map((f) => f.key), complete], [['a', 'b'], false]);
  assert.equal((await merge({ scope, limit: 3 })).complete, true);
});

test('each fault of a merge is named', async () => {
  const bad = async (body, expected) => assert.deepEqual(faults(await s.api.post('/v1/facts/merge', body, { status: 422, check: false })), expected);
  await bad({ corrections: [{ key: 'a', value: 1 }, { key: 'a', value: 2 }] }, ['corrections[1].key: duplicate_item']);
  await bad({ corrections: [{ key: 'a b', value: null }], limit: 0, scope: 'ä' }, ['corrections[0].key: invalid_name', 'corrections[0].value: required', 'limit: out_of_range', 'scope: invalid_name']);
  await bad({ store: true, as_of: day(2) }, ['as_of: not_together']);
  await bad({ messages: [] }, ['messages: unknown_field']);
});
