// /health/ready is about the whole service and about writing, and it says what is wrong.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { assertQuiet } from '../lib/faults.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { run, until } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';

/** A service with its cluster; both end after `work`. */
async function withBoth({ cluster: options, args = [], prepare, user } = {}, work) {
  const cluster = await startCluster(options);
  let service, api;
  try {
    const database = await cluster.createDatabase();
    await prepare?.(cluster, database);
    service = await startService(cluster.url(database, user), { args });
    api = makeClient(service.base);
    await work({ cluster, database, service, api });
    await service.stop();
    assertQuiet(service.log);
  } finally {
    api?.close();
    if (service?.child.exitCode === null && service.child.signalCode === null) await service.kill();
    await cluster.close();
  }
}

async function notReady(api, detail) {
  const answer = await until(async () => {
    const now = await api.get('/health/ready');
    return now.status === 503 && detail.test(now.json.detail) && now;
  }, `it is not ready: ${detail}`);
  assert.equal(answer.json.code, 'not_ready');
  console.log(`  ${answer.json.detail}`);
}

const ready = (api) => until(async () => (await api.get('/health/ready')).status === 200, 'it is ready');

test('a frozen PostgreSQL makes the service not ready, and it recovers', async () => {
  await withBoth({}, async ({ cluster, api }) => {
    await ready(api);
    const thaw = cluster.freeze();
    try {
      await notReady(api, /PostgreSQL (has not answered|does not answer)/);
    } finally {
      thaw();
    }
    await ready(api);
    await until(async () => (await api.post('/v1/lessons', newLesson())).status === 201, 'writes succeed');
  });
});

test('the connection limit of the server is named, in readiness and in answers', async () => {
  const prepare = async (cluster, database) => {
    await cluster.query('postgres', 'CREATE ROLE limited LOGIN');
    await cluster.query('postgres', `ALTER DATABASE ${database} OWNER TO limited`);
    await cluster.query(database, 'CREATE EXTENSION vector; CREATE EXTENSION pg_trgm');
  };
  await withBoth({ prepare, user: 'limited' }, async ({ cluster, database, service, api }) => {
    await create(api);
    await cluster.query('postgres', 'ALTER ROLE limited CONNECTION LIMIT 0');
    await cluster.query(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'");
    await notReady(api, /connection limit of the server is reached \(53300\)/);
    await until(async () => /53300/.test((await api.post('/v1/lessons', newLesson(), { status: 503 })).json.detail), 'the answer says so');
    await until(() => / db_lost .*host="[^"]+".*53300/.test(service.log), 'the log says so');
    await cluster.query('postgres', 'ALTER ROLE limited CONNECTION LIMIT -1');
    await ready(api);
    await create(api);
  });
});

test('a full disk is 507 storage_full, readiness names it, and both end when there is space', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'dbk-full-'));
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=755', 'tmpfs', folder]).catch((error) => ({ code: 1, stderr: error.message }));
  if (mounted.code !== 0) {
    await rm(folder, { recursive: true });
    t.skip(`no file system can be mounted here: ${mounted.stderr.trim()}`);
    return;
  }
  try {
    await withBoth({ cluster: { where: folder, durable: true, settings: { max_wal_size: '64MB', min_wal_size: '32MB' } } }, async ({ cluster, database, api }) => {
      const { id } = await create(api);
      await ready(api);
      // A new WAL segment, so that the disk is full before the log needs another one: that would be a PANIC.
      await cluster.query(database, 'SELECT pg_switch_wal()');
      await cluster.query(database, 'CHECKPOINT');
      await create(api);
      const ballast = join(folder, 'ballast');
      for (let size = 300e6; size > 1000; size /= 2) {
        for (;;) if (await writeFile(ballast, Buffer.alloc(Math.floor(size)), { flag: 'a' }).then(() => false, () => true)) break;
      }
      await notReady(api, /the disk of PostgreSQL is full/);
      const answer = await until(async () => {
        const now = await api.post('/v1/lessons', newLesson({ context: 'c'.repeat(1500), outcome: 'o'.repeat(1500) }));
        return now.status !== 201 && now;
      }, 'a write fails');
      assert.deepEqual([answer.status, answer.json.code], [507, 'storage_full'], answer.text);
      await api.get(`/v1/lessons/${id}`, { status: 200 });
      await rm(ballast);
      await ready(api);
      await create(api);
    });
  } finally {
    await run('umount', [folder]);
    await rm(folder, { recursive: true });
  }
});

test('the connections of the process can be capped, and too few are refused at start', async () => {
  await withBoth({ args: ['--loops', '2', '--max-db-connections', '7'] }, async ({ cluster, database, api }) => {
    const requests = () => [api.post('/v1/lessons', newLesson()), api.post('/v1/lessons', newLesson(), { headers: { 'idempotency-key': `cap-${Math.random()}` } }), api.get('/v1/lessons/curation'), api.get('/v1/lessons')];
    for (let i = 0; i < 20; i++) for (const { status } of await Promise.all(requests())) assert.ok(status < 300);
    const [{ n }] = await cluster.query(database, "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'daybookd'");
    assert.ok(n <= 7, `${n} connections`);
    const few = await command(['serve', '--listen', '127.0.0.1:0', '--database-url', cluster.url(database), '--loops', '3', '--max-db-connections', '8']);
    assert.equal(few.code, 1);
    assert.match(few.stderr, /--max-db-connections 8 is not enough: each of the 3 event loops .* at least 9/);
  });
});
