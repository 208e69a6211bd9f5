// Shutdown: SIGTERM finishes requests in flight, accepts no new ones, and exits with 0.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { exchange, makeClient } from '../lib/client.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

async function lock() {
  const holder = await s.cluster.connect(s.database);
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE daybook.lessons IN ACCESS EXCLUSIVE MODE');
  return async () => {
    await holder.query('ROLLBACK');
    await holder.end();
  };
}

const waiting = async () => Number((await s.query("SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))[0].n);

test('an idle service stops immediately, even with open connections', async () => {
  const service = await s.another({ args: ['--stop-timeout-ms', '600000'] });
  const sockets = Array.from({ length: 20 }, () => net.connect(service.port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) socket.on('error', () => {}).resume();
  await exchange(service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  await service.stop(); // long before its timeout
  for (const socket of sockets) socket.destroy();
});

test('a request in flight is finished before the service ends', async () => {
  const service = await s.another();
  const api = makeClient(service.base);
  const unlock = await lock();
  const answer = api.post('/v1/lessons', newLesson({ tags: ['in-flight'] }));
  await until(async () => (await waiting()) > 0, 'the request waits');
  const stopped = service.stop();
  await until(
    () =>
      new Promise((resolve) =>
        net
          .connect(service.port, '127.0.0.1')
          .on('connect', function () {
            this.destroy();
            resolve(false);
          })
          .on('error', () => resolve(true)),
      ),
    'no new connection is taken',
  );
  await unlock();
  assert.equal((await answer).status, 201);
  await stopped;
  api.close();
  assert.equal((await s.api.get('/v1/lessons?tags=in-flight')).json.items.length, 1);
});

test('a request that does not finish in time does not block the shutdown', async () => {
  const service = await s.another({ args: ['--stop-timeout-ms', '500'] });
  const api = makeClient(service.base);
  const unlock = await lock();
  const answer = api.get('/v1/lessons').catch((error) => error);
  await until(async () => (await waiting()) > 0, 'the request waits');
  await eventually(service.stop(), 'the service ends');
  const got = await answer;
  if (!(got instanceof Error)) assert.equal(got.status, 503);
  await unlock();
  api.close();
});

test('SIGINT works like SIGTERM', async () => {
  const service = await s.another();
  service.child.kill('SIGINT');
  assert.deepEqual(await eventually(service.ended, 'it ends'), { code: 0, signal: null });
});

test('a stop during the start leaves no process behind', async () => {
  for (let i = 0; i < 3; i++) await (await s.another()).stop();
});
