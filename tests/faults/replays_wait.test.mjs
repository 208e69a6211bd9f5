// A repeated answer is as durable as the first one: with a synchronous standby that is gone, no retry is acknowledged before it is back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEpisode, evict, newEpisode, restore } from '../lib/episodes.mjs';
import { putVersion } from '../lib/ledger.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';
import { deploy, post, postBulk, tickOf } from '../lib/ticks.mjs';

const s = suite({ cluster: { durable: true }, args: ['--request-timeout-ms', '100000', '--backfill', 'off'] });

const reload = async (sql) => {
  await s.query(sql);
  await s.query('SELECT pg_reload_conf()');
};
/** Commits that wait for the standby, but for the test writes behind /health/ready and what the background stores. */
const waiting = () => s.query("SELECT pid, query FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query !~ 'probe|seal_journal|unsealed|memory_vectors'");

/** PostgreSQL's processes read a changed setting one after the other: commits until one of them waits. */
async function commitsWait() {
  const other = await s.cluster.connect(s.database);
  try {
    for (let pid; !pid; ) {
      let done = false;
      const commit = other.query("SELECT pg_logical_emit_message(true, 'test', '')").finally(() => (done = true));
      [{ pid }] = await until(async () => (done ? [{}] : ((rows) => rows.length && rows)(await waiting())), 'the commit waits, or is done');
      if (pid) await s.query('SELECT pg_cancel_backend($1)', [pid]);
      await commit;
    }
  } finally {
    await other.end();
  }
}

/** Runs `work` while commits wait for a standby that is gone; it gets the function that lets them pass. */
async function withoutStandby(work) {
  await reload("ALTER SYSTEM SET synchronous_standby_names = 'gone'");
  const pass = () => reload('ALTER SYSTEM RESET synchronous_standby_names');
  try {
    await commitsWait();
    return await work(pass);
  } finally {
    await pass();
    await until(async () => !(await waiting()).length, 'no commit waits');
  }
}

/** Asserts that the request waits for the standby, and returns its answer after `pass`. */
async function waits(request, pass) {
  let answered = false;
  const answer = request();
  answer.then(() => (answered = true), () => (answered = true));
  await until(async () => answered || (await waiting()).length, 'the request waits, or is answered');
  assert.ok(!answered, 'answered before the standby has it');
  await pass();
  return await eventually(answer, 'the request is answered');
}

/** The first request commits on this server alone: its backend is ended while it waits for the standby. The retry must wait. */
async function retryOfLost(request) {
  return await withoutStandby(async (pass) => {
    const first = request();
    const [{ pid }] = await until(async () => ((rows) => rows.length && rows)(await waiting()), 'the first commit waits');
    await s.query('SELECT pg_terminate_backend($1)', [pid]);
    assert.equal((await eventually(first, 'the first request is answered')).json.code, 'outcome_unknown');
    await until(async () => !(await waiting()).length, 'its backend is gone');
    return await waits(request, pass);
  });
}

test('the retry of a request with an Idempotency-Key waits for the standby', async () => {
  const body = newLesson({ tags: ['sync'] });
  const answer = await retryOfLost(() => s.api.post('/v1/lessons', body, { headers: { 'idempotency-key': 'sync' } }));
  assert.deepEqual([answer.status, answer.headers['idempotency-replayed']], [201, 'true']);
  assert.equal((await s.query("SELECT count(*)::int AS n FROM daybook.lessons WHERE tags = '{sync}'"))[0].n, 1);
});

test('the retry of a tick waits for the standby', async () => {
  const deployment = await deploy(s.query);
  const answer = await retryOfLost(() => post(s.api, deployment, tickOf(1), { status: undefined }));
  assert.deepEqual([answer.status, answer.json.replayed], [200, true]);
});

test('every other answer that repeats what is stored waits for the standby', async () => {
  const deployment = await deploy(s.query);
  const ticks = [1, 2, 3].map((n) => tickOf(n));
  const entry = newEpisode({ created_at: '2026-01-01T00:00:00Z' });
  const key = { headers: { 'idempotency-key': 'claimed' } };
  const version = await putVersion(s.api, { skill_id: 'waits' });
  assert.ok(version);
  await postBulk(s.api, deployment, ticks);
  await createEpisode(s.api, entry);
  await s.api.post('/v1/episodic', { ...entry, question: 'with a key' }, { ...key, status: 201 });
  const evicted = await evict(s.api, { dry_run: false, policies: ['time'], max_age_days: 1, at: '2030-01-01T00:00:00Z' });
  assert.ok(evicted.eviction_id);
  await restore(s.api, { eviction_id: evicted.eviction_id, at: '2030-01-02T00:00:00Z' });
  const repeated = {
    'a response stored under a claim': () => s.api.post('/v1/episodic', { ...entry, question: 'with a key' }, { ...key, status: 201 }),
    'an entry that exists': () => s.api.post('/v1/episodic', entry, { status: 200 }),
    'a restore of restored entries': () => restore(s.api, { eviction_id: evicted.eviction_id, at: '2030-01-03T00:00:00Z' }),
    'a version that is the same': () => putVersion(s.api, { skill_id: 'waits' }, { status: 200 }),
    'ticks in bulk': () => postBulk(s.api, deployment, ticks),
  };
  for (const [what, request] of Object.entries(repeated)) await withoutStandby((pass) => waits(request, pass)).catch((error) => assert.fail(`${what}: ${error.message}`));
});
