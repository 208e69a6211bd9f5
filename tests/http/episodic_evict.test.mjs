// Eviction: the policies against a model of them, dry runs, the archive, restoring, and as_of.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEpisode, evict, newEpisode, postEpisodes, restore, shouldRerun } from '../lib/episodes.mjs';
import { day, everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';
import { randomOf } from '../lib/ticks.mjs';

const s = suite();
const DAY_MS = 86_400_000;
const DEFAULTS = { max_age_days: 180, keep_per_pair: 20, unread_days: 30 };
const ids = (items) => items.map((e) => e.id);
const visible = async (query) => ids(await everyItem(s.api, `/v1/episodic?limit=200&${query}`)).sort();

const byNewest = (a, b) => (a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1);

/** The entries that the policies match at an instant, oldest first: [{id, policies}]. */
function model(entries, at, { policies = ['time', 'size', 'relevance'], ...given } = {}) {
  const { max_age_days, keep_per_pair, unread_days } = { ...DEFAULTS, ...given };
  const visible = entries.filter((e) => e.created_at <= at).sort(byNewest);
  const olderThan = (e, days) => Date.parse(at) - Date.parse(e.created_at) > days * DAY_MS;
  const place = (e) => visible.filter((o) => o.ticker === e.ticker && o.task_type === e.task_type).indexOf(e);
  const finds = {
    time: (e) => olderThan(e, max_age_days),
    size: (e) => place(e) >= keep_per_pair,
    relevance: (e) => olderThan(e, unread_days) && !e.reads.some((r) => r <= at),
  };
  return visible
    .map((e) => ({ id: e.id, policies: ['time', 'size', 'relevance'].filter((p) => policies.includes(p) && finds[p](e)) }))
    .filter((e) => e.policies.length)
    .reverse();
}

/** Creates entries of a few tickers and tasks over a year, some of them reused; each with the times of its reads. */
async function createYear(task_type, count, seed) {
  const random = randomOf(seed);
  const entries = Array.from({ length: count }, () => newEpisode({ ticker: `E${Math.floor(random() * 4)}`, task_type, created_at: day(1 + Math.floor(random() * 360)) }));
  const { lines } = await postEpisodes(s.api, entries);
  const all = entries.map((e, i) => ({ ...e, id: lines[i].id, reads: [] }));
  for (let i = 0; i < count / 4; i++) {
    const as_of = day(20 + Math.floor(random() * 340));
    const { rerun, prior } = await shouldRerun(s.api, { ticker: `E${Math.floor(random() * 4)}`, task_type, as_of });
    if (!rerun) all.find((e) => e.id === prior.id).reads.push(as_of);
  }
  assert.ok(all.some((e) => e.reads.length), 'some were read');
  return all;
}

test('every policy, alone and combined, matches the entries that a model of it matches, at several instants', async () => {
  const entries = await createYear('model', 160, 4);
  for (const at of [day(1), day(60), day(200), day(361), day(700)])
    for (const asked of [
      {},
      { policies: ['time'], max_age_days: 100 },
      { policies: ['size'], keep_per_pair: 5 },
      { policies: ['relevance'], unread_days: 10 },
      { policies: ['size', 'relevance'], keep_per_pair: 7, unread_days: 90 },
      { policies: ['relevance', 'time'], max_age_days: 1, unread_days: 1 },
      { max_age_days: 50, keep_per_pair: 1, unread_days: 300 },
    ]) {
      const what = `${at} ${JSON.stringify(asked)}`;
      const expected = model(entries, at, asked);
      const answer = await evict(s.api, { task_type: 'model', at, samples: 100, ...asked });
      const counts = Object.fromEntries(['time', 'size', 'relevance'].map((p) => [p, expected.filter((e) => e.policies.includes(p)).length]));
      const { samples, ...rest } = answer;
      assert.deepEqual(rest, { dry_run: true, at, matched: expected.length, evicted: 0, remaining: expected.length, by_policy: counts, eviction_id: null }, what);
      assert.deepEqual(samples.map(({ id, policies }) => ({ id, policies })), expected.slice(0, 100), what);
    }
  assert.equal((await visible('task_type=model')).length, 160, 'a dry run moves nothing');
});

test('an eviction moves what its dry run showed, oldest first, up to the limit, and counts the rest', async () => {
  const entries = await createYear('limit', 90, 5);
  const at = day(365);
  const asked = { task_type: 'limit', at, policies: ['size', 'relevance'], keep_per_pair: 6, unread_days: 60 };
  const expected = model(entries, at, asked);
  assert.ok(expected.length > 30);
  const first = await evict(s.api, { ...asked, dry_run: false, limit: 20, samples: 3 });
  assert.deepEqual([first.dry_run, first.matched, first.evicted, first.remaining, first.samples.length], [false, expected.length, 20, expected.length - 20, 3]);
  assert.deepEqual(await visible('task_type=limit&archived=true'), expected.slice(0, 20).map((e) => e.id).sort());
  const second = await evict(s.api, { ...asked, dry_run: false });
  assert.deepEqual([second.matched, second.evicted, second.remaining], [expected.length - 20, expected.length - 20, 0]);
  const third = await evict(s.api, { ...asked, dry_run: false });
  assert.deepEqual([third.matched, third.evicted, third.remaining, third.samples, third.eviction_id], [0, 0, 0, [], null]);
  assert.deepEqual(await visible('task_type=limit'), entries.filter((e) => !expected.some((x) => x.id === e.id)).map((e) => e.id).sort());
  const rows = await s.query('SELECT id, at, policies, parameters, evicted FROM daybook.episodic_evictions WHERE id = ANY ($1) ORDER BY evicted', [[first.eviction_id, second.eviction_id]]);
  assert.deepEqual(rows.map((r) => r.evicted).sort((a, b) => a - b), [20, expected.length - 20].sort((a, b) => a - b));
  assert.deepEqual(rows[0].policies, ['size', 'relevance']);
  assert.deepEqual([rows[0].parameters.keep_per_pair, rows[0].parameters.task_type, rows[0].parameters.ticker], [6, 'limit', null]);
});

test('the defaults are 180 days, 20 entries per ticker and task, and 30 days without a read', async () => {
  const at = '2027-06-01T00:00:00Z';
  const ago = (days, more = 0) => new Date(Date.parse(at) - days * DAY_MS - more).toISOString().replace('.000Z', 'Z');
  const made = {};
  for (const [name, created_at] of Object.entries({ edge: ago(180), older: ago(180, 1000), month: ago(30), monthOlder: ago(30, 1000) }))
    made[name] = (await createEpisode(s.api, { ticker: 'DEF', task_type: name, created_at })).id;
  const found = async (body) => ids((await evict(s.api, { ticker: 'DEF', at, samples: 100, ...body })).samples);
  assert.deepEqual(await found({ policies: ['time'] }), [made.older]);
  assert.deepEqual(await found({ policies: ['relevance'] }), [made.older, made.edge, made.monthOlder]);
  const { lines } = await postEpisodes(s.api, Array.from({ length: 22 }, (_, i) => newEpisode({ ticker: 'DEF20', created_at: day(100 + i) })));
  assert.deepEqual(ids((await evict(s.api, { ticker: 'DEF20', at: day(125), policies: ['size'] })).samples), [lines[0].id, lines[1].id]);
});

test('an eviction can be limited to a ticker and a task', async () => {
  for (const ticker of ['FX', 'FY']) for (const task_type of ['fa', 'fb']) await createEpisode(s.api, { ticker, task_type, created_at: day(1) });
  const matched = async (body) => (await evict(s.api, { at: day(400), policies: ['time'], ...body })).matched;
  assert.equal(await matched({ ticker: 'FX' }), 2);
  assert.equal(await matched({ task_type: 'fa' }), 2);
  assert.equal(await matched({ ticker: 'FY', task_type: 'fb' }), 1);
  assert.equal(await matched({ ticker: 'FZ' }), 0);
});

test('entries restored by ID or by eviction are as before; a second restore skips them', async () => {
  const made = [];
  for (let i = 0; i < 4; i++) made.push(await createEpisode(s.api, { ticker: 'BACK', created_at: day(1 + i), ttl_seconds: 300_000_000 }));
  const all = made.map((e) => e.id).sort();
  const { eviction_id } = await evict(s.api, { ticker: 'BACK', dry_run: false, at: day(300), policies: ['time'] });
  assert.deepEqual(await visible('ticker=BACK'), []);
  assert.deepEqual(await restore(s.api, { ids: [made[0].id, UNKNOWN_ID], at: day(301) }), { restored: 1, skipped: 1, remaining: 0 });
  assert.deepEqual(await visible('ticker=BACK'), [made[0].id]);
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(302) }), { restored: 3, skipped: 1, remaining: 0 });
  assert.deepEqual(await visible('ticker=BACK'), all);
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(303) }), { restored: 0, skipped: 4, remaining: 0 });
  const { duplicate, ...before } = made[1];
  assert.deepEqual((await s.api.get(`/v1/episodic/${before.id}`, { status: 200 })).json, before);
});

test('an entry can be evicted and restored repeatedly, and as_of shows each period', async () => {
  const { id } = await createEpisode(s.api, { ticker: 'WALK', created_at: day(1) });
  const asked = { ticker: 'WALK', policies: ['time'], max_age_days: 1, dry_run: false };
  for (const n of [10, 20, 30]) {
    assert.equal((await evict(s.api, { ...asked, at: day(n) })).evicted, 1);
    assert.deepEqual(await restore(s.api, { ids: [id], at: day(n + 5) }), { restored: 1, skipped: 0, remaining: 0 });
  }
  const evictedAt = async (n) => (await s.api.get(`/v1/episodic/${id}?as_of=${day(n)}`, { status: 200 })).json.evicted_at;
  const walk = async () => Promise.all([9, 10, 14, 15, 19, 20, 24, 25, 31, 35].map(evictedAt));
  const seen = [null, day(10), day(10), null, null, day(20), day(20), null, day(30), null];
  assert.deepEqual(await walk(), seen);
  assert.equal((await evict(s.api, { ...asked, at: day(12) })).matched, 0, 'it is in the archive then');
  assert.deepEqual(await restore(s.api, { ids: [id], at: day(40) }), { restored: 0, skipped: 1, remaining: 0 });
  assert.deepEqual(await walk(), seen);
});

test('an eviction dated before a later one applies from its own date, and the later ones stay', async () => {
  const { id } = await createEpisode(s.api, { ticker: 'EARLY', created_at: day(1) });
  const asked = { ticker: 'EARLY', policies: ['time'], max_age_days: 1, dry_run: false };
  const evictedAt = async (n) => (await s.api.get(`/v1/episodic/${id}?as_of=${day(n)}`, { status: 200 })).json.evicted_at;
  await evict(s.api, { ...asked, at: day(20) });
  await restore(s.api, { ids: [id], at: day(25) });
  assert.equal((await evict(s.api, { ...asked, dry_run: true, at: day(10) })).matched, 1, 'a dry run in the past ignores later evictions');
  assert.equal((await evict(s.api, { ...asked, at: day(10) })).evicted, 1);
  assert.deepEqual([await evictedAt(9), await evictedAt(10), await evictedAt(22), await evictedAt(25)], [null, day(10), day(10), null]);
  assert.deepEqual(await visible('ticker=EARLY'), [id], 'it was restored then');
  const late = await evict(s.api, { ...asked, at: day(50) });
  assert.equal((await evict(s.api, { ...asked, at: day(40) })).evicted, 1);
  assert.deepEqual([await evictedAt(39), await evictedAt(40), await evictedAt(60)], [null, day(40), day(40)]);
  assert.deepEqual(await restore(s.api, { eviction_id: late.eviction_id, at: day(60) }), { restored: 0, skipped: 1, remaining: 0 }, 'the earlier eviction has it');
});

test('a large restore takes several requests, and each reports what remains', async () => {
  await postEpisodes(s.api, Array.from({ length: 10 }, (_, i) => newEpisode({ ticker: 'STEPS', created_at: day(1 + i) })));
  const { eviction_id } = await evict(s.api, { ticker: 'STEPS', dry_run: false, at: day(300), policies: ['time'] });
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(301), limit: 4 }), { restored: 4, skipped: 0, remaining: 6 });
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(301), limit: 4 }), { restored: 4, skipped: 4, remaining: 2 });
  assert.deepEqual(await restore(s.api, { eviction_id, at: day(301) }), { restored: 2, skipped: 8, remaining: 0 });
  assert.equal((await visible('ticker=STEPS')).length, 10);
});

test('an entry cannot be restored before it was evicted', async () => {
  const { id } = await createEpisode(s.api, { ticker: 'LATE', created_at: day(1) });
  await evict(s.api, { ticker: 'LATE', dry_run: false, at: day(20), policies: ['time'], max_age_days: 1 });
  assert.deepEqual(await restore(s.api, { ids: [id], at: day(19) }), { restored: 0, skipped: 1, remaining: 0 });
  assert.deepEqual(await restore(s.api, { ids: [id], at: day(20) }), { restored: 1, skipped: 0, remaining: 0 }, 'restored at the instant of its eviction, it was never away');
  assert.equal((await s.api.get(`/v1/episodic/${id}?as_of=${day(20)}`, { status: 200 })).json.evicted_at, null);
});

test('concurrent evictions move each entry once', async () => {
  await postEpisodes(s.api, Array.from({ length: 200 }, (_, i) => newEpisode({ ticker: 'RACE', created_at: day(1 + (i % 50)) })));
  const answers = await Promise.all(Array.from({ length: 6 }, () => evict(s.api, { ticker: 'RACE', dry_run: false, at: day(400), policies: ['time'], limit: 100 })));
  assert.equal(answers.reduce((sum, a) => sum + a.evicted, 0), (await visible('ticker=RACE&archived=true')).length);
  for (const a of answers) assert.equal(a.matched, a.evicted + a.remaining);
  const [{ n }] = await s.query(`SELECT count(*)::int AS n FROM daybook.episodic_memory WHERE ticker = 'RACE' AND evicted_at IS NOT NULL AND upper_inf(away) IS NOT TRUE`);
  assert.equal(n, 0);
});

test('a retry with the same Idempotency-Key evicts and restores once', async () => {
  await postEpisodes(s.api, Array.from({ length: 10 }, (_, i) => newEpisode({ ticker: 'ONCE', created_at: day(1 + i) })));
  const headers = { 'idempotency-key': 'evict-once' };
  const body = { ticker: 'ONCE', dry_run: false, at: day(400), policies: ['time'], limit: 4 };
  const first = await s.api.post('/v1/episodic/evict', body, { headers, status: 200 });
  assert.equal((await s.api.post('/v1/episodic/evict', body, { headers, status: 200 })).text, first.text);
  assert.equal((await visible('ticker=ONCE&archived=true')).length, 4);
});

test('every invalid field is rejected by name, and nothing is moved', async () => {
  const refused = async (path, body) => faults(await s.api.post(`/v1/episodic/${path}`, body, { status: 422 }));
  assert.deepEqual(await refused('evict', { policies: ['age', 'size', 'lru'] }), ['policies[0]: not_a_choice', 'policies[2]: not_a_choice']);
  assert.deepEqual(await refused('evict', { policies: [] }), ['policies: too_few']);
  assert.deepEqual(await refused('evict', { policies: ['time', 'time'] }), ['policies[1]: duplicate_item']);
  assert.deepEqual(await refused('evict', { max_age_days: 0, keep_per_pair: 0, unread_days: 0, limit: 0, samples: 101, dry_run: 'no', at: 'x', dryrun: false }), [
    'at: invalid_time',
    'dry_run: wrong_type',
    'dryrun: unknown_field',
    'keep_per_pair: out_of_range',
    'limit: out_of_range',
    'max_age_days: out_of_range',
    'samples: out_of_range',
    'unread_days: out_of_range',
  ]);
  assert.deepEqual(await refused('evict', { limit: 100001 }), ['limit: out_of_range']);
  assert.deepEqual(await refused('restore', {}), ['ids: required']);
  assert.deepEqual(await refused('restore', { ids: [UNKNOWN_ID], eviction_id: UNKNOWN_ID }), ['eviction_id: not_together']);
  assert.deepEqual(await refused('restore', { ids: [] }), ['ids: too_few']);
  assert.deepEqual(await refused('restore', { ids: ['x'], limit: 0 }), ['ids[0]: invalid_uuid', 'limit: out_of_range']);
  await s.api.post('/v1/episodic/restore', { eviction_id: UNKNOWN_ID }, { status: 404 });
});
