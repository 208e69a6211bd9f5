// Without keys, a page in a browser must not reach the service under a foreign name (DNS rebinding), and no foreign page may write.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { sendRaw, statusesOf } from '../lib/raw.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const lesson = JSON.stringify(newLesson());

/** Sends the request with exactly these headers. */
const ask = (base, method, path, headers, body) =>
  new Promise((resolve, reject) => {
    const request = http.request(base + path, { method, headers, agent: false }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, text, json: text.startsWith('{') ? JSON.parse(text) : null });
    });
    request.on('error', reject);
    request.end(body);
  });

const withService = async (args, work) => {
  const service = await s.another({ args });
  try {
    await work(service.base);
  } finally {
    await service.stop();
  }
};

for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1', '127.9.9.9:1', '[::1]', '[::1]:80', 'agents.localhost'])
  test(`the host ${host} is served without keys`, async () => {
    assert.equal((await ask(s.service.base, 'GET', '/v1/lessons', { host })).status, 200);
  });

for (const host of ['example.com', 'example.com:8080', 'localhost.example.com', 'localhost:x@example.com', 'localhost:80@example.com', '[::1]x', '127.0.0.1.example.com', '128.0.0.1', '[::2]', 'xlocalhost', '0.0.0.0'])
  for (const path of ['/v1/lessons', '/metrics', '/openapi.json', '/health/live'])
    test(`the host ${host} is 421 for ${path} without keys`, async () => {
      const { status, json } = await ask(s.service.base, 'GET', path, { host });
      assert.equal(status, 421);
      assert.equal(json.code, 'misdirected_request');
      assert.match(json.detail, /--allowed-hosts/);
    });

test('requests with a foreign host are counted', async () => {
  const api = makeClient(s.service.base);
  const sample = 'daybook_requests_total{method="GET",route="/v1/lessons",status="421"}';
  const before = (await metricsOf(api)).get(sample) ?? 0;
  await ask(s.service.base, 'GET', '/v1/lessons', { host: 'example.com' });
  assert.equal((await metricsOf(api)).get(sample), before + 1);
  api.close();
});

test('the authority of an absolute target is checked as well', async () => {
  const { status } = await new Promise((resolve, reject) => {
    const url = new URL(s.service.base);
    http
      .request({ host: url.hostname, port: url.port, path: 'http://example.com/v1/lessons', headers: { host: 'localhost' }, agent: false }, (response) => {
        response.resume();
        resolve({ status: response.statusCode });
      })
      .on('error', reject)
      .end();
  });
  assert.equal(status, 421);
});

test('allowed hosts are served, with every port', async () => {
  await withService(['--allowed-hosts', 'daybook.test, desk'], async (base) => {
    for (const host of ['daybook.test', 'Daybook.test:99', 'desk']) assert.equal((await ask(base, 'GET', '/v1/lessons', { host })).status, 200);
    assert.equal((await ask(base, 'GET', '/v1/lessons', { host: 'x.daybook.test' })).status, 421);
  });
});

const WRITES = [
  ['POST', '/v1/lessons', lesson],
  ['POST', '/v1/lessons/0197c3a2-5f10-7c41-9d0e-3a5b7c9d1e30/retire', undefined], // no body: browsers send it without asking first
  ['POST', '/v1/deployments/0197c3a2-5f10-7c41-9d0e-3a5b7c9d1e30/reflect', undefined],
];

for (const origin of ['https://example.com', 'null', 'http://localhost:3000', 'http://127.0.0.1', 'file://'])
  for (const [method, path, body] of WRITES)
    test(`${method} ${path.replace(/[0-9a-f-]{36}/, '…')} from the origin ${origin} is 403`, async () => {
      const headers = { origin, ...(body && { 'content-type': 'application/json' }) };
      const { status, json } = await ask(s.service.base, method, path, headers, body);
      assert.equal(status, 403);
      assert.equal(json.code, 'foreign_origin');
    });

test('the own origin and that of --cors-origin may write, and every origin may read', async () => {
  await withService(['--cors-origin', 'https://desk.example'], async (base) => {
    for (const origin of [base, 'https://desk.example'])
      assert.equal((await ask(base, 'POST', '/v1/lessons', { origin, 'content-type': 'application/json' }, JSON.stringify(newLesson({ takeaway: origin })))).status, 201);
    assert.equal((await ask(base, 'GET', '/v1/lessons', { origin: 'https://example.com' })).status, 200);
  });
});

const QUOTED = {
  'an origin that is not UTF-8': ['POST /v1/lessons', 'Host: localhost\r\nOrigin: http://\xff\xc3"\x80', 403],
  'a long origin that is cut inside a character': ['POST /v1/lessons', `Host: localhost\r\nOrigin: ${'a'.repeat(127)}\xc3\xa9`, 403],
  'a host that is not UTF-8': ['GET /v1/lessons', 'Host: \xff\xed\xa0\x80.example', 421],
  'a long host that is cut inside a character': ['GET /v1/lessons', `Host: ${'a'.repeat(127)}\xc3\xa9`, 421],
  'a target that is not UTF-8': ['GET /v1/\xff\xc3', 'Host: localhost', 400],
  'a path whose escapes are not UTF-8': ['GET /v1/%ff%c3', 'Host: localhost', 400],
  'a parameter that is not UTF-8': ['GET /v1/lessons?\xff=%ff', 'Host: localhost', 400],
  'a method that is not UTF-8': ['P\xc3ST /v1/lessons', 'Host: localhost', 400],
};

for (const [name, [line, headers, status]] of Object.entries(QUOTED))
  test(`${name} is ${status} with a valid document`, async () => {
    const text = await sendRaw(Number(new URL(s.service.base).port), `${line} HTTP/1.1\r\n${headers}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    assert.deepEqual(statusesOf(text), [status], text);
    const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1');
    assert.equal(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)).status, status);
  });

test('with a key every host is served, and a foreign origin still may not write', async () => {
  const { key } = await createKey(s.url, 'local', 'agent');
  await withService([], async (base) => {
    const headers = { host: 'example.com', authorization: `Bearer ${key}` };
    assert.equal((await ask(base, 'GET', '/v1/lessons', headers)).status, 200);
    assert.equal((await ask(base, 'POST', '/v1/lessons', { ...headers, origin: 'https://evil.example', 'content-type': 'application/json' }, lesson)).status, 403);
  });
});
