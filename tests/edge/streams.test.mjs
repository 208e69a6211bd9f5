// A stream that nobody reads costs little memory, counts as in flight, is cut, and returns its memory.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { connectMany, fill, gauges, metric, settled } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const LESSONS = 1500;
const STREAMS = 300;
const s = suite({ prepare: () => fill(s.query, LESSONS, 16_000) });
const EXPORT = 'GET /v1/lessons/export?format=jsonl&tags=filled HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** A value in bytes, such as the resident memory. */
const status = (pid, name) => 1024 * Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(new RegExp(`${name}:\\s+(\\d+)`))[1]);
const resident = (pid) => status(pid, 'VmRSS');
/** The address sanitizer reserves terabytes, surrounds every allocation with more memory, and keeps what was freed. */
const isSanitized = (pid) => status(pid, 'VmSize') > 2 ** 40;

/** Waits until the memory has stopped growing: returns it. */
async function steady(pid) {
  let last = 0;
  await until(async () => {
    const before = last;
    last = resident(pid);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return Math.abs(last - before) < 1 << 20;
  }, 'the memory is steady', 60_000);
  return last;
}

test(`${STREAMS} exports that nobody reads are cheap, count as in flight, and are cut`, async (t) => {
  const service = await s.another({ args: ['--stream-idle-timeout-ms', '20000'] });
  const api = makeClient(service.base);
  try {
    await api.get('/v1/lessons/export?format=jsonl&tags=filled', { status: 200, check: false }); // what one export leaves behind is no leak
    const baseline = await gauges(api);
    const before = resident(service.pid);
    const sockets = await connectMany(STREAMS, service.port, () => EXPORT);
    await until(async () => (await metric(api, 'daybook_requests_in_flight')) >= STREAMS, 'all have started');
    const during = await steady(service.pid);
    assert.ok((await metric(api, 'daybook_requests_in_flight')) >= STREAMS, 'they count as in flight');
    t.diagnostic(`${Math.round((during - before) / STREAMS / 1024)} KiB per stream`);
    const most = (isSanitized(service.pid) ? 1024 : 80) * 1024; // 80: 64 for the stream and 16 for the page that was read last
    assert.ok(during - before < STREAMS * most, `${during - before} bytes for ${STREAMS} streams`);
    await settled(api, { connections: baseline.connections, requests: baseline.requests });
    const returned = () => resident(service.pid) - before < (isSanitized(service.pid) ? 300 : 8) << 20;
    await until(returned, 'the memory is returned');
    t.diagnostic(`${Math.round((resident(service.pid) - before) / 1024)} KiB more than before`);
    for (const socket of sockets) socket.destroy();
  } finally {
    api.close();
    await service.stop();
  }
});
