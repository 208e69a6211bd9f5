// The contract and the page that shows it: compressed on request, with an ETag, and kept by caches.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { DOCS, OPENAPI_JSON } from '../lib/paths.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const FILES = [
  ['/openapi.json', OPENAPI_JSON],
  ['/docs', `${DOCS}index.html`],
  ['/docs/viewer.js', `${DOCS}viewer.js`],
];
const get = (path, headers = {}, status = 200, method = 'GET') => s.api(method, path, { headers, status });

test('a client that accepts gzip gets the same bytes in fewer', async () => {
  for (const [path, file] of FILES) {
    const { headers, bytes } = await get(path, { 'accept-encoding': 'gzip, deflate, br' });
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(Number(headers['content-length']), bytes.length);
    assert.ok(gunzipSync(bytes).equals(readFileSync(file)), path);
  }
  const { bytes } = await get('/docs/viewer.js', { 'accept-encoding': 'gzip' });
  assert.ok(bytes.length * 3 < readFileSync(`${DOCS}viewer.js`).length);
});

test('the weights of Accept-Encoding count', async () => {
  const cases = [
    [undefined, false],
    ['', false],
    ['gzip', true],
    ['GZIP', true],
    ['br, gzip', true],
    ['br,gzip;q=0.1', true],
    ['gzip;q=0', false],
    ['gzip; q=0.000', false],
    ['*', true],
    ['*;q=0', false],
    ['*, gzip;q=0', false],
    ['gzip;q=0.5, identity', false],
    ['gzip;q=0.5, identity;q=0.4', true],
    ['identity;q=0, gzip', true],
    ['identity', false],
    ['br', false],
    ['gzipped', false],
    ['x;q=1;gzip', false],
  ];
  for (const [header, compressed] of cases) {
    const { headers } = await get('/docs', header === undefined ? {} : { 'accept-encoding': header });
    assert.equal(headers['content-encoding'], compressed ? 'gzip' : undefined, `Accept-Encoding: ${header}`);
  }
});

test('each form has its own ETag, and 304 for it alone', async () => {
  for (const [path] of FILES) {
    const plain = await get(path);
    const packed = await get(path, { 'accept-encoding': 'gzip' });
    assert.notEqual(plain.headers.etag, packed.headers.etag);
    for (const etag of [plain.headers.etag, `W/${plain.headers.etag}`, `"x", ${plain.headers.etag}`, '*']) {
      const same = await get(path, { 'if-none-match': etag }, 304);
      assert.equal(same.bytes.length, 0);
      assert.equal(same.headers.etag, plain.headers.etag);
      assert.equal(same.headers['content-encoding'], undefined);
    }
    await get(path, { 'if-none-match': packed.headers.etag, 'accept-encoding': 'gzip' }, 304);
    await get(path, { 'if-none-match': packed.headers.etag }, 200);
    await get(path, { 'if-none-match': plain.headers.etag, 'accept-encoding': 'gzip' }, 200);
  }
});

test('caches may keep them, by encoding', async () => {
  for (const [path] of FILES)
    for (const [headers, status] of [
      [{}, 200],
      [{ 'if-none-match': '*' }, 304],
    ]) {
      const answer = await get(path, headers, status);
      assert.equal(answer.headers['cache-control'], 'public, max-age=300, must-revalidate');
      assert.equal(answer.headers.vary, 'Accept-Encoding');
      assert.equal(answer.headers['x-content-type-options'], 'nosniff');
    }
});

test('HEAD has the headers of GET and no body', async () => {
  for (const [path] of FILES)
    for (const encoding of ['identity', 'gzip']) {
      const full = await get(path, { 'accept-encoding': encoding });
      const head = await get(path, { 'accept-encoding': encoding }, 200, 'HEAD');
      assert.equal(head.bytes.length, 0);
      for (const name of ['content-length', 'content-type', 'content-encoding', 'etag', 'cache-control', 'vary'])
        assert.equal(head.headers[name], full.headers[name], `${name} of ${path}`);
      await get(path, { 'accept-encoding': encoding, 'if-none-match': full.headers.etag }, 304, 'HEAD');
    }
});

test('the page may load and call this service only, and runs the scripts that it was made with', async () => {
  const { headers, text } = await get('/docs');
  const policy = Object.fromEntries(
    headers['content-security-policy'].split('; ').map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]),
  );
  const own = [...text.matchAll(/<script>(.*?)<\/script>/gs)].map(([, script]) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`);
  assert.equal(own.length, 1);
  assert.equal(policy['script-src'], `'self' ${own[0]}`);
  assert.equal(policy['default-src'], "'none'");
  assert.equal(policy['connect-src'], "'self'");
  assert.equal(policy['frame-ancestors'], "'none'");
  assert.doesNotMatch(text, /\son\w+=/i);
  assert.equal(headers['referrer-policy'], 'no-referrer');
});

test('the page names fonts that every system has, and neither it nor its viewer loads any', async () => {
  const page = (await get('/docs')).text;
  for (const name of ['--font-regular', '--font-mono']) assert.match(page, new RegExp(`${name}: [^;]*(?:sans-serif|monospace);`));
  for (const path of ['/docs', '/docs/viewer.js']) assert.doesNotMatch((await get(path)).text, /@font-face|fonts\.(?:googleapis|gstatic)|\.woff2?\b/);
});

test('other public pages have neither an ETag nor a cache time', async () => {
  for (const path of ['/version', '/health/live', '/metrics']) {
    const { headers } = await get(path, { 'accept-encoding': 'gzip' });
    for (const name of ['etag', 'cache-control', 'content-encoding', 'vary']) assert.equal(headers[name], undefined, `${name} of ${path}`);
  }
});
