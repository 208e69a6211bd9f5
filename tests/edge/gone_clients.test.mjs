// A connection whose client has gone is released at once, whatever it had sent. Slow heads are cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { blocked, closed, connectAndSend, connectMany, createBytes, gauges, whileLocked } from '../lib/faults.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const BULK = 'POST /v1/episodic/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n';

const SENT = {
  'nothing': '',
  'half a request line': 'GET /v1/less',
  'half a header': 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\nX: ',
  'half a body': 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
  'half a bulk body': `${BULK}Content-Length: 100000\r\n\r\n{"a":`,
  'half a chunk': `${BULK}Transfer-Encoding: chunked\r\n\r\n100\r\n{"a":`,
};

for (const [what, bytes] of Object.entries(SENT))
  for (const how of ['close', 'half-close'])
    test(`200 clients that send ${what} and ${how} leave no connection behind`, async () => {
      const before = await gauges(s.api);
      const sockets = await connectMany(200, s.service.port, () => bytes);
      for (const socket of sockets) how === 'close' ? socket.destroy() : socket.end();
      // The idle time-out is a minute: only noticing the close releases them.
      await until(async () => (await gauges(s.api)).connections <= before.connections, 'all are released', 5_000);
      for (const socket of sockets) socket.destroy();
    });

test('a half-closed client still gets its reply', async () => {
  const sockets = await connectMany(50, s.service.port, () => 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const answers = sockets.map((socket) => new Promise((resolve) => {
    let text = '';
    socket.on('data', (chunk) => (text += chunk)).on('close', () => resolve(text));
    socket.end();
  }));
  for (const text of await Promise.all(answers)) assert.match(text, /^HTTP\/1\.1 200 /);
});

test('a head that takes longer than its limit is cut and logged, and others are served meanwhile', async () => {
  const service = await s.another({ args: ['--header-timeout-ms', '500'] });
  const api = makeClient(service.base);
  try {
    const sockets = await connectMany(300, service.port, (i) => (i % 2 ? 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n' : ''));
    const drip = setInterval(() => sockets.forEach((socket) => socket.destroyed || socket.write('')), 100);
    for (let i = 0; i < 50; i++) await api.get('/v1/lessons?limit=1', { status: 200 });
    await Promise.all(sockets.map(closed));
    clearInterval(drip);
    assert.match(service.log, /connection_cut address=127\.0\.0\.1 reason="the head of the request did not arrive in time" count=1$/m);
    await api.get('/v1/lessons?limit=1', { status: 200 });
  } finally {
    api.close();
    await service.stop();
  }
});

const WORKS = {
  'a read': () => 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'a read over HTTP/1.0': () => 'GET /v1/lessons HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n',
  'a write': (i) => Object.values(createBytes({ takeaway: `Lesson ${i} of a client that leaves.` })).join(''),
  'a write, with 8 MB behind it': (i) => `${Object.values(createBytes({ takeaway: `Lesson ${i} of a client that is ahead.` })).join('')}${BULK}Content-Length: 9000000\r\n\r\n${'x'.repeat(8e6)}`,
  'an export': () => 'GET /v1/lessons/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n',
};

for (const [what, bytes] of Object.entries(WORKS))
  for (const how of ['destroy', 'resetAndDestroy'])
    test(`a client that leaves during ${what} (${how}) releases its connection while the database still works`, async () => {
      await until(async () => (await gauges(s.api)).requests <= 1, 'the work of earlier clients has ended');
      const before = await gauges(s.api);
      await whileLocked(s.cluster, s.database, async () => {
        const sockets = await Promise.all(Array.from({ length: 20 }, (_, i) => connectAndSend(s.service.port, bytes(i))));
        await until(async () => (await gauges(s.api)).requests >= before.requests + 20, 'all are worked on');
        for (const socket of sockets) socket[how]();
        // Neither the lock nor the time limit of a request ends before that.
        await until(async () => (await gauges(s.api)).connections <= before.connections, 'all are released', 5_000);
      });
      await s.api.get('/v1/lessons?limit=1', { status: 200 });
    });

test('a client that half-closes during a long request reads an interim response, then its reply', async () => {
  const before = await gauges(s.api);
  let answers;
  await whileLocked(s.cluster, s.database, async () => {
    const sockets = await Promise.all(Array.from({ length: 5 }, () => connectAndSend(s.service.port, WORKS['a read']())));
    answers = sockets.map((socket) => eventually(new Promise((resolve) => {
      let text = '';
      socket.on('data', (chunk) => (text += chunk)).on('close', () => resolve(text));
      socket.end();
    }), 'the connection is closed'));
    await blocked(s.query, 1);
    await Promise.all(sockets.map((socket) => until(() => socket.bytesRead > 0, 'the interim response')));
    assert.ok((await gauges(s.api)).connections >= before.connections + 5, 'all are still connected');
  });
  for (const text of await Promise.all(answers)) assert.match(text, /^(HTTP\/1\.1 100 Continue\r\n\r\n)+HTTP\/1\.1 200 OK\r\n/);
});

test('cut connections do not flood the log: of an address 1, 2, 4, 8 and so on, and a few lines a second of all', async () => {
  const service = await s.another();
  const malformed = `${BULK}Transfer-Encoding: chunked\r\n\r\nno size\r\n`;
  const cut = async (sockets) => Promise.all(sockets.map((socket) => (socket.resume(), closed(socket))));
  const counts = (address) => [...service.log.matchAll(/ connection_cut address=(\S+) .* count=(\d+)$/gm)].filter(([, of]) => !address || of === address).map(([, , n]) => Number(n));
  try {
    await cut(await connectMany(100, service.port, () => malformed, '127.0.0.2'));
    assert.deepEqual(counts('127.0.0.2').sort((a, b) => a - b), [1, 2, 4, 8, 16, 32, 64]);
    const begun = Date.now();
    for (let i = 0; i < 5; i++) await cut(await Promise.all(Array.from({ length: 100 }, (_, j) => connectAndSend(service.port, malformed, `127.0.${i + 1}.${j}`))));
    const lines = counts().length, most = 100 + 10 * ((Date.now() - begun) / 1000 + 1);
    assert.ok(lines >= 100 && lines <= most, `${lines} lines, at most ${most}`);
  } finally {
    await service.stop();
  }
});
