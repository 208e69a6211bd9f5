// The service and its private PostgreSQL are killed together: the next start cleans up after them and serves.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startPrivate } from '../lib/faults.mjs';
import { create, everyItem } from '../lib/lessons.mjs';
import { ended, start } from '../lib/processes.mjs';

const KILLS = 5;

let folder, data, service;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  data = join(folder, 'data');
});
after(async () => {
  try {
    await service?.stop();
  } finally {
    if (folder) await rm(folder, { recursive: true, force: true });
  }
});

/** Stores a lesson; returns the ids of all. */
async function use() {
  const api = makeClient(service.base);
  await create(api);
  const ids = (await everyItem(api, '/v1/lessons')).map((lesson) => lesson.id);
  api.close();
  return ids;
}

/** kill -9 of the service and of its postmaster; returns the pid that the postmaster had. */
async function killBoth() {
  const postmaster = service.postmaster();
  process.kill(service.child.pid, 'SIGSTOP'); // it must not restart its PostgreSQL
  process.kill(postmaster, 'SIGKILL');
  service.child.kill('SIGKILL');
  await service.end;
  return postmaster;
}

test(`a start right after both were killed serves, ${KILLS} times in a row`, async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    service = await startPrivate(data);
    assert.equal((await use()).length, kill + 1);
    await killBoth();
  }
  service = await startPrivate(data);
  assert.equal((await use()).length, KILLS + 1);
});

test('a start serves while another process has the pid of the killed PostgreSQL', async () => {
  const killed = await killBoth();
  const other = start('sleep', ['600'], { user: 'postgres' });
  const end = ended(other);
  try {
    const lock = join(data, 'cluster/postmaster.pid');
    const socket = readFileSync(lock, 'utf8').split('\n')[4];
    for (const path of [lock, join(socket, '.s.PGSQL.5432.lock')]) {
      const text = readFileSync(path, 'utf8');
      assert.ok(text.startsWith(`${killed}\n`), 'the killed PostgreSQL left its locks');
      writeFileSync(path, text.replace(killed, other.pid));
    }
    service = await startPrivate(data);
    assert.equal((await use()).length, KILLS + 2);
    assert.equal(other.exitCode, null, 'the other process was left alone');
  } finally {
    other.kill('SIGKILL');
    await end;
  }
});
