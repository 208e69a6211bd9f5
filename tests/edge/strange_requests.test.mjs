// Strange bytes: each request gets its own answer with a request id, or is cut with a log line. The library underneath answers none of them.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { until } from '../lib/processes.mjs';
import { sendRaw, statusesOf } from '../lib/raw.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ args: ['--log-level', 'debug'] });
const HOST = 'Host: localhost\r\n';
const CLOSE = 'Connection: close\r\n';
const GET = 'GET /health/live HTTP/1.1\r\n';
const SECOND = `${GET}${HOST}\r\n`;
const POST = `POST /v1/lessons HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`;
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n${CLOSE}\r\n`;
const send = (bytes, options) => sendRaw(s.service.port, bytes, options);
let cuts = 0;

/** Every response has a request id, and every error is a problem document. */
function assertOurs(text, name) {
  const responses = text.split(/(?=HTTP\/1\.[01] \d\d\d [A-Z])/).filter((r) => !r.startsWith('HTTP/1.1 100 '));
  for (const response of responses) {
    assert.match(response, /\r\nX-Request-ID: \S+\r\n/, name);
    if (statusesOf(response)[0] >= 400) assert.match(response, /\r\nContent-Type: application\/problem\+json\r\n/, name);
  }
}

// 400, and what follows is not read as a request.
const REJECTED = {
  'the start of TLS': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdef',
  'HTTP/0.9': 'GET /\r\n',
  'the preface of HTTP/2': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${SECOND}`,
  'the start of HTTP/2 alone': 'PRI * HTTP/2.0\r\n',
  'HTTP/1.2': `GET / HTTP/1.2\r\n${HOST}\r\n${SECOND}`,
  'http/1.1 in lower case': `GET / http/1.1\r\n${HOST}\r\n${SECOND}`,
  'two spaces in the request line': `GET  / HTTP/1.1\r\n${HOST}\r\n${SECOND}`,
  'tabs in the request line': `GET\t/\tHTTP/1.1\r\n${HOST}\r\n${SECOND}`,
  'a space before the method': ` GET / HTTP/1.1\r\n${HOST}\r\n${SECOND}`,
  'a space after the version': `GET / HTTP/1.1 \r\n${HOST}\r\n${SECOND}`,
  'a first header that is folded': `${GET} ${HOST}\r\n${SECOND}`,
  'a parenthesis in the name of a header': `${GET}${HOST}X(Y: a\r\n\r\n${SECOND}`,
  'a space in the name of a header': `${GET}${HOST}X Y: a\r\n\r\n${SECOND}`,
  'a byte above ASCII in the name of a header': `${GET}${HOST}X\xff: a\r\n\r\n${SECOND}`,
  'a header without a colon': `${GET}${HOST}XY\r\n\r\n${SECOND}`,
  'several empty lines': `\r\n\r\n${SECOND}`,
  'chunked twice': `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'an encoding that ends with chunked': `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'a control character before the encoding': `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'an empty encoding': `${POST}Transfer-Encoding:\r\n\r\n${SECOND}`,
  'chunks in HTTP/1.0': `POST /v1/lessons HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'a list of lengths': `${POST}Content-Length: 2, 2\r\n\r\n{}${SECOND}`,
  'an empty length': `${POST}Content-Length:\r\n\r\n${SECOND}`,
  'a hexadecimal length': `${POST}Content-Length: 0x2\r\n\r\n{}${SECOND}`,
  'a negative length': `${POST}Content-Length: -1\r\n\r\n${SECOND}`,
  'a length beyond 64 bits': `${POST}Content-Length: 99999999999999999999\r\n\r\n{}${SECOND}`,
  '201 query parameters': `GET /v1/lessons?${'a=b&'.repeat(200)}a=b HTTP/1.1\r\n${HOST}\r\n${SECOND}`,
};

for (const [name, bytes] of Object.entries(REJECTED))
  test(`${name} is 400 and closes the connection`, async () => {
    for (const slowly of [false, true]) {
      const text = await send(bytes, { slowly });
      assert.deepEqual(statusesOf(text), [400], text);
      assertOurs(text, name);
    }
  });

// Over a limit: 431.
for (const [name, bytes] of Object.entries({
  '10,000 query parameters': `GET /v1/lessons?${'a&'.repeat(10_000)} HTTP/1.1\r\n${HOST}\r\n`,
  'a target of 16 KB': `GET /${'a'.repeat(16_384)} HTTP/1.1\r\n${HOST}\r\n`,
  'a target of 1 MB': `GET /${'a'.repeat(1 << 20)} HTTP/1.1\r\n${HOST}\r\n`,
  '10,000 headers': `${GET}${HOST}${'a:b\r\n'.repeat(10_000)}\r\n`,
}))
  test(`${name} are 431`, async () => {
    const text = await send(bytes + SECOND);
    assert.deepEqual(statusesOf(text), [431]);
    assertOurs(text, name);
  });

// Valid, if unusual: the statuses of all responses.
const ANSWERED = {
  'one empty line': [`\r\n${GET}${HOST}${CLOSE}\r\n`, [200]],
  'an absolute target': [`GET http://localhost/health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [200]],
  'the target of another scheme': [`GET ftp://localhost/v1/lessons HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [400]],
  'a target without a slash': [`GET v1/lessons HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [400]],
  'OPTIONS *': [`OPTIONS * HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [204]],
  'CONNECT': [`CONNECT localhost:443 HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [400]],
  'TRACE': [`TRACE /health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [405]],
  'an unknown method': [`BREW /health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [405]],
  'a method in lower case': [`get /health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [405]],
  'a method of 7,000 letters': [`${'A'.repeat(7_000)} /health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [405]],
  'the target of the stand-in': [`GET /rejected HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [404]],
  'bytes above ASCII in a header': [`${GET}${HOST}${CLOSE}X: \xff\xfe\r\n\r\n`, [200]],
  'bytes above ASCII as request id': [`${GET}${HOST}${CLOSE}X-Request-ID: \xff\r\n\r\n`, [200]],
  'bytes above ASCII as idempotency key': [`${POST}${CLOSE}Idempotency-Key: \xff\r\nContent-Length: 2\r\n\r\n{}`, [400]],
  'bytes above ASCII as ETag': [`GET /v1/lessons HTTP/1.1\r\n${HOST}${CLOSE}If-None-Match: \xff\r\n\r\n`, [200]],
  'bytes above ASCII in the target': [`GET /v1/lessons/\xff HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, [400]],
  'a header that is repeated 50 times': [`${GET}${HOST}${CLOSE}${'X-Forwarded-For: 192.0.2.1\r\n'.repeat(50)}\r\n`, [200]],
  '1,700 cookies': [`${GET}${HOST}${CLOSE}Cookie: ${'a=b;'.repeat(1_700)}a=b\r\n\r\n`, [200]],
  'a cookie that is malformed': [`${GET}${HOST}${CLOSE}cookie: ;;==,"\r\n\r\n`, [200]],
  'whitespace around a length': [`${POST}${CLOSE}Content-Length:\t 2 \t\r\n\r\n{}`, [422]],
  'whitespace around an encoding': [`${POST}${CLOSE}Transfer-Encoding:\tchunked\t\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, [422]],
  'a length with leading zeros': [`${POST}${CLOSE}Content-Length: 0000002\r\n\r\n{}`, [422]],
  'chunks with leading zeros': [`${CHUNKED}00000002\r\n{}\r\n0000\r\n\r\n`, [422]],
  'chunks with extensions': [`${CHUNKED}1;a="b c";;\r\n{\r\n1;\xff\r\n}\r\n0;a\r\n\r\n`, [422]],
  'trailers': [`${CHUNKED}2\r\n{}\r\n0\r\nContent-Length: 5\r\nCookie: a=b\r\n\r\n`, [422]],
  'a GET with a body': [`GET /nothing HTTP/1.1\r\n${HOST}Content-Length: ${SECOND.length}\r\n\r\n${SECOND}${GET}${HOST}${CLOSE}\r\n`, [404, 200]],
  'an upgrade': [`${GET}${HOST}Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`, [200]],
  'an expectation without a body': [`${GET}${HOST}${CLOSE}Expect: 100-continue\r\n\r\n`, [200]],
  'an expectation with its body': [`${POST}${CLOSE}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}`, [422]],
  'an unknown expectation': [`${POST}${CLOSE}Content-Length: 2\r\nExpect: 200-ok\r\n\r\n{}`, [422]],
  'a body that was not asked for': [`POST /v1/nothing HTTP/1.1\r\n${HOST}Content-Length: ${SECOND.length}\r\nExpect: 100-continue\r\n\r\n${SECOND}`, [404]],
  '300 pipelined requests': [`${SECOND.repeat(299)}${GET}${HOST}${CLOSE}\r\n`, Array(300).fill(200)],
  'everything at its limit': [
    `POST /v1/lessons?${'a&'.repeat(31)}a HTTP/1.1\r\n${'a:\r\n'.repeat(59)}${HOST}${CLOSE}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nX: ${'y'.repeat(7_560)}\r\n\r\n2\r\n{}\r\n0\r\n${'a:\r\n'.repeat(3)}b: ${'y'.repeat(480)}\r\n\r\n`,
    [422],
  ],
};

for (const [name, [bytes, statuses]] of Object.entries(ANSWERED))
  test(`${name}: ${statuses.length > 5 ? `${statuses.length} responses` : statuses.join(', ')}`, async () => {
    for (const slowly of bytes.length < 1_000 ? [false, true] : [false]) {
      const text = await send(bytes, { slowly });
      assert.deepEqual(statusesOf(text).filter((status) => status !== 100), statuses, text.slice(0, 2_000)); // 100 may be left out
      assertOurs(text, name);
    }
  });

// In the middle of a body: the connection is cut, and the log says why.
const CUT = {
  'a size that overflows': ['ffffffffffffffff\r\n{}\r\n', 'no valid size'],
  'a size with 40 zeros': [`${'0'.repeat(40)}2\r\n{}\r\n`, 'no valid size'],
  'a negative size': ['-2\r\n{}\r\n', 'no valid size'],
  'a size with a sign': ['+2\r\n{}\r\n', 'no valid size'],
  'a size with a prefix': ['0x2\r\n{}\r\n', 'no valid size'],
  'a size with a space': ['2 \r\n{}\r\n', 'no valid size'],
  'no size': ['\r\n{}\r\n', 'no valid size'],
  'an extension of 10 KB': [`2;${'x'.repeat(10_000)}\r\n{}\r\n`, 'size is too long'],
  'an extension that ends with LF': ['2;a\n{}\r\n', 'ends without CR LF'],
  'a DEL in an extension': ['2;a=\x7f\r\n{}\r\n', 'control character'],
  '800 trailers': [`0\r\n${'a:b\r\n'.repeat(800)}\r\n`, 'too many trailers'],
  'a trailer of 4 KB': [`0\r\na: ${'b'.repeat(4_000)}\r\n\r\n`, 'trailers are too long'],
  'a trailer without a colon': ['0\r\nnothing\r\n\r\n', 'trailer has no valid name'],
  'a folded trailer': ['0\r\na: b\r\n c\r\n\r\n', 'trailer has no valid name'],
  'a NUL in a trailer': ['0\r\na: \0\r\n\r\n', 'trailer has a control character'],
};

for (const [name, [chunks, why]] of Object.entries(CUT))
  test(`${name} in a body cuts the connection, and the log says why`, async () => {
    for (const slowly of chunks.length < 1_000 ? [false, true] : [false]) {
      const from = s.service.log.length;
      const address = `127.0.1.${++cuts}`; // of an address, not every cut is logged
      const connect = () => net.connect({ port: s.service.port, host: '127.0.0.1', localAddress: address });
      const text = await send(`${CHUNKED}${chunks}0\r\n\r\n${SECOND}`, { slowly, connect }).catch((error) => (assert.ok(['ECONNRESET', 'EPIPE'].includes(error.code)), ''));
      assert.equal(text, '');
      await until(() => new RegExp(`connection_cut address=${address} reason="[^"]*${why}[^"]*" count=1$`, 'm').test(s.service.log.slice(from)), why);
    }
  });
