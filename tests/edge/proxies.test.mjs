// Behind a trusted proxy, the limits per address apply to its clients, not to the proxy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { command } from '../lib/service.mjs';
import { connectAndSend, whileLocked } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const LIMITS = ['--loops', '1', '--max-connections-per-address', '2', '--max-connections', '50'];
const head = (forwarded, more = '') =>
  `GET /v1/lessons?limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${forwarded.map((f) => `X-Forwarded-For: ${f}\r\n`).join('')}${more}\r\n`;

async function withService(args, work) {
  const service = await s.another({ args: [...LIMITS, ...args] });
  try {
    await work(service);
  } finally {
    await service.stop();
  }
}

const statusOf = async (socket) => Number((await socket.toArray()).join('').slice(9, 12));

/** The statuses of requests that are all in flight at the same time: they wait for a locked table. */
async function together(service, requests) {
  const sockets = [];
  let early = 0;
  await whileLocked(s.cluster, s.database, async () => {
    for (const forwarded of requests) {
      const socket = await connectAndSend(service.port, head(forwarded));
      socket.once('readable', () => early++);
      sockets.push(socket);
    }
    const waiting = () => s.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND wait_event_type = 'Lock'");
    await until(async () => early + (await waiting()).length >= 1 && /./.test(service.base), 'they are in flight');
    await until(async () => {
      const begun = early;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return begun === early;
    }, 'no more are rejected');
  });
  return Promise.all(sockets.map(statusOf));
}

test('each client behind a trusted proxy has the limit of an address', async () => {
  await withService(['--trusted-proxies', '127.0.0.0/8'], async (service) => {
    const many = Array.from({ length: 6 }, (_, i) => [`192.0.2.${i}`]);
    assert.deepEqual(await together(service, many), many.map(() => 200));
    const same = Array.from({ length: 5 }, () => ['192.0.2.1']);
    assert.deepEqual((await together(service, same)).sort(), [200, 200, 429, 429, 429]);
  });
});

test('what the client wrote itself into X-Forwarded-For does not count, and the proxies are skipped', async () => {
  await withService(['--trusted-proxies', '127.0.0.1, 10.0.0.0/8'], async (service) => {
    const forged = Array.from({ length: 5 }, (_, i) => [`198.51.100.${i}, 192.0.2.1`]);
    assert.deepEqual((await together(service, forged)).sort(), [200, 200, 429, 429, 429]);
    const behind = Array.from({ length: 5 }, (_, i) => [`192.0.2.1, 10.1.2.${i}`]);
    assert.deepEqual((await together(service, behind)).sort(), [200, 200, 429, 429, 429]);
    const repeated = Array.from({ length: 5 }, (_, i) => [`198.51.100.${i}`, '192.0.2.1:443']);
    assert.deepEqual((await together(service, repeated)).sort(), [200, 200, 429, 429, 429]);
  });
});

test('X-Forwarded-For of anybody else is ignored', async () => {
  await withService([], async (service) => {
    const many = Array.from({ length: 5 }, (_, i) => [`192.0.2.${i}`]);
    assert.deepEqual((await together(service, many)).sort(), [200, 200, 429, 429, 429]);
  });
});

test('a network that is not valid stops the start with a message', async () => {
  for (const [bad, quoted] of [['10.0.0.0/99', '10.0.0.0/99'], ['proxy.example', 'proxy.example'], ['10.0.0.1,,x', 'x'], ['10.0.0.0/', '10.0.0.0/']]) {
    const { code, stderr } = await command(['serve', '--listen', '127.0.0.1:0', '--database-url', s.url, '--trusted-proxies', bad]);
    assert.notEqual(code, 0);
    assert.ok(stderr.includes(`--trusted-proxies: "${quoted}" is not an address`), stderr);
  }
});
