// Curation finds duplicates, conflicts and stale lessons among active lessons.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, faults, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const NOW = day(200);
const curation = async (query = '') => (await s.api.get(`/v1/lessons/curation?as_of=${NOW}${query}`, { status: 200 })).json;
const pairOf = (list, x, y) => list.find((p) => [p.a, p.b].includes(x.id) && [p.a, p.b].includes(y.id));
const L = {};

async function prepare() {
  const make = (name, takeaway, n = 190) => create(s.api, { takeaway, at: day(n) }).then((x) => (L[name] = x));
  await make('twin1', 'Research packs over forty thousand tokens degrade extraction recall');
  await make('twin2', 'Research packs over forty thousand tokens degrade extraction recall a lot');
  await make('always', 'Hold gap trades over the weekend when volatility is low');
  await make('never', 'Do not hold gap trades over the weekend when volatility is low');
  await make('alone', 'Footnote tables need a second pass to resolve references');
  await make('gone', 'Research packs over forty thousand tokens degrade extraction recall badly');
  await make('old', 'Filing lag differs by exchange', 10);
  await make('older', 'Spread decay follows the hour', 5);
  await make('renewed', 'Guidance tone overcalls weakness in technology', 5);
  await make('oldgone', 'Earnings drift fades by day three', 5);
  const change = (name, verb, body, n) => s.api.post(`/v1/lessons/${L[name].id}/${verb}`, { ...body, at: day(n) }, { status: 200 });
  await change('gone', 'retire', { reason: 'double' }, 195);
  await change('oldgone', 'retire', { reason: 'over' }, 20);
  await change('renewed', 'validate', { outcome: OUTCOME }, 180);
}

test('nearly equal takeaways are duplicates, and each pair is listed once', async () => {
  const { duplicates } = await curation();
  const found = pairOf(duplicates, L.twin1, L.twin2);
  assert.ok(found && found.score >= 0.6 && found.score <= 1, JSON.stringify(duplicates));
  assert.equal(duplicates.filter((p) => [p.a, p.b].includes(L.twin1.id)).length, 1);
  assert.ok(!duplicates.some((p) => [p.a, p.b].includes(L.alone.id)));
  assert.ok(duplicates.every((p) => p.a !== p.b));
});

test('contradicting takeaways are conflicts with a reason, not duplicates', async () => {
  const { conflicts, duplicates } = await curation();
  const found = pairOf(conflicts, L.always, L.never);
  assert.ok(found, JSON.stringify(conflicts));
  assert.ok(found.reason.length > 3);
  assert.equal(pairOf(duplicates, L.always, L.never), undefined, 'merging two lessons that contradict would lose one');
  assert.equal(pairOf(conflicts, L.twin1, L.twin2), undefined);
});

test('lessons unchanged for stale_days are stale, oldest first', async () => {
  const { stale } = await curation('&stale_days=90');
  assert.deepEqual(
    stale.map((x) => x.id),
    [L.older.id, L.old.id],
  );
  assert.deepEqual(stale[0], { id: L.older.id, at: day(5), status: 'proposed', age_days: 195 });
  assert.deepEqual(
    (await curation('&stale_days=192')).stale.map((x) => x.id),
    [L.older.id],
  );
  assert.deepEqual((await curation('&stale_days=3650')).stale, []);
});

test('inactive lessons are in none of the lists', async () => {
  assert.ok(!JSON.stringify(await curation()).includes(L.gone.id));
  assert.ok(!JSON.stringify(await curation()).includes(L.oldgone.id));
});

test('limit truncates each list, and the response says so', async () => {
  const cut = await curation('&limit=1&stale_days=90');
  assert.equal(cut.stale.length, 1);
  assert.equal(cut.more, true);
  assert.equal((await curation('&stale_days=90')).more, false);
});

test('the same library yields the same response', async () => {
  assert.deepEqual(await curation(), await curation());
});

test('merging the duplicates clears them', async () => {
  const { id } = await create(s.api, { takeaway: 'Merge me: funding flips on weekends', at: day(190) });
  const other = await create(s.api, { takeaway: 'Merge me: funding flips on weekend', at: day(190) });
  assert.ok(pairOf((await curation()).duplicates, { id }, other));
  await s.api.post('/v1/lessons/merge', { into: id, ids: [other.id], at: day(191) }, { status: 200 });
  assert.equal(pairOf((await curation()).duplicates, { id }, other), undefined);
});

test('invalid limits are rejected by name', async () => {
  assert.deepEqual(faults(await s.api.get('/v1/lessons/curation?limit=201&stale_days=0&tags=a', { status: 422 })), [
    'limit: out_of_range',
    'stale_days: out_of_range',
    'tags: unknown_field',
  ]);
});

test('a library of a thousand lessons is curated within the request timeout', async () => {
  for (let from = 0; from < 1000; from += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        create(s.api, {
          takeaway: `Signal ${(from + i) * 7919} decays after ${(from + i) % 97} sessions in regime ${(from + i) % 13}`,
          at: day(195),
        }),
      ),
    );
  }
  const { duplicates, more } = await curation('&limit=200');
  assert.ok(duplicates.length > 0 || more !== undefined);
});
