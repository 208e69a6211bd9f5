// The events of the journals: what the list returns, when they are sealed, and which lessons and notes leave which events.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { assertWhole, eventsOf, verify, ZEROS } from '../lib/events.mjs';
import { blocked } from '../lib/faults.mjs';
import { newMemory, remember } from '../lib/journal.mjs';
import { deploy } from '../lib/ledger.mjs';
import { create, day, faults, newLesson, OUTCOME, UNKNOWN_ID } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { createKey } from '../lib/service.mjs';
import { exitOf, reflect, trade, traded } from '../lib/reflect.mjs';
import { commit } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const list = async (query) => (await s.api.get(`/v1/memory_events?${query}`, { status: 200 })).json.items;
const about = (id) => list(`subject_id=${id}`);
const change = (id, what, body) => s.api.post(`/v1/lessons/${id}/${what}`, body, { status: 200 });

test('a lesson leaves an event with its full content, in the journal of the owner', async () => {
  const lesson = await create(s.api, { at: day(1), takeaway: 'Ünïcode 𝄞 "quoted" \\ and /', evidence: ['a log', 'another'] });
  const [event, ...none] = await about(lesson.id);
  assert.deepEqual(none, []);
  const { seq, id, recorded_at, prev_hash, hash, ...rest } = event;
  assert.deepEqual(rest, {
    deployment_id: null,
    kind: 'lesson.proposed',
    at: day(1),
    symbol: null,
    subject_id: lesson.id,
    agent_name: null,
    model_call_id: null,
    data: { takeaway: lesson.takeaway, context: lesson.context, outcome: lesson.outcome, tags: lesson.tags, evidence: ['a log', 'another'] },
  });
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.ok(seq >= 1 && Date.parse(recorded_at) > 0 && (seq === 1) === (prev_hash === ZEROS));
});

test('every change of a lesson leaves an event', async () => {
  const made = [];
  for (let n = 0; n < 5; n++) made.push((await create(s.api, { at: day(1) })).id);
  const [validated, retired, superseded, merged, into] = made;
  await change(validated, 'validate', { outcome: { ...OUTCOME, value: 1 }, reason: 'held up', at: day(2) });
  await change(retired, 'retire', { reason: 'over', at: day(2) });
  await change(superseded, 'supersede', { by: validated, at: day(3) });
  await s.api.post('/v1/lessons/merge', { into, ids: [merged], reason: 'the same', at: day(4) }, { status: 200 });
  const changes = async (id) => (await about(id)).slice(1).map(({ kind, at, data }) => [kind, at, data]);
  const dataOf = async (id) => (await changes(id))[0][2];
  assert.deepEqual((await changes(validated)).map(([kind, when]) => [kind, when]), [['lesson.validated', day(2)]]);
  assert.deepEqual((await dataOf(validated)).validation, { ...OUTCOME, value: 1 });
  assert.equal((await dataOf(validated)).reason, 'held up');
  assert.deepEqual((await changes(retired)).map(([kind]) => kind), ['lesson.retired']);
  assert.equal((await dataOf(superseded)).superseded_by, validated);
  assert.deepEqual((await changes(merged)).map(([kind]) => kind), ['lesson.superseded']);
  assert.equal((await dataOf(merged)).superseded_by, into);
  assert.deepEqual((await changes(into)).map(([kind]) => kind), ['lesson.merged']);
  assert.deepEqual((await dataOf(into)).merged, [merged]);
});

test('a refused change leaves no event', async () => {
  const { id } = await create(s.api, { at: day(1) });
  await change(id, 'retire', { reason: 'over', at: day(2) });
  await s.api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, at: day(3) }, { status: 409 });
  await s.api.post('/v1/lessons', newLesson({ takeaway: '' }), { status: 422 });
  assert.deepEqual((await about(id)).map(({ kind }) => kind), ['lesson.proposed', 'lesson.retired']);
});

test('a retry with the same Idempotency-Key leaves no second event', async () => {
  const body = newLesson({ at: day(1) });
  const headers = { 'idempotency-key': 'once' };
  const { json } = await s.api.post('/v1/lessons', body, { status: 201, headers });
  await s.api.post('/v1/lessons', body, { status: 201, headers });
  assert.equal((await about(json.id)).length, 1);
});

test('a lesson made by a research commit leaves its event', async () => {
  const ticker = 'SURPRISE';
  await commit(s.api, { ticker, task_type: 'tone', created_at: day(1), probability: 0.05 });
  const { lesson } = await commit(s.api, { ticker, task_type: 'tone', created_at: day(9), probability: 0.95 });
  assert.ok(lesson);
  assert.deepEqual((await about(lesson.id)).map(({ kind, at: when }) => [kind, when]), [['lesson.proposed', day(9)]]);
});

test('reflection notes leave events: created and superseded in the journal of the deployment, promoted in that of the owner', async () => {
  const { id } = await traded(s.api, 4);
  const first = (await reflect(s.api, id)).note;
  await trade(s.api, id, 4, 8);
  const { note } = await reflect(s.api, id);
  const events = (await list(`deployment_id=${id}`)).filter(({ kind }) => kind.startsWith('reflection_note.')); // ticks leave others
  assert.deepEqual(
    events.map((e) => [e.kind, e.subject_id, e.at]),
    [
      ['reflection_note.created', first.id, exitOf(3)],
      ['reflection_note.superseded', first.id, exitOf(7)],
      ['reflection_note.created', note.id, exitOf(7)],
    ],
  );
  assert.deepEqual(events[1].data, { superseded_by: note.id });
  assert.deepEqual([events[2].data.lessons_text, events[2].data.content_hash], [note.lessons_text, note.content_hash]);
  const promoted = (await s.api.post(`/v1/reflection_notes/${note.id}/promote`, {}, { status: 201 })).json;
  const [event] = await about(promoted.id);
  assert.deepEqual([event.kind, event.deployment_id, event.data.promoted_from, event.data.from_deployment_id], ['reflection_note.promoted', null, note.id, id]);
});

test('filters choose the journal, the kind, the time and the place in the sequence', async () => {
  const journal = randomUUID();
  for (let n = 1; n <= 6; n++)
    await s.query(
      "insert into daybook.memory_events (owner, journal_id, kind, at, symbol, agent_name, model_call_id, data) values ('local', $1, $2, $3, $4, $5, $6, '{}')",
      [journal, n % 2 ? 'order.submitted' : 'order.outcome', day(n), n % 3 ? 'BTC' : null, `agent ${n % 2}`, `call ${n}`],
    );
  const seqs = async (query) => (await list(`deployment_id=${journal}${query}`)).map(({ seq }) => seq);
  assert.deepEqual(await seqs(''), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(await seqs('&kind=order.submitted'), [1, 3, 5]);
  assert.deepEqual(await seqs('&symbol=BTC'), [1, 2, 4, 5]);
  assert.deepEqual(await seqs('&agent_name=agent%201'), [1, 3, 5]);
  assert.deepEqual(await seqs('&model_call_id=call%204'), [4]);
  assert.deepEqual(await seqs(`&since=${day(3)}&until=${day(5)}`), [3, 4]);
  assert.deepEqual(await seqs(`&as_of=${day(2)}`), [1, 2]);
  assert.deepEqual(await seqs('&after_seq=4'), [5, 6]);
  assert.deepEqual(await seqs('&after_seq=4&limit=1'), [5]);
  const all = await list('limit=200&kind=order.outcome');
  assert.deepEqual(all.filter((e) => e.deployment_id === journal).map(({ seq }) => seq), [2, 4, 6]);
  assert.ok((await list('journal=owner')).every((e) => e.deployment_id === null));
});

test('pages by cursor give every event once, in the order of journal and seq', async () => {
  const whole = (await eventsOf(s.api)).items;
  const found = [];
  for (let cursor = ''; cursor !== null; ) {
    const { json } = await s.api.get(`/v1/memory_events?limit=3${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { status: 200 });
    found.push(...json.items);
    cursor = json.next_cursor;
  }
  assert.deepEqual(found, whole);
  const keys = whole.map((e) => `${e.deployment_id ?? ''} ${String(e.seq).padStart(9, '0')}`);
  assert.deepEqual(keys, [...keys].sort());
  await assertWhole(s.api, 'journal=owner');
});

test('bad input is named', async () => {
  const bad = async (query) => faults(await s.api.get(`/v1/memory_events?${query}`, { status: 422 }));
  assert.deepEqual(await bad(`deployment_id=${UNKNOWN_ID}&journal=owner`), ['journal: not_together']);
  assert.deepEqual(await bad('journal=mine'), ['journal: not_a_choice']);
  assert.deepEqual(await bad('kind=thesis'), ['kind: not_a_choice']);
  assert.deepEqual(await bad('limit=0&after_seq=-1&kind='), ['after_seq: out_of_range', 'kind: not_a_choice', 'limit: out_of_range']);
  assert.equal((await s.api.get(`/v1/memory_events/verify?deployment_id=${UNKNOWN_ID}`)).status, 404);
  assert.deepEqual(await list(`deployment_id=${UNKNOWN_ID}`), []);
});

const pending = async () => Number((await s.query('select count(*) as n from daybook.memory_events where seq is null'))[0].n);

test('events are sealed in the background, without a read', async () => {
  for (let n = 0; n < 5; n++) await create(s.api, { at: day(1) });
  await until(async () => (await pending()) === 0, 'the events are sealed');
});

test('events that nobody announced, such as those of a crashed instance, are sealed after a start', async () => {
  const journal = randomUUID();
  await s.query("insert into daybook.memory_events (owner, journal_id, kind, at, data) select 'someone else', $1, 'note', now(), jsonb_build_object('n', n) from generate_series(1, 2500) n", [journal]);
  const other = await s.another();
  try {
    await until(async () => (await pending()) === 0, 'the events are sealed');
  } finally {
    await other.stop();
  }
  const [{ n, last }] = await s.query('select count(*)::int as n, max(seq)::int as last from daybook.memory_events where journal_id = $1', [journal]);
  assert.deepEqual([n, last], [2500, 2500]);
});

test('a journal that was tampered with does not hold up the others of its owner', async () => {
  const [low, high] = ['00000000-0000-7000-8000-000000000001', 'ffffffff-ffff-7fff-8fff-ffffffffffff'];
  const add = (journal) => s.query("insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'note', now(), '{}')", [journal]);
  await add(low);
  assert.equal((await verify(s.api, `deployment_id=${low}`)).ok, true);
  await s.query('delete from daybook.memory_journals where journal_id = $1', [low]);
  await add(low);
  await add(high);
  assert.equal((await verify(s.api, `deployment_id=${high}`)).events, 1);
  const broken = await verify(s.api, `deployment_id=${low}`);
  assert.deepEqual([broken.ok, broken.pending, broken.first_broken.what, broken.first_broken.seq], [false, 1, 'inserted', 1]);
  await s.query('delete from daybook.memory_events where journal_id = $1', [low]);
});

test('a journal that someone seals holds up neither its writers nor any other journal', async () => {
  const ids = [(await deploy(s.api, { mode: 'paper' })).id, (await deploy(s.api, { mode: 'paper' })).id];
  for (const deployment_id of ids) await remember(s.api, { deployment_id });
  for (const id of ids) await assertWhole(s.api, `deployment_id=${id}`, 1);
  for (const [held, free] of [ids, ids.toReversed()]) {
    const before = (await eventsOf(s.api, `deployment_id=${free}`)).items.length;
    const holder = await s.cluster.connect(s.database);
    await holder.query('begin');
    await holder.query("select from daybook.memory_journals where owner = 'local' and journal_id = $1 for update", [held]);
    await remember(s.api, { deployment_id: held });
    const everything = s.api.get('/v1/memory_events?limit=1'); // of all journals, so it waits
    await blocked(s.query, 1);
    await remember(s.api, { deployment_id: free });
    await until(async () => (await s.query('select from daybook.memory_events where journal_id = $1 and seq is null', [free])).length === 0, 'the other journal is sealed in the background');
    await remember(s.api, { deployment_id: free });
    await assertWhole(s.api, `deployment_id=${free}`, before + 2);
    assert.equal((await s.api.get(`/v1/memory_events/export?format=ndjson&deployment_id=${free}`, { status: 200 })).text.split('\n').length - 1, before + 2);
    assert.equal((await s.api.get('/v1/memory_events?journal=owner', { status: 200 })).status, 200);
    await s.api.post('/v1/memories', newMemory({ deployment_id: held }), { status: 201 });
    await blocked(s.query, 1); // the lock was held all the time
    await holder.query('rollback');
    await holder.end();
    assert.equal((await everything).status, 200);
  }
  for (const id of ids) await assertWhole(s.api, `deployment_id=${id}`, 5);
});

test('an owner sees no events of another, and its sequence counts none of them', async () => {
  const keys = [await createKey(s.url, 'ann', 'agent'), await createKey(s.url, 'bob', 'agent')];
  const keyed = await s.another();
  const anonymous = makeClient(keyed.base);
  try {
    const apis = keys.map(({ key }) => anonymous.as(key));
    for (let n = 0; n < 3; n++) for (const api of apis) await create(api, { at: day(n + 1) });
    for (const api of apis) {
      const { items } = await eventsOf(api);
      assert.deepEqual(items.map(({ seq, prev_hash }) => [seq, prev_hash === ZEROS]), [[1, true], [2, false], [3, false]]);
      const { json } = await api.get('/v1/memory_events/verify', { status: 200 });
      assert.deepEqual(json.items.map(({ deployment_id, events }) => [deployment_id, events]), [[null, 3]]);
    }
  } finally {
    anonymous.close();
    await keyed.stop();
  }
});
