// Lists: every filter, and pages without gaps or duplicates.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, everyItem, faults, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const ids = async (query) => (await s.api.get(`/v1/lessons?${query}`, { status: 200 })).json.items.map((x) => x.id);
const L = {};

async function prepare() {
  L.a = await create(s.api, { tags: ['macro', 'calibration'], at: day(1), takeaway: 'Shrink macro odds by FIFTEEN percent' });
  L.b = await create(s.api, { tags: ['macro'], at: day(2), context: 'Rates decision, fifteen meetings' });
  L.c = await create(s.api, { tags: ['extraction', 'calibration'], at: day(3), outcome: 'dropped 100% of under_scored notes' });
  L.d = await create(s.api, { tags: ['extraction'], at: day(4) });
  await s.api.post(`/v1/lessons/${L.b.id}/validate`, { outcome: OUTCOME, at: day(5) }, { status: 200 });
  await s.api.post(`/v1/lessons/${L.c.id}/retire`, { reason: 'gone', at: day(5) }, { status: 200 });
  await s.api.post(`/v1/lessons/${L.d.id}/supersede`, { by: L.a.id, at: day(5) }, { status: 200 });
}

test('the newest lesson comes first', async () => {
  assert.deepEqual(await ids(''), [L.d.id, L.c.id, L.b.id, L.a.id]);
});

test('tags matches lessons with any of the tags, tags_all with all of them', async () => {
  assert.deepEqual(await ids('tags=macro'), [L.b.id, L.a.id]);
  assert.deepEqual(await ids('tags=macro,extraction'), [L.d.id, L.c.id, L.b.id, L.a.id]);
  assert.deepEqual(await ids('tags=macro&tags=extraction'), [L.d.id, L.c.id, L.b.id, L.a.id]);
  assert.deepEqual(await ids('tags_all=macro,calibration'), [L.a.id]);
  assert.deepEqual(await ids('tags=extraction&tags_all=calibration'), [L.c.id]);
  assert.deepEqual(await ids('tags=Macro'), []);
  assert.deepEqual(await ids('tags=mac'), []);
});

test('status and active filter by the current state', async () => {
  assert.deepEqual(await ids('status=proposed'), [L.a.id]);
  assert.deepEqual(await ids('status=validated'), [L.b.id]);
  assert.deepEqual(await ids('status=retired'), [L.c.id]);
  assert.deepEqual(await ids('status=superseded'), [L.d.id]);
  assert.deepEqual(await ids('active=true'), [L.b.id, L.a.id]);
  assert.deepEqual(await ids('active=false'), [L.d.id, L.c.id]);
  assert.deepEqual(await ids('active=true&status=retired'), []);
});

test('text matches words of context, outcome or takeaway in any form, quoted phrases, and -word excludes', async () => {
  assert.deepEqual(await ids('text=fifteen'), [L.b.id, L.a.id]);
  assert.deepEqual(await ids('text=Fifteen%20meeting'), [L.b.id]);
  assert.deepEqual(await ids('text=%22fifteen%20percent%22'), [L.a.id]);
  assert.deepEqual(await ids('text=%22percent%20fifteen%22'), []);
  assert.deepEqual(await ids('text=fifteen%20-rates'), [L.a.id]);
  assert.deepEqual(await ids('text=dropped%20or%20shrink'), [L.c.id, L.a.id]);
});

test('no search text causes an error', async () => {
  for (const text of [
    '"',
    "'",
    '-',
    '&|!()',
    ':*',
    '\\',
    'a:b',
    '<->',
    "x'; drop table lessons; --",
    '🚀',
    '"unclosed phrase',
    'or or or',
  ]) {
    const answer = await s.api.get(`/v1/lessons?text=${encodeURIComponent(text)}`, { status: 200 });
    assert.deepEqual(answer.json.items, [], text);
  }
});

test('since is inclusive, until is not', async () => {
  assert.deepEqual(await ids(`since=${day(2)}&until=${day(4)}`), [L.c.id, L.b.id]);
  assert.deepEqual(await ids(`since=${day(4, '00:00:00.000001')}`), []);
  assert.deepEqual(await ids('until=2026-01-02T01:00:00%2B01:00'), [L.a.id]);
});

test('filters combine', async () => {
  assert.deepEqual(await ids(`tags=macro,extraction&active=true&since=${day(2)}&text=rates`), [L.b.id]);
});

test('a page has at most limit items and says whether there are more', async () => {
  const page = (await s.api.get('/v1/lessons?limit=3', { status: 200 })).json;
  assert.equal(page.items.length, 3);
  assert.ok(page.next_cursor);
  const last = (await s.api.get(`/v1/lessons?limit=3&cursor=${encodeURIComponent(page.next_cursor)}`, { status: 200 })).json;
  assert.deepEqual(
    last.items.map((x) => x.id),
    [L.a.id],
  );
  assert.equal(last.next_cursor, null);
  assert.equal((await s.api.get('/v1/lessons?limit=4', { status: 200 })).json.next_cursor, null, 'a full last page is the last');
});

test('pages have no gaps or duplicates while lessons are written between them', async () => {
  const tag = 'paged';
  const known = [];
  // Many lessons share an instant; the order must still be total.
  for (let i = 0; i < 45; i++) known.push((await create(s.api, { tags: [tag], at: day(20 + Math.floor(i / 15)) })).id);
  const seen = [];
  for (let cursor = null, page; page?.next_cursor !== null; cursor = page.next_cursor) {
    page = (await s.api.get(`/v1/lessons?tags=${tag}&limit=7${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { status: 200 }))
      .json;
    seen.push(...page.items.map((x) => x.id));
    for (const n of [19, 20, 21, 22, 23]) await create(s.api, { tags: [tag], at: day(n) });
  }
  assert.equal(new Set(seen).size, seen.length, 'a double');
  assert.deepEqual(
    known.filter((id) => !seen.includes(id)),
    [],
    'a gap',
  );
});

test('a list with as_of does not change when lessons are written between its pages', async () => {
  const path = `/v1/lessons?tags=paged&limit=6&as_of=${day(21)}`;
  const before = await everyItem(s.api, path);
  assert.ok(before.length >= 30);
  const half = (await s.api.get(path)).json;
  await create(s.api, { tags: ['paged'], at: day(25) });
  await s.api.post(`/v1/lessons/${before[10].id}/retire`, { reason: 'later', at: day(26) }, { status: 200 });
  const rest = await everyItem(s.api, path, half.next_cursor);
  assert.deepEqual([...half.items, ...rest], before);
});

test('a damaged cursor, or one of another list or other filters, is rejected', async () => {
  const { next_cursor } = (await s.api.get('/v1/lessons?tags=paged&limit=2')).json;
  const cursor = encodeURIComponent(next_cursor);
  const damaged = encodeURIComponent((next_cursor[0] === 'A' ? 'B' : 'A') + next_cursor.slice(1));
  for (const path of [
    `/v1/lessons?limit=2&cursor=${cursor}`,
    `/v1/lessons?tags=macro&limit=2&cursor=${cursor}`,
    `/v1/lessons/${L.a.id}/history?cursor=${cursor}`,
    `/v1/lessons?tags=paged&limit=2&cursor=${damaged}`,
    '/v1/lessons?cursor=%F0%9F%9A%80',
    `/v1/lessons?cursor=${'A'.repeat(500)}`,
  ])
    assert.deepEqual(faults(await s.api.get(path, { status: 422 })), ['cursor: invalid_cursor'], path);
  await s.api.get(`/v1/lessons?tags=paged&limit=5&cursor=${cursor}`, { status: 200 });
});

test('a list without matches is empty, not an error', async () => {
  assert.deepEqual((await s.api.get('/v1/lessons?tags=none', { status: 200 })).json, { items: [], next_cursor: null });
});
