// Reflection notes: history, differences between notes, point-in-time reads, and promotion to a skill.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { at, ledgerRows } from '../lib/ledger_rows.mjs';
import { addNote, lessonsHash, noteText } from '../lib/notes.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const note = (id, changes) => addNote(s.query, id, changes);
const list = async (query) => (await s.api.get(`/v1/reflection_notes${query}`, { status: 200 })).json;
const ids = async (query) => (await list(query)).items.map(({ id }) => id);
const get = async (id, query = '') => (await s.api.get(`/v1/reflection_notes/${id}${query}`, { status: 200 })).json;
const promote = (id, body = {}, options = { status: 201 }) => s.api.post(`/v1/reflection_notes/${id}/promote`, body, options);
const versionOf = async (id) => (await s.query('select skill_id, version from daybook.deployments where id = $1', [id]))[0];
const UNCHANGED = { added: [], removed: [], kept: 0 };

test('a note is returned in full, with its changes against the previous one', async () => {
  const id = await rows.deployment();
  const { skill_id } = await versionOf(id);
  const first = await note(id, { generated_at: at(10), text: noteText({ sizing: ['Small wins (n=20).', 'Large loses (n=21).'], regime_fit: ['Chop loses (n=9).'] }) });
  const text = noteText({ sizing: ['Small wins (n=20).', 'Middling wins too (n=25).'] }, ['regime_fit']);
  const second = await note(id, {
    generated_at: at(20),
    text,
    window_start: at(0),
    window_end: at(19),
    trades_considered: 41,
    model_used: 'some-model',
    input_tokens: 1200,
    output_tokens: 300,
    cost_usd: '0.0081',
    suppressed: ['regime_fit'],
  });
  assert.deepEqual(await get(second), {
    id: second,
    skill_id,
    version: '1',
    deployment_id: id,
    scope: 'deployment',
    status: 'active',
    generated_at: at(20),
    superseded_at: null,
    window_start: at(0),
    window_end: at(19),
    trades_considered: 41,
    lessons_text: text,
    content_hash: lessonsHash(text),
    model_used: 'some-model',
    input_tokens: 1200,
    output_tokens: 300,
    cost_usd: 0.0081,
    suppressed: ['regime_fit'],
    promoted_from: null,
    previous_id: first,
    diff: {
      entry_timing: UNCHANGED,
      sizing: { added: ['Middling wins too (n=25).'], removed: ['Large loses (n=21).'], kept: 1 },
      symbol_selection: UNCHANGED,
      exit_timing: UNCHANGED,
      regime_fit: { added: [], removed: ['Chop loses (n=9).'], kept: 0 },
    },
  });
  const { previous_id, status, superseded_at, cost_usd, diff } = await get(first);
  assert.deepEqual({ previous_id, status, superseded_at, cost_usd }, { previous_id: null, status: 'superseded', superseded_at: at(20), cost_usd: null });
  assert.deepEqual(diff.sizing, { added: ['Small wins (n=20).', 'Large loses (n=21).'], removed: [], kept: 0 }, 'without a previous note everything is added');
});

test('as_of shows a note as it was then, and no later note', async () => {
  const id = await rows.deployment();
  const first = await note(id, { generated_at: at(10) });
  const second = await note(id, { generated_at: at(20) });
  await s.api.get(`/v1/reflection_notes/${first}?as_of=${at(9, 59)}`, { status: 404 });
  for (const [instant, status, superseded_at] of [[at(10), 'active', null], [at(19, 59), 'active', null], [at(20), 'superseded', at(20)]]) {
    const then = await get(first, `?as_of=${instant}`);
    assert.deepEqual([then.status, then.superseded_at], [status, superseded_at], instant);
  }
  const of = `?deployment_id=${id}`;
  assert.deepEqual(await ids(`${of}&as_of=${at(9)}`), []);
  assert.deepEqual(await ids(`${of}&as_of=${at(19)}`), [first]);
  assert.deepEqual(await ids(`${of}&as_of=${at(20)}`), [second, first]);
  assert.deepEqual(await ids(`${of}&as_of=${at(19)}&status=active`), [first]);
  assert.deepEqual(await ids(`${of}&as_of=${at(20)}&status=active`), [second]);
  assert.deepEqual(await ids(`${of}&as_of=${at(20)}&status=superseded`), [first]);
  assert.deepEqual(await ids(`${of}&as_of=${at(19)}&status=superseded`), []);
});

test('the list is newest first, page by page, and filters combine', async () => {
  const [one, two] = [await rows.deployment(), await rows.deployment()];
  const of = [];
  for (let n = 0; n < 7; n++) of.push([one, await note(one, { generated_at: at(100 + 2 * n) })], [two, await note(two, { generated_at: at(101 + 2 * n) })]);
  const promoted = (await promote(of[4][1], { at: at(200) })).json.id;
  const newest = [promoted, ...of.map(([, id]) => id).reverse()];
  const ofOne = of.filter(([d]) => d === one).map(([, id]) => id).reverse();
  const { skill_id } = await versionOf(one);

  assert.deepEqual(await ids(`?since=${at(100)}&until=${at(201)}`), newest);
  assert.deepEqual(await ids(`?since=${at(101)}&until=${at(103)}`), [of[2][1], of[1][1]], 'since is inclusive, until is not');
  assert.deepEqual(await ids(`?deployment_id=${one}`), ofOne);
  assert.deepEqual(await ids(`?skill_id=${skill_id}`), [promoted, ...ofOne]);
  assert.deepEqual(await ids(`?skill_id=${skill_id}&version=1`), [promoted, ...ofOne]);
  assert.deepEqual(await ids(`?skill_id=${skill_id}&version=1&scope=skill`), [promoted]);
  assert.deepEqual(await ids(`?skill_id=${skill_id}&version=1&scope=deployment&status=active`), [ofOne[0]]);
  assert.deepEqual(await ids(`?skill_id=${skill_id}&version=2`), []);
  assert.deepEqual(await ids(`?deployment_id=${one}&scope=skill`), []);
  assert.deepEqual(await ids(`?deployment_id=${two}&skill_id=${skill_id}`), []);
  assert.deepEqual(await ids(`?deployment_id=${UNKNOWN_ID}`), []);

  for (const [query, all] of [[`?since=${at(100)}&until=${at(201)}`, newest], [`?deployment_id=${one}`, ofOne], [`?skill_id=${skill_id}&version=1`, [promoted, ...ofOne]]])
    for (const limit of [1, 3, 50]) {
      const seen = [];
      for (let cursor = ''; cursor !== null; ) {
        const { items, next_cursor } = await list(`${query}&limit=${limit}${cursor && `&cursor=${cursor}`}`);
        assert.ok(items.length <= limit);
        seen.push(...items.map(({ id }) => id));
        cursor = next_cursor;
      }
      assert.deepEqual(seen, all, `${query} by ${limit}`);
    }
});

test('the list includes the changes on request', async () => {
  const id = await rows.deployment();
  const first = await note(id, { generated_at: at(10), text: noteText({ sizing: ['One.'] }) });
  await note(id, { generated_at: at(20), text: noteText({ sizing: ['One.', 'Two.'] }) });
  const plain = await list(`?deployment_id=${id}`);
  assert.ok(plain.items.every((n) => !('diff' in n)));
  const { items, next_cursor } = await list(`?deployment_id=${id}&diff=true&limit=1`);
  assert.deepEqual([items[0].previous_id, items[0].diff.sizing], [first, { added: ['Two.'], removed: [], kept: 1 }], 'also if the previous note is on the next page');
  assert.ok(next_cursor);
  assert.deepEqual(await list(`?deployment_id=${id}&diff=true`), { items: [await get(plain.items[0].id), await get(first)], next_cursor: null });
});

test('promoting a note copies it to the skill, and the copy names its origin', async () => {
  const id = await rows.deployment();
  const text = noteText({ exit_timing: ['Exits kept 0.4 of MFE (n=30).'] });
  const own = await note(id, { generated_at: at(10), text, window_start: at(0), window_end: at(9), trades_considered: 30, cost_usd: '0.5', suppressed: ['sizing'] });
  const { json, headers } = await promote(own, { at: at(15) });
  assert.equal(headers.location, `/v1/reflection_notes/${json.id}`);
  const { diff, ...copy } = json;
  const { diff: _, ...source } = await get(own);
  assert.deepEqual(copy, { ...source, id: json.id, deployment_id: null, scope: 'skill', generated_at: at(15), promoted_from: own });
  assert.deepEqual(diff.exit_timing.added, ['Exits kept 0.4 of MFE (n=30).']);
  assert.deepEqual(await get(json.id), json);
  assert.equal((await get(own)).status, 'active', 'the deployment keeps its own');

  const other = await note(id, { generated_at: at(20), text: noteText({ exit_timing: ['Exits kept 0.5 of MFE (n=40).'] }) });
  const next = (await promote(other, { at: at(25) })).json;
  assert.deepEqual([next.previous_id, next.diff.exit_timing.removed], [json.id, ['Exits kept 0.4 of MFE (n=30).']]);
  const before = await get(json.id);
  assert.deepEqual([before.status, before.superseded_at], ['superseded', at(25)]);
  assert.equal((await get(json.id, `?as_of=${at(24)}`)).status, 'active');
  const again = (await promote(own, { at: at(30) })).json;
  assert.deepEqual([again.promoted_from, again.previous_id], [own, next.id], 'a superseded note can be promoted, and again');
});

test('a promotion defaults to the current time of the deployment, so the next read sees it', async () => {
  const sim = await rows.deployment();
  const own = await note(sim, { generated_at: at(10) });
  await rows.tick(sim, at(12));
  assert.equal((await promote(own, undefined)).json.generated_at, at(12), 'the last tick of a simulation');
  const live = await rows.deployment({ mode: 'live' });
  const { json } = await promote(await note(live, { generated_at: at(10) }), undefined);
  assert.match(json.generated_at, /:00Z$/, 'the whole minute that live reads use');
  const late = Date.now() - Date.parse(json.generated_at);
  assert.ok(late >= 0 && late < 120_000);
  const ahead = new Date(Date.now() + 86_400_000).toISOString();
  const later = await note(live, { generated_at: ahead });
  assert.equal(Date.parse((await promote(later, undefined)).json.generated_at), Date.parse(ahead), 'never before the notes it follows');
});

test('promoting the note that the skill already has changes nothing', async () => {
  const id = await rows.deployment();
  const text = noteText({ sizing: ['The same.'] });
  const own = await note(id, { generated_at: at(10), text });
  const first = (await promote(own, { at: at(15) })).json;
  assert.deepEqual((await promote(own, { at: at(20) }, { status: 200 })).json, first);
  assert.deepEqual((await promote(own, undefined, { status: 200 })).json, first);
  const twin = await note(id, { generated_at: at(16), text: text.replaceAll('\n', '\n ') });
  assert.deepEqual((await promote(twin, { at: at(20) }, { status: 200 })).json, first, 'the same lessons in another note');
  assert.equal((await list(`?skill_id=${(await versionOf(id)).skill_id}&scope=skill`)).items.length, 1);
});

test('invalid promotions are rejected by name, and nothing is stored', async () => {
  const id = await rows.deployment();
  const own = await note(id, { generated_at: at(10) });
  const early = await promote(own, { at: at(9) }, { status: 409 });
  assert.deepEqual([early.json.code, early.json.detail], ['time_order', `the note was made at ${at(10)}`]);
  const ahead = await promote(own, { at: '9998-01-01T00:00:00Z' }, { status: 422 });
  assert.deepEqual(ahead.json.errors.map(({ field, code }) => [field, code]), [['at', 'in_the_future']]);
  const skill = (await promote(own, { at: at(20) })).json;
  const twice = await promote(skill.id, { at: at(30) }, { status: 409 });
  assert.equal(twice.json.code, 'invalid_transition');
  const next = await note(id, { generated_at: at(12) });
  const between = await promote(next, { at: at(19) }, { status: 409 });
  assert.deepEqual([between.json.code, between.json.detail], ['time_order', `the note that it replaces is from ${at(20)}`]);
  await promote(UNKNOWN_ID, {}, { status: 404 });
  assert.deepEqual(faults(await promote(own, { at: 'noon', by: 'me' }, { status: 422 })), ['at: invalid_time', 'by: unknown_field']);
  await promote('seven', {}, { status: 422 });
  assert.deepEqual(await ids(`?skill_id=${(await versionOf(id)).skill_id}&scope=skill`), [skill.id]);
});

test('concurrent promotions are serialized: each gets a response, and one is active in the end', async () => {
  const id = await rows.deployment();
  const { skill_id } = await versionOf(id);
  const notes = [];
  for (let n = 0; n < 8; n++) notes.push(await note(id, { generated_at: at(n) }));
  const other = await s.another();
  const made = new Map();
  const ask = async (base, from, instant) => {
    const answer = await fetch(`${base}/v1/reflection_notes/${from}/promote`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ at: instant }),
    });
    const json = await answer.json();
    assert.ok([200, 201].includes(answer.status), JSON.stringify(json));
    assert.equal(json.promoted_from, from);
    if (answer.status === 201) made.set(json.id, from);
  };
  try {
    for (let round = 0; round < 4; round++) {
      await Promise.all(notes.flatMap((from) => [s.service.base, other.base].map((base) => ask(base, from, at(100 + round)))));
      const stored = await s.query('select id, status, promoted_from from daybook.reflection_notes where skill_id = $1 and deployment_id is null', [skill_id]);
      assert.equal(stored.filter(({ status }) => status === 'active').length, 1);
      assert.deepEqual(new Map(stored.map((n) => [n.id, n.promoted_from])), new Map(stored.map((n) => [n.id, made.get(n.id)])));
      assert.equal(stored.length, made.size, 'exactly the promotions answered with 201 are stored');
    }
    assert.ok(made.size >= notes.length);
  } finally {
    await other.stop();
  }
});

test('a promotion retried with its Idempotency-Key replays the first response', async () => {
  const id = await rows.deployment();
  const [one, two] = [await note(id, { generated_at: at(1) }), await note(id, { generated_at: at(2) })];
  const options = { status: 201, headers: { 'idempotency-key': 'promote-1' } };
  const first = await promote(one, { at: at(5) }, options);
  await promote(two, { at: at(6) });
  const again = await promote(one, { at: at(5) }, options);
  assert.equal(again.text, first.text);
  assert.equal(again.headers.location, first.headers.location);
  assert.equal((await list(`?skill_id=${(await versionOf(id)).skill_id}&scope=skill`)).items.length, 2);
});

test('invalid queries are rejected by name', async () => {
  const answer = await s.api.get('/v1/reflection_notes?deployment_id=7&status=gone&scope=all&since=noon&diff=perhaps&limit=0&skill_id=%20&more=1', { status: 422 });
  assert.deepEqual(faults(answer), [
    'deployment_id: invalid_uuid',
    'diff: wrong_type',
    'limit: out_of_range',
    'more: unknown_field',
    'scope: not_a_choice',
    'since: invalid_time',
    'skill_id: invalid_name',
    'status: not_a_choice',
  ]);
  await s.api.get(`/v1/reflection_notes/${UNKNOWN_ID}`, { status: 404 });
});

test('another owner can neither see nor promote notes, a reader of the same owner reads all of them', async () => {
  const owner = 'desk-1';
  const id = await rows.deployment({ owner });
  const own = await note(id, { owner });
  const paths = [`/v1/reflection_notes/${own}`, `/v1/deployments/${id}/lessons_segment`];
  const keys = [await createKey(s.url, owner, 'reader'), await createKey(s.url, owner, 'agent'), await createKey(s.url, 'desk-2', 'admin')];
  const service = await s.another(); // it starts with a key in the table, so it requires one
  const anonymous = makeClient(service.base);
  const [reader, agent, theirs] = keys.map(({ key }) => anonymous.as(key));
  after(async () => {
    for (const client of [anonymous, reader, agent, theirs]) client.close();
    await service.stop();
  });
  for (const path of paths) {
    await reader.get(path, { status: 200 });
    await theirs.get(path, { status: 404 });
    await anonymous.get(path, { status: 401 });
  }
  const { skill_id } = await versionOf(id);
  for (const query of ['', `?deployment_id=${id}`, `?skill_id=${skill_id}&version=1`]) {
    assert.equal((await reader.get(`/v1/reflection_notes${query}`, { status: 200 })).json.items.length, 1);
    assert.deepEqual((await theirs.get(`/v1/reflection_notes${query}`, { status: 200 })).json.items, []);
  }
  await reader.post(`${paths[0]}/promote`, {}, { status: 403 });
  await theirs.post(`${paths[0]}/promote`, {}, { status: 404 });
  await agent.post(`${paths[0]}/promote`, {}, { status: 201 });
});
