// Logs: one line per request, as text or JSON, without secrets or bodies.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { newLesson, UNKNOWN_ID } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ args: ['--log-format', 'json'] });

/** The log lines of one request; waits for the first. */
async function linesOf(requestId, service = s.service) {
  await until(() => service.log.includes(requestId), `a log line of ${requestId}`);
  return service.log.split('\n').filter((line) => line.includes(requestId));
}

test('a request is logged as one JSON line with method, route, status, time, bytes, owner and ID', async () => {
  const id = randomUUID();
  const answer = await s.api.get('/v1/lessons?limit=3', { headers: { 'x-request-id': id }, status: 200 });
  const lines = await linesOf(id);
  assert.equal(lines.length, 1);
  const { ts, level, event, method, route, status, us, out, owner, request_id } = JSON.parse(lines[0]);
  assert.deepEqual(
    { level, event, method, route, status, out, owner, request_id },
    {
      level: 'info',
      event: 'request',
      method: 'GET',
      route: '/v1/lessons',
      status: 200,
      out: answer.bytes.length,
      owner: 'local',
      request_id: id,
    },
  );
  assert.ok(Number.isInteger(us) && us > 0 && us < 60_000_000);
  assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 60_000);
});

test('the route is logged as its template, so that lines can be aggregated', async () => {
  const id = randomUUID();
  await s.api.get(`/v1/lessons/${UNKNOWN_ID}`, { headers: { 'x-request-id': id }, status: 404 });
  const { route, status, code } = JSON.parse((await linesOf(id))[0]);
  assert.deepEqual({ route, status, code }, { route: '/v1/lessons/{id}', status: 404, code: 'not_found' });
});

test('a rejected body is logged with its error code and size, not its content', async () => {
  const id = randomUUID();
  const body = JSON.stringify(newLesson({ evidence: [], context: 'PRIVATE-CONTEXT' }));
  await s.api.post('/v1/lessons', body, { headers: { 'x-request-id': id }, status: 422 });
  const { status, code, in: bytes } = JSON.parse((await linesOf(id))[0]);
  assert.deepEqual({ status, code, bytes }, { status: 422, code: 'invalid_fields', bytes: Buffer.byteLength(body) });
});

test('the trace id of traceparent is logged', async () => {
  const id = randomUUID();
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  await s.api.get('/version', { headers: { 'x-request-id': id, traceparent: `00-${trace}-00f067aa0ba902b7-01` }, status: 200 });
  assert.equal(JSON.parse((await linesOf(id))[0]).trace_id, trace);
});

test('a hostile path, key or trace cannot forge a log line', async () => {
  const id = randomUUID();
  await s.api.get('/v1/%0A%7B%22event%22%3A%22forged%22%7D%22%5C', {
    headers: { 'x-request-id': id, traceparent: '00-"}{"-x' },
    status: 404,
  });
  const lines = await linesOf(id);
  assert.equal(lines.length, 1);
  JSON.parse(lines[0]);
});

test('at every level each line is JSON and contains no secret or body', async () => {
  const service = await s.another({ args: ['--log-format', 'json', '--log-level', 'debug'] });
  const api = makeClient(service.base);
  const secret = 'SECRET-TOKEN-0123456789';
  const id = randomUUID();
  const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret, 'idempotency-key': 'SECRET-IDEMPOTENCY', cookie: secret };
  await api.post('/v1/lessons', newLesson({ context: 'PRIVATE-CONTEXT', takeaway: 'PRIVATE-TAKEAWAY' }), { headers, status: 201 });
  await api.post('/v1/lessons', '{"PRIVATE-KEY":', { headers, status: 400 });
  await api.get('/v1/lessons?text=PRIVATE-QUERY', { headers, status: 200 });
  await api.get('/version', { headers: { 'x-request-id': id } });
  await linesOf(id, service);
  api.close();
  await service.stop();
  const lines = service.log.split('\n').filter((line) => line && !/^==\d+==WARNING: ASan/.test(line));
  for (const line of lines) assert.doesNotThrow(() => JSON.parse(line), line);
  assert.doesNotMatch(service.log, /SECRET|PRIVATE/);
  assert.doesNotMatch(service.log, /postgres(?:ql)?:|user=/, 'the database URL; only its host is named');
});

test('in text format a request is one line too', async () => {
  const service = await s.another({ args: [] });
  const api = makeClient(service.base);
  const id = randomUUID();
  await api.get('/v1/lessons', { headers: { 'x-request-id': id }, status: 200 });
  const [line, ...more] = await linesOf(id, service);
  assert.deepEqual(more, []);
  assert.match(line, new RegExp(`^\\S+Z info request method=GET route=/v1/lessons status=200 us=\\d+ .*owner=local request_id=${id}$`));
  api.close();
  await service.stop();
});

test('lines below the log level are not written', async () => {
  const service = await s.another({ args: ['--log-level', 'warn'] });
  const api = makeClient(service.base);
  await api.get('/v1/lessons', { status: 200 });
  api.close();
  await service.stop();
  assert.doesNotMatch(service.log, /\binfo\b/);
});

test('stdout has only the line with the address', async () => {
  assert.equal(s.service.stdout, `daybook listening on ${s.service.base}\n`);
});
