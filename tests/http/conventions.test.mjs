// Rules for every path: methods, request IDs, the shape of an error.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange } from '../lib/client.mjs';
import { create, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('an unknown path is 404 not_found', async () => {
  for (const path of [
    '/',
    '/v1',
    '/v1/',
    '/v1/nothing',
    '/v1/lessons/',
    '/v1/lessons//history',
    `/v1/lessons/${UNKNOWN_ID}/nothing`,
    '/V1/lessons',
    '/health',
  ]) {
    const answer = await s.api.get(path, { status: 404 });
    assert.equal(answer.json.code, 'not_found', path);
  }
});

test('an unsupported method is 405 and lists the supported ones', async () => {
  const allow = async (method, path) => (await s.api(method, path, { status: 405 })).headers.allow.split(/, */).sort();
  assert.deepEqual(await allow('DELETE', '/v1/lessons'), ['GET', 'HEAD', 'OPTIONS', 'POST']);
  assert.deepEqual(await allow('PUT', '/v1/lessons/merge'), ['OPTIONS', 'POST']);
  assert.deepEqual(await allow('PATCH', `/v1/lessons/${UNKNOWN_ID}`), ['GET', 'HEAD', 'OPTIONS']);
  assert.deepEqual(await allow('POST', '/health/live'), ['GET', 'HEAD', 'OPTIONS']);
  assert.deepEqual(await allow('PROPFIND', '/version'), ['GET', 'HEAD', 'OPTIONS']);
});

test('OPTIONS returns 204 with the supported methods', async () => {
  const answer = await s.api('OPTIONS', '/v1/lessons', { status: 204 });
  assert.deepEqual(answer.headers.allow.split(/, */).sort(), ['GET', 'HEAD', 'OPTIONS', 'POST']);
  await s.api('OPTIONS', '/v1/nothing', { status: 404 });
});

test('HEAD returns the headers of GET without the body', async () => {
  const { id } = await create(s.api);
  for (const path of [`/v1/lessons/${id}`, '/v1/lessons', '/v1/lessons/block', '/version', '/openapi.json', '/docs']) {
    const get = await s.api.get(path, { status: 200 });
    const head = await s.api('HEAD', path, { status: 200 });
    assert.equal(head.bytes.length, 0);
    for (const name of ['content-type', 'etag']) assert.equal(head.headers[name], get.headers[name], `${path} ${name}`);
    if (head.headers['content-length']) assert.equal(head.headers['content-length'], String(get.bytes.length), path);
  }
  await s.api('HEAD', `/v1/lessons/${UNKNOWN_ID}`, { status: 404 });
});

test('X-Request-ID is echoed when it is 1 to 128 visible ASCII characters', async () => {
  for (const id of ['a', 'run-7/step_3', '~'.repeat(128)]) {
    const answer = await s.api.get('/v1/nothing', { headers: { 'x-request-id': id }, status: 404 });
    assert.equal(answer.headers['x-request-id'], id);
    assert.equal(answer.json.request_id, id);
  }
});

test('a missing or invalid X-Request-ID is replaced by a UUIDv7', async () => {
  for (const id of [undefined, '', 'a'.repeat(129), 'two words', 'é']) {
    const answer = await s.api.get('/version', { headers: { 'x-request-id': id } });
    assert.match(answer.headers['x-request-id'], UUID_V7, String(id));
  }
  const [a, b] = await Promise.all([s.api.get('/version'), s.api.get('/version')]);
  assert.notEqual(a.headers['x-request-id'], b.headers['x-request-id']);
});

test('X-Request-ID cannot inject a header into the response', async () => {
  const answer = await exchange(s.service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: a\tb\r\nConnection: close\r\n\r\n', {
    method: 'GET',
    path: '/version',
  });
  assert.match(answer.headers['x-request-id'], UUID_V7);
});

test('an error is a problem document with its code, the request ID and the cause', async () => {
  const answer = await s.api.get(`/v1/lessons/${UNKNOWN_ID}`, { headers: { 'x-request-id': 'req-1' }, status: 404 });
  assert.match(answer.headers['content-type'], /^application\/problem\+json/);
  const { title, detail, ...rest } = answer.json;
  assert.deepEqual(rest, { type: 'urn:daybook:error:not_found', status: 404, code: 'not_found', request_id: 'req-1' });
  assert.ok(title.length > 3 && detail.length > 3);
});

test('all invalid fields of path, query and body are reported together', async () => {
  const query = await s.api.get('/v1/lessons/not-a-uuid/history?limit=0&as_of=yesterday&colour=red', { status: 422 });
  assert.deepEqual(faults(query), ['as_of: invalid_time', 'colour: unknown_field', 'id: invalid_uuid', 'limit: out_of_range']);
  const body = await s.api.post('/v1/lessons/not-a-uuid/retire', { reason: '', at: 'noon', why: 1 }, { status: 422 });
  assert.deepEqual(faults(body), ['at: invalid_time', 'id: invalid_uuid', 'reason: too_short', 'why: unknown_field']);
});

test('a repeated, unknown or malformed query parameter is rejected by name', async () => {
  const bad = async (query) => faults(await s.api.get(`/v1/lessons?${query}`, { status: 422 }));
  assert.deepEqual(await bad('limit=1&limit=2'), ['limit: repeated']);
  assert.deepEqual(await bad('Limit=1'), ['Limit: unknown_field']);
  assert.deepEqual(await bad('limit=201'), ['limit: out_of_range']);
  assert.deepEqual(await bad('limit=99999999999999999999'), ['limit: out_of_range']);
  assert.deepEqual(await bad('limit=ten'), ['limit: wrong_type']);
  assert.deepEqual(await bad('limit=1.5'), ['limit: wrong_type']);
  assert.deepEqual(await bad('active=yes'), ['active: wrong_type']);
  assert.deepEqual(await bad('status=dead'), ['status: not_a_choice']);
  assert.deepEqual(await bad('since=2026-02-30T00:00:00Z'), ['since: invalid_time']);
  assert.deepEqual(await bad('since=2026-02-03T00:00:00'), ['since: invalid_time']);
  assert.deepEqual(await bad('cursor=abc'), ['cursor: invalid_cursor']);
});

test('a path or query with bad percent-encoding is rejected', async () => {
  const code = async (target) => (await s.api.get(target)).json.code;
  assert.equal(await code('/v1/lessons?text=%'), 'bad_request');
  assert.equal(await code('/v1/lessons?text=%zz'), 'bad_request');
  assert.equal(await code('/v1/lessons?text=%ff'), 'invalid_utf8');
  assert.equal(await code('/v1/lessons?text=a%00b'), 'null_character');
  assert.equal(await code('/v1/lessons/%c3%28'), 'invalid_utf8');
});

test('bytes that are not HTTP are rejected and the connection is closed', async () => {
  const answer = await exchange(s.service.port, 'NONSENSE\r\n\r\n');
  if (answer) assert.ok(answer.status >= 400 && answer.status < 500, `status ${answer.status}`);
  await s.api.get('/health/live', { status: 200 });
});

test('connections stay open between requests, also after an error', async () => {
  const targets = ['/version', '/v1/nothing', '/v1/lessons?limit=0', '/v1/lessons'];
  const requests = targets.map(
    (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${path === targets.at(-1) ? 'Connection: close\r\n' : ''}\r\n`,
  );
  const { received } = await exchange(s.service.port, requests.join(''));
  assert.deepEqual(received.toString().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 422', 'HTTP/1.1 200']);
});

test('a body of ambiguous length is rejected and the connection is closed', async () => {
  const head = 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  for (const rest of [
    'Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}',
    'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  ]) {
    const answer = await exchange(s.service.port, head + rest);
    assert.deepEqual([answer.status, answer.headers.connection.toLowerCase()], [400, 'close'], rest);
    assert.equal(answer.json.code, 'bad_request');
  }
});
