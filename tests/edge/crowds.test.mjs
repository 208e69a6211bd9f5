// Thousands of clients that send half of something: they hold neither sockets nor files once they have gone, and delay nobody meanwhile.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { connectAndSend, connectMany, gauges, metric } from '../lib/faults.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const CLOSE_WAIT = '08';
const BULK = 'POST /v1/episodic/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n';

/** The service's sockets whose peer has closed. */
const closeWait = (port) => {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8').split('\n').map((line) => line.trim().split(/\s+/)).filter(([, from, , state]) => from === local && state === CLOSE_WAIT).length;
};

/** The open files of bulk bodies. */
const spools = (pid) =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith('(deleted)');
    } catch {
      return false; // closed in the meantime
    }
  }).length;

test('2,300 half requests leave no socket behind, and the next client of their address is served', async () => {
  const before = await gauges(s.api);
  for (let round = 0; round < 23; round++) {
    const sockets = await connectMany(100, s.service.port, () => 'GET /v1/less');
    for (const socket of sockets) socket.destroy();
  }
  // The idle time-out is a minute: only noticing the close releases them.
  await until(async () => (await gauges(s.api)).connections <= before.connections, 'all are released', 10_000);
  assert.equal(closeWait(s.service.port), 0);
  await s.api.get('/v1/lessons?limit=1', { status: 200 });
});

test('200 bulk bodies that are broken off leave no file behind, however they end', async () => {
  const body = '{"a":1}\n'.repeat(10_000);
  for (const end of ['destroy', 'resetAndDestroy', 'end']) {
    const sockets = await connectMany(200, s.service.port, () => `${BULK}Content-Length: 1000000\r\n\r\n${body}`);
    await until(() => spools(s.service.pid) >= 1, 'bodies are kept in files');
    for (const socket of sockets) socket[end]();
    await until(() => spools(s.service.pid) === 0, 'all files are closed', 10_000);
    for (const socket of sockets) socket.destroy();
  }
  await until(() => closeWait(s.service.port) === 0, 'all sockets are closed');
});

test('2,000 slow heads do not delay a normal client', async (t) => {
  const service = await s.another({ args: ['--header-timeout-ms', '600000'] });
  const api = makeClient(service.base);
  /** The median of 100 writes and reads, in ms. Each must succeed. */
  const serve = async () => {
    const times = [];
    for (let i = 0; i < 100; i++) {
      const begun = performance.now();
      await (i % 2 ? api.post('/v1/lessons', newLesson(), { status: 201 }) : api.get('/v1/lessons?limit=5', { status: 200 }));
      times.push(performance.now() - begun);
    }
    return times.sort((x, y) => x - y)[50].toFixed(1);
  };
  try {
    const alone = await serve();
    const sockets = await connectMany(2_000, service.port, (i) => (i % 2 ? 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\nX: ' : 'G'));
    const drip = setInterval(() => sockets.forEach((socket) => socket.write('a')), 1_000);
    t.diagnostic(`${alone} ms alone, ${await serve()} ms beside them`);
    assert.ok((await metric(api, 'daybook_connections')) > 2_000, 'all were open meanwhile');
    clearInterval(drip);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await metric(api, 'daybook_connections')) <= 1, 'all are released', 10_000);
  } finally {
    api.close();
    await service.stop();
  }
});

test('a client that has sent a whole request and left does not hold its place once it is answered', async () => {
  const before = await gauges(s.api);
  for (const end of ['destroy', 'resetAndDestroy', 'end', 'end']) {
    const sockets = await Promise.all(Array.from({ length: 200 }, () => connectAndSend(s.service.port, 'GET /v1/lessons?limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n')));
    for (const socket of sockets) socket.resume()[end]();
    await until(async () => (await gauges(s.api)).connections <= before.connections, 'all are released', 10_000);
    for (const socket of sockets) socket.destroy();
  }
});
