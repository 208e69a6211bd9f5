// Decay of facts: by the time that has passed and not by the number of runs, with an archive and a way back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decayFacts, factPath, historyOf, putFact, readFact, verifyFact } from '../lib/facts.mjs';
import { day, everyItem, faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';
import { randomOf } from '../lib/ticks.mjs';

const s = suite();
let scopes = 0;
const newScope = () => `decay/${scopes++}`;
const infer = (key, scope, changes) => putFact(s.api, key, { value: key, source: 'agent_inferred', at: day(1), ...changes }, { scope });
const run = (scope, at, changes) => decayFacts(s.api, { scope, at, dry_run: false, ...changes });
const confidences = async (scope, as_of) => Object.fromEntries((await everyItem(s.api, `/v1/facts?scope=${scope}${as_of ? `&as_of=${as_of}` : ''}`)).map((f) => [f.key, f.confidence]));

test('only inferred facts that nobody confirmed lose confidence', async () => {
  const scope = newScope();
  for (const source of ['user_stated', 'user_correction', 'tool_verified', 'recalled', 'external', 'agent_inferred']) await putFact(s.api, source, { source, at: day(1) }, { scope });
  await infer('confirmed', scope);
  await verifyFact(s.api, 'confirmed', { at: day(2) }, { scope });
  const answer = await run(scope, day(4));
  assert.deepEqual([answer.matched, answer.decayed, answer.archived], [1, 1, 0]);
  assert.deepEqual(await confidences(scope), { user_stated: 1, user_correction: 1, tool_verified: 0.9, recalled: 0.5, external: 0.3, agent_inferred: 0.45, confirmed: 0.9 });
});

test('a run that is repeated changes nothing, and many runs give what one gives', async () => {
  const [once, often] = [newScope(), newScope()];
  const random = randomOf(14);
  for (const scope of [once, often]) for (let n = 0; n < 20; n++) await infer(`k${n}`, scope, { confidence: 0.99, at: day(1 + n % 3) });
  for (let n = 4; n <= 10; n++) {
    const at = day(n, `0${Math.floor(random() * 10)}:00:00`);
    const first = await run(often, at);
    const second = await run(often, at);
    assert.deepEqual([second.decayed, second.archived, second.unchanged], [0, 0, first.matched - first.archived]);
  }
  await run(often, day(12));
  await run(once, day(12));
  assert.deepEqual(await confidences(often), await confidences(once));
});

test('written_at, the time to live and the value stay', async () => {
  const scope = newScope();
  const before = await infer('kept', scope, { ttl_seconds: 30 * 86400 });
  await run(scope, day(5));
  const after = await readFact(s.api, 'kept', { scope, as_of: day(6) });
  for (const name of ['value', 'written_at', 'ttl_seconds', 'expires_at', 'observation_type', 'source']) assert.deepEqual(after[name], before[name], name);
  assert.deepEqual([after.confidence, after.change, after.known_from], [0.4, 'decay', day(5)]);
  assert.equal((await readFact(s.api, 'kept', { scope, as_of: day(4) })).confidence, 0.6);
});

test('a dry run is the default: it says what would change, and changes nothing', async () => {
  const scope = newScope();
  await infer('a', scope);
  await infer('b', scope, { confidence: 0.3 });
  const dry = await decayFacts(s.api, { scope, at: day(3) });
  assert.deepEqual(dry, {
    dry_run: true,
    at: day(3),
    matched: 2,
    decayed: 1,
    archived: 1,
    unchanged: 0,
    samples: [
      { scope, key: 'a', periods: 2, confidence_before: 0.6, confidence: 0.5, archived: false },
      { scope, key: 'b', periods: 2, confidence_before: 0.3, confidence: 0.2, archived: true },
    ],
  });
  assert.deepEqual(await confidences(scope), { a: 0.6, b: 0.3 });
  assert.deepEqual(await run(scope, day(3)), { ...dry, dry_run: false });
  assert.deepEqual(await confidences(scope), { a: 0.5 });
});

test('at the floor a fact stays, below it goes to the archive, and from there it can come back', async () => {
  const scope = newScope();
  await infer('x', scope);
  await run(scope, day(7));
  assert.deepEqual(await confidences(scope), { x: 0.3 });
  await run(scope, day(8));
  assert.equal(await readFact(s.api, 'x', { scope }), undefined);
  const archived = (await s.api.get(`/v1/facts?scope=${scope}&archived=true`, { status: 200 })).json.items;
  assert.deepEqual(archived.map((f) => [f.key, f.status, f.change, f.confidence]), [['x', 'archived', 'archive', 0.25]]);
  assert.equal((await readFact(s.api, 'x', { scope, as_of: day(7, '23:00:00') })).confidence, 0.3);
  const restored = (await s.api.post(factPath('x', '/restore', { scope }), { at: day(9) }, { status: 200 })).json;
  assert.deepEqual([restored.status, restored.change, restored.confidence, restored.written_at], ['active', 'restore', 0.25, day(1)]);
  assert.equal((await s.api.post(factPath('x', '/restore', { scope }), { at: day(9) }, { status: 409 })).json.code, 'invalid_transition');
  assert.equal((await run(scope, day(9, '23:59:59'))).unchanged, 1);
  assert.deepEqual((await historyOf(s.api, 'x', { scope })).map((f) => f.change), ['put', 'decay', 'archive', 'restore']);
  assert.equal((await putFact(s.api, 'x', { value: 'new', at: day(10) }, { scope })).version, 5);
});

test('an expired fact does not decay, and a run in the past does not touch what is newer', async () => {
  const scope = newScope();
  await infer('expired', scope, { ttl_seconds: 3600 });
  await infer('later', scope, { at: day(20) });
  assert.equal((await run(scope, day(10))).matched, 0);
});

test('rate, floor and period are the caller\'s, and a prefix limits the run', async () => {
  const scope = newScope();
  await infer('a.1', scope);
  await infer('b.1', scope);
  const answer = await run(scope, day(2), { prefix: 'a.', rate: 0.01, floor: 0, period_hours: 1 });
  assert.equal(answer.matched, 1);
  assert.deepEqual(await confidences(scope), { 'a.1': 0.36, 'b.1': 0.6 });
  const bad = await s.api.post('/v1/facts/decay', { rate: 0, floor: 2, period_hours: 0, at: '2999-01-01T00:00:00Z' }, { status: 422, check: false });
  assert.deepEqual(faults(bad), ['floor: out_of_range', 'period_hours: out_of_range', 'rate: out_of_range']);
});

test('more facts than a page holds decay in one run, which a key makes safe to retry', async () => {
  const scope = newScope();
  await s.query(
    `INSERT INTO daybook.facts (owner, scope, key, version, known_from, status, change, value, observation_type, source, confidence, written_at, decayed_at)
     SELECT 'local', $1, 'k' || n, 1, $2, 'active', 'put', '1', 'tool_result_verified', 'agent_inferred', 0.31 + n % 2 * 0.3, $2, $2 FROM generate_series(1, 1201) n`,
    [scope, day(1)],
  );
  const headers = { 'idempotency-key': 'decay-1' };
  const body = { scope, at: day(2), dry_run: false, samples: 0 };
  const first = await s.api.post('/v1/facts/decay', body, { headers, status: 200 });
  assert.deepEqual([first.json.matched, first.json.decayed, first.json.archived, first.json.samples], [1201, 601, 600, []]);
  assert.equal((await s.api.post('/v1/facts/decay', body, { headers, status: 200 })).text, first.text);
  assert.equal((await run(scope, day(2))).unchanged, 601);
});
