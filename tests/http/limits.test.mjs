// Limits: each has its own error, and other clients are still served.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { exchange, makeClient } from '../lib/client.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

/** Runs `work(service, api)` on a service started with these arguments. */
async function withLimits(args, work) {
  const service = await s.another({ args });
  const api = makeClient(service.base);
  try {
    await work(service, api);
  } finally {
    api.close();
    await service.stop();
  }
}

/** Runs `work` while nobody can read or write lessons. */
async function whileLocked(work) {
  const holder = await s.cluster.connect(s.database);
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE daybook.lessons IN ACCESS EXCLUSIVE MODE');
  try {
    await work();
  } finally {
    await holder.query('ROLLBACK');
    await holder.end();
  }
}

const waiting = async () =>
  Number(
    (await s.query("SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))[0].n,
  );

async function openConnections(port, count) {
  const sockets = Array.from({ length: count }, () => net.connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) socket.on('error', () => {}).resume();
  return sockets;
}

test('headers over the limit are 431 header_too_large', async () => {
  await withLimits(['--max-header-bytes', '2048'], async (service, api) => {
    for (const bytes of [2500, 9000]) {
      const answer = await exchange(service.port, `GET /version HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(bytes)}\r\n\r\n`, {
        method: 'GET',
        path: '/version',
      });
      assert.equal(answer?.status, 431, `${bytes} bytes`);
      assert.equal(answer.json.code, 'header_too_large');
    }
    await api.get('/version', { headers: { 'x-long': 'x'.repeat(1500) }, status: 200 });
  });
});

test('a request line over the limit is rejected', async () => {
  await withLimits(['--max-header-bytes', '2048'], async (service, api) => {
    const answer = await exchange(service.port, `GET /v1/lessons?text=${'x'.repeat(50_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    assert.ok(answer === null || [414, 431].includes(answer.status), `status ${answer?.status}`);
    await api.get('/version', { status: 200 });
  });
});

test('too many connections from one address are 429, until some of them close', async () => {
  await withLimits(['--max-connections-per-address', '8'], async (service) => {
    const sockets = await openConnections(service.port, 8);
    const get = () =>
      exchange(service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', { method: 'GET', path: '/version' });
    const refused = await until(async () => {
      const answer = await get();
      return answer?.status === 429 && answer;
    }, 'the ninth connection is refused');
    assert.equal(refused.json.code, 'too_many_connections_from_address');
    for (const socket of sockets) socket.destroy();
    await until(async () => (await get())?.status === 200, 'there is room again');
  });
});

test('too many connections in total are 503 with Retry-After', async () => {
  await withLimits(['--max-connections', '8'], async (service) => {
    const sockets = await openConnections(service.port, 8);
    const get = () =>
      exchange(service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', { method: 'GET', path: '/version' });
    const refused = await until(async () => {
      const answer = await get();
      return answer?.status === 503 && answer;
    }, 'the ninth connection is refused');
    assert.equal(refused.json.code, 'too_many_connections');
    for (const socket of sockets) socket.destroy();
    await until(async () => (await get())?.status === 200, 'there is room again');
  });
});

test('an idle connection is closed after the idle timeout', async () => {
  await withLimits(['--idle-timeout-ms', '1000'], async (service) => {
    const [socket] = await openConnections(service.port, 1);
    await eventually(once(socket, 'close'), 'the idle connection is closed');
    const [kept] = await openConnections(service.port, 1);
    kept.write('GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually(once(kept, 'close'), 'an idle kept-alive connection is closed');
  });
});

test('a body that does not arrive ends with 408 or a closed connection, and stores nothing', async () => {
  await withLimits(['--request-timeout-ms', '1000', '--idle-timeout-ms', '2000'], async (service, api) => {
    const body = JSON.stringify(newLesson({ tags: ['slow'] }));
    const head = `POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const answer = await eventually(
      exchange(service.port, head + body.slice(0, -1), { method: 'POST', path: '/v1/lessons' }),
      'the slow body is given up',
    );
    if (answer) assert.equal(answer.json.code, 'body_timeout');
    assert.deepEqual((await api.get('/v1/lessons?tags=slow')).json.items, []);
  });
});

test('a request over its time limit is 504 request_timeout, and its statement is cancelled', async () => {
  await withLimits(['--request-timeout-ms', '500'], async (service, api) => {
    await create(api);
    await whileLocked(async () => {
      const answers = await Promise.all([
        api.get('/v1/lessons'),
        api.post('/v1/lessons', newLesson({ tags: ['late'] })),
        api.get('/v1/lessons/curation'),
      ]);
      for (const answer of answers) {
        assert.equal(answer.status, 504, answer.text);
        assert.equal(answer.json.code, 'request_timeout');
      }
      await until(async () => (await waiting()) === 0, 'no statement waits any more');
    });
    assert.deepEqual((await api.get('/v1/lessons?tags=late', { status: 200 })).json.items, []);
    await create(api);
  });
});

test('too many requests in flight are 503 overloaded, and health checks still respond', async () => {
  await withLimits(['--loops', '1', '--max-in-flight', '4', '--request-timeout-ms', '3000'], async (service, api) => {
    await whileLocked(async () => {
      const stuck = Array.from({ length: 4 }, () => api.post('/v1/lessons', newLesson()));
      const refused = await until(async () => {
        const answer = await api.get('/v1/lessons');
        return answer.status === 503 && answer;
      }, 'a request over the limit is refused');
      assert.equal(refused.json.code, 'overloaded');
      assert.ok(Number(refused.headers['retry-after']) >= 1);
      await Promise.all(stuck);
    });
    await until(async () => (await api.get('/v1/lessons')).status === 200, 'it serves again');
  });
});

test('a slow statement does not delay fast ones', async () => {
  await withLimits(['--request-timeout-ms', '600000'], async (service, api) => {
    const { id } = await create(api);
    const holder = await s.cluster.connect(s.database);
    await holder.query('BEGIN');
    await holder.query('SELECT id FROM daybook.lessons WHERE id = $1 FOR UPDATE', [id]);
    let retired = false;
    const stuck = api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }).finally(() => (retired = true));
    try {
      await until(async () => (await waiting()) > 0, 'the statement waits');
      await eventually(Promise.all(Array.from({ length: 20 }, () => api.get(`/v1/lessons/${id}`, { status: 200 }))), 'reads are served');
      await eventually(create(api), 'writes are served');
      assert.ok(!retired, 'all of that was served while the statement waited');
    } finally {
      await holder.query('ROLLBACK');
      await holder.end();
    }
    assert.equal((await stuck).status, 200);
  });
});
