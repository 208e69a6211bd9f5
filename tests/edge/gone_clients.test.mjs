// A connection whose client has gone is released at once, whatever it had sent. Slow heads are cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { closed, connectMany, gauges } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';
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
    assert.match(service.log, /connection_cut reason="the head of the request did not arrive in time"/);
    await api.get('/v1/lessons?limit=1', { status: 200 });
  } finally {
    api.close();
    await service.stop();
  }
});
