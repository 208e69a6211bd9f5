// The private PostgreSQL is killed under the service: it is restarted, and the service continues with its data.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startPrivate } from '../lib/faults.mjs';
import { create, everyItem, newLesson } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';

let folder, service, api;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  service = await startPrivate(join(folder, 'data'));
  api = makeClient(service.base);
});
after(async () => {
  api?.close();
  try {
    await service?.stop();
  } finally {
    if (folder) await rm(folder, { recursive: true, force: true });
  }
});

/** Processes whose working directory is in the folder. */
const workers = () =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
    } catch {
      return false;
    }
  });

test('after kill -9 the private PostgreSQL is restarted, and nothing acknowledged is lost', async () => {
  const ids = [];
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 20; i++) ids.push((await create(api)).id);
    const killed = service.postmaster();
    process.kill(killed, 'SIGKILL');
    await until(async () => (await api.get('/health/ready')).status === 503, 'the loss is noticed');
    const refused = await api.post('/v1/lessons', newLesson());
    assert.ok(refused.status === 503 || refused.status === 201, refused.text);
    if (refused.status === 201) ids.push(refused.json.id);
    await until(async () => (await api.get('/health/ready')).status === 200, 'it is ready again');
    assert.notEqual(service.postmaster(), killed);
  }
  const stored = (await everyItem(api, '/v1/lessons?limit=200')).map((lesson) => lesson.id);
  assert.deepEqual([...stored].sort(), [...ids].sort());
});

test('kill -9 of the service also ends its PostgreSQL, and the next service finds the data', async () => {
  const before = (await everyItem(api, '/v1/lessons?limit=200')).length;
  const { id } = await create(api);
  api.close();
  service.child.kill('SIGKILL');
  await service.end;
  service = await startPrivate(join(folder, 'data'));
  api = makeClient(service.base);
  await api.get(`/v1/lessons/${id}`, { status: 200 });
  assert.equal((await everyItem(api, '/v1/lessons?limit=200')).length, before + 1);
});

test('a stop leaves no process behind', async () => {
  const stopping = service;
  service = null;
  await stopping.stop();
  assert.deepEqual(workers(), []);
  assert.ok(!existsSync(join(folder, 'data/cluster/postmaster.pid')));
});
