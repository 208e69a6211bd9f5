// The service is killed with -9 under load: acknowledged writes survive, and retries are executed once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkWritten, startLoad } from '../lib/faults.mjs';
import { killAndStart } from '../lib/killed.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const ROUNDS = 4;
const s = suite({ cluster: { durable: true } });

test('repeated kill -9 under load loses no acknowledged write and repeats none', async () => {
  const load = startLoad(() => s.service?.base, { plain: 6, keyed: 6 });
  await load.during(async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const before = load.count(201);
      await until(() => load.count(201) > before + 20 + 15 * i, 'the load runs'); // a different moment each time
      await killAndStart(s);
    }
  });
  const unexpected = load.attempts.filter((a) => a.status && a.status !== 201 && a.code !== 'idempotency_in_progress');
  assert.deepEqual(unexpected.slice(0, 5), []);
  assert.ok(load.attempts.some((a) => a.error), 'the kills were seen');
  const stored = await checkWritten(load, s.query);
  assert.ok(stored >= load.attempts.filter((a) => a.status === 201 && !a.key).length);
});

test('the database sessions of a killed service end by themselves', async () => {
  await s.api.get('/v1/lessons?limit=1', { status: 200 });
  await s.service.kill();
  s.service = null;
  await until(async () => (await s.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND datname = current_database()")).length === 0, 'no session is left');
});
