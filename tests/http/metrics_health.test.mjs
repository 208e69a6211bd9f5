// Health and metrics report the true state of the service.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { create, UNKNOWN_ID } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { DOCS, OPENAPI_JSON } from '../lib/paths.mjs';
import { command } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

/** The samples as a map from `name{labels}` to number; every line must follow the text format. */
async function metrics() {
  const answer = await s.api.get('/metrics', { status: 200 });
  assert.match(answer.headers['content-type'], /^text\/plain; version=0\.0\.4/);
  assert.ok(answer.text.endsWith('\n'));
  const samples = new Map();
  const types = new Map();
  for (const line of answer.text.split('\n').slice(0, -1)) {
    const type = line.match(/^# TYPE ([a-z_]+) (counter|gauge|histogram)$/);
    if (type) {
      assert.ok(!types.has(type[1]), `${type[1]} has two types`);
      types.set(type[1], type[2]);
      continue;
    }
    if (/^# HELP [a-z_]+ \S/.test(line)) continue;
    const sample = line.match(/^([a-z_]+)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? ([0-9.eE+-]+)$/);
    assert.ok(sample, `not a sample: ${line}`);
    const family = types.has(sample[1]) ? sample[1] : sample[1].replace(/_(bucket|sum|count)$/, '');
    assert.ok(types.has(family), `${sample[1]} has no type`);
    assert.ok(!samples.has(sample[1] + (sample[2] ?? '')), `twice: ${line}`);
    samples.set(sample[1] + (sample[2] ?? ''), Number(sample[3]));
  }
  return samples;
}

const counted = (samples, method, route, status) =>
  samples.get(`daybook_requests_total{method="${method}",route="${route}",status="${status}"}`) ?? 0;

test('/health/live returns ok and /health/ready returns ready', async () => {
  assert.deepEqual((await s.api.get('/health/live', { status: 200 })).json, { status: 'ok' });
  await until(async () => (await s.api.get('/health/ready')).status === 200, 'it is ready');
  assert.deepEqual((await s.api.get('/health/ready', { status: 200 })).json, { status: 'ready' });
});

test('daybookd health asks the address of --listen, loopback for a wildcard, and says why it fails', async () => {
  const health = (listen) => command(['health', '--listen', listen]);
  for (const host of ['127.0.0.1', '0.0.0.0', '[::ffff:127.0.0.1]']) assert.deepEqual(await health(`${host}:${s.service.port}`), { code: 0, signal: null, stdout: '', stderr: '' }, host);
  for (const listen of ['127.0.0.1', ':8080', '127.0.0.1:', '127.0.0.1:http', '127.0.0.1:65536']) {
    const { code, stderr } = await health(listen);
    assert.deepEqual([code, stderr], [1, `daybookd: --listen ${listen}: must be ADDRESS:PORT, with a port from 0 to 65535\n`]);
  }
  const { code, stderr } = await health('127.0.0.1:1');
  assert.equal(code, 1);
  assert.match(stderr, /^daybookd: nothing answers on 127\.0\.0\.1:1: .*\n$/);
});

test('the version page names the service, its version and its commit', async () => {
  const { name, version, commit } = (await s.api.get('/version', { status: 200 })).json;
  assert.equal(name, 'daybook');
  assert.match(version, /^\d+\.\d+\.\d+/);
  assert.ok(commit.length > 0);
});

test('the contract and its viewer are served as in the repository and load nothing from other hosts', async () => {
  for (const [path, file] of [
    ['/openapi.json', OPENAPI_JSON],
    ['/docs', `${DOCS}index.html`],
    ['/docs/viewer.js', `${DOCS}viewer.js`],
  ])
    assert.ok(
      (await s.api.get(path, { status: 200 })).bytes.equals(readFileSync(file)),
      `${path} is not ${file}: is the binary up to date?`,
    );
  assert.doesNotMatch((await s.api.get('/docs')).text, /(?:src|href|url)=["']?(?:https?:)?\/\//i);
});

test('requests are counted by route and status, summed over all loops', async () => {
  const before = await metrics();
  for (let i = 0; i < 7; i++) await create(s.api);
  await Promise.all(Array.from({ length: 9 }, () => s.api.get('/v1/lessons?limit=1')));
  for (let i = 0; i < 3; i++) await s.api.get(`/v1/lessons/${UNKNOWN_ID}`);
  await s.api.get('/v1/nothing');
  const wanted = [
    ['POST', '/v1/lessons', 201, 7],
    ['GET', '/v1/lessons', 200, 9],
    ['GET', '/v1/lessons/{id}', 404, 3],
  ];
  await until(async () => {
    const now = await metrics();
    return wanted.every(([method, route, status, n]) => counted(now, method, route, status) - counted(before, method, route, status) === n);
  }, 'the counters include the requests');
});

test('an unknown path adds no time series', async () => {
  const before = (await metrics()).size;
  for (let i = 0; i < 20; i++) await s.api.get(`/v1/nothing/${i}`, { status: 404 });
  assert.ok((await metrics()).size <= before + 20);
});

test('latency histograms are cumulative and match their count', async () => {
  const samples = await metrics();
  const histograms = new Map();
  for (const [name, value] of samples) {
    const [, labels, le] = name.match(/^daybook_request_seconds_bucket\{(.*),le="([^"]+)"\}$/) ?? [];
    if (labels) histograms.set(labels, [...(histograms.get(labels) ?? []), { le: le === '+Inf' ? Infinity : Number(le), value }]);
  }
  assert.ok(histograms.size > 2);
  for (const [labels, buckets] of histograms) {
    for (let i = 1; i < buckets.length; i++)
      assert.ok(buckets[i].le > buckets[i - 1].le && buckets[i].value >= buckets[i - 1].value, labels);
    assert.equal(buckets.at(-1).le, Infinity);
    assert.equal(buckets.at(-1).value, samples.get(`daybook_request_seconds_count{${labels}}`));
    assert.ok(samples.get(`daybook_request_seconds_sum{${labels}}`) > 0);
  }
});

test('metrics cover lanes, queues, connections, reconnects and the embedder', async () => {
  const samples = await metrics();
  for (const lane of ['read', 'write', 'slow']) {
    assert.ok(samples.has(`daybook_db_connections{lane="${lane}"}`));
    assert.ok(samples.has(`daybook_db_in_flight{lane="${lane}"}`));
  }
  for (const name of [
    'daybook_db_waiting',
    'daybook_db_reconnects_total',
    'daybook_ready',
    'daybook_requests_in_flight',
    'daybook_worker_jobs',
    'daybook_backfill_pending',
    'daybook_backfill_embedded_total',
    'daybook_backfill_refused_total',
    'daybook_backfill_failures_total',
    'daybook_embedder_queued_texts',
    'daybook_embedder_texts_total',
    'daybook_embedder_seconds_total',
  ])
    assert.ok(samples.has(name), name);
  assert.ok(samples.get('daybook_connections') >= 1);
});

test('without its database the service stays live, is not ready, returns 503 with Retry-After, and recovers by itself', async () => {
  const { id } = await create(s.api);
  await s.cluster.stop();
  await until(async () => (await s.api.get('/health/ready')).status === 503, 'it is not ready');
  await s.api.get('/health/live', { status: 200 });
  for (const answer of [
    await s.api.get(`/v1/lessons/${id}`),
    await s.api.get('/v1/lessons/block'),
    await s.api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }),
  ]) {
    assert.equal(answer.status, 503);
    assert.equal(answer.json.code, 'database_unavailable');
    assert.ok(Number(answer.headers['retry-after']) >= 1);
  }
  await s.cluster.start();
  await until(async () => (await s.api.get('/health/ready')).status === 200, 'it is ready again');
  assert.equal((await s.api.get(`/v1/lessons/${id}`, { status: 200 })).json.status, 'proposed');
  await create(s.api);
  assert.ok((await metrics()).get('daybook_db_reconnects_total') > 0);
});
