// Keys: who may call, what each role may do, and isolation between owners.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { create, day, newLesson, OUTCOME } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { command, createKey, startService } from '../lib/service.mjs';

let cluster, database, url, service, anonymous;
const keys = {}; // role -> {key, id} of owner alpha
const as = {}; // role -> client; as.other is an agent of owner beta

before(async () => {
  cluster = await startCluster();
  database = await cluster.createDatabase();
  url = cluster.url(database);
  assert.equal((await command(['migrate', '--database-url', url])).code, 0);
  for (const role of ['reader', 'researcher', 'agent', 'admin']) keys[role] = await createKey(url, 'alpha', role, `${role} of alpha`);
  keys.other = await createKey(url, 'beta', 'agent');
  service = await startService(url);
  anonymous = makeClient(service.base);
  for (const [role, { key }] of Object.entries(keys)) as[role] = anonymous.as(key);
});

after(async () => {
  for (const client of [anonymous, ...Object.values(as)]) client?.close();
  try {
    await service?.stop();
  } finally {
    await cluster?.close();
  }
});

test('without a valid key every path under /v1 is 401 with WWW-Authenticate', async () => {
  for (const headers of [
    {},
    { authorization: 'Bearer wrong' },
    { 'x-api-key': 'wrong' },
    { authorization: keys.agent.key },
    { authorization: `Basic ${keys.agent.key}` },
    { authorization: 'Bearer ' },
  ]) {
    const answer = await anonymous.get('/v1/lessons', { headers, status: 401 });
    assert.equal(answer.json.code, 'unauthenticated');
    assert.match(answer.headers['www-authenticate'], /^Bearer/);
  }
  await anonymous.post('/v1/lessons', newLesson(), { status: 401 });
  await anonymous.post('/v1/lessons', '{', { status: 401 });
});

test('a key is accepted as Bearer token and as X-API-Key', async () => {
  await anonymous.get('/v1/lessons', { headers: { authorization: `Bearer ${keys.agent.key}` }, status: 200 });
  await anonymous.get('/v1/lessons', { headers: { authorization: `bearer ${keys.agent.key}` }, status: 200 });
  await anonymous.get('/v1/lessons', { headers: { 'x-api-key': keys.agent.key }, status: 200 });
});

test('two different keys in one request are 400, the same key twice is served', async () => {
  const both = (bearer, header) => ({ authorization: `Bearer ${bearer}`, 'x-api-key': header });
  for (const other of [keys.reader.key, 'dbk_unknown'])
    for (const headers of [both(keys.agent.key, other), both(other, keys.agent.key)])
      assert.equal((await anonymous.get('/v1/lessons', { headers, status: 400 })).json.code, 'bad_request');
  await anonymous.get('/v1/lessons', { headers: both(keys.agent.key, keys.agent.key), status: 200 });
});

test('health, metrics, version and the contract need no key', async () => {
  for (const path of ['/health/live', '/health/ready', '/metrics', '/version', '/openapi.json', '/docs', '/docs/viewer.js'])
    await anonymous.get(path, { status: 200 });
});

const STEPS = {
  read: async (api, id) => api.get(`/v1/lessons/${id}`),
  list: (api) => api.get('/v1/lessons'),
  export: (api) => api.get('/v1/lessons/export?format=jsonl'),
  propose: (api) => api.post('/v1/lessons', newLesson({ at: day(1) })),
  validate: (api, id) => api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, at: day(2) }),
  supersede: async (api, id) => api.post(`/v1/lessons/${id}/supersede`, { by: (await create(as.agent, { at: day(1) })).id, at: day(3) }),
  merge: async (api, id) => api.post('/v1/lessons/merge', { into: id, ids: [(await create(as.agent, { at: day(1) })).id], at: day(3) }),
  retire: (api, id) => api.post(`/v1/lessons/${id}/retire`, { reason: 'x', at: day(4) }),
};
const MAY = {
  reader: ['read', 'list', 'export'],
  researcher: ['read', 'list', 'export', 'propose'],
  agent: Object.keys(STEPS),
  admin: Object.keys(STEPS),
};

for (const [role, allowed] of Object.entries(MAY))
  test(`the role ${role} may ${allowed.join(', ')}${allowed.length < Object.keys(STEPS).length ? ' and nothing else' : ''}`, async () => {
    for (const [name, step] of Object.entries(STEPS)) {
      const { id } = await create(as.agent, { at: day(1) });
      const answer = await step(as[role], id);
      if (allowed.includes(name)) assert.ok(answer.status < 300, `${name}: ${answer.text}`);
      else {
        assert.equal(answer.status, 403, name);
        assert.equal(answer.json.code, 'forbidden');
        assert.equal((await as.agent.get(`/v1/lessons/${id}`)).json.status, 'proposed', `${name} changed something`);
      }
    }
  });

test("two owners never see or change each other's lessons", async () => {
  const takeaway = 'A takeaway that only alpha has learned so far';
  const mine = await create(as.agent, { takeaway, tags: ['secret'], at: day(1) });
  const theirs = await create(as.other, { takeaway, at: day(1) });
  assert.deepEqual(theirs.similar, [], 'similar reaches into another owner');
  for (const path of ['', '/history']) await as.other.get(`/v1/lessons/${mine.id}${path}`, { status: 404 });
  for (const path of [
    '/v1/lessons',
    '/v1/lessons?tags=secret',
    `/v1/lessons?as_of=${day(300)}`,
    '/v1/lessons/block',
    '/v1/lessons/export?format=jsonl',
    '/v1/lessons/export?format=md',
    '/v1/lessons/curation?stale_days=1',
  ])
    assert.ok(!(await as.other.get(path, { status: 200 })).text.includes(mine.id), path);
  await as.other.post(`/v1/lessons/${mine.id}/validate`, { outcome: OUTCOME }, { status: 404 });
  await as.other.post(`/v1/lessons/${mine.id}/retire`, { reason: 'x' }, { status: 404 });
  await as.other.post(`/v1/lessons/${mine.id}/supersede`, { by: theirs.id }, { status: 404 });
  await as.other.post(`/v1/lessons/${theirs.id}/supersede`, { by: mine.id }, { status: 404 });
  await as.other.post('/v1/lessons/merge', { into: theirs.id, ids: [mine.id] }, { status: 404 });
  await as.other.post('/v1/lessons/merge', { into: mine.id, ids: [theirs.id] }, { status: 404 });
  assert.equal((await as.agent.get(`/v1/lessons/${mine.id}`)).json.status, 'proposed');
  assert.equal((await as.other.get(`/v1/lessons/${theirs.id}`)).json.status, 'proposed');
});

test('two keys of one owner see the same lessons', async () => {
  const { id } = await create(as.researcher);
  await as.reader.get(`/v1/lessons/${id}`, { status: 200 });
});

test('Idempotency-Keys of different owners do not collide', async () => {
  const headers = { 'idempotency-key': 'shared' };
  const body = newLesson();
  const a = await as.agent.post('/v1/lessons', body, { headers, status: 201 });
  const b = await as.other.post('/v1/lessons', body, { headers, status: 201 });
  assert.notEqual(a.json.id, b.json.id);
  assert.equal(b.headers['idempotency-replayed'], undefined);
});

test('a cursor of one owner is rejected for another', async () => {
  for (let i = 0; i < 3; i++) await create(as.agent);
  const { next_cursor } = (await as.agent.get('/v1/lessons?limit=1')).json;
  await as.other.get(`/v1/lessons?limit=1&cursor=${encodeURIComponent(next_cursor)}`, { status: 422 });
});

test('a new key works immediately, a revoked one for at most 2 s', async () => {
  const { key, id } = await createKey(url, 'alpha', 'reader', 'short-lived');
  const api = anonymous.as(key);
  await api.get('/v1/lessons', { status: 200 });
  const { code, stderr } = await command(['key', 'revoke', id, '--database-url', url]);
  assert.equal(code, 0, stderr);
  await until(async () => (await api.get('/v1/lessons')).status === 401, 'the revoked key is refused');
  api.close();
});

test('keys are listed without their secret, and stored hashed', async () => {
  const { code, stdout } = await command(['key', 'list', '--database-url', url]);
  assert.equal(code, 0);
  for (const word of ['alpha', 'beta', 'reader', 'researcher', 'agent', 'admin', keys.reader.id, 'reader of alpha'])
    assert.ok(stdout.includes(word), `${word} is not listed`);
  for (const { key } of Object.values(keys)) assert.ok(!stdout.includes(key));
  const rows = JSON.stringify(await cluster.query(database, 'SELECT * FROM daybook.api_keys'));
  for (const { key } of Object.values(keys)) assert.ok(!rows.includes(key), 'a key is stored in plain text');
});

test('key commands report bad arguments in one line', async () => {
  const failing = [
    ['key', 'create', '--owner', 'x', '--role', 'king'],
    ['key', 'create', '--role', 'agent'],
    ['key', 'create', '--owner', 'x'],
    ['key', 'revoke', '01890000-0000-7000-8000-000000000000'],
    ['key', 'revoke', 'nonsense'],
    ['key', 'revoke'],
    ['key', 'dance'],
  ];
  for (const args of failing) {
    const { code, stderr } = await command([...args, '--database-url', url]);
    assert.ok(code === 1 || code === 2, `${args.join(' ')}: ${code}`);
    assert.match(stderr, /daybookd: .+/, args.join(' '));
  }
});
