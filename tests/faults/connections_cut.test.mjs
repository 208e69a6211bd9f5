// Clients disconnect at every stage of a request: nothing is half stored, nothing leaks, other clients are served.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { blocked, closed, connectAndSend, connectMany, createBytes, fill, gauges, sessions, settled, sleep, whileLocked } from '../lib/faults.mjs';
import { create } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const LESSONS = 1500;
let baseline;
// A client that sends data and disconnects immediately may go unnoticed until the idle timeout.
const s = suite({
  args: ['--idle-timeout-ms', '1000'],
  client: { agent: new http.Agent({ keepAlive: false }) }, // the service may close an idle connection at the moment of its reuse
  prepare: async () => {
    await s.api.get('/v1/lessons', { status: 200 });
    baseline = await gauges(s.api);
    await fill(s.query, LESSONS);
  },
});

async function leave(sockets) {
  sockets.forEach((socket, i) => (i % 2 ? socket.destroy() : socket.resetAndDestroy()));
  await Promise.all(sockets.map(closed));
}

test('disconnecting in the middle of the headers leaves nothing behind', async () => {
  const head = createBytes().head;
  await leave(await connectMany(60, s.service.port, (i) => head.slice(0, 1 + ((i * 7) % (head.length - 2)))));
  await settled(s.api, baseline);
});

test('disconnecting in the middle of a body stores nothing', async () => {
  const { head, body } = createBytes({ tags: ['cut'] });
  await leave(await connectMany(60, s.service.port, (i) => head + body.slice(0, (i * 5) % body.length)));
  const chunked = `POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`;
  await leave(await connectMany(20, s.service.port, () => chunked)); // the whole body without the final chunk
  await settled(s.api, baseline);
  assert.deepEqual((await s.api.get('/v1/lessons?tags=cut', { status: 200 })).json.items, []);
});

test('a client that half-closes after its request still gets the response', async () => {
  const { head, body } = createBytes({ tags: ['half-closed'] });
  const socket = await connectAndSend(s.service.port, head + body);
  socket.end();
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += chunk;
  assert.ok(text === '' || text.startsWith('HTTP/1.1 201 '), text);
  await settled(s.api, baseline);
});

test('disconnecting in the middle of an export releases its connection', async () => {
  for (let round = 0; round < 2; round++) {
    const sockets = await connectMany(12, s.service.port, (i) => `GET /v1/lessons/export?format=${i % 2 ? 'md' : 'jsonl'} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await Promise.all(
      sockets.map(
        (socket, i) =>
          new Promise((resolve) => {
            let got = 0;
            socket.on('data', (chunk) => {
              got += chunk.length;
              if (got > i * 100_000) i % 2 ? socket.destroy() : socket.resetAndDestroy();
            });
            socket.on('close', resolve);
          }),
      ),
    );
  }
  await settled(s.api, baseline);
  assert.equal((await s.api.get('/v1/lessons/export?format=jsonl', { status: 200 })).text.split('\n').length, LESSONS + 2); // one was half-closed
});

test('disconnecting during a statement leaks nothing', async () => {
  const { id } = await create(s.api, { at: '2026-01-01T00:00:00Z' });
  const { head, body } = createBytes({ tags: ['left'] });
  const keyed = createBytes({ tags: ['left-keyed'] }, 'Idempotency-Key: left\r\n');
  const retire = JSON.stringify({ reason: 'x' });
  const requests = [
    head + body,
    keyed.head + keyed.body,
    'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'GET /v1/lessons/export?format=md HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'GET /v1/lessons/curation HTTP/1.1\r\nHost: localhost\r\n\r\n',
    `POST /v1/lessons/${id}/retire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${retire.length}\r\n\r\n${retire}`,
  ];
  await whileLocked(s.cluster, s.database, async () => {
    const sockets = await connectMany(requests.length, s.service.port, (i) => requests[i]);
    await blocked(s.query, 4);
    await leave(sockets);
    await sleep(100);
  });
  await settled(s.api, baseline);
  await until(async () => (await sessions(s.query, "state <> 'idle'")).length === 0, 'no transaction is left open');
  for (const tag of ['left', 'left-keyed']) assert.ok((await s.api.get(`/v1/lessons?tags=${tag}`)).json.items.length <= 1);
  await create(s.api);
});

test('many clients disconnecting at every stage concurrently leak nothing', async () => {
  const { head, body } = createBytes({ tags: ['storm'] });
  const parts = ['', 'GET ', 'GET /v1/lessons HTTP/1.1\r\n', head, head + body.slice(0, 20), 'GET /v1/lessons?limit=200 HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /v1/lessons/export?format=md HTTP/1.1\r\nHost: localhost\r\n\r\n'];
  for (let round = 0; round < 3; round++) {
    const sockets = await connectMany(70, s.service.port, (i) => parts[i % parts.length]);
    await sleep(round * 15);
    await leave(sockets);
  }
  await settled(s.api, baseline);
  assert.deepEqual((await s.api.get('/v1/lessons?tags=storm')).json.items, []);
  await create(s.api);
});
