// Unknown keys cost at most one lookup each, and hurt nobody else. The bounds are counted, never timed: where a limit refills with
// time, the time that has passed is part of the bound.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { connectMany, whileLocked } from '../lib/faults.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { until } from '../lib/processes.mjs';
import { sendRaw, statusesOf } from '../lib/raw.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
let serial = 0;

/** Runs `work` with a service that has a key: {service, api, good}. */
async function withService(args, work) {
  const { key } = await createKey(s.url, `owner-${++serial}`, 'agent');
  const service = await s.another({ args });
  const api = makeClient(service.base);
  const good = api.as(key);
  try {
    await work({ service, api, good });
  } finally {
    good.close();
    api.close();
    await service.stop();
  }
}

/** Sends `count` requests, at most 40 at a time, with the headers of headersOf(i). Returns the answers and the seconds that passed. */
async function send(api, count, headersOf) {
  const begun = Date.now();
  const answers = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < count; i = next++) answers.push(await api.get('/v1/lessons?limit=1', { headers: headersOf(i) }));
  };
  await Promise.all(Array.from({ length: 40 }, worker));
  return { answers, seconds: (Date.now() - begun) / 1000 };
}

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const lookups = async (api) => (await metricsOf(api)).get('daybook_key_lookups_total');
const rejected = async (api) => {
  const all = await metricsOf(api);
  return Object.fromEntries(['unknown', 'revoked', 'expired', 'limited', 'address_limited'].map((r) => [r, all.get(`daybook_keys_rejected_total{reason="${r}"}`)]));
};
const count = (answers, status) => answers.filter((a) => a.status === status).length;

test('an unknown key is looked up once while its absence is remembered, however often it is sent', async () => {
  await withService(['--loops', '1', '--max-failed-keys', '1000000'], async ({ api }) => {
    const DISTINCT = 10;
    const before = await lookups(api);
    const { answers, seconds } = await send(api, 1000, (i) => bearer(`dbk_unknown_${i % DISTINCT}`));
    assert.equal(count(answers, 401), 1000);
    const made = (await lookups(api)) - before;
    assert.ok(made >= DISTINCT && made <= DISTINCT * (Math.floor(seconds) + 2), `${made} lookups in ${seconds} s`);
    assert.equal((await rejected(api)).unknown, 1000);
  });
});

test('known keys cost no lookup, and neither do missing, expired and revoked ones', async () => {
  const spent = await createKey(s.url, 'spent', 'agent');
  await s.query('UPDATE daybook.api_keys SET revoked_at = now() WHERE id = $1', [spent.id]);
  const old = await createKey(s.url, 'old', 'agent');
  await s.query("UPDATE daybook.api_keys SET expires_at = now() - interval '1 day' WHERE id = $1", [old.id]);
  await withService(['--loops', '2', '--max-failed-keys', '1000000'], async ({ api, good }) => {
    assert.equal(count((await send(good, 200, () => ({}))).answers, 200), 200);
    assert.equal(count((await send(api, 50, () => ({}))).answers, 401), 50);
    assert.equal(count((await send(api, 50, () => bearer(spent.key))).answers, 401), 50);
    assert.equal(count((await send(api, 50, () => bearer(old.key))).answers, 401), 50);
    assert.equal(await lookups(api), 0);
    assert.deepEqual(await rejected(api), { unknown: 0, revoked: 50, expired: 50, limited: 0, address_limited: 0 });
  });
});

test('beyond its failures an address is 429 with Retry-After, without a lookup, and a valid key there is not hurt', async () => {
  await withService(['--loops', '2', '--max-failed-keys', '60'], async ({ service, api, good }) => {
    const [bad, fine] = await Promise.all([
      send(api, 1000, (i) => bearer(`dbk_guess_${i}`)),
      send(good, 300, () => ({})),
    ]);
    assert.equal(count(fine.answers, 200), 300);
    const [failed, limited] = [count(bad.answers, 401), count(bad.answers, 429)];
    assert.equal(failed + limited, 1000);
    assert.ok(failed >= 60 && failed <= 60 + bad.seconds + 1, `${failed} in ${bad.seconds} s`);
    for (const { json, headers } of bad.answers.filter((a) => a.status === 429)) {
      assert.equal(json.code, 'too_many_failed_keys');
      assert.ok(Number(headers['retry-after']) >= 1 && Number(headers['retry-after']) <= 60);
    }
    assert.equal(await lookups(api), failed);
    assert.deepEqual(await rejected(api), { unknown: failed, revoked: 0, expired: 0, limited: 0, address_limited: limited });
    const lines = service.log.split('\n').filter((line) => line.includes(' key_rejected '));
    assert.ok(lines.length >= 1 && lines.length <= 11 && lines.every((line) => line.includes('address=127.0.0.1')), lines.join('\n'));
    assert.ok(!service.log.includes('dbk_guess'), 'a key is logged');
  });
});

test('Retry-After is honest: it is the time until the address has another failure', async () => {
  await withService(['--max-failed-keys', '1'], async ({ api }) => {
    const begun = Date.now();
    await api.get('/v1/lessons', { headers: bearer('dbk_a'), status: 401 });
    const answer = await api.get('/v1/lessons', { headers: bearer('dbk_b'), status: 429 });
    const seconds = (Date.now() - begun) / 1000;
    const wait = Number(answer.headers['retry-after']);
    assert.ok(wait <= 60 && wait >= 60 - Math.ceil(seconds), `${wait} after ${seconds} s`);
  });
});

test('behind a trusted proxy each client has its failures, and what it forges does not help', async () => {
  await withService(['--max-failed-keys', '1', '--trusted-proxies', '127.0.0.0/8'], async ({ api }) => {
    const from = async (forwarded, token) => (await api.get('/v1/lessons', { headers: { ...bearer(token), 'x-forwarded-for': forwarded } })).status;
    assert.equal(await from('192.0.2.1', 'dbk_a'), 401);
    assert.equal(await from('192.0.2.2', 'dbk_b'), 401);
    assert.equal(await from('198.51.100.7, 192.0.2.1', 'dbk_c'), 429);
    assert.equal(await from('192.0.2.2', 'dbk_d'), 429);
    assert.equal(await from('2001:db8:1:2::1', 'dbk_e'), 401);
    assert.equal(await from('2001:db8:1:2::2', 'dbk_f'), 429);
  });
});

test('a known key does not wait for the table of keys, and neither do thousands of unknown ones delay it', async () => {
  await withService(['--loops', '1', '--max-failed-keys', '1000000'], async ({ api, good }) => {
    await good.get('/v1/lessons?limit=1', { status: 200 });
    await whileLocked(s.cluster, s.database, async () => {
      const strangers = Array.from({ length: 100 }, (_, i) => api.get('/v1/lessons', { headers: bearer(`dbk_waits_${i}`), check: false }));
      for (let i = 0; i < 20; i++) await good.get('/v1/lessons?limit=0', { status: 422 }); // rejected after authentication, without the database
      strangers.forEach((stranger) => stranger.catch(() => {}));
    }, 'daybook.api_keys');
  });
});

const post = (key, length, headers = '') =>
  `POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n${headers}\r\n`;

test('a key that is not good is rejected before its body is read, and a new key may send it', async () => {
  const spent = await createKey(s.url, 'spent', 'agent');
  await s.query('UPDATE daybook.api_keys SET revoked_at = now() WHERE id = $1', [spent.id]);
  await withService(['--loops', '1'], async ({ service }) => {
    const ask = (key) => post(key, 2, 'Expect: 100-continue\r\n');
    for (const key of ['dbk_unknown', 'dbk_unknown', spent.key]) assert.deepEqual(statusesOf(await sendRaw(service.port, ask(key))), [401]);
    const { key } = await createKey(s.url, 'new', 'agent');
    const [socket] = await connectMany(1, service.port, () => ask(key));
    let text = '';
    socket.on('data', (data) => (text += data));
    await until(() => text.startsWith('HTTP/1.1 100 '), 'it says continue');
    socket.write('{}');
    await until(() => statusesOf(text).includes(422), 'the body is read');
  });
});

test('the bodies of unknown keys are not kept', async () => {
  await withService(['--loops', '1', '--max-failed-keys', '1000000'], async ({ service }) => {
    const peak = () => 1024 * Number(readFileSync(`/proc/${service.pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1]);
    const [COUNT, LENGTH] = [64, 1_000_000];
    assert.deepEqual(statusesOf(await sendRaw(service.port, post('dbk_first', LENGTH) + ' '.repeat(LENGTH))), [401]);
    const before = peak();
    const sockets = await connectMany(COUNT, service.port, (i) => post(`dbk_body_${i % 4}`, LENGTH) + ' '.repeat(LENGTH - 1));
    const answers = sockets.map(() => '');
    sockets.forEach((socket, i) => socket.on('data', (data) => (answers[i] += data)));
    await until(() => sockets.every((socket) => socket.writableLength === 0), 'all but the last bytes are sent');
    sockets.forEach((socket) => socket.write(' '));
    await until(() => answers.every((text) => statusesOf(text)[0] === 401), 'all are rejected');
    const grown = peak() - before;
    assert.ok(grown < (COUNT * LENGTH) / 2, `${grown} bytes`);
    sockets.forEach((socket) => socket.destroy());
  });
});
