// Two services on one database: they start concurrently, see the same lessons, and execute a request sent to both only once.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { blocked } from '../lib/faults.mjs';
import { create, newLesson, OUTCOME } from '../lib/lessons.mjs';
import { command, startService } from '../lib/service.mjs';

let cluster, database, services, apis;
const query = (sql, values) => cluster.query(database, sql, values);

before(async () => {
  cluster = await startCluster();
});
after(async () => {
  for (const api of apis ?? []) api.close();
  try {
    await Promise.all((services ?? []).map((service) => service.stop()));
  } finally {
    await cluster?.close();
  }
});

test('several processes can migrate an empty database concurrently', async () => {
  for (let round = 0; round < 2; round++) {
    const empty = await cluster.createDatabase();
    const results = await Promise.all(Array.from({ length: 4 }, () => command(['migrate', '--database-url', cluster.url(empty)])));
    for (const { code, stderr } of results) assert.equal(code, 0, stderr);
    const applied = await cluster.query(empty, 'SELECT number FROM daybook.schema_migrations ORDER BY number');
    assert.deepEqual(applied.map((row) => row.number), applied.map((_, i) => i + 1));
    assert.ok(applied.length > 0);
  }
});

test('both start concurrently on an empty database', async () => {
  database = await cluster.createDatabase();
  services = await Promise.all([startService(cluster.url(database)), startService(cluster.url(database))]);
  apis = services.map((service) => makeClient(service.base));
  for (const api of apis) await api.get('/health/ready', { status: 200 });
});

test('a write to one is visible on the other immediately', async () => {
  for (let i = 0; i < 20; i++) {
    const made = await create(apis[i % 2]);
    const { similar, ...lesson } = made;
    assert.deepEqual((await apis[(i + 1) % 2].get(`/v1/lessons/${made.id}`, { status: 200 })).json, lesson);
  }
  const [one, other] = await Promise.all(apis.map((api) => api.get('/v1/lessons?limit=200', { status: 200 })));
  assert.equal(one.text, other.text);
  assert.equal(one.headers.etag, other.headers.etag);
});

test('a cursor of one works on the other', async () => {
  const page = (await apis[0].get('/v1/lessons?limit=5', { status: 200 })).json;
  const rest = (await apis[1].get(`/v1/lessons?limit=200&cursor=${encodeURIComponent(page.next_cursor)}`, { status: 200 })).json;
  assert.equal(rest.items.length, 15);
});

async function sameKeyToBoth(prefix, rounds) {
  for (let i = 0; i < rounds; i++) {
    const headers = { 'idempotency-key': `${prefix}-${i}` };
    const body = newLesson({ tags: [prefix] });
    const answers = await Promise.all([0, 1, 0, 1].map((n) => apis[n].post('/v1/lessons', body, { headers })));
    const done = answers.filter((a) => a.status === 201);
    assert.ok(done.length >= 1, answers.map((a) => a.text).join('\n'));
    for (const answer of answers.filter((a) => a.status !== 201)) assert.equal(answer.json.code, 'idempotency_in_progress', answer.text);
    assert.equal(done.filter((a) => a.headers['idempotency-replayed'] !== 'true').length, 1, 'one was executed');
    for (const api of apis) {
      const again = await api.post('/v1/lessons', body, { headers, status: 201 });
      assert.equal(again.text, done[0].text);
      assert.equal(again.headers['idempotency-replayed'], 'true');
    }
  }
  const [{ n }] = await query('SELECT count(*)::int AS n FROM daybook.lessons WHERE tags = ARRAY[$1]', [prefix]);
  assert.equal(n, rounds);
}

test('the same key sent to both concurrently is executed once', () => sameKeyToBoth('both', 25));

/** Runs `work` with its `count` requests for the lesson blocked, then releases them all at once. */
async function allAtOnce(id, count, work) {
  const holder = await cluster.connect(database);
  try {
    await holder.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await holder.query('SELECT 1 FROM daybook.lessons WHERE id = $1 FOR UPDATE', [id]);
    const done = work();
    done.catch(() => {}); // awaited by the caller
    await blocked(query, count);
    await holder.query('ROLLBACK');
    return await done;
  } finally {
    await holder.end();
  }
}

async function changesAtOnce() {
  for (let i = 0; i < 8; i++) {
    const { id } = await create(apis[0], { at: '2026-01-01T00:00:00Z' });
    const change = () =>
      Promise.all([
        apis[0].post(`/v1/lessons/${id}/retire`, { reason: 'one', at: '2026-01-02T00:00:00Z' }),
        apis[1].post(`/v1/lessons/${id}/retire`, { reason: 'other', at: '2026-01-02T00:00:00Z' }),
        apis[i % 2].post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, at: '2026-01-02T00:00:00Z' }),
      ]);
    const answers = await (i % 2 ? change() : allAtOnce(id, 3, change));
    const statuses = answers.slice(0, 2).map((a) => a.status).sort();
    assert.deepEqual(statuses, [200, 409], answers.map((a) => a.text).join('\n'));
    assert.ok([200, 409].includes(answers[2].status), answers[2].text);
    for (const refused of answers.filter((a) => a.status === 409)) assert.equal(refused.json.code, 'invalid_transition');
    const history = (await apis[0].get(`/v1/lessons/${id}/history`, { status: 200 })).json.items.map((item) => item.status);
    assert.deepEqual(history, answers[2].status === 200 ? ['proposed', 'validated', 'retired'] : ['proposed', 'retired']);
  }
}

test('concurrent changes of one lesson are serialized and follow the transition rules', changesAtOnce);

test('idempotency and transitions hold when the default isolation level differs', async () => {
  await query(`ALTER DATABASE ${database} SET default_transaction_isolation = 'repeatable read'`);
  for (const service of services) await service.stop();
  for (const api of apis) api.close();
  services = await Promise.all([startService(cluster.url(database)), startService(cluster.url(database))]);
  apis = services.map((service) => makeClient(service.base));
  await sameKeyToBoth('isolated', 15);
  await changesAtOnce();
});
