// Proposing lessons: the stored row, rejected fields, and reported near-duplicates.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, faults, newLesson, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const post = (changes, options) => s.api.post('/v1/lessons', newLesson(changes), options);
const refusedFor = async (changes) => faults(await post(changes, { status: 422 }));

test('a new lesson is returned as it was written, proposed and active', async () => {
  const body = newLesson({ tags: ['b', 'a'], evidence: ['log 2', 'log 1'], at: day(10) });
  const answer = await s.api.post('/v1/lessons', body, { status: 201 });
  const { id, similar, ...rest } = answer.json;
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(answer.headers.location, `/v1/lessons/${id}`);
  assert.deepEqual(similar, []);
  assert.deepEqual(rest, {
    ...body,
    at: day(10),
    status: 'proposed',
    active: true,
    status_at: day(10),
    status_reason: null,
    validation: null,
    superseded_by: null,
  });
  const read = await s.api.get(answer.headers.location, { status: 200 });
  assert.deepEqual(read.json, { id, ...rest });
});

test('created_at defaults to the server clock', async () => {
  const before = Date.now();
  const { at, status_at } = await create(s.api);
  assert.ok(Date.parse(at) >= before - 1 && Date.parse(at) <= Date.now() + 1, at);
  assert.equal(status_at, at);
});

test('a time with an offset is stored as the same instant in UTC, to the microsecond', async () => {
  assert.equal((await create(s.api, { at: '2026-06-04T12:30:00.123456+02:30' })).at, '2026-06-04T10:00:00.123456Z');
  assert.equal((await create(s.api, { at: '2026-06-04t10:00:00z' })).at, '2026-06-04T10:00:00Z');
});

test('text in any script is returned byte for byte', async () => {
  const texts = {
    context: 'Zürich, 東京, 🚀 "quoted" \\ / \t tab\nline',
    outcome: '<b>&amp;</b> é e\u0301 \u2028 \u{1F469}\u200D\u{1F4BB}',
    takeaway: 'Größe zählt: 300 € ≠ 300 $',
    tags: ['日本', 'c++', "o'brien", '{x}', '"q"', 'a\\b', 'null'],
    evidence: ['a,b', '{"json": true}', '%s $1'],
  };
  const made = await create(s.api, texts);
  const { json } = await s.api.get(`/v1/lessons/${made.id}`);
  for (const [name, value] of Object.entries(texts)) assert.deepEqual(json[name], value, name);
});

test('length limits count characters, not bytes, and are inclusive', async () => {
  const rocket = '🚀';
  const made = await create(s.api, {
    takeaway: rocket.repeat(300),
    context: rocket.repeat(2000),
    outcome: 'é'.repeat(2000),
    tags: Array.from({ length: 16 }, (_, i) => rocket.repeat(62) + String(i).padStart(2, '0')),
    evidence: Array.from({ length: 32 }, (_, i) => rocket.repeat(498) + String(i).padStart(2, '0')),
  });
  assert.equal([...made.takeaway].length, 300);
  assert.deepEqual(await refusedFor({ takeaway: rocket.repeat(301) }), ['takeaway: too_long']);
  assert.deepEqual(await refusedFor({ context: 'x'.repeat(2001), outcome: 'x'.repeat(2001) }), ['context: too_long', 'outcome: too_long']);
  assert.deepEqual(await refusedFor({ tags: ['ok', 'x'.repeat(65)] }), ['tags[1]: too_long']);
  assert.deepEqual(await refusedFor({ evidence: ['x'.repeat(501)] }), ['evidence[0]: too_long']);
  assert.deepEqual(await refusedFor({ tags: Array.from({ length: 17 }, (_, i) => `t${i}`) }), ['tags: too_many']);
  assert.deepEqual(await refusedFor({ evidence: Array.from({ length: 33 }, (_, i) => `e${i}`) }), ['evidence: too_many']);
});

test('a claim without evidence is rejected', async () => {
  assert.deepEqual(await refusedFor({ evidence: [] }), ['evidence: too_few']);
  assert.deepEqual(await refusedFor({ evidence: [''] }), ['evidence[0]: too_short']);
  assert.deepEqual(await refusedFor({ evidence: undefined }), ['evidence: required']);
});

test('a takeaway of several lines is rejected', async () => {
  for (const takeaway of ['one\ntwo', 'one\r\ntwo', 'end\n']) assert.deepEqual(await refusedFor({ takeaway }), ['takeaway: several_lines']);
});

test('a takeaway cannot close the block it is rendered into', async () => {
  for (const takeaway of ['x </learned_patterns> y', '<learned_patterns>', '</ LEARNED_PATTERNS >'])
    assert.deepEqual(await refusedFor({ takeaway }), ['takeaway: reserved_markup']);
  await create(s.api, { takeaway: 'Spreads < 5 bps & depth > 1 M learned patterns hold' });
});

test('control characters are rejected where they would break rendered text', async () => {
  assert.deepEqual(
    await refusedFor({ takeaway: 'a\u0007b', tags: ['a\tb'], evidence: ['a\u001bb'], context: 'a\u0000'.replace('\u0000', '\u0001') }),
    ['context: control_character', 'evidence[0]: control_character', 'tags[0]: control_character', 'takeaway: control_character'],
  );
});

test('tags with commas and repeated tags are rejected', async () => {
  assert.deepEqual(await refusedFor({ tags: ['a,b'] }), ['tags[0]: invalid_character']);
  assert.deepEqual(await refusedFor({ tags: ['a', 'b', 'a'] }), ['tags[2]: duplicate_item']);
});

test('an invalid time is rejected', async () => {
  for (const at of [
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01 00:00',
    '2026-01-01',
    'now',
    '',
    '2026-01-01T00:00:00+25:00',
  ])
    assert.deepEqual(await refusedFor({ at }), ['at: invalid_time'], at);
});

test('near-duplicates are reported, most similar first', async () => {
  const takeaway = 'Research packs over forty thousand tokens degrade extraction recall';
  const first = await create(s.api, { takeaway });
  const second = await create(s.api, { takeaway: `${takeaway} badly` });
  assert.equal(second.similar[0].id, first.id);
  assert.ok(second.similar[0].score >= 0.6 && second.similar[0].score < 1);
  const third = await create(s.api, { takeaway });
  assert.deepEqual(
    third.similar.map((x) => x.id),
    [first.id, second.id],
  );
  assert.equal(third.similar[0].score, 1);
  assert.deepEqual((await create(s.api, { takeaway: 'Liquidity vanishes before lunch' })).similar, []);
});

test('at most five near-duplicates are reported, all of them active', async () => {
  const takeaway = 'Weekend funding rates mean little for Monday entries';
  const made = [];
  for (let i = 0; i < 7; i++) made.push(await create(s.api, { takeaway }));
  assert.equal(made[6].similar.length, 5);
  for (const { id } of made.slice(1)) await s.api.post(`/v1/lessons/${id}/retire`, { reason: 'double' }, { status: 200 });
  assert.deepEqual(
    (await create(s.api, { takeaway })).similar.map((x) => x.id),
    [made[0].id],
  );
});

test('an unknown lesson is 404', async () => {
  for (const path of ['', '/history']) await s.api.get(`/v1/lessons/${UNKNOWN_ID}${path}`, { status: 404 });
});

test('IDs are case-insensitive', async () => {
  const { id } = await create(s.api);
  assert.equal((await s.api.get(`/v1/lessons/${id.toUpperCase()}`, { status: 200 })).json.id, id);
});

test('a lesson dated at the first or last supported instant can be read', async () => {
  for (const at of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z']) {
    const { id } = await create(s.api, { at, tags: ['edge'] });
    assert.equal((await s.api.get(`/v1/lessons/${id}`, { status: 200 })).json.at, at);
    assert.ok(
      (await s.api.get('/v1/lessons?tags=edge')).json.items.some((x) => x.id === id),
      at,
    );
    assert.ok((await s.api.get('/v1/lessons/block?tags=edge')).json.lesson_ids.includes(id), at);
  }
  for (const at of ['0000-12-31T23:59:59Z', '9999-12-31T23:59:59-00:01']) assert.deepEqual(await refusedFor({ at }), ['at: invalid_time']);
});
