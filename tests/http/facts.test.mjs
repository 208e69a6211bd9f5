// Facts: stored, read at any instant, corrected, confirmed, deleted and listed; nothing that was known is lost.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { correctFact, factPath, historyOf, newFact, putFact, readFact, verifyFact } from '../lib/facts.mjs';
import { day, everyItem, faults } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const as = {};
const s = suite({
  prepare: async () => {
    for (const [name, owner, role] of [['reader', 'local', 'reader'], ['researcher', 'local', 'researcher'], ['agent', 'local', 'agent'], ['bob', 'bob', 'agent']])
      as[name] = s.api.as((await createKey(s.url, owner, role)).key);
    s.api.close();
    s.api = as.agent;
  },
});
after(() => Object.values(as).forEach((client) => client.close()));

const put = (key, body, options, query) => s.api('PUT', factPath(key, '', query), { body, ...options });
const remove = (key, query, options) => s.api('DELETE', factPath(key, '', query), options);
const versions = async () => Number((await s.query('SELECT count(*) FROM daybook.facts'))[0].count);
const seconds = (at, n) => new Date(Date.parse(at) + n * 1000).toISOString().replace('.000Z', 'Z');

// ---- storing ----

test('a fact is stored with every member, and read back byte for byte', async () => {
  const { json, text } = await put('user.timezone', { value: 'Europe/Berlin', observation_type: 'user_stated_preference', source: 'user_stated', at: day(2) }, { status: 201 });
  const { created_at, ...rest } = json;
  assert.deepEqual(rest, {
    key: 'user.timezone',
    scope: 'global',
    version: 1,
    status: 'active',
    value: 'Europe/Berlin',
    observation_type: 'user_stated_preference',
    source: 'user_stated',
    confidence: 1,
    needs_verification: false,
    stale: false,
    written_at: day(2),
    verified_at: null,
    verified_source: null,
    ttl_seconds: null,
    expires_at: null,
    change: 'put',
    known_from: day(2),
  });
  assert.ok(created_at);
  assert.equal((await s.api.get(factPath('user.timezone'), { status: 200 })).text, text);
});

test('a value is any JSON but null, with every digit, and up to 8,192 bytes', async () => {
  for (const [i, value] of ['"a \\"b\\" é"', '1.10', '12345678901234567890.10', '-0', 'true', '[1,null,{"a":[]}]', '{"b":1e2,"a":0.30}'].entries()) {
    await put(`value/${i}`, `{"value": ${value} ,"observation_type":"user_stated_preference","source":"user_stated"}`, { status: 201 });
    assert.ok((await s.api.get(factPath(`value/${i}`))).text.includes(`"value":${value},`), value);
  }
  await put('value/long', newFact({ value: 'x'.repeat(8190) }), { status: 201 });
  assert.deepEqual(faults(await put('value/longer', newFact({ value: 'x'.repeat(8191) }), { status: 422 })), ['value: too_long']);
});

test('a key has letters, digits and _ . : / -, and another scope is another fact', async () => {
  for (const key of ['a/b:c.d_e-f', 'A', '0', '_x', '...', 'a//b', 'k'.repeat(200)]) {
    assert.equal((await putFact(s.api, key, { value: key })).key, key);
    assert.equal((await readFact(s.api, key)).value, key);
  }
  await putFact(s.api, 'A', { value: 'theirs' }, { scope: 'desk/7' });
  assert.equal((await readFact(s.api, 'A')).value, 'A');
  assert.equal((await readFact(s.api, 'A', { scope: 'desk/7' })).value, 'theirs');
  for (const key of ['a b', 'ä', 'a,b', 'k'.repeat(201)]) assert.deepEqual(faults(await put(key, newFact(), { status: 422, check: false })), ['key: invalid_name'], key);
  for (const dots of ['%2E', '%2e%2E']) assert.ok((await s.api('PUT', `/v1/facts/${dots}`, { body: newFact(), check: false })).status >= 400);
});

test('the source sets the confidence, unless the caller does', async () => {
  const expected = { user_stated: 1, user_correction: 1, tool_verified: 0.9, agent_inferred: 0.6, recalled: 0.5, external: 0.3 };
  for (const [source, confidence] of Object.entries(expected)) {
    const fact = await putFact(s.api, `source.${source}`, { source });
    assert.deepEqual([fact.confidence, fact.needs_verification], [confidence, confidence < 0.7]);
  }
  assert.equal((await putFact(s.api, 'source.own', { source: 'external', confidence: 0.7 })).needs_verification, false);
  assert.equal((await putFact(s.api, 'source.own', { source: 'external', confidence: 0.69 })).needs_verification, true);
});

test('each invalid field is named, and nothing is stored', async () => {
  const before = await versions();
  const bad = async (changes, expected, path = factPath('bad')) =>
    assert.deepEqual(faults(await s.api('PUT', path, { body: { ...newFact(), ...changes }, status: 422, check: false })), expected, JSON.stringify(changes));
  await bad({ value: undefined }, ['value: required']);
  await bad({ value: null }, ['value: required']);
  await bad({ source: 'hearsay', observation_type: 'a b', confidence: 1.1, ttl_seconds: 0, at: 'today', typo: 1 }, [
    'at: invalid_time',
    'confidence: out_of_range',
    'observation_type: invalid_name',
    'source: not_a_choice',
    'ttl_seconds: out_of_range',
    'typo: unknown_field',
  ]);
  await bad({ confidence: '0.5' }, ['confidence: wrong_type']);
  await bad({}, ['scope: invalid_name'], factPath('bad', '', { scope: 'a b' }));
  await bad({ at: new Date(Date.now() + 2 * 86_400_000).toISOString() }, ['at: in_the_future']);
  for (const body of ['{"value":1,"value":2}', '{"value":NaN}', '{"value":"\\u0000"}', `{"value":${'['.repeat(100)}}`])
    assert.equal((await s.api('PUT', factPath('bad'), { body, check: false })).status, 400, body);
  assert.equal(await versions(), before);
});

test('a role that may only read cannot write, and a researcher cannot delete', async () => {
  await putFact(as.researcher, 'roles');
  for (const [method, path] of [['PUT', factPath('roles')], ['POST', factPath('roles', '/correct')], ['POST', factPath('roles', '/verify')], ['DELETE', factPath('roles')], ['POST', '/v1/facts/decay']])
    assert.equal((await as.reader(method, path, { body: method === 'DELETE' ? undefined : newFact(), check: false })).status, 403, `${method} ${path}`);
  assert.equal((await as.researcher('DELETE', factPath('roles'))).status, 403);
  assert.ok(await readFact(as.reader, 'roles'));
});

// ---- retries and concurrency ----

test('the same PUT again changes nothing: with its time, or without one', async () => {
  for (const changes of [{ at: day(3) }, {}]) {
    const body = newFact({ ...changes, value: { price: 1.5 } });
    const first = await put(`again${changes.at ?? ''}`, body, { status: 201 });
    assert.equal((await put(`again${changes.at ?? ''}`, body)).text, first.text);
    assert.equal((await historyOf(s.api, `again${changes.at ?? ''}`)).length, 1);
  }
});

test('the same value at a later time renews the fact', async () => {
  const body = { value: 5, observation_type: 'tool_result_verified', source: 'tool_verified' };
  await put('renewed', { ...body, at: day(3) }, { status: 201 });
  const { json } = await put('renewed', { ...body, at: day(4) }, { status: 200 });
  assert.deepEqual([json.version, json.written_at, json.expires_at], [2, day(4), day(11)]);
});

test('without a time, the same value is a retry for half of its time to live at most', async () => {
  const body = newFact({ value: 1, ttl_seconds: 2 });
  await put('short', body, { status: 201 });
  await s.query("UPDATE daybook.facts SET written_at = written_at - interval '1.2 s', known_from = known_from - interval '1.2 s' WHERE key = 'short'");
  assert.equal((await put('short', body, { status: 200 })).json.version, 2);
});

test('a change that is dated before the last one is refused, and one at the same time is not', async () => {
  await putFact(s.api, 'order', { value: 1, at: day(5) });
  const { json } = await put('order', newFact({ at: day(4) }), { status: 409 });
  assert.equal(json.code, 'time_order');
  assert.equal((await putFact(s.api, 'order', { value: 2, at: day(5) })).version, 2);
  assert.equal((await readFact(s.api, 'order', { as_of: day(5) })).value, 2);
  for (const [what, body] of [['/correct', { value: 1, at: day(4) }], ['/verify', { at: day(4) }]])
    assert.equal((await s.api.post(factPath('order', what), body, { status: 409 })).json.code, 'time_order');
  assert.equal((await remove('order', { at: day(4) }, { status: 409 })).json.code, 'time_order');
});

test('of many writers of one key at the same time none is lost and none stores twice', async () => {
  const writers = Array.from({ length: 8 }, (_, n) => putFact(s.api, 'contended', { value: n }));
  const stored = await Promise.all(writers);
  const history = await historyOf(s.api, 'contended');
  assert.deepEqual(history.map((f) => f.version), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(history.map((f) => f.value).sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(stored.map((f) => f.version).sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal((await s.query("SELECT count(*) FROM daybook.facts WHERE key = 'contended' AND known_until = 'infinity'"))[0].count, '1');
});

test('a POST with an Idempotency-Key runs once', async () => {
  await putFact(s.api, 'once', { source: 'agent_inferred', at: day(1) });
  for (const [what, body] of [['/correct', { value: 2 }], ['/verify', {}]]) {
    const headers = { 'idempotency-key': `once-${what}` };
    const first = await s.api.post(factPath('once', what), body, { headers, status: 200 });
    const again = await s.api.post(factPath('once', what), body, { headers, status: 200 });
    assert.equal(again.text, first.text);
    assert.equal(again.headers['idempotency-replayed'], 'true');
  }
  assert.equal((await historyOf(s.api, 'once')).length, 3);
});

// ---- time to live ----

test('the type of an observation sets its time to live, unless the caller does', async () => {
  const of = (observation_type, changes) => putFact(s.api, `ttl.${observation_type}.${changes?.ttl_seconds}`, { observation_type, at: day(1), ...changes });
  assert.deepEqual((await of('user_stated_preference')).expires_at, null);
  assert.deepEqual((await of('tool_result_verified')).expires_at, day(8));
  assert.deepEqual((await of('task_completion_strategy')).ttl_seconds, 90 * 86400);
  assert.deepEqual((await of('tool_result_verified', { ttl_seconds: 60 })).expires_at, day(1, '00:01:00'));
});

test('an expired fact is not found, its history is, and a new value takes its place', async () => {
  await putFact(s.api, 'expiring', { value: 1, ttl_seconds: 3600, at: day(3) });
  assert.equal(await readFact(s.api, 'expiring'), undefined);
  assert.equal((await readFact(s.api, 'expiring', { as_of: day(3, '00:59:59.999999') })).value, 1);
  assert.equal(await readFact(s.api, 'expiring', { as_of: day(3, '01:00:00') }), undefined);
  assert.equal((await historyOf(s.api, 'expiring')).length, 1);
  const listed = async (query) => (await s.api.get(`/v1/facts?prefix=expiring&${query}`, { status: 200 })).json.items.length;
  assert.deepEqual([await listed(''), await listed(`as_of=${day(3, '00:30:00')}`), await listed(`as_of=${day(4)}`)], [0, 1, 0]);
  await s.api.post(factPath('expiring', '/verify'), {}, { status: 404 });
  await remove('expiring', {}, { status: 404 });
  assert.deepEqual((({ version, value }) => [version, value])(await putFact(s.api, 'expiring', { value: 1, at: day(5) })), [2, 1]);
});

test('a fact is stale after seven days, unless its confidence is 0.8 or more', async () => {
  await putFact(s.api, 'age.low', { source: 'agent_inferred', confidence: 0.79, at: day(1) });
  await putFact(s.api, 'age.high', { source: 'tool_verified', confidence: 0.8, at: day(1) });
  const stale = async (key, as_of) => (await readFact(s.api, key, { as_of })).stale;
  assert.deepEqual([await stale('age.low', day(8)), await stale('age.low', day(8, '00:00:00.000001'))], [false, true]);
  assert.equal(await stale('age.high', day(100)), false);
  assert.equal((await readFact(s.api, 'age.low')).stale, true);
  await verifyFact(s.api, 'age.low', { confidence: 0.5, at: day(9) });
  assert.deepEqual([await stale('age.low', day(16)), await stale('age.low', day(16, '00:00:01'))], [false, true]);
});

// ---- corrections, confirmations, deletions ----

test('a correction has confidence 1, keeps type and time to live, and the old value stays in the history', async () => {
  await putFact(s.api, 'corrected', { value: 'old', source: 'agent_inferred', observation_type: 'tool_result_verified', ttl_seconds: 100, at: day(2) });
  const fact = await correctFact(s.api, 'corrected', { value: 'new', at: day(2, '00:00:10') });
  assert.deepEqual([fact.value, fact.source, fact.confidence, fact.observation_type, fact.change], ['new', 'user_correction', 1, 'tool_result_verified', 'correct']);
  assert.deepEqual([fact.ttl_seconds, fact.expires_at], [100, day(2, '00:01:50')]);
  assert.deepEqual((await historyOf(s.api, 'corrected')).map((f) => [f.version, f.value, f.confidence, f.known_from]), [[1, 'old', 0.6, day(2)], [2, 'new', 1, day(2, '00:00:10')]]);
  assert.equal((await readFact(s.api, 'corrected', { as_of: day(2, '00:00:09') })).value, 'old');
});

test('a correction of a key without a fact stores one that the user stated', async () => {
  const fact = await correctFact(s.api, 'corrected.new', { value: 1, at: day(2) });
  assert.deepEqual([fact.version, fact.observation_type, fact.expires_at], [1, 'user_stated_preference', null]);
});

test('a confirmation raises the confidence, renews the time to live and keeps the value and its time', async () => {
  await putFact(s.api, 'confirmed', { value: 1, source: 'agent_inferred', observation_type: 'tool_result_verified', at: day(2) });
  const fact = await verifyFact(s.api, 'confirmed', { at: day(5) });
  assert.deepEqual([fact.confidence, fact.source, fact.written_at, fact.verified_at, fact.verified_source, fact.expires_at], [0.9, 'agent_inferred', day(2), day(5), 'tool_verified', day(12)]);
  assert.equal((await verifyFact(s.api, 'confirmed', { source: 'user_stated', at: day(6) })).confidence, 1);
  assert.equal((await verifyFact(s.api, 'confirmed', { confidence: 0.2, at: day(7) })).confidence, 1);
  assert.equal((await readFact(s.api, 'confirmed', { as_of: day(4) })).verified_at, null);
  assert.equal((await putFact(s.api, 'confirmed', { value: 2, at: day(8) })).verified_at, null);
  await s.api.post(factPath('nowhere', '/verify'), {}, { status: 404 });
});

test('a deleted fact is not found from then on, and its history is', async () => {
  await putFact(s.api, 'deleted', { value: 1, at: day(2) });
  await remove('deleted', { at: day(4) }, { status: 204 });
  assert.deepEqual([await readFact(s.api, 'deleted'), await readFact(s.api, 'deleted', { as_of: day(4) })], [undefined, undefined]);
  assert.equal((await readFact(s.api, 'deleted', { as_of: seconds(day(4), -1) })).value, 1);
  assert.deepEqual((await historyOf(s.api, 'deleted')).map((f) => [f.change, f.status]), [['put', 'active'], ['delete', 'deleted']]);
  assert.deepEqual((await everyItem(s.api, factPath('deleted', '/history', { limit: 1 }))).map((f) => f.version), [1, 2]);
  assert.equal((await historyOf(s.api, 'deleted', { as_of: day(3) })).length, 1);
  await remove('deleted', {}, { status: 404 });
  await s.api.post(factPath('deleted', '/restore'), {}, { status: 404 });
  assert.equal((await putFact(s.api, 'deleted', { value: 2, at: day(5) })).version, 3);
  await s.api.get(factPath('never', '/history'), { status: 404 });
});

// ---- lists ----

test('a list goes by scope, prefix and flags, page by page in the order of keys', async () => {
  for (const [scope, key, changes] of [
    ['list/a', 'x.1', {}],
    ['list/a', 'x.2', { source: 'agent_inferred' }],
    ['list/a', 'x.20', { observation_type: 'task_completion_strategy' }],
    ['list/a', 'y', {}],
    ['list/b', 'x.1', { source: 'external', confidence: 0.75 }],
  ])
    await putFact(s.api, key, { at: day(2), ...changes }, { scope });
  await putFact(s.api, 'x.1', { value: 'later', at: day(20) }, { scope: 'list/a' });
  const keys = async (query) => (await everyItem(s.api, `/v1/facts?as_of=${day(30)}&${query}`)).filter((f) => f.scope.startsWith('list/')).map((f) => `${f.scope} ${f.key}`);
  const a = ['list/a x.1', 'list/a x.2', 'list/a x.20', 'list/a y'];
  assert.deepEqual(await keys('scope=list/a'), a);
  assert.deepEqual(await keys('scope=list/a&limit=1'), a);
  assert.deepEqual(await keys('limit=2'), [...a, 'list/b x.1']);
  assert.deepEqual(await keys('scope=list/a&prefix=x.2&limit=1'), ['list/a x.2', 'list/a x.20']);
  assert.deepEqual(await keys('prefix=x.1'), ['list/a x.1', 'list/b x.1']);
  assert.deepEqual(await keys('scope=list/a&prefix=z'), []);
  assert.deepEqual(await keys('scope=list/a&source=agent_inferred'), ['list/a x.2']);
  assert.deepEqual(await keys('scope=list/a&observation_type=task_completion_strategy'), ['list/a x.20']);
  assert.deepEqual(await keys('needs_verification=true&prefix=x.'), ['list/a x.2']);
  assert.deepEqual(await keys('stale=true&prefix=x.'), ['list/a x.2', 'list/b x.1']);
  assert.deepEqual(await keys('stale=false&scope=list/b'), []);
  assert.deepEqual((await everyItem(s.api, `/v1/facts?scope=list/a&prefix=x.1&as_of=${day(3)}`)).map((f) => f.version), [1]);
  const page = (await s.api.get('/v1/facts?scope=list/a&limit=1')).json;
  assert.equal((await s.api.get(`/v1/facts?scope=list/b&limit=1&cursor=${page.next_cursor}`, { check: false })).status, 422);
});

test('a read carries an ETag, and answers 304 while nothing changes', async () => {
  await putFact(s.api, 'tagged', { at: day(2) });
  const { headers } = await s.api.get(factPath('tagged'));
  assert.equal((await s.api.get(factPath('tagged'), { headers: { 'if-none-match': headers.etag } })).status, 304);
  await putFact(s.api, 'tagged', { at: day(3) });
  assert.equal((await s.api.get(factPath('tagged'), { headers: { 'if-none-match': headers.etag } })).status, 200);
});

test('two owners have the same keys, and neither sees or changes those of the other', async () => {
  await putFact(s.api, 'shared', { value: 'mine', source: 'agent_inferred', at: day(2) });
  assert.equal(await readFact(as.bob, 'shared'), undefined);
  await as.bob.get(factPath('shared', '/history'), { status: 404 });
  await as.bob('DELETE', factPath('shared'), { status: 404 });
  await as.bob.post(factPath('shared', '/verify'), {}, { status: 404 });
  assert.equal((await putFact(as.bob, 'shared', { value: 'theirs', at: day(3) })).version, 1);
  assert.deepEqual((await everyItem(as.bob, '/v1/facts')).map((f) => f.value), ['theirs']);
  const run = (await as.bob.post('/v1/facts/decay', { dry_run: false, at: day(90) }, { status: 200 })).json;
  assert.equal(run.matched, 0);
  assert.equal((await readFact(s.api, 'shared')).value, 'mine');
});
