// The service itself is killed with -9 under load: what it acknowledged is there, and what is sent again is done once.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ANSWER_MS, checkWritten, sleep, startLoad } from '../lib/faults.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { until } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';

const ROUNDS = 4;
let cluster, database, service;

before(async () => {
  cluster = await startCluster({ durable: true });
  database = await cluster.createDatabase();
});
after(async () => {
  try {
    await service?.stop();
  } finally {
    await cluster?.close();
  }
});

test('killed with -9 under load, several times', async () => {
  service = await startService(cluster.url(database));
  const load = startLoad(() => service?.base, { plain: 6, keyed: 6, limitMs: ANSWER_MS(10_000) });
  await load.during(async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const before = load.count(201);
      await until(() => load.count(201) > before + 20 + 15 * i, 'the load runs'); // a different moment each time
      const dying = service;
      service = null;
      await dying.kill();
      await sleep(20);
      service = await startService(cluster.url(database));
    }
  });
  const unexpected = load.attempts.filter((a) => a.status && a.status !== 201 && a.code !== 'idempotency_in_progress');
  assert.deepEqual(unexpected.slice(0, 5), []);
  assert.ok(load.attempts.some((a) => a.error), 'the kills were seen');
  const stored = await checkWritten(load, (sql) => cluster.query(database, sql));
  assert.ok(stored >= load.attempts.filter((a) => a.status === 201 && !a.key).length);
});

test('sessions of a killed service end by themselves', async () => {
  const api = await fetch(`${service.base}/v1/lessons?limit=1`);
  assert.equal(api.status, 200);
  await service.kill();
  service = null;
  await until(async () => (await cluster.query(database, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND datname = current_database()")).length === 0, 'no session is left');
});
