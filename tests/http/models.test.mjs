// Configured language models: their metrics and logs, and that slow ones delay neither other requests nor a shutdown.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { hang, say, startModelServer, status } from '../lib/model_server.mjs';
import { run, until } from '../lib/processes.mjs';
import { command } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const models = await startModelServer();
const env = models.modelEnv('anthropic', { DAYBOOK_MODEL_PRICE_INPUT: '3', DAYBOOK_MODEL_PRICE_OUTPUT: '15' });
const s = suite({ env, args: ['--loops', '1'] });
after(() => models.close());

const GOOD = JSON.stringify({ question: 'Does it hold?', answer: 'It does.', probability: 0.7, confidence: 0.8 });
let asked = 0;
const step = (api = s.api, options) => api.post('/v1/research/step', { ticker: `T${asked++}`, task_type: 'tone', k: 0 }, options);

/** By how much each sample of /metrics grew while `work` ran. */
async function growth(work) {
  const before = await metricsOf(s.api);
  await work();
  const now = await metricsOf(s.api);
  return (name) => now.get(name) - before.get(name);
}

test('calls, requests, seconds and tokens are counted by outcome', async () => {
  models.model.reset();
  const grown = await growth(async () => {
    models.model.next(say(GOOD, { tokensIn: 100, tokensOut: 20 }), status(429, { retryAfter: 0 }), status(529), say(GOOD, { tokensIn: 1, tokensOut: 2 }));
    await step(s.api, { status: 201 });
    await step(s.api, { status: 201 });
    models.model.next(status(400));
    await step(s.api, { status: 502 });
  });
  assert.equal(grown('daybook_model_calls_total{outcome="ok"}'), 2);
  assert.equal(grown('daybook_model_calls_total{outcome="failed"}'), 1);
  assert.equal(grown('daybook_model_requests_total'), 5);
  assert.equal(grown('daybook_model_seconds_count'), 3);
  assert.ok(grown('daybook_model_seconds_sum') > 0);
  assert.equal(grown('daybook_model_tokens_total{direction="input"}'), 101);
  assert.equal(grown('daybook_model_tokens_total{direction="output"}'), 22);
  assert.equal((await metricsOf(s.api)).get('daybook_requests_total{method="POST",route="/v1/research/step",status="502"}'), 1);
});

test('a failure is logged with its reason, without the key or the prompt', async () => {
  models.model.reset();
  models.model.always(status(403, { type: 'permission_error', message: `the key ${models.key} may not` }));
  const answer = await step(s.api, { status: 502 });
  assert.equal(answer.json.detail, 'it answered 403 permission_error');
  await until(() => /model_failed .*why="it answered 403 permission_error"/.test(s.service.log), 'the failure is logged');
  assert.match(s.service.log, new RegExp(`model_failed .*request_id=${answer.json.request_id}`));
  assert.ok(!s.service.log.includes(models.key));
  assert.ok(!s.service.log.includes(models.model.requests[0].body.messages[0].content));
});

test('a failure after retries says how many requests were sent', async () => {
  models.model.reset();
  models.model.next(status(429, { retryAfter: 0 }), status(529), status(403, { type: 'permission_error' }));
  assert.equal((await step(s.api, { status: 502 })).json.detail, 'it answered 403 permission_error, after 3 tries');
});

test('the key appears only in the request, and the system prompt is marked for caching', async () => {
  models.model.reset();
  models.model.always(say(GOOD));
  const { text } = await step(s.api, { status: 201 });
  const [{ headers, body }] = models.model.requests;
  assert.equal(headers['x-api-key'], models.key);
  assert.equal(headers['content-type'], 'application/json');
  assert.match(headers['user-agent'], /^daybook\/\d/);
  assert.deepEqual(body.system[0].cache_control, { type: 'ephemeral' });
  assert.equal(body.temperature, 0);
  assert.ok(!text.includes(models.key) && !(await s.api.get('/metrics')).text.includes(models.key));
});

test('with two hundred model calls in flight other requests are served, and a stop ends the calls cleanly', async () => {
  models.model.reset();
  models.model.always(hang());
  const service = await s.another({ env: { ...env, DAYBOOK_STOP_TIMEOUT_MS: '200' } });
  const api = makeClient(service.base);
  const open = Array.from({ length: 200 }, () => step(api, { check: false }).catch(({ code }) => ({ code })));
  await until(() => models.model.hanging === 200, 'all calls are in flight');
  for (let i = 0; i < 20; i++) {
    await api.post('/v1/episodic', { ticker: 'OTHER', task_type: 'tone', question: `q ${i}`, answer: 'a' }, { status: 201 });
    await api.get('/v1/episodic?limit=1', { status: 200 });
  }
  assert.equal(models.model.hanging, 200);
  await service.stop();
  for (const { status: code, code: failed } of await Promise.all(open)) assert.ok(code === 503 || failed === 'ECONNRESET', `${code} ${failed}`);
  await until(() => models.model.hanging === 0, 'the calls are aborted');
  api.close();
});

test('a model call over its time limit is aborted', async () => {
  models.model.reset();
  models.model.always(hang());
  const service = await s.another({ env: { ...env, DAYBOOK_MODEL_TIMEOUT_MS: '1000' } });
  const api = makeClient(service.base);
  assert.equal((await step(api, { status: 504 })).json.code, 'model_timeout');
  await until(() => models.model.hanging === 0, 'it is broken off');
  assert.equal(models.model.requests.length, 1);
  api.close();
  await service.stop();
});

const PRICES = '--model-prices must be NAME=INPUT/OUTPUT for each model once, with prices from 0 to 1000000:';

test('invalid settings end the start with exit code 1 and one line, without the key', async () => {
  for (const [changes, line] of [
    [{ DAYBOOK_MODEL_NAME: '' }, '--model-api anthropic needs --model-name, of at most 100 characters'],
    [{ DAYBOOK_MODEL_API: '' }, '--model-url is given without --model-api'],
    [{ DAYBOOK_MODEL_URL: 'localhost:80' }, '--model-url must be an http or https URL without user, password or fragment'],
    [{ DAYBOOK_MODEL_PRICE_INPUT: '3$' }, '--model-price-input must be a number from 0 to 1000000, not "3$"'],
    [{ DAYBOOK_MODEL_PRICES: 'small=1/5,large=3' }, `${PRICES} "large=3" is not`],
    [{ DAYBOOK_MODEL_PRICES: 'small=1/5,=3/15' }, `${PRICES} "=3/15" is not`],
    [{ DAYBOOK_MODEL_PRICES: 'small=1/-5' }, `${PRICES} "small=1/-5" is not`],
    [{ DAYBOOK_MODEL_PRICES: 'small=1/5,,large=3/15' }, `${PRICES} "" is not`],
    [{ DAYBOOK_MODEL_PRICES: 'small=1/5,small=1/5' }, `${PRICES} "small=1/5" is not`],
    [{ DAYBOOK_MODEL_PRICES: `${'x'.repeat(101)}=1/5` }, '--model-prices must name models, each with at most 100 characters'],
    [
      { DAYBOOK_MODEL_PRICES: 'test-model=1/5', DAYBOOK_MODEL_PRICE_INPUT: '1', DAYBOOK_MODEL_PRICE_OUTPUT: '5' },
      '--model-prices has a price of test-model, and so has --model-price-input',
    ],
    [
      { ...Object.fromEntries(Object.keys(env).map((name) => [name, ''])), DAYBOOK_MODEL_PRICES: 'small=1/5' },
      '--model-prices is given without --model-api',
    ],
    [{ DAYBOOK_MODEL_KEY: `${models.key}\n` }, '--model-key must be visible ASCII characters'],
    [{ DAYBOOK_EMBEDDING_URL: 'http://127.0.0.1:9' }, '--embedding-url needs --embedding-model, of at most 100 characters'],
  ]) {
    const { code, stderr } = await command(['serve', '--database-url', s.url], { env: { ...env, ...changes } });
    assert.equal(stderr, `daybookd: ${line}\n`);
    assert.equal(code, 1);
    assert.ok(!stderr.includes(models.key));
  }
});

test('a model server needs a certificate signed by a trusted authority', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', keyFile, '-out', certFile],
  ]);
  assert.equal(made.code, 0, made.stderr);
  const bodies = [];
  const server = https.createServer({ key: await readFile(keyFile), cert: await readFile(certFile) }, (request, response) => {
    bodies.push(request.headers);
    request.resume().on('end', () => {
      const text = JSON.stringify({ content: [{ type: 'text', text: GOOD }], usage: { input_tokens: 1, output_tokens: 1 } });
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    });
  });
  await new Promise((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address();
  const ask = async (host, more) => {
    const service = await s.another({ env: { ...env, DAYBOOK_MODEL_URL: `https://${host}:${port}`, no_proxy: '*', ...more } });
    const api = makeClient(service.base);
    const answer = await step(api);
    api.close();
    await service.stop();
    return answer;
  };
  try {
    const stranger = await ask('localhost');
    assert.equal(stranger.status, 502);
    assert.match(stranger.json.detail, /certificate/);
    assert.equal(bodies.length, 0, 'the key was sent to a stranger');
    assert.equal((await ask('localhost', { SSL_CERT_FILE: certFile })).status, 201);
    assert.equal(bodies[0]['x-api-key'], models.key);
    const other = await ask('127.0.0.1', { SSL_CERT_FILE: certFile });
    assert.equal(other.status, 502);
    assert.match(other.json.detail, /certificate/);
    assert.equal(bodies.length, 1);
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  }
});
