// CORS: off unless an origin is configured.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { suite } from '../lib/suite.mjs';

const ORIGIN = 'https://desk.example';
const s = suite();
const corsHeaders = (answer) => Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'));
const preflight = {
  origin: ORIGIN,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'content-type, idempotency-key',
};

async function withService(args, work) {
  const service = await s.another({ args });
  const api = makeClient(service.base);
  try {
    await work(api);
  } finally {
    api.close();
    await service.stop();
  }
}

test('by default no response allows another origin', async () => {
  for (const answer of [
    await s.api.get('/v1/lessons', { headers: { origin: ORIGIN } }),
    await s.api('OPTIONS', '/v1/lessons', { headers: preflight }),
    await s.api.get('/v1/nothing', { headers: { origin: ORIGIN } }),
  ])
    assert.deepEqual(corsHeaders(answer), []);
});

test('the configured origin may call and read responses, errors included', async () => {
  await withService(['--cors-origin', ORIGIN], async (api) => {
    for (const path of ['/v1/lessons', '/v1/nothing']) {
      const answer = await api.get(path, { headers: { origin: ORIGIN } });
      assert.equal(answer.headers['access-control-allow-origin'], ORIGIN);
      assert.match(answer.headers['access-control-expose-headers'] ?? '', /x-request-id/i);
    }
    const allowed = await api('OPTIONS', '/v1/lessons', { headers: preflight, status: 204 });
    assert.equal(allowed.headers['access-control-allow-origin'], ORIGIN);
    assert.match(allowed.headers['access-control-allow-methods'], /POST/);
    for (const name of ['content-type', 'idempotency-key', 'authorization', 'x-api-key'])
      assert.match(allowed.headers['access-control-allow-headers'].toLowerCase(), new RegExp(name));
    assert.match(allowed.headers.vary ?? '', /origin/i);
  });
});

test('an origin that is not configured is not allowed', async () => {
  await withService(['--cors-origin', ORIGIN], async (api) => {
    const answer = await api.get('/v1/lessons', { headers: { origin: 'https://evil.example' }, status: 200 });
    assert.notEqual(answer.headers['access-control-allow-origin'], 'https://evil.example');
    assert.notEqual(answer.headers['access-control-allow-origin'], '*');
  });
});

test('* allows every origin', async () => {
  await withService(['--cors-origin', '*'], async (api) => {
    const answer = await api.get('/v1/lessons', { headers: { origin: 'https://any.example' }, status: 200 });
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  });
});
