// The deadline of a request holds over all its steps, and what is left to undo does not hold up the reply.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newEpisode } from '../lib/episodes.mjs';
import { makeClient } from '../lib/client.mjs';
import { blocked, sessions, whileLocked } from '../lib/faults.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';
import { deploy, tickOf, ticksPath } from '../lib/ticks.mjs';

const LIMIT = 2000;
const s = suite({ cluster: { durable: true }, args: ['--request-timeout-ms', String(LIMIT), '--loops', '1'] });

/** Where the first match is in the log of the service, from `from` on, once it is there. */
const logged = (pattern, from) => until(() => ((at) => at >= 0 && at + from)(s.service.log.slice(from).search(pattern)), `the log has ${pattern}`);

/** Posts with a key while `table` is locked, and locks the key as soon as the request waits: its release must wait as well. */
async function lockedBehindItsKey(table, key, path, body) {
  const begun = s.service.log.length;
  const holder = await s.cluster.connect(s.database);
  try {
    await whileLocked(s.cluster, s.database, async () => {
      const answer = s.api.post(path, body, { headers: { 'idempotency-key': key } });
      answer.catch(() => {}); // awaited below
      await blocked(s.query, 1);
      await holder.query('BEGIN');
      await holder.query('SELECT FROM daybook.idempotency_keys WHERE key = $1 FOR UPDATE', [key]);
      const replied = await eventually(answer, 'the request is answered');
      const released = await logged(/statement=idempotency_release sqlstate=57014/, begun);
      const line = await logged(/request method=POST.* status=504/, begun);
      assert.ok(line < released, s.service.log.slice(begun));
      return replied;
    }, table).then((replied) => assert.deepEqual([replied.status, replied.json.code], [504, 'request_timeout'], replied.text));
  } finally {
    await holder.query('ROLLBACK');
    await holder.end();
  }
}

test('a claim that cannot be released does not hold up the reply', () => lockedBehindItsKey('daybook.episodic_memory', 'held', '/v1/episodic', newEpisode()));

test('the key is free again afterwards', async () => {
  const body = newEpisode({ question: 'again' });
  await whileLocked(s.cluster, s.database, () => s.api.post('/v1/episodic', body, { headers: { 'idempotency-key': 'free' }, status: 504 }), 'daybook.episodic_memory');
  await until(async () => (await s.api.post('/v1/episodic', body, { headers: { 'idempotency-key': 'free' } })).status === 201, 'the key is free');
});

test('steps that each keep to the limit do not add up', async () => {
  const begun = s.service.log.length;
  const [one, two] = [await s.cluster.connect(s.database), await s.cluster.connect(s.database)];
  try {
    await one.query('BEGIN; LOCK TABLE daybook.idempotency_keys IN ACCESS EXCLUSIVE MODE');
    await two.query('BEGIN; LOCK TABLE daybook.episodic_memory IN ACCESS EXCLUSIVE MODE');
    const answer = s.api.post('/v1/episodic', newEpisode({ question: 'slow' }), { headers: { 'idempotency-key': 'slow' } });
    answer.catch(() => {}); // awaited below
    // The first statement waits for most of the limit. Then it succeeds, and the next one finds a lock that stays.
    const late = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'daybookd'
      AND clock_timestamp() - query_start > ${LIMIT * 0.6} * interval '1 millisecond'`;
    await until(async () => (await s.query(late)).length, 'the first statement has waited');
    await one.query('ROLLBACK');
    assert.equal((await eventually(answer, 'the request is answered')).status, 504);
    const line = await logged(/request method=POST.* status=504/, begun);
    const cancelled = await logged(/statement=(episode_known|idempotency_claim) sqlstate=57014/, begun);
    assert.ok(line < cancelled, 'the request ended before the limit of its last statement');
  } finally {
    for (const holder of [one, two]) {
      await holder.query('ROLLBACK');
      await holder.end();
    }
  }
});

test('after the deadline of a request in a transaction, its connection only rolls back', async () => {
  const deployment = await deploy(s.query);
  const holder = await s.cluster.connect(s.database);
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT FROM daybook.agent_state WHERE deployment_id = $1 FOR UPDATE', [deployment]);
    const answer = s.api.post(ticksPath(deployment), tickOf(1), { headers: { 'idempotency-key': 'rolled-back' } });
    answer.catch(() => {}); // awaited below
    const [{ pid }] = await until(async () => ((rows) => rows.length && rows)(await s.query("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'")), 'the tick waits');
    assert.equal((await eventually(answer, 'the request is answered')).json.code, 'request_timeout');
    const [{ query }] = await until(async () => ((rows) => rows.length && rows)(await s.query("SELECT query FROM pg_stat_activity WHERE pid = $1 AND state = 'idle'", [pid])), 'the connection is idle');
    assert.equal(query, 'ROLLBACK');
  } finally {
    await holder.query('ROLLBACK');
    await holder.end();
  }
  await s.api.post(ticksPath(deployment), tickOf(1), { status: 200 });
});

test('statements whose requests have ended do not hold up other writes', async () => {
  const service = await s.another({ args: ['--request-timeout-ms', '4000', '--loops', '1', '--write-connections', '1'] });
  const api = makeClient(service.base);
  try {
    await whileLocked(s.cluster, s.database, async () => {
      const lost = await Promise.all([1, 2, 3, 4].map(() => api.post('/v1/lessons', newLesson())));
      assert.deepEqual([...new Set(lost.map((reply) => reply.json.code))].sort(), ['outcome_unknown', 'request_timeout']);
      const reply = await until(async () => {
        const answer = await api.post('/v1/memories', { kind: 'note', text: 'not behind them' });
        return answer.json.code !== 'database_unavailable' && answer; // while the connection is made again
      }, 'the write is answered');
      assert.equal(reply.status, 201, reply.text);
      await until(async () => !(await sessions(s.query, "wait_event_type = 'Lock'")).length, 'their sessions have ended');
    });
    await api.post('/v1/lessons', newLesson(), { status: 201 });
    assert.match(service.log, /db_lost .*held up/);
  } finally {
    api.close();
    await service.stop();
  }
});
