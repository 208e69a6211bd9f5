// Ticks and lessons: a tick may trigger the reflection that is due, and each trade stores the hash of the lessons it was opened under.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy, newTick, position, postTick, putVersion } from '../lib/ledger.mjs';
import { faults } from '../lib/lessons.mjs';
import { hang, say, startModelServer, status } from '../lib/model_server.mjs';
import { entryOf, exitOf, NONE_STORED, notesOf, noteText, reflect, ticksOf, trade, traded, whileHeld } from '../lib/reflect.mjs';
import { addNote, bytesOf, ledgerSuite } from '../lib/ticks.mjs';

const models = await startModelServer();
let plain; // a service on the same database without a model
let impatient; // and one with a short model timeout
const services = [];
const s = ledgerSuite({
  env: { ...models.modelEnv('anthropic'), DAYBOOK_LOOPS: '1' },
  prepare: async () => {
    services.push(await s.another({ env: { DAYBOOK_LOOPS: '1' } }));
    services.push(await s.another({ env: { ...models.modelEnv('anthropic'), DAYBOOK_MODEL_TIMEOUT_MS: '1500', DAYBOOK_LOOPS: '1' } }));
    [plain, impatient] = services.map(({ base }) => makeClient(base));
  },
});
after(async () => {
  plain?.close();
  impatient?.close();
  for (const service of services) await service.stop();
  await models.close();
});

const path = (id, query = '?reflect=auto') => `/v1/deployments/${id}/ticks${query}`;
const post = async (api, id, tick, options) => (await api.post(path(id), tick, { status: 200, ...options })).json;
/** A deployment that is one tick before its third closed trade, and that tick. */
async function nearlyDue(options) {
  const { id } = await traded(plain, 2, options);
  const [entry, exit] = ticksOf(2);
  await postTick(plain, id, entry.tick_at, entry.portfolio);
  return { id, exit };
}

test('a tick that makes a reflection due triggers it, as of the tick', async () => {
  const { id } = await traded(plain, 2);
  const [entry, exit] = ticksOf(2);
  const opened = await post(plain, id, entry);
  assert.deepEqual([opened.reflection_due, opened.reflection], [false, null]);
  const { reflection, ...closed } = await post(plain, id, exit);
  assert.equal(closed.reflection_due, true);
  assert.deepEqual([reflection.outcome, reflection.as_of, reflection.trades_considered, reflection.model_used], ['ran', exitOf(2), 3, 'builtin']);
  assert.deepEqual((await notesOf(s.query, id)).map((n) => n.id), [reflection.note.id]);
  const kept = (await plain.post(path(id, ''), exit, { status: 200 })).json;
  assert.deepEqual(kept, { ...closed, replayed: true }, 'without the parameter the response is unchanged');
});

test('a replayed tick gets the same response, and its reflection does not run twice', async () => {
  const { id, exit } = await nearlyDue();
  const first = await post(plain, id, exit);
  assert.equal(first.reflection.outcome, 'ran');
  const again = await post(plain, id, exit);
  assert.deepEqual([again.replayed, again.snapshot_id, again.reflection_due], [true, first.snapshot_id, true]);
  assert.deepEqual([again.reflection.outcome, again.reflection.reason, again.reflection.active_note_id], ['skipped', 'not_due', first.reflection.note.id]);
  await trade(plain, id, 3, 6);
  await reflect(plain, id);
  const late = await post(plain, id, exit);
  assert.deepEqual([late.replayed, late.reflection.outcome, late.reflection.reason], [true, 'skipped', 'time_order'], 'there is a later note by now');
});

test('a tick stored without its reflection triggers it on retry', async () => {
  const { id, exit } = await nearlyDue();
  const first = (await plain.post(path(id, ''), exit, { status: 200 })).json;
  assert.deepEqual([first.reflection_due, 'reflection' in first], [true, false]);
  const again = await post(plain, id, exit);
  assert.deepEqual([again.replayed, again.reflection.outcome], [true, 'ran']);
});

test('a failing model does not hide the stored tick', async () => {
  for (const [behaviour, reason, api] of [
    [status(400), 'model_failed', s.api],
    [hang(), 'model_timeout', impatient],
  ]) {
    const { id, exit } = await nearlyDue();
    models.model.reset();
    models.model.always(behaviour);
    const answer = await post(api, id, exit);
    assert.deepEqual([answer.replayed, answer.ops.at(-1).op], [false, 'close_trade']);
    assert.deepEqual([answer.reflection.outcome, answer.reflection.reason, answer.reflection.note], ['model_failed', reason, null]);
    models.model.reset();
    models.model.next(say(noteText()));
    const again = await post(s.api, id, exit);
    assert.deepEqual([again.replayed, again.reflection.outcome], [true, 'ran'], 'a retry tries again');
  }
});

test('daily: a failing model is retried once an hour, not on each tick; with force it is retried immediately', async () => {
  const { id } = await traded(plain, 2, { reflection: { cadence: 'daily' } });
  const at = (minutes, seconds = 0) => new Date(Date.UTC(2026, 5, 2, 23, minutes, seconds)).toISOString().replace('.000', '');
  const outcomes = async (minutes, seconds) => {
    const { reflection_due, reflection } = await post(s.api, id, newTick(at(minutes, seconds)));
    return [reflection_due, reflection.outcome, reflection.reason, models.model.requests.length];
  };
  models.model.reset();
  models.model.always(say('not a note'));
  assert.deepEqual(await outcomes(30), [true, 'rejected', 'missing_slot', 1]);
  for (const minutes of [31, 45, 60]) assert.deepEqual(await outcomes(minutes), [true, 'skipped', 'not_due', 1]);
  assert.deepEqual(await outcomes(89, 59), [true, 'skipped', 'not_due', 1], 'a new day, but less than an hour later');
  const { reason, detail } = await reflect(s.api, id);
  assert.deepEqual([reason, detail], ['not_due', `the attempt at ${at(30)} failed; the next one is due an hour later`]);
  assert.equal((await reflect(s.api, id, { dry_run: true })).due, false);
  models.model.always(status(400));
  assert.deepEqual(await outcomes(90), [true, 'model_failed', 'model_failed', 2]);
  assert.deepEqual(await outcomes(91), [true, 'skipped', 'not_due', 2]);
  assert.equal((await reflect(s.api, id, { force: true })).outcome, 'model_failed');
  assert.equal(models.model.requests.length, 3);
  models.model.always(say(noteText()));
  assert.deepEqual(await outcomes(151), [true, 'ran', null, 4]);
});

test('per_n_trades: a failed reflection can be retried immediately', async () => {
  const { id } = await traded(plain, 3);
  models.model.reset();
  models.model.next(say('not a note'), say(noteText()));
  assert.deepEqual([(await reflect(s.api, id)).outcome, (await reflect(s.api, id)).outcome], ['rejected', 'ran']);
});

test('a concurrent reflection or a later note is reported in the response to the tick', async () => {
  const { id, exit } = await nearlyDue();
  models.model.reset();
  models.model.next(hang());
  const running = s.api.post(`/v1/deployments/${id}/reflect`, { force: true });
  await models.model.asked(1);
  const beside = await post(s.api, id, exit);
  assert.deepEqual([beside.replayed, beside.reflection.outcome, beside.reflection.reason], [false, 'skipped', 'reflection_running']);
  assert.match(beside.reflection.detail, /at most \d+ s more/);
  models.model.release(say(noteText()));
  await running;

  const other = await nearlyDue();
  await addNote(s.query, other.id, { at: '2026-07-01T00:00:00Z' });
  const late = await post(s.api, other.id, other.exit);
  assert.deepEqual([late.replayed, late.reflection.outcome, late.reflection.reason], [false, 'skipped', 'time_order']);
});

test('a reflection that cannot be stored is reported in the response to the tick, which is stored', async () => {
  const { id, exit } = await nearlyDue();
  const slow = await s.another({ env: {}, args: ['--request-timeout-ms', '1500', '--loops', '1', '--write-connections', '1', '--slow-connections', '1'] });
  const api = makeClient(slow.base);
  try {
    // A connection opened while the table is locked would wait for the lock, so every connection is opened before.
    await reflect(api, (await traded(api, 3)).id);
    await whileHeld(s.cluster, s.database, NONE_STORED, async () => {
      const answer = await post(api, id, exit);
      assert.deepEqual([answer.replayed, answer.reflection_due, answer.reflection.outcome], [false, true, 'failed']);
      assert.match(answer.reflection.reason, /^(request_timeout|database_unavailable|internal)$/);
    });
    const again = await post(api, id, exit);
    assert.deepEqual([again.replayed, again.reflection.outcome], [true, 'ran']);
  } finally {
    api.close();
    await slow.stop();
  }
});

test('the same Idempotency-Key replays the tick and its reflection', async () => {
  const { id, exit } = await nearlyDue();
  const headers = { 'idempotency-key': `tick-${id}` };
  models.model.reset();
  models.model.next(say(noteText()));
  const first = await s.api.post(path(id), exit, { status: 200, headers });
  const again = await s.api.post(path(id), exit, { status: 200, headers });
  assert.equal(first.json.reflection.outcome, 'ran');
  assert.deepEqual([again.text, again.headers['idempotency-replayed'], models.model.requests.length], [first.text, 'true', 1]);
  assert.equal((await s.api.post(path(id, ''), exit, { status: 409, headers })).json.code, 'idempotency_conflict', 'a different request');
});

test('a reflection without an outcome is not stored for the Idempotency-Key: the same request reflects', async () => {
  const stopping = async ({ id, exit, headers }) => {
    const service = await s.another({ env: { ...models.modelEnv('anthropic'), DAYBOOK_LOOPS: '1', DAYBOOK_STOP_TIMEOUT_MS: '300' } });
    const api = makeClient(service.base);
    models.model.next(hang());
    const stopped = api.post(path(id), exit, { headers });
    await models.model.asked(1);
    await service.stop();
    api.close();
    return stopped;
  };
  const another = async ({ id, exit, headers }) => {
    models.model.next(hang());
    const running = s.api.post(`/v1/deployments/${id}/reflect`, { force: true });
    await models.model.asked(1);
    const beside = await s.api.post(path(id), exit, { headers });
    models.model.release(say('not a note'));
    await running;
    return beside;
  };
  for (const [broken, outcome, reason] of [
    [stopping, 'failed', 'shutting_down'],
    [another, 'skipped', 'reflection_running'],
  ]) {
    const due = await nearlyDue();
    const headers = { 'idempotency-key': `${reason}-${due.id}` };
    models.model.reset();
    const first = await broken({ ...due, headers });
    assert.deepEqual([first.status, first.json.replayed, first.json.reflection.outcome, first.json.reflection.reason], [200, false, outcome, reason]);
    models.model.next(say(noteText()));
    const again = await s.api.post(path(due.id), due.exit, { status: 200, headers });
    assert.deepEqual([again.json.replayed, again.json.reflection.outcome, again.headers['idempotency-replayed']], [true, 'ran', undefined]);
    const third = await s.api.post(path(due.id), due.exit, { status: 200, headers });
    assert.deepEqual([third.text, third.headers['idempotency-replayed']], [again.text, 'true']);
  }
});

test('an invalid tick or reflect option is rejected and stores nothing', async () => {
  const { id, exit } = await nearlyDue();
  const before = await bytesOf(s.query, id);
  assert.deepEqual(faults(await plain.post(path(id, '?reflect=always'), exit, { status: 422 })), ['reflect: not_a_choice']);
  assert.deepEqual(faults(await plain.post(path(id), { ...exit, portfolio: undefined }, { status: 422 })), ['portfolio: required']);
  for (const [hash, code] of [
    ['0123456789abcde', 'invalid_character'],
    ['None', 'invalid_character'],
    ['0123456789abcdef0', 'too_long'],
    ['0123456789ABCDEF', 'invalid_character'],
    ['0123456789abcdeg', 'invalid_character'],
    [12, 'wrong_type'],
  ])
    assert.deepEqual(faults(await plain.post(path(id, ''), { ...exit, lessons_hash: hash }, { status: 422 })), [`lessons_hash: ${code}`]);
  assert.equal(await bytesOf(s.query, id), before);
});

// ---- the lessons a trade was opened under ----

/** Opens a trade and returns its lessons hash. */
async function stamped(id, n, more = {}) {
  const [entry, exit] = ticksOf(n);
  const { ops } = (await plain.post(path(id, ''), { ...entry, ...more }, { status: 200 })).json;
  await plain.post(path(id, ''), exit, { status: 200 });
  return ops.find((op) => op.op === 'open_trade').entry_lessons_hash;
}

test('a trade has the hash of the note that was active at its entry', async () => {
  const { id } = await traded(plain, 3);
  const { note } = await reflect(plain, id);
  assert.equal(await stamped(id, 3), note.content_hash);
  const ablated = await reflect(plain, id, { force: true, suppress: ['sizing'] });
  assert.equal(await stamped(id, 4), ablated.note.content_hash);
  const [{ hashes }] = await s.query('SELECT array_agg(entry_lessons_hash ORDER BY entry_tick_at) AS hashes FROM daybook.trade_history WHERE deployment_id = $1', [id]);
  assert.deepEqual(hashes, [null, null, null, note.content_hash, ablated.note.content_hash]);
});

test('a tick may name the lessons the agent actually used', async () => {
  const { id } = await traded(plain, 3);
  await reflect(plain, id);
  const lessons_hash = 'abcdef0123456789';
  assert.equal(await stamped(id, 3, { lessons_hash }), lessons_hash);
  assert.equal(await stamped(id, 4, { lessons_hash: 'none' }), null, 'the agent had none');
  const [entry] = ticksOf(5);
  const first = (await plain.post(path(id, ''), { ...entry, lessons_hash }, { status: 200 })).json;
  const snapshot = (await plain.get(`/v1/decision_snapshots/${first.snapshot_id}`, { status: 200 })).json;
  assert.equal(snapshot.input.lessons_hash, lessons_hash);
  assert.equal((await plain.post(path(id, ''), { ...entry, lessons_hash }, { status: 200 })).json.replayed, true);
  for (const other of [{}, { lessons_hash: '0000000000000000' }])
    assert.equal((await plain.post(path(id, ''), { ...entry, ...other }, { status: 409 })).json.code, 'tick_conflict');
});

test('with memory disabled no reflection is due, and none runs unless forced', async () => {
  const { id } = await traded(plain, 2, { memory: { enabled: false, reflection: { cadence: 'per_n_trades', every_n_trades: 1 } } });
  const [entry, exit] = ticksOf(2);
  await plain.post(path(id, ''), entry, { status: 200 });
  const { reflection_due, reflection } = (await plain.post(path(id), exit, { status: 200 })).json;
  assert.deepEqual([reflection_due, reflection], [false, null]);
  const { outcome, reason } = await reflect(plain, id);
  assert.deepEqual([outcome, reason], ['skipped', 'cadence_off']);
  assert.equal((await reflect(plain, id, { force: true })).outcome, 'ran');
});

test("a deployment without its own note uses its skill's; with memory disabled it uses none", async () => {
  const HASH = 'aaaabbbbccccdddd';
  const addShared = (skill_id, at) =>
    s.query(
      `INSERT INTO daybook.reflection_notes (owner, id, skill_id, version, status, generated_at, lessons_text, content_hash, model_used)
       VALUES ('local', gen_random_uuid(), $1, 'v1', 'active', $2, 'Wait for the retest', $3, 'builtin')`,
      [skill_id, at, HASH],
    );
  const one = await traded(plain, 0);
  await addShared(one.skill_id, entryOf(1));
  assert.equal(await stamped(one.id, 0), null, 'it came later');
  assert.equal(await stamped(one.id, 1), HASH);
  await putVersion(plain, { skill_id: one.skill_id, version: 'v2' });
  const other = await deploy(plain, { skill_id: one.skill_id, version: 'v2', mode: 'sim', at: entryOf(0) });
  assert.equal(await stamped(other.id, 1), null, 'of another version');
  const { note } = await reflect(plain, one.id, { force: true });
  assert.equal(await stamped(one.id, 2), note.content_hash, 'its own comes first');

  const blind = await traded(plain, 3, { memory: { enabled: false } });
  await addShared(blind.skill_id, entryOf(0));
  assert.equal(await stamped(blind.id, 3), null);
  await reflect(plain, blind.id);
  assert.equal(await stamped(blind.id, 4), null, 'its memory is disabled');
});

test('each tick of a bulk body gets its own lessons hash', async () => {
  const { id } = await traded(plain, 3);
  const { note } = await reflect(plain, id);
  const ticks = [newTick(entryOf(3), { positions: [position('BTC', 100)] }), newTick(exitOf(3), { positions: [position('BTC', 100), position('ETH', 50)], lessons_hash: 'abcdef0123456789' })];
  const body = ticks.map((tick) => `${JSON.stringify(tick)}\n`).join('');
  await plain.post(`/v1/deployments/${id}/ticks/bulk`, body, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  const rows = await s.query("SELECT symbol, entry_lessons_hash AS hash FROM daybook.trade_history WHERE deployment_id = $1 AND status = 'open' ORDER BY symbol", [id]);
  assert.deepEqual(rows, [{ symbol: 'BTC', hash: note.content_hash }, { symbol: 'ETH', hash: 'abcdef0123456789' }]);
});
