// Point in time: every read with as_of shows the library as it was at that instant, without anything later.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const LAST = 10;
const READS = {
  one: (as) => `/v1/lessons/${first.id}?as_of=${as}`,
  list: (as) => `/v1/lessons?as_of=${as}`,
  'list by status': (as) => `/v1/lessons?status=proposed&as_of=${as}`,
  'list by tag': (as) => `/v1/lessons?tags=added&as_of=${as}`,
  'list of active': (as) => `/v1/lessons?active=true&as_of=${as}`,
  history: (as) => `/v1/lessons/${first.id}/history?as_of=${as}`,
  block: (as) => `/v1/lessons/block?as_of=${as}`,
  'export of jsonl': (as) => `/v1/lessons/export?format=jsonl&as_of=${as}`,
  'export of md': (as) => `/v1/lessons/export?format=md&as_of=${as}`,
  curation: (as) => `/v1/lessons/curation?stale_days=2&as_of=${as}`,
};

let first;
const seen = {}; // read -> day -> the response recorded on that day
const at = (n, path) => s.api.get(path(day(n, '12:00:00')));

/** Records every read as of noon of that day. */
async function take(n) {
  for (const [name, path] of Object.entries(READS)) (seen[name] ??= {})[n] = (await at(n, path)).text;
}

async function prepare() {
  const takeaway = 'Always shrink macro odds by fifteen percent before sizing';
  const steps = {
    1: async () => (first = await create(s.api, { at: day(1), takeaway })),
    2: () => create(s.api, { at: day(2), takeaway: `${takeaway} a trade` }),
    3: () => s.api.post(`/v1/lessons/${first.id}/validate`, { outcome: OUTCOME, at: day(3) }, { status: 200 }),
    4: () => create(s.api, { at: day(4), takeaway: takeaway.replace('Always', 'Never') }),
    5: async () => {
      const other = await create(s.api, { at: day(5), tags: ['added'], evidence: ['more'] });
      await s.api.post('/v1/lessons/merge', { into: first.id, ids: [other.id], at: day(5, '01:00:00') }, { status: 200 });
    },
    6: () => s.api.post(`/v1/lessons/${first.id}/validate`, { outcome: { ...OUTCOME, value: 9 }, at: day(6) }, { status: 200 }),
    8: () => s.api.post(`/v1/lessons/${first.id}/retire`, { reason: 'over', at: day(8) }, { status: 200 }),
  };
  for (let n = 1; n <= LAST; n++) {
    await steps[n]?.();
    await take(n);
  }
}

for (const [name, path] of Object.entries(READS))
  test(`${name}: a later read as of a day returns what was returned on that day`, async () => {
    for (let n = 1; n <= LAST; n++) assert.equal((await at(n, path)).text, seen[name][n], `day ${n}`);
    assert.ok(new Set(Object.values(seen[name])).size > 1, 'it never changed: this test shows nothing');
  });

test('before its created_at a lesson does not exist', async () => {
  for (const path of ['', '/history']) await s.api.get(`/v1/lessons/${first.id}${path}?as_of=2025-12-31T23:59:59.999999Z`, { status: 404 });
  assert.deepEqual((await at(-1, READS.list)).json.items, []);
  assert.equal((await at(-1, READS.block)).json.count, 0);
  assert.equal((await at(-1, READS['export of jsonl'])).text, '');
  assert.deepEqual((await at(-1, READS.curation)).json, { duplicates: [], conflicts: [], stale: [], more: false });
});

test('as_of includes a change at the same instant', async () => {
  const status = async (as) => (await s.api.get(READS.one(as), { status: 200 })).json.status;
  assert.equal(await status(day(1)), 'proposed');
  assert.equal(await status(day(2, '23:59:59.999999')), 'proposed');
  assert.equal(await status(day(3)), 'validated');
  assert.equal(await status(day(8)), 'retired');
});

test('a validation is not visible on the days before it', async () => {
  const value = async (n) => (await at(n, READS.one)).json.validation?.value ?? null;
  assert.deepEqual([await value(2), await value(3), await value(5), await value(6), await value(10)], [null, 0.171, 0.171, 9, 9]);
});

test('merged tags and evidence are not visible on the days before the merge', async () => {
  assert.deepEqual((await at(4, READS.one)).json.tags, ['all']);
  assert.deepEqual((await at(5, READS.one)).json.tags, ['all', 'added']);
  assert.deepEqual((await at(4, READS.one)).json.evidence, first.evidence);
  assert.deepEqual((await at(4, READS['list by tag'])).json.items, []);
  assert.deepEqual((await at(5, READS['list by tag'])).json.items.map((x) => x.id).includes(first.id), true);
});

test('a retired lesson is in the block of the days when it was active', async () => {
  assert.ok((await at(7, READS.block)).json.lesson_ids.includes(first.id));
  assert.ok(!(await at(8, READS.block)).json.lesson_ids.includes(first.id));
});

test('without as_of the latest state is shown', async () => {
  assert.equal((await s.api.get(`/v1/lessons/${first.id}`)).json.status, 'retired');
});
