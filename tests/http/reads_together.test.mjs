// Concurrent reads share one execution in the database; each must get its own result.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const NOBODY = '01890a5d-ac96-774b-bcce-b302099a8057';

test('each of two hundred concurrent reads gets its own result: existing, unknown and not yet existing rows', async () => {
  const lessons = [];
  for (let i = 0; i < 40; i++)
    lessons.push(await create(s.api, { takeaway: `Reading number ${i} "quoted" \\ {braced}, NULL`, at: day(1 + (i % 20)) }));
  const reads = Array.from({ length: 200 }, async (_, i) => {
    const { id, takeaway, at } = lessons[(i * 7) % lessons.length];
    if (i % 5 === 1) return s.api.get(`/v1/lessons/${NOBODY}`, { status: 404 });
    if (i % 5 === 2) return s.api.get(`/v1/lessons/${id}?as_of=2001-01-01T00:00:00Z`, { status: 404 });
    const { json: body } = await s.api.get(`/v1/lessons/${id}${i % 5 === 3 ? `?as_of=${at}` : ''}`, { status: 200 });
    assert.deepEqual([body.id, body.takeaway, body.at], [id, takeaway, at]);
  });
  await Promise.all(reads);
});
