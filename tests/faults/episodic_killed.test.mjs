// The service, and sometimes PostgreSQL, is killed with -9 at random moments while entries are stored and reused. Every acknowledged entry is
// stored once, with its vector, and every acknowledged reuse is counted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postEpisodes } from '../lib/episodes.mjs';
import { answerTo, assertRetried, killUnder, startWriter } from '../lib/killed.mjs';
import { day } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const KILLS = 16;
const BULK_LINES = 20;

const s = suite({ cluster: { durable: true } });
const entryOf = (writer, n) => ({ ticker: `W${writer}`, task_type: 'killed', question: `Question ${n}`, answer: `Answer ${n}`, created_at: day(1) });

const post = async (path, body, headers, statuses, told) => {
  const answer = await answerTo(s, (api) => api.post(path, body, { headers, check: false }), statuses);
  return answer ? [told(answer.json)] : [];
};
const create = (writer, n, headers) => post('/v1/episodic', entryOf(writer, n), headers, [201, 200], ({ id }) => id);

async function createMany(n) {
  const entries = Array.from({ length: BULK_LINES }, (_, i) => entryOf('bulk', n + i));
  const answer = await answerTo(s, (api) => postEpisodes(api, entries, { status: undefined, check: false }));
  if (answer?.last?.error) assertRetried(answer.last.error);
  return answer ? answer.lines.filter((l) => l.status).map((l) => l.id) : [];
}

test(`killed ${KILLS} times, every acknowledged entry is stored once, with its vector`, async (t) => {
  const reused = { ticker: 'REUSE', task_type: 'killed' };
  await s.api.post('/v1/episodic', { ...reused, question: 'q', answer: 'a', created_at: day(1) }, { status: 201 });
  const reuse = startWriter('reuse', () => post('/v1/episodic/should_rerun', { ...reused, as_of: day(2) }, {}, [200], ({ rerun }) => rerun));
  const stored = [
    startWriter('plain', (n) => create('plain', n)),
    startWriter('keyed', (n) => create('keyed', n, { 'idempotency-key': `keyed-${n}` })),
    startWriter('bulk', createMany),
  ];
  const all = [...stored, reuse];
  await killUnder(s, all, { kills: KILLS, nthBoth: 4, apart: 3 * BULK_LINES, seed: 7 });

  for (const { name, answers } of stored) {
    const rows = await s.query(
      `SELECT m.id, m.question, m.embedding_status, (SELECT count(*)::int FROM daybook.episodic_vectors v WHERE v.episode_id = m.id) AS vectors
       FROM daybook.episodic_memory m WHERE ticker = $1`,
      [`W${name}`],
    );
    const byQuestion = new Map(rows.map((r) => [r.question, r]));
    assert.equal(byQuestion.size, rows.length, `${name}: none twice`);
    for (const [n, id] of answers.entries()) assert.equal(byQuestion.get(`Question ${n}`)?.id, id, `${name} ${n}: what was answered is what is stored`);
    for (const row of rows) assert.deepEqual([row.embedding_status, row.vectors], ['embedded', 1], `${name}: ${row.question}`);
  }
  const { answers, retries } = reuse;
  const [{ counted, kept }] = await s.query(
    `SELECT read_count AS counted, (SELECT count(*)::int FROM daybook.episodic_reads r WHERE r.episode_id = m.id) AS kept FROM daybook.episodic_memory m WHERE ticker = 'REUSE'`,
  );
  assert.ok(answers.every((rerun) => rerun === false));
  assert.equal(counted, kept, 'the entry and its reads agree');
  assert.ok(counted >= answers.length && counted <= answers.length + retries, `${counted} counted, ${answers.length} answered, ${retries} not`);
  t.diagnostic(`${KILLS} kills: ${all.map((w) => `${w.name} ${w.answers.length} answered, ${w.retries} retries`).join('; ')}`);
});
