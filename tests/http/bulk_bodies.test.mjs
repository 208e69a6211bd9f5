// Bulk request bodies: any size up to the limit, any speed, and no temporary file left behind.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { exchange, makeClient } from '../lib/client.mjs';
import { eventually, run, until } from '../lib/processes.mjs';
import { createKey, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const ID = '0197c3a2-5f10-7c41-9d0e-3a5b7c9d1e30';
const PATH = `/v1/deployments/${ID}/ticks/bulk`;
const NDJSON = { 'content-type': 'application/x-ndjson' };
const CHUNKED = { ...NDJSON, 'content-length': undefined, 'transfer-encoding': 'chunked' };
const MEGABYTE = 1 << 20;

async function prepare() {
  await s.query(`
    WITH skill AS (INSERT INTO daybook.skills (owner, skill_id) VALUES ('local', 'bulk') RETURNING owner, skill_id),
      version AS (INSERT INTO daybook.skill_versions (owner, skill_id, version, strategy) SELECT owner, skill_id, '1', 'x' FROM skill),
      deployment AS (
        INSERT INTO daybook.deployments (owner, id, skill_id, version, mode, reflection_cadence, every_n_trades, created_at)
        SELECT owner, '${ID}', skill_id, '1', 'sim', 'off', 10, now() FROM skill
      )
    INSERT INTO daybook.agent_state (owner, deployment_id) SELECT owner, '${ID}' FROM skill`);
}

/** Blank lines: a body without a single item. */
const blank = (bytes) => Buffer.alloc(bytes, '\n');

const head = (headers) => `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n${headers}\r\n`;

/** A connection whose writes the test controls: {socket, text, closed}. */
async function connection(service) {
  const socket = net.connect(service.port, '127.0.0.1');
  const c = { socket, text: '', closed: once(socket, 'close') };
  socket.on('data', (bytes) => (c.text += bytes)).on('error', () => {});
  await once(socket, 'connect');
  return c;
}

/** The sizes of the unlinked files that the service has open. */
const spools = ({ pid }) =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const path = `/proc/${pid}/fd/${fd}`;
    try {
      return readlinkSync(path).endsWith('(deleted)') ? [statSync(path).size] : [];
    } catch {
      return []; // closed in the meantime
    }
  });
const spooled = (service) => spools(service).length;

async function withService(options, work) {
  const service = await s.another(options);
  const api = makeClient(service.base);
  try {
    await work(service, api);
  } finally {
    api.close();
    await service.stop();
  }
}

test('a bulk body may exceed the ordinary body limit, with Content-Length or chunked, and leaves no file behind', async () => {
  for (const headers of [NDJSON, CHUNKED]) {
    await s.api.post(PATH, blank(2 * MEGABYTE), { headers, status: 200 });
    await s.api.post(PATH, blank(1), { headers, status: 200 });
  }
  await s.api.post(PATH, '', { headers: CHUNKED, status: 200 });
  await s.api.post(PATH, undefined, { status: 200 });
  await until(() => spooled(s.service) === 0, 'no file is open');
});

test('a body over the limit is 413 body_too_large, with Content-Length or chunked', async () => {
  await withService({ args: ['--max-bulk-bytes', '65536'] }, async (service, api) => {
    for (const headers of [NDJSON, CHUNKED]) {
      await api.post(PATH, blank(65536), { headers, status: 200 });
      const answer = await api.post(PATH, blank(65537), { headers, status: 413 });
      assert.equal(answer.json.code, 'body_too_large');
      assert.match(answer.json.detail, /65536/);
    }
    const far = await exchange(service.port, head('Content-Length: 999999999999\r\n'), { method: 'POST', path: PATH });
    assert.equal(far.status, 413);
    assert.equal(spooled(service), 0);
  });
});

test('a media type other than application/x-ndjson is 415, and the response names the expected type', async () => {
  for (const type of ['application/json', 'application/jsonl', 'text/plain', undefined]) {
    const answer = await s.api.post(PATH, '\n', { headers: { 'content-type': type }, status: 415 });
    assert.equal(answer.json.code, 'unsupported_media_type');
    assert.match(answer.json.detail, /application\/x-ndjson/);
  }
  await s.api.post(PATH, '\n', { headers: { 'content-type': 'Application/X-NDJSON; charset=utf-8' }, status: 200 });
});

test('Expect: 100-continue gets 100 before the body, or the error instead', async () => {
  const c = await connection(s.service);
  c.socket.write(head('Content-Length: 3\r\nExpect: 100-continue\r\n'));
  await until(() => c.text.startsWith('HTTP/1.1 100 '), 'it says continue');
  c.socket.write('\n\n\n');
  await eventually(c.closed, 'the response is complete');
  assert.match(c.text, /\r\n\r\nHTTP\/1\.1 200 /);

  const refused = await exchange(s.service.port, head('Content-Length: 999999999999\r\nExpect: 100-continue\r\n'), {
    method: 'POST',
    path: PATH,
  });
  assert.equal(refused.status, 413);
});

test('a line longer than the ordinary body limit is line_too_long', async () => {
  await withService({ args: ['--max-body-bytes', '1024'] }, async (service, api) => {
    const answer = await api.post(PATH, `\n${'x'.repeat(500_000)}\n`, { headers: NDJSON });
    assert.match(answer.text, /line_too_long/);
    assert.match(answer.text, /line 2 has more than 1024 bytes/);
  });
});

test('a slow body that keeps arriving is read to its end, one below the least rate is timed out', async () => {
  await withService({ args: ['--request-timeout-ms', '500', '--min-body-rate', '4'] }, async (service) => {
    const c = await connection(service);
    c.socket.write(head('Transfer-Encoding: chunked\r\n'));
    const begun = Date.now();
    await until(() => c.socket.write('1\r\n\n\r\n') && Date.now() - begun > 1500, 'three timeouts have passed');
    c.socket.write('0\r\n\r\n');
    await eventually(c.closed, 'the response is complete');
    assert.match(c.text, /^HTTP\/1\.1 200 /);

    const silent = await connection(service); // 1 byte in 500 ms is less than 4 bytes a second
    silent.socket.write(`${head('Transfer-Encoding: chunked\r\n')}1\r\n\n\r\n`);
    await eventually(silent.closed, 'it is given up');
    assert.equal(silent.text, '');
    await until(() => spooled(service) === 0, 'its file is closed');
    await until(() => service.log.includes('body_timeout'), 'it is logged');
  });
});

test('a client that disconnects in the middle of its body leaves nothing behind', async () => {
  // libmicrohttpd misses a FIN that arrives together with data; the timeout then closes the connection.
  await withService({ args: ['--request-timeout-ms', '1000'] }, async (service) => {
    const c = await connection(service);
    c.socket.write(head(`Content-Length: ${MEGABYTE}\r\n`));
    c.socket.write(blank(MEGABYTE / 2));
    await until(() => spooled(service) === 1, 'its body has a file');
    c.socket.destroy();
    await until(() => spooled(service) === 0, 'its file is closed');
  });
});

test('a full disk is 507 insufficient_storage, is logged, and the service recovers once there is space', async () => {
  await withService({}, async (service, api) => {
    const limit = (bytes) => run('prlimit', ['--pid', String(service.pid), `--fsize=${bytes}:`]);
    await limit(100_000);
    const answer = await api.post(PATH, blank(MEGABYTE), { headers: NDJSON, status: 507 });
    assert.equal(answer.json.code, 'insufficient_storage');
    await until(() => service.log.includes('spool_failed'), 'it is logged');
    await api.post(PATH, blank(50_000), { headers: NDJSON, status: 200 });
    await limit('unlimited');
    await api.post(PATH, blank(MEGABYTE), { headers: NDJSON, status: 200 });
  });
});

test('spooled bodies share one limit: over it is 507, and a single body always fits', async () => {
  await withService({ args: ['--max-bulk-bytes', String(4 * MEGABYTE), '--max-spool-bytes', String(5 * MEGABYTE)] }, async (service, api) => {
    const c = await connection(service);
    c.socket.write(head(`Content-Length: ${3 * MEGABYTE}\r\n`));
    c.socket.write(blank(3 * MEGABYTE - 1));
    await until(() => spools(service)[0] === 3 * MEGABYTE - 1, 'all of the body but its last byte has arrived');
    await api.post(PATH, blank(2.5 * MEGABYTE), { headers: NDJSON, status: 507 });
    await until(() => service.log.includes(`spool_full limit_bytes=${5 * MEGABYTE}`), 'it is logged');
    await api.post(PATH, blank(MEGABYTE), { headers: NDJSON, status: 200 });
    c.socket.write('\n');
    await eventually(c.closed, 'the response is complete');
    assert.match(c.text, /^HTTP\/1\.1 200 /, 'the first upload is complete');
    for (let i = 0; i < 3; i++) await api.post(PATH, blank(4 * MEGABYTE), { headers: NDJSON, status: 200 });
  });
  await withService({ args: ['--max-bulk-bytes', '65536', '--max-spool-bytes', '1024'] }, (_, api) =>
    api.post(PATH, blank(65536), { headers: NDJSON, status: 200 }),
  );
});

test('without a directory for temporary files only bulk requests fail', async () => {
  await withService({ env: { TMPDIR: '/nonexistent' } }, async (service, api) => {
    assert.equal((await api.post(PATH, blank(10), { headers: NDJSON, status: 500 })).json.code, 'internal');
    await until(() => /spool_failed.*No such file or directory/.test(service.log), 'it is logged');
    await api.get('/v1/lessons', { status: 200 });
  });
});

test('an unknown key is rejected before the body is sent, and a new key works immediately', async () => {
  const url = s.cluster.url(await s.cluster.createDatabase());
  await createKey(url, 'desk', 'agent'); // once a key exists, every caller needs one
  const service = await startService(url);
  try {
    const ask = (key) => head(`Authorization: Bearer ${key}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n`);
    const refused = await exchange(service.port, ask('unknown'), { method: 'POST', path: PATH });
    assert.equal(refused.status, 401);
    assert.equal(spooled(service), 0);
    const { key } = await createKey(url, 'desk', 'agent');
    const c = await connection(service);
    c.socket.write(ask(key));
    await until(() => c.text.startsWith('HTTP/1.1 100 '), 'the new key may send');
    c.socket.write('\n\n');
    await eventually(c.closed, 'the response is complete');
    assert.doesNotMatch(c.text, /unauthenticated/);
  } finally {
    await service.stop();
  }
});

test('an Idempotency-Key is accepted and not stored: each line gets its own result', async () => {
  const headers = { ...NDJSON, 'idempotency-key': 'bulk-1' };
  for (const body of ['\n', '\n\n'])
    assert.equal((await s.api.post(PATH, body, { headers, status: 200 })).headers['idempotency-replayed'], undefined);
  await s.api.post(PATH, '\n', { headers: { ...headers, 'idempotency-key': 'not visible' }, status: 400 });
});

test('a body still arriving when the service stops is finished within the stop limit, or abandoned', async () => {
  const service = await s.another({ args: ['--stop-timeout-ms', '20000'] });
  const [quick, slow] = [await connection(service), await connection(service)];
  for (const c of [quick, slow]) c.socket.write(`${head('Content-Length: 2\r\n')}\n`);
  await until(() => spooled(service) === 2, 'both are under way');
  const stopped = service.stop();
  await until(() => service.log.includes('stop signal=TERM'), 'it stops');
  quick.socket.write('\n');
  await eventually(quick.closed, 'the response is complete');
  assert.match(quick.text, /^HTTP\/1\.1 200 /);
  await stopped;
  await eventually(slow.closed, 'the other is closed');
  assert.equal(slow.text, '');
});
