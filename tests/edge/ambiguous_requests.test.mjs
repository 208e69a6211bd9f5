// Requests that two parsers could read differently are rejected before anything interprets them.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { until } from '../lib/processes.mjs';
import { sendRaw } from '../lib/raw.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const SECOND = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n';
const POST = 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

const send = (bytes, options) => sendRaw(s.service.port, bytes, options);

const CASES = {
  'a space before the colon of Content-Length': `${POST}Content-Length : ${SECOND.length}\r\n\r\n${SECOND}`,
  'a folded Content-Length': `${POST}Content-Length:\r\n ${SECOND.length}\r\n\r\n${SECOND}`,
  'two lengths': `${POST}Content-Length: 2\r\nContent-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
  'a length and chunks': `${POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'an unknown transfer encoding': `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'two transfer encodings': `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${SECOND}`,
  'a length with a sign': `${POST}Content-Length: +2\r\n\r\n{}${SECOND}`,
  'a line that ends with LF alone': `GET /health/live HTTP/1.1\nHost: a\n\n${SECOND}`,
  'a bare CR in a header': `GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: b\rc\r\n\r\n${SECOND}`,
  'a NUL in a header': `GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: b\0c\r\n\r\n${SECOND}`,
  'a NUL in the target': `GET /health/live\0 HTTP/1.1\r\nHost: localhost\r\n\r\n${SECOND}`,
  'a space in the target': `GET /health/live x HTTP/1.1\r\nHost: localhost\r\n\r\n${SECOND}`,
  'two Host headers': `GET /health/live HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n${SECOND}`,
  'no Host header': `GET /health/live HTTP/1.1\r\n\r\n${SECOND}`,
  'two Authorization headers': `GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n${SECOND}`,
  'two API keys': `GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a\r\nX-API-Key: b\r\n\r\n${SECOND}`,
  'a header without a name': `GET /health/live HTTP/1.1\r\nHost: localhost\r\n: b\r\n\r\n${SECOND}`,
  'HTTP/2': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${SECOND}`,
  'bytes that are not HTTP': '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n',
  'more than 32 query parameters': `GET /v1/lessons?${'a=b&'.repeat(32)}a=b HTTP/1.1\r\nHost: localhost\r\n\r\n${SECOND}`,
};

for (const [name, bytes] of Object.entries(CASES))
  for (const slowly of [false, true])
    test(`${name} is 400 and closes the connection${slowly ? ', also byte by byte' : ''}`, async () => {
      const answer = await send(bytes, { slowly });
      assert.match(answer, /^HTTP\/1\.[01] 400 /);
      assert.match(answer, /\r\nContent-Type: application\/problem\+json\r\n/);
      assert.match(answer, /\r\nX-Request-ID: \S+\r\n/);
      assert.match(answer, /\r\nConnection: close\r\n/i);
      assert.equal(JSON.parse(answer.split('\r\n\r\n')[1]).code, 'bad_request');
      assert.equal(answer.match(/HTTP\/1\.[01] \d/g).length, 1, 'the rest is not read as a second request');
    });

test('heads over the limits are 431 with their own problem document', async () => {
  for (const head of [`GET /${'a'.repeat(16_384)} HTTP/1.1\r\nHost: localhost\r\n`, `GET / HTTP/1.1\r\nHost: localhost\r\n${'a: b\r\n'.repeat(150)}`, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'b'.repeat(9_000)}\r\n`]) {
    const answer = await send(`${head}\r\n${SECOND}`);
    assert.match(answer, /^HTTP\/1\.[01] 431 /);
    assert.equal(JSON.parse(answer.split('\r\n\r\n')[1]).code, 'header_too_large');
  }
});

test('heads at the limits are served', async () => {
  const close = 'Host: localhost\r\nConnection: close\r\n';
  for (const head of [
    `GET /health/live?${'a=b&'.repeat(31)}a=b HTTP/1.1\r\n${close}`,
    `GET /health/live HTTP/1.1\r\n${'a: b\r\n'.repeat(62)}${close}`,
    `GET /health/live?${'a=b&'.repeat(31)}a=b HTTP/1.1\r\n${'a: b\r\n'.repeat(61)}X: ${'b'.repeat(7_100)}\r\n${close}`,
  ]) {
    const answer = await send(`${head}\r\n`);
    assert.match(answer, /^HTTP\/1\.1 (200|422) /);
    assert.match(answer, /\r\nX-Request-ID: /);
  }
});

test('pipelined requests are answered in order, in one piece or byte by byte', async () => {
  const lesson = JSON.stringify(newLesson());
  const chunked = `${POST}Transfer-Encoding: chunked\r\n\r\n${lesson.length.toString(16)};x=y\r\n${lesson}\r\n0\r\nA: b\r\n\r\n`;
  const bytes = `\r\n${SECOND}${POST}Content-Length: ${lesson.length}\r\n\r\n${lesson}${chunked}${SECOND.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`;
  for (const slowly of [false, true]) {
    const answer = await send(bytes, { slowly });
    assert.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 201', 'HTTP/1.1 201', 'HTTP/1.1 200']);
  }
});

test('a valid request before an ambiguous one is answered', async () => {
  const answer = await send(`${SECOND}GET / HTTP/1.1\n\n`);
  assert.deepEqual(answer.match(/HTTP\/1\.[01] \d+/g).map((line) => line.slice(-3)), ['200', '400']);
});

test('a malformed chunk cuts the connection, and the log says why', async () => {
  const cases = [
    [`5;${'x'.repeat(5_000)}\r\n12345\r\n`, 'size is too long'],
    ['5\r\n123456\r\n', 'longer than its size'],
    ['5\n12345\r\n', 'ends without CR LF'],
    ['zz\r\n', 'no valid size'],
  ];
  for (const [i, [chunk, why]] of cases.entries()) {
    const connect = () => net.connect({ port: s.service.port, host: '127.0.0.1', localAddress: `127.0.1.${i + 1}` }); // of an address, not every cut is logged
    await send(`${POST}Transfer-Encoding: chunked\r\n\r\n${chunk}${SECOND}`, { connect }).catch((error) => assert.equal(error.code, 'ECONNRESET'));
    await until(() => s.service.log.includes(why), why);
  }
});
