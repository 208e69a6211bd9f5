// The lessons segment of a system prompt: which note, at which instant, without which slots, and under which hash.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { deploy, position, postTick, putVersion } from '../lib/ledger.mjs';
import { at, ledgerRows } from '../lib/ledger_rows.mjs';
import { addNote, lessonsHash, noteText, SLOTS } from '../lib/notes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const note = (id, changes) => addNote(s.query, id, changes);
const path = (id, query = '') => `/v1/deployments/${id}/lessons_segment${query}`;
const segment = async (id, query) => (await s.api.get(path(id, query), { status: 200 })).json;
const BULLETS = { entry_timing: ['Mornings win (n=20).'], sizing: ['Small wins (n=20).', 'Large loses (n=21).'], exit_timing: ['Exits kept 0.4 of MFE (n=30).'] };

test('without a note the segment is empty and costs no tokens', async () => {
  const id = await rows.deployment({ created_at: at(-5) });
  assert.deepEqual(await segment(id), {
    deployment_id: id,
    as_of: at(-5),
    enabled: true,
    note_id: null,
    scope: null,
    lessons_hash: null,
    suppressed: [],
    text: '',
    lessons_text: null,
    tokens: 0,
  });
  assert.deepEqual((await segment(id, '?suppress=sizing')).suppressed, ['sizing']);
  assert.equal((await s.api.get(path(id), { headers: { accept: 'text/markdown' }, status: 200 })).text, '');
  await s.api.get(path(UNKNOWN_ID), { status: 404 });
});

test('the active note is labelled as signal and matches the context', async () => {
  const id = await rows.deployment();
  const text = noteText(BULLETS);
  const note_id = await note(id, { generated_at: at(1), text });
  await rows.tick(id, at(2));
  const { json } = await s.api.get(path(id), { status: 200 });
  assert.deepEqual(
    { ...json, text: 0, tokens: 0 },
    { deployment_id: id, as_of: at(2), enabled: true, note_id, scope: 'deployment', lessons_hash: lessonsHash(text), suppressed: [], text: 0, lessons_text: text, tokens: 0 },
  );
  assert.match(json.text, /signal, not strategy/i);
  assert.ok(json.text.includes(text) && json.tokens > 0);
  const { markdown, lessons } = (await s.api.get(`/v1/deployments/${id}/context`, { status: 200 })).json;
  assert.equal(markdown, json.text);
  assert.deepEqual(lessons, { note_id, scope: 'deployment', lessons_hash: json.lessons_hash, tokens: json.tokens, shown: true });
  const plain = await s.api.get(path(id), { headers: { accept: 'text/markdown' }, status: 200 });
  assert.equal(plain.text, json.text);
  assert.match(plain.headers['content-type'], /^text\/markdown; charset=utf-8$/i);
});

test('suppressed slots are omitted, and the hash is that of the remaining text', async () => {
  const id = await rows.deployment();
  await note(id, { generated_at: at(1), text: noteText(BULLETS) });
  await rows.tick(id, at(2));
  const hashes = new Set([(await segment(id)).lessons_hash]);
  for (const slots of [...SLOTS.map((slot) => [slot]), ['sizing', 'exit_timing'], SLOTS.slice(0, 4)]) {
    const left = noteText(BULLETS, slots);
    for (const asked of [slots, [...slots].reverse()]) {
      const { suppressed, lessons_text, lessons_hash, text } = await segment(id, `?suppress=${asked}`);
      assert.deepEqual({ suppressed, lessons_text, lessons_hash }, { suppressed: slots, lessons_text: left, lessons_hash: lessonsHash(left) });
      assert.ok(text.includes(left));
      for (const slot of slots) for (const bullet of BULLETS[slot] ?? []) assert.ok(!text.includes(bullet));
    }
    hashes.add(lessonsHash(left));
  }
  assert.equal(hashes.size, 8, 'each text has its own');
});

test('a note written with suppressed slots lists them, and with all of them suppressed it is empty', async () => {
  const id = await rows.deployment();
  const note_id = await note(id, { generated_at: at(1), text: noteText(BULLETS, ['sizing']), suppressed: ['sizing'] });
  await rows.tick(id, at(2));
  assert.deepEqual((await segment(id)).suppressed, ['sizing']);
  assert.deepEqual((await segment(id, '?suppress=regime_fit,entry_timing')).suppressed, ['entry_timing', 'sizing', 'regime_fit']);
  const { lessons_hash, text, lessons_text, tokens, note_id: still } = await segment(id, `?suppress=${SLOTS.filter((slot) => slot !== 'sizing')}`);
  assert.deepEqual({ lessons_hash, text, lessons_text, tokens, still }, { lessons_hash: null, text: '', lessons_text: null, tokens: 0, still: note_id });
});

test('unknown, repeated and too many slot names are rejected', async () => {
  const id = await rows.deployment();
  const bad = async (query) => faults(await s.api.get(path(id, query), { status: 422 }));
  assert.deepEqual(await bad('?suppress=sizing,leverage,mood'), ['suppress[1]: not_a_choice', 'suppress[2]: not_a_choice']);
  assert.deepEqual(await bad(`?suppress=${SLOTS}`), ['suppress: too_many']);
  assert.deepEqual(await bad('?suppress=sizing,sizing'), ['suppress[1]: duplicate_item']);
  assert.deepEqual(await bad('?as_of=noon&k=3'), ['as_of: invalid_time', 'k: unknown_field']);
});

test('as_of returns the lessons of that instant; a promoted note serves deployments without their own', async () => {
  const id = await rows.deployment();
  const own = await note(id, { generated_at: at(10) });
  const other = await rows.deployment();
  await s.query('update daybook.deployments d set skill_id = o.skill_id from daybook.deployments o where d.id = $1 and o.id = $2', [other, id]);
  const promoted = (await s.api.post(`/v1/reflection_notes/${own}/promote`, { at: at(20) }, { status: 201 })).json.id;
  const seen = async (deployment, instant) => {
    const { as_of, note_id, scope } = await segment(deployment, `?as_of=${instant}`);
    assert.equal(as_of, instant);
    return [note_id, scope];
  };
  assert.deepEqual(await seen(id, at(9)), [null, null]);
  assert.deepEqual(await seen(id, at(30)), [own, 'deployment']);
  assert.deepEqual(await seen(other, at(19)), [null, null]);
  assert.deepEqual(await seen(other, at(20)), [promoted, 'skill']);
});

test('the same lessons yield the same bytes and 304, whatever else happens', async () => {
  const id = await rows.deployment();
  await note(id, { generated_at: at(1) });
  await rows.tick(id, at(2));
  const plain = { accept: 'text/markdown' };
  const first = await s.api.get(path(id), { headers: plain, status: 200 });
  await rows.tick(id, at(3));
  await rows.trade(id, { exit_tick_at: at(3) });
  await s.api.get(path(id), { headers: { ...plain, 'if-none-match': first.headers.etag }, status: 304 });
  const whole = await s.api.get(path(id), { status: 200 });
  await s.api.get(path(id), { headers: { 'if-none-match': whole.headers.etag }, status: 304 });
  await note(id, { generated_at: at(3) });
  await s.api.get(path(id), { headers: { ...plain, 'if-none-match': first.headers.etag }, status: 200 });
});

test('with memory disabled the segment is empty', async () => {
  const id = await rows.deployment({ enabled: false });
  await note(id, { generated_at: at(1) });
  await rows.tick(id, at(2));
  const { enabled, note_id, scope, lessons_hash, text, lessons_text, tokens } = await segment(id);
  assert.deepEqual(
    { enabled, note_id, scope, lessons_hash, text, lessons_text, tokens },
    { enabled: false, note_id: null, scope: null, lessons_hash: null, text: '', lessons_text: null, tokens: 0 },
  );
});

test('a trade stores the hash of the lessons its agent was shown, complete or with suppressed slots', async () => {
  const { skill_id, version } = await putVersion(s.api, { at: at(-60) });
  const { id } = await deploy(s.api, { skill_id, version, mode: 'sim', at: at(-60) });
  await postTick(s.api, id, at(0), { positions: [position('BTC', 100)] });
  await postTick(s.api, id, at(1), { positions: [], marks: { BTC: 101 } });
  const { note } = (await s.api.post(`/v1/deployments/${id}/reflect`, { force: true }, { status: 200 })).json;
  const whole = await segment(id, `?as_of=${at(2)}`);
  const part = await segment(id, `?as_of=${at(2)}&suppress=sizing`);
  assert.deepEqual([whole.note_id, whole.lessons_hash, whole.lessons_text], [note.id, note.content_hash, note.lessons_text]);
  await postTick(s.api, id, at(2), { positions: [position('BTC', 100)] });
  await postTick(s.api, id, at(3), { positions: [position('BTC', 100), position('ETH', 10)], lessons_hash: part.lessons_hash });
  const { items } = (await s.api.get(`/v1/trade_history?deployment_id=${id}&sort=entry_asc`, { status: 200 })).json;
  assert.deepEqual(items.map((t) => t.entry_lessons_hash), [null, whole.lessons_hash, part.lessons_hash]);
  assert.notEqual(whole.lessons_hash, part.lessons_hash);
});

test('each tick of a bulk body gets the lessons of its instant: its own note\'s, the skill\'s, the previous note\'s, none', async () => {
  const { skill_id, version } = await putVersion(s.api, { at: at(-60) });
  const { id } = await deploy(s.api, { skill_id, version, mode: 'sim', at: at(-60) });
  await note(id, { scope: 'skill', generated_at: at(10) });
  await note(id, { scope: 'skill', generated_at: at(20) });
  await note(id, { generated_at: at(30) });
  await note(id, { generated_at: at(40) });
  const minutes = [5, 9, 10, 15, 20, 25, 29, 30, 35, 40, 45];
  const lines = minutes.map((m) => JSON.stringify({ tick_at: at(m), portfolio: { equity_usd: 1000, positions: [position(`S${m}`, 100)] }, marks: Object.fromEntries(minutes.map((o) => [`S${o}`, 100])) }));
  await s.api.post(`/v1/deployments/${id}/ticks/bulk`, `${lines.join('\n')}\n`, { headers: { 'content-type': 'application/x-ndjson' }, status: 200 });
  const { items } = (await s.api.get(`/v1/trade_history?deployment_id=${id}&limit=50`, { status: 200 })).json;
  const stamped = new Map(items.map((trade) => [trade.symbol, trade.entry_lessons_hash]));
  const hashes = new Set();
  for (const m of minutes) {
    const { lessons_hash } = await segment(id, `?as_of=${at(m)}`);
    assert.equal(stamped.get(`S${m}`), lessons_hash, at(m));
    hashes.add(lessons_hash);
  }
  assert.equal(hashes.size, 5, 'none and four notes');
});
