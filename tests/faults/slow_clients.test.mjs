// A thousand slow clients occupy only their own buffers and do not slow down others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { closed, connectAndSend, connectMany, createBytes, fill, gauges, metric, sessions, settled, sleep } from '../lib/faults.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const LESSONS = 700;
const s = suite({ prepare: () => fill(s.query, LESSONS, 16_000) }); // an export exceeds the kernel's socket buffers

async function withService(args, work) {
  const service = await s.another({ args });
  const api = makeClient(service.base);
  try {
    await api.get('/v1/lessons?limit=1', { status: 200 });
    await work(service, api, await gauges(api));
  } finally {
    api.close();
    await service.stop();
  }
}

/** Alternates reads and writes; each must succeed. */
async function served(api, count) {
  for (let i = 0; i < count; i++) {
    if (i % 2) await create(api);
    else await api.get('/v1/lessons?limit=5', { status: 200 });
  }
}

/** Sends one byte at a time on every socket until `stop()`. */
function drip(sockets, bytesOf) {
  let going = true;
  const done = (async () => {
    for (let n = 0; going; n++) {
      for (const [i, socket] of sockets.entries()) {
        if (!socket.destroyed) socket.write(bytesOf(i)[n % bytesOf(i).length]);
        if (i % 100 === 99) await sleep(20);
      }
      await sleep(200);
    }
  })();
  return async () => {
    going = false;
    await done;
  };
}

/** Waits until the slow lane has been idle for a moment. */
async function quiet(api) {
  const work = async () => (await metric(api, 'daybook_db_in_flight', '{lane="slow"}')) + (await metric(api, 'daybook_db_waiting'));
  let calm = 0;
  await until(async () => {
    calm = (await work()) === 0 ? calm + 1 : 0;
    return calm >= 10;
  }, 'the database has nothing to do', 20_000);
}

test('1,000 clients that drip headers and bodies delay no others and do not count as in flight', async () => {
  // The limit of requests in flight is below the number of slow bodies, which do not count.
  await withService(['--max-in-flight', '50', '--max-connections-per-address', '1005', '--request-timeout-ms', '600000', '--idle-timeout-ms', '600000'], async (service, api, baseline) => {
    const { head, body } = createBytes({ tags: ['drip'] });
    const sockets = await connectMany(1000, service.port, (i) => (i % 2 ? head : 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nX-Slow: '));
    await until(async () => (await metric(api, 'daybook_connections')) >= 1000, 'all are connected');
    const stop = drip(sockets, (i) => (i % 2 ? body.slice(0, -1) : 'x'));
    await served(api, 200);
    assert.ok((await metric(api, 'daybook_connections')) >= 1000, 'all of that was served beside the slow clients');

    // This address has reached its connection limit, another has not.
    const more = await connectMany(10, service.port, () => 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    const answers = await Promise.all(more.map(async (socket) => (await socket.toArray()).join('')));
    assert.ok(answers.some((text) => text.startsWith('HTTP/1.1 429 ') && text.includes('too_many_connections_from_address')), answers[9]);
    const other = await connectAndSend(service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', '127.0.0.2');
    assert.match((await other.toArray()).join(''), /^HTTP\/1\.1 200 /);

    await stop();
    for (const socket of sockets) socket.resetAndDestroy();
    await settled(api, baseline);
    assert.deepEqual((await api.get('/v1/lessons?tags=drip')).json.items, []);
  });
});

test('a body that drips or stalls is abandoned after its time limit', async () => {
  await withService(['--request-timeout-ms', '1500', '--idle-timeout-ms', '60000'], async (service, api, baseline) => {
    const { head, body } = createBytes({ tags: ['given-up'] });
    const dripping = await connectMany(50, service.port, () => head);
    const stopped = await connectMany(50, service.port, () => head + body.slice(0, 10));
    for (const socket of [...dripping, ...stopped]) socket.resume();
    const stop = drip(dripping, () => body.slice(0, -1));
    try {
      await eventually(Promise.all(dripping.map(closed)), 'dripping bodies are aborted');
      await eventually(Promise.all(stopped.map(closed)), 'stopped bodies are aborted');
    } finally {
      await stop();
    }
    await settled(api, baseline);
    assert.deepEqual((await api.get('/v1/lessons?tags=given-up')).json.items, []);
  });
});

test('a trailer that drips, on any route, is cut at the time limit of the body', async () => {
  await withService(['--request-timeout-ms', '1500', '--idle-timeout-ms', '600000'], async (service, api, baseline) => {
    for (const [path, type] of [['/v1/lessons', 'application/json'], ['/v1/nope', 'application/json'], ['/v1/episodic/bulk', 'application/x-ndjson']]) {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: `;
      const sockets = await connectMany(30, service.port, () => head);
      for (const socket of sockets) socket.resume();
      const stop = drip(sockets, () => 'a'.repeat(400));
      try {
        await eventually(Promise.all(sockets.map(closed)), `dripping trailers of ${path} are cut`);
      } finally {
        await stop();
      }
    }
    await settled(api, baseline);
  });
});

test('slow readers of large responses occupy no database connection and delay no other requests', async () => {
  await withService(['--slow-connections', '1', '--loops', '1', '--max-in-flight', '12'], async (service, api, baseline) => {
    const readers = [];
    for (let some = 1; some <= 2; some++) {
      // They read nothing. Once their buffers are full, only their clients are waited for.
      readers.push(...(await connectMany(4, service.port, (i) => `GET /v1/lessons/export?format=${i % 2 ? 'md' : 'jsonl'}&tags=filled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)));
      await until(async () => (await metric(api, 'daybook_requests_in_flight')) >= 4 * some, 'the exports have started');
      await quiet(api);
    }
    assert.deepEqual(await sessions(s.query, "state <> 'idle'"), []);

    const lines = (text) => text.split('\n').length - 1;
    const others = Array.from({ length: 2 }, () => eventually(api.get('/v1/lessons/export?format=jsonl&tags=filled', { status: 200, check: false }), 'another export ends'));
    for (const { text } of await Promise.all(others)) assert.equal(lines(text), LESSONS);
    await api.get('/v1/lessons/curation', { status: 200 });
    const { id } = await create(api);
    await api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }, { status: 200 });

    // Once they resume reading, they get the complete response.
    const whole = await eventually(Promise.all(readers.map(async (socket) => Buffer.concat(await socket.toArray()).toString())), 'the slow readers are served');
    for (const text of whole) {
      assert.ok(text.endsWith('\r\n0\r\n\r\n'), 'the stream has its final chunk');
      assert.ok(text.includes('filled 1\n') || text.includes('"filled 1"'), 'the first one is there');
      assert.ok(text.includes(`filled ${LESSONS}\n`) || text.includes(`"filled ${LESSONS}"`), 'the last one is there');
    }
    await settled(api, { connections: baseline.connections + 2, requests: baseline.requests }); // the client's own keep-alive connections
  });
});

test('a reader that stops for good is disconnected after the idle timeout of streams', async () => {
  await withService(['--stream-idle-timeout-ms', '1000'], async (service, api, baseline) => {
    const readers = await connectMany(8, service.port, () => 'GET /v1/lessons/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(async () => (await metric(api, 'daybook_requests_in_flight')) >= readers.length, 'the exports have started');
    await settled(api, baseline);
    for (const socket of readers) socket.destroy();
  });
});

test('connections over the total limit get an error, and existing ones are served', async () => {
  await withService(['--max-connections', '200'], async (service, api) => {
    const slow = await connectMany(210, service.port, () => 'GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n');
    const refused = await until(async () => {
      const socket = await connectAndSend(service.port, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      const text = (await socket.toArray()).join('');
      return text.startsWith('HTTP/1.1 503 ') && text;
    }, 'a connection is refused');
    assert.match(refused, /too_many_connections"/);
    assert.match(refused, /\r\nRetry-After: \d/i);
    await api.post('/v1/lessons', newLesson(), { status: 201 }); // on its existing connection
    for (const socket of slow) socket.destroy();
    await until(async () => (await metric(api, 'daybook_connections')) < 20, 'there is room again');
  });
});
