// Lists of entries: pages, filters, the archive, and as_of.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEpisode, evict, newEpisode, postEpisodes, restore, shouldRerun } from '../lib/episodes.mjs';
import { day, everyItem, faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const ids = (items) => items.map((e) => e.id);
const list = async (query) => (await s.api.get(`/v1/episodic?${query}`, { status: 200 })).json.items;

test('pages are newest first without gaps or duplicates, also with several entries at one instant', async () => {
  const entries = Array.from({ length: 47 }, (_, i) => newEpisode({ ticker: 'PAGES', created_at: day(1 + (i % 9)) }));
  const { lines } = await postEpisodes(s.api, entries);
  const expected = lines
    .map((l, i) => ({ id: l.id, at: entries[i].created_at }))
    .sort((a, b) => (a.at === b.at ? (a.id < b.id ? 1 : -1) : a.at < b.at ? 1 : -1));
  for (const limit of [1, 7, 46, 47, 48]) assert.deepEqual(ids(await everyItem(s.api, `/v1/episodic?ticker=PAGES&limit=${limit}`)), ids(expected), `limit ${limit}`);
  const page = (await s.api.get('/v1/episodic?ticker=PAGES&limit=7', { status: 200 })).json;
  await createEpisode(s.api, { ticker: 'PAGES', created_at: day(20) });
  assert.deepEqual(ids(await everyItem(s.api, '/v1/episodic?ticker=PAGES&limit=7', page.next_cursor)), ids(expected).slice(7), 'entries written in between do not appear on later pages');
  assert.deepEqual(faults(await s.api.get(`/v1/episodic?ticker=OTHER&cursor=${page.next_cursor}`, { status: 422 })), ['cursor: invalid_cursor']);
});

test('every filter works alone and combined', async () => {
  const made = [];
  for (const [i, [ticker, task_type, source, confidence]] of [
    ['FA', 'x', 'external', 0.2],
    ['FA', 'y', 'user_stated', 0.55],
    ['FB', 'x', 'recalled', 0.8],
    ['FB', 'y', 'external', 0.9],
    ['FA', 'x', 'external', 0.95],
  ].entries())
    made.push(await createEpisode(s.api, { ticker, task_type, source, confidence, created_at: day(40 + i), ...(i === 2 ? { embedding: [1], embedding_model: 'm' } : {}) }));
  const found = async (query) => (await list(`since=${day(40)}&until=${day(45)}&${query}`)).map((e) => made.findIndex((m) => m.id === e.id));
  assert.deepEqual(await found(''), [4, 3, 2, 1, 0]);
  assert.deepEqual(await found('ticker=FA'), [4, 1, 0]);
  assert.deepEqual(await found('task_type=x'), [4, 2, 0]);
  assert.deepEqual(await found('ticker=FA&task_type=x'), [4, 0]);
  assert.deepEqual(await found('source=external'), [4, 3, 0]);
  assert.deepEqual(await found('min_confidence=0.55'), [4, 3, 2, 1]);
  assert.deepEqual(await found('min_confidence=0.8&source=external&ticker=FB'), [3]);
  assert.deepEqual(await found('embedding_status=supplied'), [2]);
  assert.deepEqual(await found('embedding_status=pending'), []);
  assert.deepEqual((await list(`since=${day(41)}&until=${day(43)}`)).map((e) => e.id), [made[2].id, made[1].id], 'since is inclusive, until is not');
  assert.deepEqual(await found('ticker=fa'), [], 'case counts');
});

test('invalid parameters are rejected by name', async () => {
  const bad = 'limit=0&source=hearsay&embedding_status=done&min_confidence=2&archived=maybe&since=yesterday&as_of=x&cursor=x&k=5';
  assert.deepEqual(faults(await s.api.get(`/v1/episodic?${bad}`, { status: 422 })), [
    'archived: wrong_type',
    'as_of: invalid_time',
    'cursor: invalid_cursor',
    'embedding_status: not_a_choice',
    'k: unknown_field',
    'limit: out_of_range',
    'min_confidence: out_of_range',
    'since: invalid_time',
    'source: not_a_choice',
  ]);
  assert.deepEqual(faults(await s.api.get('/v1/episodic?limit=201&ticker=', { status: 422 })), ['limit: out_of_range', 'ticker: too_short']);
});

test('as_of shows no later entry, read, eviction or restore', async () => {
  const ticker = 'PIT';
  const a = await createEpisode(s.api, { ticker, created_at: day(100) });
  await createEpisode(s.api, { ticker, created_at: day(120) });
  for (const n of [102, 104, 106]) assert.equal((await shouldRerun(s.api, { ticker, as_of: day(n) })).prior.id, a.id);
  const { eviction_id, evicted } = await evict(s.api, { ticker, dry_run: false, at: day(110), policies: ['time'], max_age_days: 5 });
  assert.equal(evicted, 1);
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(115) }), { restored: 1, skipped: 0, remaining: 0 });

  const at = async (n) => {
    const as_of = `as_of=${day(n)}`;
    const one = await s.api.get(`/v1/episodic/${a.id}?${as_of}`);
    const entry = one.status === 200 ? [one.json.read_count, one.json.last_read_at, one.json.evicted_at] : one.status;
    return [(await list(`ticker=${ticker}&${as_of}`)).length, (await list(`ticker=${ticker}&archived=true&${as_of}`)).length, entry];
  };
  assert.deepEqual(await at(99), [0, 0, 404]);
  assert.deepEqual(await at(100), [1, 0, [0, null, null]], 'the instant itself is included');
  assert.deepEqual(await at(103), [1, 0, [1, day(102), null]]);
  assert.deepEqual(await at(104), [1, 0, [2, day(104), null]]);
  assert.deepEqual(await at(109), [1, 0, [3, day(106), null]]);
  assert.deepEqual(await at(110), [0, 1, [3, day(106), day(110)]]);
  assert.deepEqual(await at(114), [0, 1, [3, day(106), day(110)]]);
  assert.deepEqual(await at(115), [1, 0, [3, day(106), null]]);
  assert.deepEqual(await at(120), [2, 0, [3, day(106), null]]);
  const [shown] = await list(`ticker=${ticker}&as_of=${day(103)}`);
  assert.deepEqual([shown.read_count, shown.last_read_at], [1, day(102)], 'in lists too');
});

test('expired entries are no longer listed, and can still be read by id', async () => {
  const made = await createEpisode(s.api, { ticker: 'TTL', created_at: day(1), ttl_seconds: 60 });
  assert.deepEqual(ids(await list('ticker=TTL')), []);
  assert.deepEqual(ids(await list(`ticker=TTL&as_of=${day(1, '00:00:59')}`)), [made.id]);
  assert.deepEqual(ids(await list(`ticker=TTL&as_of=${day(1, '00:01:00')}`)), []);
  assert.equal((await s.api.get(`/v1/episodic/${made.id}`, { status: 200 })).json.expires_at, day(1, '00:01:00'));
});

test('the archive has pages and filters too', async () => {
  const entries = Array.from({ length: 9 }, (_, i) => newEpisode({ ticker: 'ARCH', task_type: i % 2 ? 'odd' : 'even', created_at: day(200 + i) }));
  const { lines } = await postEpisodes(s.api, entries);
  await evict(s.api, { ticker: 'ARCH', dry_run: false, at: day(300), policies: ['time'], max_age_days: 95 });
  const gone = lines.slice(0, 5).map((l) => l.id).reverse();
  assert.deepEqual(ids(await everyItem(s.api, '/v1/episodic?ticker=ARCH&archived=true&limit=2')), gone);
  assert.deepEqual(ids(await list('ticker=ARCH&archived=true&task_type=odd')), [lines[3].id, lines[1].id]);
  assert.equal((await list('ticker=ARCH')).length, 4);
});

test('a list has an ETag that changes when an entry does', async () => {
  const made = await createEpisode(s.api, { ticker: 'TAG' });
  const first = await s.api.get('/v1/episodic?ticker=TAG', { status: 200 });
  const headers = { 'if-none-match': first.headers.etag };
  await s.api.get('/v1/episodic?ticker=TAG', { headers, status: 304 });
  await s.api('DELETE', `/v1/episodic/${made.id}`, { status: 204 });
  await s.api.get('/v1/episodic?ticker=TAG', { headers, status: 200 });
});
