// Reflection with the built-in reflector: when it is due, which trades it covers, what it stores, and which requests are rejected.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy, newTick, position } from '../lib/ledger.mjs';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { entryOf, exitOf, HEADINGS, notesOf, reflect, reflectionsOf, reflectPath, trade, traded } from '../lib/reflect.mjs';
import { createKey, startService } from '../lib/service.mjs';
import { makeClient } from '../lib/client.mjs';
import { blocked, whileLocked } from '../lib/faults.mjs';
import { ledgerSuite } from '../lib/ticks.mjs';

const s = ledgerSuite();

const said = ({ outcome, reason }) => [outcome, reason];
const attempts = async (query) => (await s.api.get(`/v1/reflections${query}`, { status: 200 })).json;

test('the first reflection creates the active note with the built-in reflector', async () => {
  const { id, skill_id, version } = await traded(s.api, 4);
  const answer = await reflect(s.api, id);
  const { note, reflection_id, ...rest } = answer;
  assert.deepEqual(rest, {
    deployment_id: id,
    as_of: exitOf(3),
    outcome: 'ran',
    reason: null,
    detail: null,
    forced: false,
    suppressed: [],
    trades_considered: 4,
    window_start: entryOf(0),
    window_end: exitOf(3),
    active_note_id: note.id,
    model_used: 'builtin',
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
  });
  const { id: note_id, lessons_text, content_hash, ...about } = note;
  assert.deepEqual(about, {
    skill_id,
    version,
    deployment_id: id,
    scope: 'deployment',
    status: 'active',
    generated_at: exitOf(3),
    superseded_at: null,
    window_start: entryOf(0),
    window_end: exitOf(3),
    trades_considered: 4,
    model_used: 'builtin',
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    suppressed: [],
    promoted_from: null,
    previous_id: null,
  });
  for (const heading of Object.values(HEADINGS)) assert.ok(lessons_text.includes(heading), heading);
  assert.match(lessons_text, /\(no clear pattern yet\)/, 'four trades show nothing');
  const [stored] = await notesOf(s.query, id);
  assert.deepEqual([stored.id, stored.content_hash, stored.lessons_text], [note_id, content_hash, lessons_text]);
  const { items } = await attempts(`?deployment_id=${id}`);
  assert.deepEqual(
    items.map(({ created_at, ...item }) => item),
    [
      {
        id: reflection_id,
        deployment_id: id,
        at: exitOf(3),
        outcome: 'ran',
        reason: null,
        detail: null,
        forced: false,
        suppressed: [],
        note_id,
        trades_considered: 4,
        window_start: entryOf(0),
        window_end: exitOf(3),
        model_used: 'builtin',
        input_tokens: 0,
        output_tokens: 0,
        cost_usd: 0,
      },
    ],
  );
});

test('per_n_trades: due after n trades closed since the last one in the note', async () => {
  const { id } = await traded(s.api, 2);
  const early = await reflect(s.api, id);
  assert.deepEqual(said(early), ['skipped', 'not_due']);
  assert.equal(early.detail, '2 of 3 trades were closed since the last note');
  assert.deepEqual([early.note, early.active_note_id, early.model_used, early.trades_considered], [null, null, null, 0]);
  await trade(s.api, id, 2, 3);
  const first = await reflect(s.api, id);
  assert.deepEqual(said(first), ['ran', null]);
  const again = await reflect(s.api, id);
  assert.deepEqual([...said(again), again.active_note_id], ['skipped', 'not_due', first.note.id]);
  await trade(s.api, id, 3, 5);
  assert.deepEqual(said(await reflect(s.api, id)), ['skipped', 'not_due']);
  await trade(s.api, id, 5, 6);
  const second = await reflect(s.api, id);
  assert.deepEqual([...said(second), second.note.previous_id, second.trades_considered], ['ran', null, first.note.id, 6]);
  const notes = await notesOf(s.query, id);
  assert.deepEqual(
    notes.map((n) => [n.id, n.status, n.superseded_at?.toISOString()]),
    [
      [first.note.id, 'superseded', new Date(exitOf(5)).toISOString()],
      [second.note.id, 'active', undefined],
    ],
  );
});

test('daily: due on a UTC day after the note, if a trade was closed since', async () => {
  const { id } = await traded(s.api, 3, { reflection: { cadence: 'daily' } });
  assert.deepEqual(said(await reflect(s.api, id)), ['ran', null]);
  await trade(s.api, id, 3, 4);
  const same = await reflect(s.api, id);
  assert.deepEqual([...said(same), same.detail], ['skipped', 'not_due', 'there is a note of this day (UTC) already']);
  const last = '2026-06-01T23:59:59.999999Z';
  assert.deepEqual(said(await reflect(s.api, id, { as_of: last })), ['skipped', 'not_due']);
  const next = await reflect(s.api, id, { as_of: '2026-06-02T00:00:00Z' });
  assert.deepEqual([...said(next), next.window_end], ['ran', null, exitOf(3)]);
  const nothing = await reflect(s.api, id, { as_of: '2026-06-03T00:00:00Z' });
  assert.deepEqual([...said(nothing), nothing.detail], ['skipped', 'not_due', 'no trade was closed since the last note']);
});

test('off: runs only when forced; without a closed trade not even then', async () => {
  const { id } = await traded(s.api, 0, { reflection: { cadence: 'off' } });
  assert.deepEqual(said(await reflect(s.api, id)), ['skipped', 'cadence_off']);
  assert.deepEqual(said(await reflect(s.api, id, { force: true })), ['skipped', 'no_trades']);
  const waiting = await traded(s.api, 0, { reflection: { cadence: 'daily' } });
  assert.deepEqual(said(await reflect(s.api, waiting.id)), ['skipped', 'no_trades']);
  await trade(s.api, id, 0, 1);
  assert.deepEqual(said(await reflect(s.api, id)), ['skipped', 'cadence_off']);
  const forced = await reflect(s.api, id, { force: true });
  assert.deepEqual([...said(forced), forced.forced, forced.trades_considered], ['ran', null, true, 1]);
  const once_more = await reflect(s.api, id, { force: true });
  assert.deepEqual([once_more.outcome, once_more.note.previous_id], ['ran', forced.note.id], 'at the same instant, too');
  assert.deepEqual((await notesOf(s.query, id)).map((n) => n.status), ['superseded', 'active']);
});

test('a skipped reflection does not wait for connections that long statements occupy', async () => {
  const { id } = await traded(s.api, 1);
  const busy = await s.another({ args: ['--loops', '1', '--write-connections', '1', '--slow-connections', '1'] });
  const api = makeClient(busy.base);
  const long = () => api.get('/v1/lessons/export?format=jsonl');
  try {
    // A connection opened while the table is locked would wait for the lock, so every connection is opened before.
    await long();
    assert.deepEqual(said(await reflect(api, id)), ['skipped', 'not_due']);
    const exported = await whileLocked(s.cluster, s.database, async (unlock) => {
      const waits = long();
      await blocked(s.query, 1);
      assert.deepEqual(said(await reflect(api, id)), ['skipped', 'not_due']);
      await unlock();
      return waits;
    });
    assert.equal(exported.status, 200);
  } finally {
    api.close();
    await busy.stop();
  }
  assert.equal((await attempts(`?deployment_id=${id}`)).items.length, 2);
});

test('as_of: only trades closed by then count; an instant before the active note is rejected', async () => {
  const { id } = await traded(s.api, 8);
  const past = await reflect(s.api, id, { as_of: entryOf(3) });
  assert.deepEqual([past.outcome, past.as_of, past.trades_considered, past.window_end], ['ran', entryOf(3), 3, exitOf(2)]);
  const [{ since }] = await s.query('SELECT closed_since_reflection::int AS since FROM daybook.agent_state WHERE deployment_id = $1', [id]);
  assert.equal(since, 5, 'later trades are left to the next one');
  const before = await reflectionsOf(s.query);
  const early = await s.api.post(reflectPath(id), { as_of: exitOf(2), force: true }, { status: 409 });
  assert.equal(early.json.code, 'time_order');
  assert.equal(await reflectionsOf(s.query), before);
  const later = await reflect(s.api, id, { as_of: exitOf(5) });
  assert.deepEqual([later.outcome, later.trades_considered], ['ran', 6]);
  const newest = await reflect(s.api, id, { max_trades: 2, force: true });
  assert.deepEqual([newest.trades_considered, newest.window_start, newest.window_end], [2, entryOf(6), exitOf(7)]);
});

test('suppress omits slots from the note and changes its hash', async () => {
  const { id } = await traded(s.api, 3);
  const whole = await reflect(s.api, id);
  const part = await reflect(s.api, id, { force: true, suppress: ['regime_fit', 'sizing'] });
  assert.deepEqual([part.suppressed, part.note.suppressed], [['sizing', 'regime_fit'], ['sizing', 'regime_fit']]);
  for (const [slot, heading] of Object.entries(HEADINGS))
    assert.equal(part.note.lessons_text.includes(heading), !part.suppressed.includes(slot), slot);
  assert.notEqual(part.note.content_hash, whole.note.content_hash);
  assert.deepEqual((await attempts(`?deployment_id=${id}`)).items[0].suppressed, ['sizing', 'regime_fit']);
});

test('dry_run returns the prompt and stores nothing', async () => {
  const { id } = await traded(s.api, 2);
  const before = await reflectionsOf(s.query);
  const dry = await reflect(s.api, id, { dry_run: true, suppress: ['sizing'] });
  const { prompt, ...rest } = dry;
  assert.deepEqual(rest, {
    outcome: 'dry_run',
    deployment_id: id,
    as_of: exitOf(1),
    due: false,
    reason: 'not_due',
    detail: '2 of 3 trades were closed since the last note',
    forced: false,
    suppressed: ['sizing'],
    trades_considered: 2,
    window_start: entryOf(0),
    window_end: exitOf(1),
    active_note_id: null,
    model: 'builtin',
  });
  assert.ok(prompt.system.includes(HEADINGS.entry_timing) && !prompt.system.includes(HEADINGS.sizing));
  assert.ok(prompt.user.includes('breakout 1') && prompt.tokens > 100);
  assert.deepEqual(await reflect(s.api, id, { dry_run: true, suppress: ['sizing'] }), dry, 'the same bytes again');
  const forced = await reflect(s.api, id, { dry_run: true, force: true });
  assert.deepEqual([forced.due, forced.reason, forced.forced], [false, null, true]);
  const empty = await traded(s.api, 0);
  const none = await reflect(s.api, empty.id, { dry_run: true, force: true });
  assert.deepEqual([none.due, none.reason, none.trades_considered], [false, 'no_trades', 0]);
  await s.query("DELETE FROM daybook.deployments WHERE id = $1", [empty.id]);
  assert.equal(await reflectionsOf(s.query), before);
});

test('an invalid request is rejected by name, and nothing is stored', async () => {
  const { id } = await traded(s.api, 3);
  const before = await reflectionsOf(s.query);
  const refused = async (body, ...expected) => assert.deepEqual(faults(await s.api.post(reflectPath(id), body, { status: 422 })), expected);
  await refused({ force: 'yes', dry_run: 1 }, 'dry_run: wrong_type', 'force: wrong_type');
  await refused({ suppress: ['sizing', 'sizing'] }, 'suppress[1]: duplicate_item');
  await refused({ suppress: ['entry', 'Sizing'], as_of: '2999-01-01T00:00:00Z' }, 'as_of: in_the_future', 'suppress[0]: not_a_choice', 'suppress[1]: not_a_choice');
  await refused({ suppress: Object.keys(HEADINGS) }, 'suppress: too_many');
  await refused({ max_trades: 0 }, 'max_trades: out_of_range');
  await refused({ max_trades: 1001, as_of: 'now' }, 'as_of: invalid_time', 'max_trades: out_of_range');
  await refused({ model: 'x' }, 'model: unknown_field');
  assert.equal((await s.api.post(reflectPath(UNKNOWN_ID), {}, { status: 404 })).json.code, 'not_found');
  assert.equal((await s.api.post(reflectPath(UNKNOWN_ID), { dry_run: true }, { status: 404 })).json.code, 'not_found');
  assert.equal(await reflectionsOf(s.query), before);
  assert.equal((await s.api('POST', reflectPath(id), { status: 200 })).json.outcome, 'ran', 'no body is an empty one');
});

test('attempts are listed newest first, filtered by deployment and outcome, page by page, as of an instant', async () => {
  const { id } = await traded(s.api, 6);
  for (const [as_of, outcome] of [[exitOf(0), 'skipped'], [exitOf(2), 'ran'], [exitOf(3), 'skipped'], [exitOf(5), 'ran']])
    assert.equal((await reflect(s.api, id, { as_of })).outcome, outcome);
  const at = (list) => list.items.map((item) => item.at);
  const all = await attempts(`?deployment_id=${id}`);
  assert.deepEqual(at(all), [exitOf(5), exitOf(3), exitOf(2), exitOf(0)]);
  assert.deepEqual(at(await attempts(`?deployment_id=${id}&outcome=ran`)), [exitOf(5), exitOf(2)]);
  assert.deepEqual(at(await attempts(`?deployment_id=${id}&as_of=${exitOf(3)}`)), [exitOf(3), exitOf(2), exitOf(0)]);
  assert.deepEqual(at(await attempts(`?deployment_id=${id}&as_of=${entryOf(3)}`)), [exitOf(2), exitOf(0)]);
  const first = await attempts(`?deployment_id=${id}&limit=3`);
  const rest = await attempts(`?deployment_id=${id}&limit=3&cursor=${first.next_cursor}`);
  assert.deepEqual([...first.items, ...rest.items], all.items);
  assert.equal(rest.next_cursor, null);
  const everything = await attempts('?limit=200');
  assert.equal(new Set(everything.items.map((i) => i.deployment_id)).size > 1, true);
  assert.deepEqual(everything.items.filter((i) => i.deployment_id === id), all.items);
  assert.deepEqual(faults(await s.api.get('/v1/reflections?outcome=dry_run', { status: 422 })), ['outcome: not_a_choice']);
});

test('metrics count each outcome', async () => {
  const { id } = await traded(s.api, 3);
  const label = (outcome, reason) => `daybook_reflections_total{outcome="${outcome}",reason="${reason}"}`;
  const before = await metricsOf(s.api);
  await reflect(s.api, id);
  await reflect(s.api, id);
  await reflect(s.api, id, { dry_run: true });
  const after = await metricsOf(s.api);
  for (const [name, more] of [[label('ran', ''), 1], [label('skipped', 'not_due'), 1], [label('skipped', 'no_trades'), 0], [label('rejected', 'empty'), 0]])
    assert.equal(after.get(name) - before.get(name), more, name);
});

test('the same Idempotency-Key reflects once and replays the response', async () => {
  const { id } = await traded(s.api, 3);
  const headers = { 'idempotency-key': `reflect-${id}` };
  const first = await s.api.post(reflectPath(id), { force: true }, { status: 200, headers });
  const again = await s.api.post(reflectPath(id), { force: true }, { status: 200, headers });
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await notesOf(s.query, id)).length, 1);
  const other = await s.api.post(reflectPath(id), { force: false }, { status: 409, headers });
  assert.equal(other.json.code, 'idempotency_conflict');
});

test('deleting a deployment deletes its attempts', async () => {
  const { id } = await traded(s.api, 3);
  await reflect(s.api, id);
  await s.api('DELETE', `/v1/deployments/${id}`, { status: 204 });
  assert.deepEqual((await attempts(`?deployment_id=${id}`)).items, []);
  await s.api.post(reflectPath(id), {}, { status: 404 });
});

test('reflecting needs role agent, listing attempts role reader; each owner sees only its own', async () => {
  const database = await s.cluster.createDatabase();
  const url = s.cluster.url(database);
  const service = await startService(url);
  await service.stop(); // it has created the tables
  const [ann, bob, reader, researcher] = [
    await createKey(url, 'ann', 'agent'),
    await createKey(url, 'bob', 'agent'),
    await createKey(url, 'ann', 'reader'),
    await createKey(url, 'ann', 'researcher'),
  ];
  const guarded = await startService(url);
  const base = makeClient(guarded.base);
  try {
    const api = base.as(ann.key);
    const { id } = await traded(api, 3);
    await base.as(reader.key).post(reflectPath(id), {}, { status: 403 });
    await base.as(researcher.key).post(reflectPath(id), {}, { status: 403 });
    await base.as(bob.key).post(reflectPath(id), {}, { status: 404 });
    assert.equal((await reflect(api, id)).outcome, 'ran');
    assert.equal((await base.as(reader.key).get('/v1/reflections', { status: 200 })).json.items.length, 1);
    assert.equal((await base.as(bob.key).get('/v1/reflections', { status: 200 })).json.items.length, 0);
  } finally {
    base.close();
    await guarded.stop();
  }
});

test('a repeated backtest yields the same bytes, also when one tick opens and closes several trades', async () => {
  const { skill_id, version } = await traded(s.api, 0);
  const symbols = ['E', 'B', 'D', 'A', 'C', 'F'];
  const hours = Array.from({ length: 20 }, (_, n) => n);
  const ticks = hours.flatMap((n) => [
    newTick(entryOf(n), { positions: symbols.map((symbol, i) => position(symbol, 100 + i)) }),
    newTick(exitOf(n), { marks: Object.fromEntries(symbols.map((symbol, i) => [symbol, 101 + ((n * 7 + i * 5) % 11) - 5])) }),
  ]);
  const runs = [];
  for (let run = 0; run < 3; run++) {
    const { id } = await deploy(s.api, { skill_id, version, mode: 'sim', at: entryOf(0) });
    for (const tick of ticks) await s.api.post(`/v1/deployments/${id}/ticks`, tick, { status: 200 });
    const prompts = [];
    for (const max_trades of [4, 100]) prompts.push((await reflect(s.api, id, { dry_run: true, max_trades })).prompt);
    const context = (await s.api.get(`/v1/deployments/${id}/context`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
    runs.push([prompts, context, (await reflect(s.api, id, { force: true })).note.lessons_text]);
  }
  assert.deepEqual(runs[1], runs[0]);
  assert.deepEqual(runs[2], runs[0]);
});
