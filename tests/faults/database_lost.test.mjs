// PostgreSQL fails under load in every way and recovers: the service keeps responding, and nothing is lost or stored twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertQuiet, checkWritten, metric, sleep, startLoad } from '../lib/faults.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ cluster: { durable: true }, args: ['--request-timeout-ms', '60000', '--log-format', 'json'] });

const OUTAGE_CODES = ['database_unavailable', 'outcome_unknown', 'idempotency_in_progress'];

async function ready() {
  await until(async () => (await s.api.get('/health/ready')).status === 200, 'the service is ready again');
}

/** Runs `hurt` under load, waits for the recovery, and compares the stored rows with the responses. */
async function underLoad(hurt) {
  await ready();
  const load = startLoad(() => s.service.base);
  await load.during(async () => {
    await until(() => load.count(201) > 20, 'the load runs');
    await hurt(load);
    await ready();
    const before = load.count(201);
    await until(() => load.count(201) > before + 20, 'writes succeed again');
  });
  assert.equal(s.service.child.exitCode, null, s.service.log.slice(-2000));
  const unexpected = load.attempts.filter((a) => a.status !== 201 && !OUTAGE_CODES.includes(a.code));
  assert.deepEqual(unexpected.slice(0, 5), []);
  assert.deepEqual(load.reads.filter((r) => ![200, 503].includes(r.status)).slice(0, 5), []);
  await checkWritten(load, s.query);
  return load;
}

test('nothing is lost when PostgreSQL is killed with -9 and restarted', async () => {
  const load = await underLoad(async (running) => {
    await s.cluster.kill();
    const since = Date.now();
    await until(() => running.reads.some((r) => r.at > since && r.status === 503), 'reads are refused');
    for (let i = 0; i < 10; i++) {
      const answer = await s.api.post('/v1/lessons', newLesson(), { status: 503 });
      assert.ok(['database_unavailable', 'outcome_unknown'].includes(answer.json.code), answer.text);
      assert.ok(Number(answer.headers['retry-after']) >= 1);
    }
    await s.api.get('/health/live', { status: 200 });
    await s.api.get('/health/ready', { status: 503 });
    await s.api.get('/v1/lessons/export?format=md', { status: 503 });
    await s.cluster.start();
  });
  assert.ok(load.attempts.some((a) => a.code === 'database_unavailable'), 'the outage was seen');
  assert.ok((await metric(s.api, 'daybook_db_reconnects_total')) > 0);
});

test('nothing is lost when PostgreSQL is killed again during recovery', async () => {
  await underLoad(async () => {
    for (let i = 0; i < 2; i++) {
      await s.cluster.kill();
      await s.cluster.start();
      await sleep(300);
    }
  });
});

test('nothing is lost when one backend is killed with -9 and PostgreSQL restarts all sessions', async () => {
  await underLoad(async () => {
    for (let i = 0; i < 2; i++) {
      const pid = await until(async () => (await s.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'daybookd' LIMIT 1").catch(() => []))[0]?.pid, 'there is a session');
      process.kill(pid, 'SIGKILL');
      await until(() => s.query('SELECT 1').catch(() => null), 'PostgreSQL has recovered');
    }
  });
});

test('nothing is lost in a fast shutdown and restart', async () => {
  await underLoad(async () => {
    await s.cluster.stop();
    await s.cluster.start();
  });
});

test('nothing is lost when an administrator terminates the sessions', async () => {
  const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'daybookd'";
  await underLoad(async () => {
    for (let i = 0; i < 8; i++) {
      await s.query(end);
      await sleep(40);
    }
  });
});

test('a write whose commit fails is not acknowledged', async () => {
  await ready();
  await s.query(`CREATE FUNCTION daybook.at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF new.takeaway LIKE '%session ends%' THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); END IF;
    RAISE EXCEPTION 'not today'; END $$`);
  await s.query("CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON daybook.lessons DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.takeaway LIKE 'commit %') EXECUTE FUNCTION daybook.at_commit()");
  const cases = [
    ['commit fails', {}, 500, 'internal'],
    ['commit fails with a key', { 'idempotency-key': 'commit-1' }, 500, 'internal'],
    ['commit and the session ends', {}, 503, 'outcome_unknown'],
    ['commit and the session ends with a key', { 'idempotency-key': 'commit-2' }, 503, 'outcome_unknown'],
  ];
  for (const [takeaway, headers, status, code] of cases) {
    const answer = await s.api.post('/v1/lessons', newLesson({ takeaway }), { headers });
    assert.deepEqual([answer.status, answer.json.code], [status, code], takeaway);
  }
  assert.deepEqual(await s.query("SELECT takeaway FROM daybook.lessons WHERE takeaway LIKE 'commit %'"), []);
  await s.query('DROP FUNCTION daybook.at_commit CASCADE');
  await until(async () => (await s.api.post('/v1/lessons', newLesson({ takeaway: cases[1][0] }), { headers: cases[1][1] })).status === 201, 'the key is free again');
});

test('writes to a read-only database are 503, reads still work', async () => {
  await ready();
  const { id } = await create(s.api);
  const restart = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'daybookd'";
  await s.query(`ALTER DATABASE ${s.database} SET default_transaction_read_only = on`);
  await s.query(restart);
  let refused = 0; // consecutive, on new connections
  await until(async () => {
    refused = (await s.api.post('/v1/lessons', newLesson())).json.code === 'database_unavailable' ? refused + 1 : 0;
    return refused >= 20;
  }, 'writes are refused');
  await until(async () => /read-only/.test((await s.api.get('/health/ready')).json.detail), 'readiness says why');
  const body = newLesson({ tags: ['read-only'] });
  for (const [path, sent, headers] of [['/v1/lessons', body], ['/v1/lessons', body, { 'idempotency-key': 'read-only' }], [`/v1/lessons/${id}/retire`, { reason: 'x' }]]) {
    const answer = await s.api.post(path, sent, { headers, status: 503 });
    assert.equal(answer.json.code, 'database_unavailable');
    assert.ok(Number(answer.headers['retry-after']) >= 1);
  }
  await s.api.get(`/v1/lessons/${id}`, { status: 200 });
  await s.query(`BEGIN READ WRITE; ALTER DATABASE ${s.database} RESET default_transaction_read_only; COMMIT`);
  await s.query(restart);
  await until(async () => (await s.api.post('/v1/lessons', body)).status === 201, 'writes succeed again');
  await ready();
  assert.equal((await s.api.get('/v1/lessons?tags=read-only', { status: 200 })).json.items.length, 1);
});

test('a full disk is 507, a failing one 503, and nothing is stored', async () => {
  await ready();
  for (const [state, status, code] of [['53100', 507, 'storage_full'], ['58030', 503, 'database_unavailable']]) {
    await s.query(`CREATE FUNCTION daybook.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '${state}'; END $$`);
    await s.query('CREATE TRIGGER no_room BEFORE INSERT ON daybook.lessons FOR EACH ROW EXECUTE FUNCTION daybook.no_room()');
    for (const headers of [{}, { 'idempotency-key': `room-${state}` }]) {
      const answer = await s.api.post('/v1/lessons', newLesson({ tags: [state] }), { headers, status });
      assert.equal(answer.json.code, code, state);
    }
    await s.query('DROP FUNCTION daybook.no_room CASCADE');
    await create(s.api, { tags: [state] }, { headers: { 'idempotency-key': `again-${state}` } });
    assert.equal((await s.api.get(`/v1/lessons?tags=${state}`)).json.items.length, 1);
  }
});

test('when a column changes its type, a few requests fail and then all statements are prepared again', async () => {
  await ready();
  const { id } = await create(s.api, { at: '2026-01-01T00:00:00Z' });
  const requests = [
    () => s.api.get(`/v1/lessons/${id}`),
    () => s.api.post('/v1/lessons', newLesson()),
    () => s.api.post('/v1/lessons', newLesson(), { headers: { 'idempotency-key': `typed-${Math.random()}` } }),
    () => s.api.get('/v1/lessons/export?format=md').catch(() => ({ status: 503 })), // an export in progress can only be cut off
  ];
  const all = async () => (await Promise.all(requests.map((request) => request()))).map((answer) => answer.status);
  assert.ok((await all()).every((status) => status < 300));
  await s.query('ALTER TABLE daybook.lessons ALTER COLUMN status_reason TYPE varchar(1000)');
  const seen = new Set();
  let well = 0; // enough to have used every connection
  await until(async () => {
    const statuses = await all();
    statuses.forEach((status) => seen.add(status));
    well = statuses.every((status) => status < 300) ? well + 1 : 0;
    return well > 20;
  }, 'all is served again', 12_000);
  assert.deepEqual([...seen].filter((status) => ![200, 201, 503].includes(status)), []);
  const many = () => Promise.all(Array.from({ length: 100 }, () => s.api.post('/v1/lessons', newLesson())));
  for (let times = 0; times < 3; ) times = (await many()).every(({ status }) => status === 201) ? times + 1 : 0;
});

test('the victim of a deadlock is retried', async () => {
  await ready();
  const made = [];
  for (let i = 0; i < 3; i++) made.push((await create(s.api, { at: '2026-01-01T00:00:00Z' })).id);
  const [into, a, b] = made.sort();
  const holder = await s.cluster.connect(s.database);
  await holder.query("SET deadlock_timeout = '60s'"); // so that the service becomes the victim
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM daybook.lessons WHERE id = $1 FOR UPDATE', [b]);
  const merged = s.api.post('/v1/lessons/merge', { into, ids: [a, b], at: '2026-01-02T00:00:00Z' });
  await until(async () => (await s.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND wait_event_type = 'Lock'")).length, 'the merge waits');
  await holder.query('SELECT 1 FROM daybook.lessons WHERE id = $1 FOR UPDATE', [into]);
  await holder.query('ROLLBACK');
  await holder.end();
  const answer = await merged;
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json.merged, [a, b]);
  assert.equal((await s.query('SELECT count(*)::int AS n FROM daybook.lessons WHERE id = ANY ($1)', [made]))[0].n, 6);
});

test('stderr has nothing but log lines after all of these faults', () => {
  assertQuiet(s.service.log);
  for (const line of s.service.log.split('\n')) if (line.startsWith('{')) JSON.parse(line);
});
