// Lessons in the context: which note is shown, at which instants, and never truncated.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from '../lib/lessons.mjs';
import { at, ledgerRows, openTrade } from '../lib/ledger_rows.mjs';
import { addNote, lessonsHash, noteText } from '../lib/notes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const note = (id, changes) => addNote(s.query, id, changes);
const context = async (id, query = '') => (await s.api.get(`/v1/deployments/${id}/context${query}`, { status: 200 })).json;
const snapshot = async (id, query = '') => (await s.api.get(`/v1/decision_snapshots/${id}/context${query}`, { status: 200 })).json;
/** Another deployment of the same version. */
const sibling = async (id) => {
  const other = await rows.deployment();
  await s.query('update daybook.deployments d set skill_id = o.skill_id from daybook.deployments o where d.id = $1 and o.id = $2', [other, id]);
  return other;
};

test('the active note is the first section and leaves the others unchanged', async () => {
  const id = await rows.deployment();
  await rows.trade(id, { exit_tick_at: at(1) });
  await rows.tick(id, at(2), { executed_today: 1, open: [openTrade()] });
  const before = await context(id);
  assert.equal(before.lessons, null);
  const text = noteText({ sizing: ['Half the size won 41 times.'], exit_timing: ['Exits kept 0.4 of MFE (n=30).'] });
  const note_id = await note(id, { generated_at: at(2), text });
  const after = await context(id);
  const { tokens, ...lessons } = after.lessons;
  assert.deepEqual(lessons, { note_id, scope: 'deployment', lessons_hash: lessonsHash(text), shown: true });
  assert.ok(after.markdown.endsWith(`\n\n${before.markdown}`));
  assert.ok(after.markdown.includes('- Half the size won 41 times.') && after.markdown.includes('- Exits kept 0.4 of MFE (n=30).'));
  assert.equal(after.tokens, before.tokens + tokens + 1, 'the empty line between them is counted');
  assert.deepEqual({ ...after, markdown: 0, tokens: 0, lessons: 0 }, { ...before, markdown: 0, tokens: 0, lessons: 0 });
  const without = await s.api.get(`/v1/deployments/${id}/context?lessons=false`, { status: 200 });
  assert.deepEqual(without.json, before);
  const plain = await s.api.get(`/v1/deployments/${id}/context`, { headers: { accept: 'text/markdown' }, status: 200 });
  assert.equal(plain.text, after.markdown);
  assert.deepEqual(faults(await s.api.get(`/v1/deployments/${id}/context?lessons=maybe`, { status: 422 })), ['lessons: wrong_type']);
});

test('a note is shown from its own instant until the next note', async () => {
  const id = await rows.deployment();
  await rows.tick(id, at(0));
  const first = await note(id, { generated_at: at(10) });
  const second = await note(id, { generated_at: at(20) });
  await rows.tick(id, at(30));
  const seen = async (instant) => (await context(id, `?as_of=${instant}`)).lessons?.note_id ?? null;
  for (const [instant, known] of [[at(0), null], [at(9, 59), null], [at(10), first], [at(19, 59), first], [at(20), second], [at(999), second]])
    assert.equal(await seen(instant), known, instant);
  assert.equal((await context(id)).lessons.note_id, second, 'a simulation\'s now is its last tick');
});

test('of two notes at the same instant, the superseding one is shown', async () => {
  const id = await rows.deployment();
  const notes = [];
  for (let n = 0; n < 5; n++) notes.push(await note(id, { generated_at: at(10) }));
  await rows.tick(id, at(11));
  assert.equal((await context(id)).lessons.note_id, notes.at(-1));
  assert.equal((await context(id, `?as_of=${at(10)}`)).lessons.note_id, notes.at(-1));
});

test('a deployment without a note shows the note of its skill and version until it has its own', async () => {
  const id = await rows.deployment();
  const other = await sibling(id);
  const stranger = await rows.deployment();
  const promoted = await note(id, { scope: 'skill', generated_at: at(5) });
  await note(id, { scope: 'skill', generated_at: at(50) });
  const own = await note(id, { generated_at: at(10) });
  const seen = async (deployment, instant) => {
    const { lessons } = await context(deployment, `?as_of=${instant}`);
    return lessons && [lessons.note_id, lessons.scope];
  };
  assert.equal(await seen(id, at(4)), null);
  assert.deepEqual(await seen(id, at(5)), [promoted, 'skill']);
  assert.deepEqual(await seen(id, at(10)), [own, 'deployment']);
  assert.deepEqual(await seen(id, at(60)), [own, 'deployment']);
  assert.deepEqual(await seen(other, at(10)), [promoted, 'skill']);
  assert.equal(await seen(stranger, at(10)), null);
});

test('a short budget drops trades first, then positions, then all lessons at once, then the activity', async () => {
  const id = await rows.deployment({ k: 5 });
  for (let n = 0; n < 5; n++) await rows.trade(id, { entry_tick_at: at(n), exit_tick_at: at(n + 1) });
  await rows.tick(id, at(60), { executed_today: 4, open: ['A', 'B'].map((symbol) => openTrade({ symbol })) });
  await note(id, { generated_at: at(60) });
  const whole = await context(id);
  assert.ok(whole.lessons.shown && whole.recent_trades.length === 5);
  const section = whole.markdown.slice(0, whole.markdown.indexOf('\n\n## Recent activity') + 1);
  const states = [];
  for (let budget = 1; budget <= whole.tokens; budget += 5) {
    const cut = await context(id, `?max_tokens=${budget}`);
    assert.ok(cut.tokens <= budget);
    assert.deepEqual({ ...cut.lessons, shown: true }, whole.lessons, 'the note is named even if its lessons are not shown');
    assert.equal(cut.markdown.startsWith(section), cut.lessons.shown);
    assert.equal(cut.markdown.includes('### Sizing'), cut.lessons.shown);
    const activity = cut.markdown.includes('## Recent activity');
    if (cut.lessons.shown && cut.open_positions.length + cut.recent_trades.length > 0) assert.ok(activity);
    states.push(`${activity ? 'a' : '-'}${cut.lessons.shown ? 'l' : '-'}`);
  }
  assert.ok(states.indexOf('a-') >= 0 && states.lastIndexOf('a-') < states.indexOf('al'), states.join(' '));
});

test('the same state yields the same bytes and 304, a new note yields new ones', async () => {
  const id = await rows.deployment();
  await rows.tick(id, at(2));
  await note(id, { generated_at: at(1) });
  const path = `/v1/deployments/${id}/context`;
  const first = await s.api.get(path, { status: 200 });
  const together = await Promise.all(Array.from({ length: 50 }, () => s.api.get(path, { status: 200 })));
  for (const { text } of together) assert.equal(text, first.text);
  const known = { headers: { 'if-none-match': first.headers.etag } };
  await s.api.get(path, { ...known, status: 304 });
  await note(id, { generated_at: at(2) });
  await s.api.get(path, { ...known, status: 200 });
  await s.api.get(`${path}?as_of=${at(1)}`, { ...known, status: 200 });
});

test('with memory disabled no lessons are shown', async () => {
  const id = await rows.deployment({ enabled: false });
  await note(id, { generated_at: at(1) });
  await rows.tick(id, at(2));
  const { lessons, markdown, tokens } = await context(id);
  assert.deepEqual({ lessons, markdown, tokens }, { lessons: null, markdown: '', tokens: 0 });
});

test('the context of a snapshot has the note that was active before its tick, whatever was written later under whatever date', async () => {
  const id = await rows.deployment();
  const seen = [];
  const tick = async (instant) => {
    const before = await s.api.get(`/v1/deployments/${id}/context?as_of=${instant}`, { status: 200 });
    seen.push([await rows.tick(id, instant, { open: [openTrade({ symbol: `S${seen.length}` })] }), before.text, before.json.lessons?.note_id ?? null]);
  };
  await tick(at(0));
  const promoted = await note(id, { scope: 'skill', generated_at: at(5) });
  await tick(at(10));
  const after = await note(id, { generated_at: at(10) }); // like a reflection that the tick itself triggered
  await tick(at(20));
  const meanwhile = await note(id, { generated_at: at(30) }); // at the instant of the next tick, but stored before it
  await tick(at(30));
  assert.deepEqual(seen.map(([, , known]) => known), [null, promoted, after, meanwhile]);
  await note(id, { scope: 'skill', generated_at: at(5) });
  await note(id, { generated_at: at(30) });
  await note(id, { generated_at: at(31) });
  for (const [snapshot_id, text, known] of seen) {
    assert.equal((await s.api.get(`/v1/decision_snapshots/${snapshot_id}/context`, { status: 200 })).text, text);
    assert.equal((await snapshot(snapshot_id)).lessons?.note_id ?? null, known);
    assert.equal((await snapshot(snapshot_id, '?lessons=false')).lessons, null);
  }
});
