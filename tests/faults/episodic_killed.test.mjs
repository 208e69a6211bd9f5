// The service, and sometimes PostgreSQL, is killed with -9 at random moments while entries are stored and reused: what was acknowledged is
// there once, with its vector, and every reuse that was answered is counted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { postEpisodes } from '../lib/episodes.mjs';
import { sleep } from '../lib/faults.mjs';
import { day } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';
import { randomOf } from '../lib/ticks.mjs';

const KILLS = 16;
const EVERY_NTH_BOTH = 4; // of them: PostgreSQL goes too
const BULK_LINES = 20;
const random = randomOf(7);

let cluster, database, service;
const query = (sql, values) => cluster.query(database, sql, values);

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

const RETRIED = ['database_unavailable', 'outcome_unknown', 'shutting_down', 'overloaded', 'idempotency_in_progress', 'request_timeout'];
const isNetwork = (error) => (error.code && error.code !== 'ERR_ASSERTION' ? null : Promise.reject(error));
const entryOf = (writer, n) => ({ ticker: `W${writer}`, task_type: 'killed', question: `Question ${n}`, answer: `Answer ${n}`, created_at: day(1) });

/** Sends the next of its own until it is answered, then goes on. */
const writers = {
  plain: async (w, n) => {
    const answer = await service?.api.post('/v1/episodic', entryOf(w.name, n), { check: false }).catch(isNetwork);
    return taken(answer, [201, 200]) ? [answer.json.id] : [];
  },
  keyed: async (w, n) => {
    const answer = await service?.api.post('/v1/episodic', entryOf(w.name, n), { headers: { 'idempotency-key': `${w.name}-${n}` }, check: false }).catch(isNetwork);
    return taken(answer, [201, 200]) ? [answer.json.id] : [];
  },
  bulk: async (w, n) => {
    const entries = Array.from({ length: BULK_LINES }, (_, i) => entryOf(w.name, n + i));
    const answer = await (service && postEpisodes(service.api, entries, { status: undefined, check: false }).catch(isNetwork));
    if (!answer?.lines) return taken(answer, []) || [];
    if (answer.last?.error) assert.ok(RETRIED.includes(answer.last.error.code), answer.text);
    return answer.lines.filter((l) => l.status).map((l) => l.id);
  },
  reuse: async () => {
    const answer = await service?.api.post('/v1/episodic/should_rerun', { ticker: 'REUSE', task_type: 'killed', as_of: day(2) }, { check: false }).catch(isNetwork);
    return taken(answer, [200]) ? [answer.json.rerun] : [];
  },
};

function taken(answer, statuses) {
  if (!answer) return false;
  if (statuses.includes(answer.status)) return true;
  assert.ok(RETRIED.includes(answer.json.code), answer.text);
  return false;
}

function startWriter(name, send) {
  const w = { name, answers: [], retries: 0 };
  let going = true;
  const done = (async () => {
    for (let answered = []; going || !answered.length; ) {
      answered = await send(w, w.answers.length);
      w.answers.push(...answered);
      if (answered.length) continue;
      w.retries++;
      await sleep(10);
    }
  })();
  done.catch(() => {}); // seen by stop()
  w.stop = () => ((going = false), done);
  return w;
}

async function begin() {
  service = await startService(cluster.url(database));
  service.api = makeClient(service.base);
}

async function killAll({ both }) {
  const dying = service;
  service = null;
  await Promise.all([dying.kill(), ...(both ? [cluster.kill()] : [])]);
  dying.api.close();
  if (both) await cluster.start();
}

test(`killed ${KILLS} times, what was acknowledged is there once, with its vector`, async (t) => {
  await begin();
  await service.api.post('/v1/episodic', { ticker: 'REUSE', task_type: 'killed', question: 'q', answer: 'a', created_at: day(1) }, { status: 201 });
  const all = [
    startWriter('plain', writers.plain),
    startWriter('keyed', writers.keyed),
    startWriter('bulk', writers.bulk),
    startWriter('reuse', writers.reuse),
  ];
  const total = () => all.reduce((sum, w) => sum + w.answers.length, 0);
  for (let i = 0; i < KILLS; i++) {
    const before = total();
    await until(() => total() > before + 3 * BULK_LINES, 'entries are taken', 30_000);
    await sleep(random() * 100);
    await killAll({ both: i % EVERY_NTH_BOTH === EVERY_NTH_BOTH - 1 });
    await begin();
  }
  await Promise.all(all.map((w) => w.stop()));

  for (const { name, answers } of all.slice(0, 3)) {
    const rows = await query(
      `SELECT m.id, m.question, m.embedding_status, (SELECT count(*)::int FROM daybook.episodic_vectors v WHERE v.episode_id = m.id) AS vectors
       FROM daybook.episodic_memory m WHERE ticker = $1`,
      [`W${name}`],
    );
    const byQuestion = new Map(rows.map((r) => [r.question, r]));
    assert.equal(byQuestion.size, rows.length, `${name}: none twice`);
    for (const [n, id] of answers.entries()) assert.equal(byQuestion.get(`Question ${n}`)?.id, id, `${name} ${n}: what was answered is what is stored`);
    for (const row of rows) assert.deepEqual([row.embedding_status, row.vectors], ['embedded', 1], `${name}: ${row.question}`);
  }
  const reuses = all[3].answers.length;
  const [{ counted, kept }] = await query(
    `SELECT read_count AS counted, (SELECT count(*)::int FROM daybook.episodic_reads r WHERE r.episode_id = m.id) AS kept FROM daybook.episodic_memory m WHERE ticker = 'REUSE'`,
  );
  assert.ok(all[3].answers.every((rerun) => rerun === false));
  assert.equal(counted, kept, 'the entry and its reads agree');
  assert.ok(counted >= reuses && counted <= reuses + all[3].retries, `${counted} counted, ${reuses} answered, ${all[3].retries} not`);
  t.diagnostic(`${KILLS} kills: ${all.map((w) => `${w.name} ${w.answers.length} answered, ${w.retries} retries`).join('; ')}`);
  assert.ok(all.reduce((sum, w) => sum + w.retries, 0) >= KILLS, 'the kills were seen');
});
