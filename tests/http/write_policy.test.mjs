// The write policy: it denies by default, for facts, memories and entries that name an observation type, and sets their time to live.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { factPath, newFact, putFact, readFact } from '../lib/facts.mjs';
import { createEpisode, newEpisode, postEpisodes } from '../lib/episodes.mjs';
import { holding, newMemory, remember, searchMemories } from '../lib/journal.mjs';
import { day, faults } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const as = {};
const s = suite({
  prepare: async () => {
    for (const [owner, role] of [['local', 'admin'], ['local', 'agent'], ['bob', 'admin'], ['eve', 'admin'], ['dan', 'admin']]) as[`${owner}_${role}`] = s.api.as((await createKey(s.url, owner, role)).key);
    s.api.close();
    s.api = as.local_admin;
  },
});
after(() => Object.values(as).forEach((client) => client.close()));

const BUILT_IN = [
  ['failed_tool_call', false, null],
  ['intermediate_reasoning', false, null],
  ['session_summary', false, 30 * 86400],
  ['speculative_inference', false, null],
  ['task_completion_strategy', true, 90 * 86400],
  ['tool_result_verified', true, 7 * 86400],
  ['user_stated_preference', true, null],
];
const rule = (observation_type, store = true, ttl_seconds = null) => ({ observation_type, store, ttl_seconds });
const set = (api, types, changes, options) => api('PUT', '/v1/write_policy', { body: { types, ...changes }, status: 200, ...options });
const check = async (api, observation_type) => (await api.post('/v1/write_policy/check', { observation_type }, { status: 200 })).json;
const denials = async (type) => Number(new RegExp(`^daybook_write_denied_total\\{observation_type="${type}"\\} (\\d+)$`, 'm').exec((await s.api.get('/metrics')).text)?.[1] ?? 0);

test('until an owner sets one, the built-in policy applies', async () => {
  const { json } = await s.api.get('/v1/write_policy', { status: 200 });
  assert.deepEqual([json.built_in, json.version, json.known_from], [true, null, null]);
  assert.deepEqual(json.types.map((t) => [t.observation_type, t.store, t.ttl_seconds]), BUILT_IN);
});

test('the check answers for each type without storing, and denies a type that is not listed', async () => {
  for (const [type, store, ttl_seconds] of BUILT_IN)
    assert.deepEqual(await check(s.api, type), { observation_type: type, store, ttl_seconds, reason: store ? 'stored' : 'not_stored' });
  assert.deepEqual(await check(s.api, 'gossip'), { observation_type: 'gossip', store: false, ttl_seconds: null, reason: 'unknown_type' });
  assert.equal(await denials('gossip'), 0);
});

test('a denied write names the type, stores nothing and is counted by type', async () => {
  const before = (await s.query('SELECT (SELECT count(*) FROM daybook.facts) AS f, (SELECT count(*) FROM daybook.memories) AS m, (SELECT count(*) FROM daybook.episodic_memory) AS e, (SELECT count(*) FROM daybook.memory_events) AS j'))[0];
  for (const type of ['intermediate_reasoning', 'rumour']) {
    const asks = [
      ['PUT', factPath('denied'), newFact({ observation_type: type })],
      ['POST', factPath('denied', '/correct'), { value: 1, observation_type: type }],
      ['POST', '/v1/memories', newMemory({ observation_type: type })],
      ['POST', '/v1/episodic', newEpisode({ observation_type: type })],
    ];
    for (const [method, path, body] of asks) {
      const { json } = await s.api(method, path, { body, status: 422 });
      assert.equal(json.code, 'write_denied');
      assert.ok(json.detail.includes(type), json.detail);
    }
    assert.equal(await denials(type), asks.length);
  }
  assert.deepEqual((await s.query('SELECT (SELECT count(*) FROM daybook.facts) AS f, (SELECT count(*) FROM daybook.memories) AS m, (SELECT count(*) FROM daybook.episodic_memory) AS e, (SELECT count(*) FROM daybook.memory_events) AS j'))[0], before);
});

test('a policy replaces the whole one before it, for its owner alone', async () => {
  const { json } = await set(as.bob_admin, [rule('note_to_self', true, 3600), rule('rumour', false)], { at: day(2) });
  assert.deepEqual([json.built_in, json.version, json.known_from, json.types], [false, 1, day(2), [rule('note_to_self', true, 3600), rule('rumour', false)]]);
  assert.equal((await set(as.bob_admin, [rule('rumour', false), rule('note_to_self', true, 3600)])).json.version, 1);
  assert.equal((await check(as.bob_admin, 'user_stated_preference')).reason, 'unknown_type');
  assert.equal((await check(as.bob_admin, 'rumour')).reason, 'not_stored');
  assert.deepEqual((await putFact(as.bob_admin, 'x', { observation_type: 'note_to_self', at: day(1) })).expires_at, day(1, '01:00:00'));
  assert.equal((await check(s.api, 'user_stated_preference')).store, true);
  assert.equal((await set(as.bob_admin, [], { at: day(3) })).json.version, 2);
  await as.bob_admin('PUT', factPath('x'), { body: newFact({ observation_type: 'note_to_self' }), status: 422 });
  assert.deepEqual((await as.bob_admin.get(`/v1/write_policy?as_of=${day(2)}`, { status: 200 })).json.types.map((t) => t.observation_type), ['note_to_self', 'rumour']);
  assert.equal((await as.bob_admin.get(`/v1/write_policy?as_of=${day(1)}`, { status: 200 })).json.built_in, true);
  assert.equal((await set(as.bob_admin, [rule('a')], { at: day(1) }, { status: 409 })).json.code, 'time_order');
});

test('each fault of a policy is named, and an agent may not set it', async () => {
  const bad = async (body, expected) => assert.deepEqual(faults(await s.api('PUT', '/v1/write_policy', { body, status: 422, check: false })), expected);
  await bad({}, ['types: required']);
  await bad({ types: [rule('a'), rule('a', false)] }, ['types[1].observation_type: duplicate_item']);
  await bad({ types: [{ observation_type: 'a b', ttl_seconds: 0, x: 1 }] }, ['types[0].observation_type: invalid_name', 'types[0].store: required', 'types[0].ttl_seconds: out_of_range', 'types[0].x: unknown_field']);
  await bad({ types: Array.from({ length: 101 }, (_, n) => rule(`t${n}`)) }, ['types: too_many']);
  assert.equal((await as.local_agent('PUT', '/v1/write_policy', { body: { types: [] } })).status, 403);
});

test('of many policies at the same time each has a version of its own', async () => {
  const stored = await Promise.all(Array.from({ length: 6 }, (_, n) => set(as.eve_admin, [rule(`t${n}`)])));
  assert.deepEqual(stored.map(({ json }) => json.version).sort(), [1, 2, 3, 4, 5, 6]);
});

test('a memory without a type is stored as before; with one, the type sets its time to live', async () => {
  assert.deepEqual((({ observation_type, expires_at }) => [observation_type, expires_at])(await remember(s.api)), [null, null]);
  assert.equal((await remember(s.api, { observation_type: 'tool_result_verified', at: day(1) })).expires_at, day(8));
  assert.equal((await remember(s.api, { observation_type: 'tool_result_verified', ttl_days: 2, at: day(1) })).expires_at, day(3));
  assert.equal((await remember(s.api, { observation_type: 'user_stated_preference', at: day(1) })).expires_at, null);
});

test('an expired memory is not listed, searched or part of the state, at the instant of as_of; it is not deleted', async () => {
  const note = await remember(s.api, { text: 'Wombats trade at noon', symbol: 'WOMB', ttl_days: 3, at: day(1) });
  const listed = async (query) => (await s.api.get(`/v1/memories?symbol=WOMB${query}`, { status: 200 })).json.items.map((m) => m.id);
  assert.deepEqual([await listed(''), await listed(`&as_of=${day(3)}`), await listed(`&as_of=${day(4)}`)], [[], [note.id], []]);
  const found = async (as_of) => (await searchMemories(s.api, { text: 'Wombats', symbol: 'WOMB', as_of })).items.map((m) => m.id);
  assert.deepEqual([await found(undefined), await found(day(3)), await found(day(4))], [[], [note.id], []]);
  assert.equal((await s.api.get(`/v1/memories/${note.id}`, { status: 200 })).json.expires_at, day(4));
  assert.equal((await s.api.get(`/v1/memories/${note.id}/history`, { status: 200 })).json.items.length, 1);
  const retracted = (await s.api.post(`/v1/memories/${note.id}/retract`, { reason: 'x', at: day(2) }, { status: 200 })).json;
  assert.equal(retracted.expires_at, day(4));
});

test('an expired decision is no longer the rationale of a position', async () => {
  const deployment_id = await holding(s.api, 'BTC');
  await remember(s.api, { kind: 'decision', action: 'add', text: 'Added on the retest', symbol: 'BTC', deployment_id, ttl_days: 3, at: day(3) });
  const state = async (as_of) => (await s.api.get(`/v1/memory_state?deployment_id=${deployment_id}&as_of=${as_of}`, { status: 200 })).text;
  assert.ok((await state(day(5))).includes('Added on the retest'));
  assert.ok(!(await state(day(6))).includes('Added on the retest'));
});

test('an entry takes its time to live in days, in seconds or from its type', async () => {
  const of = async (changes) => (({ ttl_seconds, expires_at, observation_type }) => [ttl_seconds, expires_at, observation_type])(await createEpisode(s.api, { created_at: day(1), ttl_seconds: undefined, ...changes }));
  assert.deepEqual(await of({ ttl_days: 2 }), [2 * 86400, day(3), null]);
  assert.deepEqual(await of({ ttl_seconds: 86400 }), [86400, day(2), null]);
  assert.deepEqual(await of({ observation_type: 'tool_result_verified' }), [7 * 86400, day(8), 'tool_result_verified']);
  assert.deepEqual(await of({ observation_type: 'tool_result_verified', ttl_days: 1 }), [86400, day(2), 'tool_result_verified']);
  assert.deepEqual(await of({ observation_type: 'user_stated_preference' }), [null, null, 'user_stated_preference']);
  assert.deepEqual(faults(await s.api.post('/v1/episodic', newEpisode({ ttl_seconds: 1, ttl_days: 1 }), { status: 422 })), ['ttl_days: not_together']);
});

test('an expired entry is not reused', async () => {
  await createEpisode(s.api, { ticker: 'TTLR', task_type: 'tone', ttl_seconds: undefined, ttl_days: 2, created_at: day(1) });
  const ask = async (as_of) => (await s.api.post('/v1/episodic/should_rerun', { ticker: 'TTLR', task_type: 'tone', as_of }, { status: 200 })).json;
  assert.equal((await ask(day(2))).prior?.ticker, 'TTLR');
  assert.deepEqual((await ask(day(3))).reasons, ['no_prior']);
});

test('in a bulk upload each line is judged alone', async () => {
  const types = ['tool_result_verified', 'rumour', undefined, 'tool_result_verified', 'session_summary'];
  const { lines } = await postEpisodes(as.dan_admin, types.map((observation_type) => newEpisode({ observation_type })));
  assert.deepEqual(lines.map((l) => l.status ?? l.done), ['created', 'rejected', 'created', 'created', 'rejected', true].slice(0, lines.length));
  assert.deepEqual([lines[1].error.code, lines[4].error.code], ['write_denied', 'write_denied']);
});

test('a type that clients make up cannot fill the metrics', async () => {
  for (let n = 0; n < 60; n++) await s.api('PUT', factPath('x'), { body: newFact({ observation_type: `made_up_${n}` }), status: 422 });
  const { text } = await s.api.get('/metrics');
  assert.ok(text.match(/^daybook_write_denied_total/gm).length <= 4 * 33);
  assert.ok((await denials('other')) > 0);
});

test('what is stored already stays when the policy changes', async () => {
  await putFact(as.dan_admin, 'kept', { at: day(1) });
  await set(as.dan_admin, []);
  assert.ok(await readFact(as.dan_admin, 'kept'));
  assert.equal((await as.dan_admin.post(factPath('kept', '/correct'), { value: 1 }, { status: 422 })).json.code, 'write_denied');
});
