// The comparison of lessons: all trades of a skill by the lessons they were made under, against plain SQL averages.
import { createHash } from 'node:crypto';
import { processUs } from './cpu.mjs';
import { preparePgbench } from './pgbench.mjs';
import { request } from './stage.mjs';
import { recordStatements } from './statements.mjs';
import { cpuNow, cpuUsed, pgbenchContender, rounds } from './throughput.mjs';
import { fillTrades } from './trades.mjs';

const SKILL = 'bench-ab';
const PATH = `/v1/skills/${SKILL}/ab`;
const STATEMENTS = ['ab_versions', 'ab_trades', 'ab_notes'];

async function ask(base, method, path, body) {
  const { status, text } = await request(base, method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return JSON.parse(text);
}

/** A skill with one deployment, `revisions` notes, and equally many trades under each. */
async function fillSkill(stage, { trades, revisions }) {
  const { base } = stage.service;
  await ask(base, 'PUT', `/v1/skills/${SKILL}/versions/1`, { strategy: 'Buy the first pullback.' });
  const { id } = await ask(base, 'POST', '/v1/deployments', { skill_id: SKILL, version: '1', mode: 'paper' });
  const hashes = Array.from({ length: revisions }, (_, n) => createHash('sha256').update(`revision ${n}`).digest('hex').slice(0, 16));
  await stage.query(
    `insert into daybook.reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at, superseded_at, lessons_text, content_hash, model_used)
     select 'local', gen_random_uuid(), $1, '1', $2, case when n < $4 then 'superseded' else 'active' end, t, case when n < $4 then t + interval '1 minute' end,
       'Revision ' || n, hash, 'bench'
     from unnest($3::text[]) with ordinality as u (hash, n), lateral (select now() - ($4 - n) * interval '1 minute' as t) as at`,
    [SKILL, id, hashes, revisions],
  );
  await fillTrades(stage.query, [id], trades, hashes);
  await stage.query('vacuum analyze daybook.reflection_notes');
}

/* Plain SQL: average and number of trades per revision. There are no fees here, so net equals gross. */
const SEED = `select rn.content_hash, avg(th.realized_pnl_usd) as average, count(*)::int as n
from daybook.reflection_notes rn join daybook.trade_history th on th.entry_lessons_hash = rn.content_hash and th.deployment_id = rn.deployment_id
where rn.skill_id = '${SKILL}' and th.status = 'closed' group by rn.content_hash`;

/** Checks the response before measuring: the revisions and averages of plain SQL, with intervals and p-values. */
async function check(stage, { trades, revisions }) {
  const { revisions: found, comparisons } = await ask(stage.service.base, 'GET', PATH);
  const plain = new Map((await stage.query(SEED)).map((row) => [row.content_hash, row]));
  const same = found.every(({ lessons_hash, trades, net_usd }) => {
    const row = plain.get(lessons_hash);
    return row?.n === trades && Math.abs(Number(row.average) - net_usd.mean) < 1e-6;
  });
  const counted = found.reduce((sum, revision) => sum + revision.trades, 0);
  if (!same || found.length !== revisions || counted !== trades || comparisons < revisions)
    throw new Error(`ab: ${found.length} revisions, ${counted} trades, ${comparisons} comparisons, averages ${same ? 'match' : 'differ from'} SQL`);
}

/** Records every statement of one comparison with its values, for pgbench. */
async function recordComparison(stage) {
  const recorded = await recordStatements(stage, STATEMENTS, (base) => ask(base, 'GET', PATH));
  Object.assign(stage.statement, recorded);
  const variables = {};
  const calls = STATEMENTS.flatMap((name) =>
    recorded[name].sent.map((values, nth) => {
      const variable = (param) => `${name}_${nth}_${param}`;
      recorded[name].params.forEach((param, i) => values[i] !== null && (variables[variable(param)] = values[i]));
      return { statement: recorded[name], variable };
    }),
  );
  stage.comparison = { calls, variables, seed: SEED };
}

/** One request after the other on one connection, at least one. */
function oneByOne(stage, name) {
  const { base, pid } = stage.service;
  const now = () =>
    cpuNow(
      stage,
      () => processUs(pid),
      () => 0,
    );
  return {
    name,
    async measure(seconds) {
      const us = [];
      const before = now();
      for (let started = before.at; started < before.at + seconds * 1000; started = performance.now()) {
        await ask(base, 'GET', PATH);
        us.push((performance.now() - started) * 1000);
      }
      const after = now();
      us.sort((a, b) => a - b);
      return {
        rps: (us.length / (after.at - before.at)) * 1000,
        requests: us.length,
        failed: 0,
        p50: us[us.length >> 1],
        p99: us.at(-1),
        cpu: cpuUsed(before, after, us.length),
      };
    },
  };
}

/** {name of the contender: runs}: Daybook, pgbench on its statements, pgbench on plain SQL. */
export async function measureAb(stage, plan) {
  await fillSkill(stage, plan.ab);
  await check(stage, plan.ab);
  await recordComparison(stage);
  for (const kind of ['ab', 'ab_seed']) await preparePgbench(stage, kind);
  const all = [oneByOne(stage, 'daybook'), pgbenchContender(stage, 'pgbench', 'ab', 1), pgbenchContender(stage, 'seed', 'ab_seed', 1)];
  return rounds(all, plan.rounds, plan.abSeconds);
}
