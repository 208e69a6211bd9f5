// Idempotency-Key: a retry changes nothing and gets the stored response.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { create, day, newLesson, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const withKey = (key, options = {}) => ({ ...options, headers: { 'idempotency-key': key, ...options.headers } });
const count = async (tag) => (await s.api.get(`/v1/lessons?tags=${tag}`)).json.items.length;

test('a retry gets the first response byte for byte, marked as a replay', async () => {
  const body = newLesson({ tags: ['once'] });
  const first = await s.api.post('/v1/lessons', body, withKey('key-1', { status: 201 }));
  assert.equal(first.headers['idempotency-replayed'], undefined);
  for (let i = 0; i < 3; i++) {
    const again = await s.api.post('/v1/lessons', body, withKey('key-1', { status: 201 }));
    assert.deepEqual(again.bytes, first.bytes);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.equal(again.headers.location, first.headers.location);
    assert.equal(again.headers['content-type'], first.headers['content-type']);
    assert.notEqual(again.headers['x-request-id'], first.headers['x-request-id']);
  }
  assert.equal(await count('once'), 1);
});

test('without a key every request is executed', async () => {
  const body = newLesson({ tags: ['twice'] });
  await s.api.post('/v1/lessons', body, { status: 201 });
  await s.api.post('/v1/lessons', body, { status: 201 });
  assert.equal(await count('twice'), 2);
});

test('the same key with a different body or path is 409 idempotency_conflict', async () => {
  const body = newLesson({ tags: ['conflict'] });
  const { json } = await s.api.post('/v1/lessons', body, withKey('key-2', { status: 201 }));
  const other = await s.api.post('/v1/lessons', { ...body, context: 'other' }, withKey('key-2', { status: 409 }));
  assert.equal(other.json.code, 'idempotency_conflict');
  assert.equal(
    (await s.api.post(`/v1/lessons/${json.id}/retire`, { reason: 'x' }, withKey('key-2', { status: 409 }))).json.code,
    'idempotency_conflict',
  );
  assert.equal(await count('conflict'), 1);
  await s.api.post('/v1/lessons', body, withKey('key-2', { status: 201 }));
});

test('every write accepts a key', async () => {
  const [a, b, c] = [await create(s.api, { at: day(1) }), await create(s.api, { at: day(1) }), await create(s.api, { at: day(1) })];
  const posts = [
    [`/v1/lessons/${a.id}/validate`, { outcome: OUTCOME, at: day(2) }],
    [`/v1/lessons/${b.id}/supersede`, { by: a.id, at: day(3) }],
    ['/v1/lessons/merge', { into: a.id, ids: [c.id], at: day(4) }],
    [`/v1/lessons/${a.id}/retire`, { reason: 'over', at: day(5) }],
  ];
  for (const [path, body] of posts) {
    const key = randomUUID();
    const first = await s.api.post(path, body, withKey(key, { status: 200 }));
    const again = await s.api.post(path, body, withKey(key, { status: 200 }));
    assert.deepEqual(again.bytes, first.bytes, path);
    assert.equal(again.headers['idempotency-replayed'], 'true', path);
  }
  // The merge adds a state of its own.
  assert.deepEqual(
    (await s.api.get(`/v1/lessons/${a.id}/history`)).json.items.map((x) => x.status),
    ['proposed', 'validated', 'validated', 'retired'],
  );
});

test('a stored error is replayed too, even when the request would succeed now', async () => {
  const { id } = await create(s.api, { at: day(1) });
  await s.api.post(`/v1/lessons/${id}/retire`, { reason: 'over', at: day(2) }, { status: 200 });
  const validate = () =>
    s.api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, at: day(3) }, withKey('key-refused', { status: 409 }));
  const first = await validate();
  const again = await validate();
  assert.deepEqual(again.bytes, first.bytes);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal(again.json.code, 'invalid_transition');
});

test('an invalid request leaves its key unused', async () => {
  const body = newLesson({ tags: ['mended'] });
  await s.api.post('/v1/lessons', { ...body, evidence: [] }, withKey('key-mended', { status: 422 }));
  await s.api.post('/v1/lessons', '{', withKey('key-mended', { status: 400 }));
  await s.api.post('/v1/lessons', body, withKey('key-mended', { status: 201 }));
  assert.equal(await count('mended'), 1);
});

test('of many concurrent requests with one key, one is executed; the others get 409 or its response', async () => {
  for (let round = 0; round < 5; round++) {
    const body = newLesson({ tags: [`race${round}`] });
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 12 }, () => s.api.post('/v1/lessons', body, withKey(key))));
    const created = answers.filter((a) => a.status === 201);
    assert.equal(created.filter((a) => !a.headers['idempotency-replayed']).length, 1);
    assert.equal(new Set(created.map((a) => a.text)).size, 1);
    for (const a of answers) if (a.status !== 201) assert.equal(a.json.code, 'idempotency_in_progress');
    assert.equal(await count(`race${round}`), 1);
  }
});

test('while the first request runs, a second with the same key is 409 idempotency_in_progress', async () => {
  const body = newLesson({ tags: ['held'] });
  const holder = await s.cluster.connect(s.database);
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE daybook.lessons IN ACCESS EXCLUSIVE MODE');
  const both = [1, 2].map(() => s.api.post('/v1/lessons', body, withKey('key-held')));
  try {
    const refused = await Promise.race(both); // the first to arrive waits for the table
    assert.equal(refused.status, 409);
    assert.equal(refused.json.code, 'idempotency_in_progress');
  } finally {
    await holder.query('ROLLBACK');
    await holder.end();
  }
  assert.deepEqual((await Promise.all(both)).map((a) => a.status).sort(), [201, 409]);
  const again = await s.api.post('/v1/lessons', body, withKey('key-held', { status: 201 }));
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal(await count('held'), 1);
});

test('a stored response survives a restart of the service', async () => {
  const body = newLesson({ tags: ['restart'] });
  const service = await s.another();
  const api = makeClient(service.base);
  const first = await api.post('/v1/lessons', body, withKey('key-restart', { status: 201 }));
  api.close();
  await service.kill();
  const again = await s.api.post('/v1/lessons', body, withKey('key-restart', { status: 201 }));
  assert.deepEqual(again.bytes, first.bytes);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal(await count('restart'), 1);
});

test('a key expires after 24 hours', async () => {
  const body = newLesson({ tags: ['forgotten'] });
  await s.api.post('/v1/lessons', body, withKey('key-old', { status: 201 }));
  const [{ hours }] = await s.query(
    "SELECT round(extract(epoch from expires_at - now()) / 3600) AS hours FROM daybook.idempotency_keys WHERE key = 'key-old'",
  );
  assert.equal(Number(hours), 24);
  await s.query("UPDATE daybook.idempotency_keys SET expires_at = now() WHERE key = 'key-old'");
  const again = await s.api.post('/v1/lessons', body, withKey('key-old', { status: 201 }));
  assert.equal(again.headers['idempotency-replayed'], undefined);
  assert.equal(await count('forgotten'), 2);
});

test('a key is 1 to 255 visible ASCII characters', async () => {
  for (const key of ['', ' ', 'a b', 'é', 'k'.repeat(256)]) {
    const answer = await s.api.post('/v1/lessons', newLesson({ tags: ['bad'] }), withKey(key, { status: 400 }));
    assert.equal(answer.json.code, 'invalid_idempotency_key', JSON.stringify(key));
  }
  assert.equal(await count('bad'), 0);
  await s.api.post('/v1/lessons', newLesson(), withKey('~!#'.repeat(85), { status: 201 }));
});

test('a read ignores the key', async () => {
  await s.api.get('/v1/lessons', withKey('not a key', { status: 200 }));
  assert.equal((await s.api.get('/v1/lessons', withKey('key-1', { status: 200 }))).headers['idempotency-replayed'], undefined);
});
