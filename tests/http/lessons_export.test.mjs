// Exports: every matching lesson, in both formats, streamed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';
import { exchange, makeClient } from '../lib/client.mjs';
import { create, day, distinctTakeaway, everyItem, faults, OUTCOME } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const MANY = 3000;

/** Inserts rows by SQL, as POST /v1/lessons would store them: posting compares each lesson with all others, which would take too long here. */
async function prepare() {
  await s.query(
    `INSERT INTO daybook.lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence, status, status_at, similar_keys)
     SELECT 'local', gen_random_uuid(), 1, at, at, 'Case ' || n, 'Seen ' || n || ' times', takeaway, ARRAY['bulk', 't' || (n - 1) % 7], ARRAY['log ' || n], 'proposed', at, '{}'
     FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY AS given (takeaway, at, n)`,
    [Array.from({ length: MANY }, (_, i) => distinctTakeaway(i)), Array.from({ length: MANY }, (_, i) => day(1 + (i % 300)))],
  );
}

const lines = (text) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

test('jsonl has every lesson once, in the form and order of the list', async () => {
  const answer = await s.api.get('/v1/lessons/export?format=jsonl', { status: 200 });
  assert.match(answer.headers['content-type'], /^application\/x-ndjson/);
  const exported = lines(answer.text);
  assert.equal(exported.length, MANY);
  assert.deepEqual(exported, await everyItem(s.api, '/v1/lessons?limit=200'));
});

test('the export takes the filters of the list', async () => {
  const { id } = await create(s.api, { tags: ['one', 'two'], at: day(2), context: 'Unrepeatable wording' });
  await s.api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, at: day(3) }, { status: 200 });
  for (const query of [
    'tags=one,none',
    'tags_all=one,two',
    'status=validated',
    `tags=one&since=${day(2)}&until=${day(3)}`,
    'text=unrepeatable%20wording',
    `as_of=${day(3)}&status=validated&active=true`,
  ])
    assert.deepEqual(
      lines((await s.api.get(`/v1/lessons/export?format=jsonl&${query}`, { status: 200 })).text).map((x) => x.id),
      [id],
      query,
    );
  const some = lines((await s.api.get('/v1/lessons/export?format=jsonl&tags=t3')).text);
  assert.equal(some.length, Math.ceil((MANY - 3) / 7));
});

test('an export without matches is empty, not an error', async () => {
  assert.equal((await s.api.get('/v1/lessons/export?format=jsonl&tags=none', { status: 200 })).text, '');
  await s.api.get('/v1/lessons/export?format=md&tags=none', { status: 200 });
});

test('md shows every lesson with its evidence and state', async () => {
  const { id } = await create(s.api, {
    tags: ['shown'],
    at: day(4),
    takeaway: 'Shown <as> *it* is',
    context: 'The context',
    outcome: 'The outcome',
    evidence: ['log 17', 'log 18'],
  });
  await s.api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME, reason: 'The reason', at: day(5) }, { status: 200 });
  const { text, headers } = await s.api.get('/v1/lessons/export?format=md&tags=shown', { status: 200 });
  assert.match(headers['content-type'], /^text\/markdown; charset=utf-8$/i);
  for (const part of ['The context', 'The outcome', 'log 17', 'log 18', 'validated', 'The reason', 'brier_score', '0.171', 'shown', id])
    assert.ok(text.replaceAll('\\', '').includes(part), `${part} is missing in: ${text}`);
  const all = (await s.api.get('/v1/lessons/export?format=md&tags=bulk', { status: 200 })).text;
  assert.equal(all.match(/Lesson \d+: /g).length >= MANY, true);
});

test('an unknown format is rejected', async () => {
  assert.deepEqual(faults(await s.api.get('/v1/lessons/export', { status: 422 })), ['format: required']);
  assert.deepEqual(faults(await s.api.get('/v1/lessons/export?format=xlsx&limit=5', { status: 422 })), [
    'format: not_a_choice',
    'limit: unknown_field',
  ]);
});

test('HEAD of an export has no body, not even a final chunk', async () => {
  const request = (method, path, end) => `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${end}\r\n`;
  const { received } = await exchange(
    s.service.port,
    request('HEAD', '/v1/lessons/export?format=jsonl', '') + request('GET', '/health/live', 'Connection: close\r\n'),
  );
  const [head, next] = received.toString().split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 200 .*application\/x-ndjson/s);
  assert.match(next, /^HTTP\/1\.1 200 /, `after the headers came ${JSON.stringify(next.slice(0, 20))}`);
});

test('a client that reads slowly or disconnects does not block others', async () => {
  const agent = new http.Agent({ keepAlive: false });
  const slow = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const request = http.get(`${s.service.base}/v1/lessons/export?format=jsonl`, { agent });
      const [response] = await once(request, 'response');
      response.pause(); // reads nothing from now on
      return { request, response };
    }),
  );
  const answer = await s.api.get('/v1/lessons/export?format=jsonl&tags=t1', { status: 200 });
  assert.ok(lines(answer.text).length > 100);
  await s.api.get('/v1/lessons?limit=10', { status: 200 });
  await create(s.api);
  for (const { request, response } of slow) {
    response.on('error', () => {});
    request.destroy();
  }
  assert.ok(lines((await s.api.get('/v1/lessons/export?format=jsonl', { status: 200 })).text).length >= MANY);
});

test('an export concurrent with writes has no duplicates and every lesson that existed at its start', async () => {
  const known = new Set((await everyItem(s.api, '/v1/lessons?limit=200')).map((x) => x.id));
  let writing = true;
  const writer = (async () => {
    while (writing) await create(s.api, { tags: ['bulk'], at: day(150) });
  })();
  const exported = lines((await s.api.get('/v1/lessons/export?format=jsonl', { status: 200 })).text).map((x) => x.id);
  writing = false;
  await writer;
  assert.equal(new Set(exported).size, exported.length);
  for (const id of exported) known.delete(id);
  assert.equal(known.size, 0);
});

test('an export may exceed the request timeout: the limit applies to each of its statements', async () => {
  const service = await s.another({ args: ['--request-timeout-ms', '1000'] });
  const api = makeClient(service.base);
  const holder = await s.cluster.connect(s.database);
  const waits = async () =>
    (await s.query("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")).length > 0;
  const begun = Date.now();
  let taken;
  const answer = api.get('/v1/lessons/export?format=jsonl', { status: 200 }).finally(() => (taken = Date.now() - begun));
  while (Date.now() - begun < 2000) {
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE daybook.lessons IN ACCESS EXCLUSIVE MODE');
    await until(async () => taken || (await waits()), 'a page waits');
    await holder.query('SELECT pg_sleep(0.2)');
    await holder.query('ROLLBACK');
  }
  await holder.end();
  assert.ok(lines((await answer).text).length >= MANY);
  assert.ok(taken > 2000, `it took ${taken} ms`);
  api.close();
  await service.stop();
});
