// The service behind PgBouncer in session mode.
import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { assertQuiet } from '../lib/faults.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { ended, start, until } from '../lib/processes.mjs';
import { createKey, startService } from '../lib/service.mjs';

let cluster, bouncer, url, database;

async function startBouncer() {
  const file = join(cluster.folder, 'pgbouncer.ini');
  const text = `[databases]\n* = host=${cluster.folder} port=5432 user=postgres\n[pgbouncer]\npool_mode = session\nlisten_port = 6432\nunix_socket_dir = ${cluster.folder}\nauth_type = any\ndefault_pool_size = 60\nmax_client_conn = 200\n`;
  await writeFile(file, text);
  await chmod(file, 0o644);
  bouncer = start('pgbouncer', [file], { user: 'postgres', cwd: cluster.folder });
  bouncer.log = '';
  bouncer.end = ended(bouncer);
  for (const out of [bouncer.stdout, bouncer.stderr]) out.setEncoding('utf8').on('data', (more) => (bouncer.log += more));
  await until(() => {
    assert.equal(bouncer.exitCode, null, bouncer.log);
    return bouncer.log.includes('listening on unix');
  }, 'PgBouncer listens');
}

async function stopBouncer() {
  bouncer.kill('SIGKILL');
  await bouncer.end;
}

before(async () => {
  cluster = await startCluster({ durable: true });
  database = await cluster.createDatabase();
  await startBouncer();
  url = `postgresql://postgres@/${database}?host=${encodeURIComponent(cluster.folder)}&port=6432`;
});
after(async () => {
  if (bouncer?.exitCode === null) await stopBouncer();
  await cluster?.close();
});

test('all lanes work through PgBouncer in session mode, and come back after it', async () => {
  const service = await startService(url);
  const api = makeClient(service.base);
  const all = async () => {
    const { id } = await create(api);
    await api.get(`/v1/lessons/${id}`, { status: 200 });
    await api.get('/v1/lessons/curation', { status: 200 });
    await api.post('/v1/lessons', newLesson(), { headers: { 'idempotency-key': `key-${id}` }, status: 201 });
    await api.get('/v1/lessons/export?format=jsonl', { status: 200 });
  };
  const ready = () => until(async () => (await api.get('/health/ready')).status === 200, 'it is ready');
  try {
    await ready();
    for (let i = 0; i < 10; i++) await all();
    await stopBouncer();
    await until(async () => (await api.get('/health/ready')).status === 503, 'the loss is noticed');
    await startBouncer();
    await ready();
    await until(async () => (await api.post('/v1/lessons', newLesson())).status === 201, 'writes succeed');
    await until(async () => (await api.get('/v1/lessons/curation')).status === 200, 'long reads too');
    await cluster.stop();
    await until(async () => (await api.get('/health/ready')).status === 503, 'the loss of the server is noticed');
    await cluster.start();
    await ready();
    await until(async () => (await api.get('/v1/lessons/curation')).status === 200, 'long reads too');
    await all();
    await createKey(url, 'desk', 'agent'); // the last: it closes the service to this client
  } finally {
    api.close();
    await service.stop();
  }
  assertQuiet(service.log);
});
