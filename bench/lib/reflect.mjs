// Reflection with the built-in reflector on a thousand trades, against pgbench on its statements.
import { until } from '../../tests/lib/processes.mjs';
import { newDeployments, writeIds } from './ledger.mjs';
import { preparePgbench } from './pgbench.mjs';
import { request } from './stage.mjs';
import { recordStatements } from './statements.mjs';
import { CLIENTS, daybookContender, pgbenchContender, rounds } from './throughput.mjs';
import { fillTrades } from './trades.mjs';

export const TRADES = 1000;
export const AT_ONCE = 16;
const STATEMENTS = ['state', 'claim', 'trades', 'settle', 'note_write', 'add'].map((name) => `reflection_${name}`);

/** Reflects on a deployment and checks the outcome. */
async function reflect(base, id) {
  const { status, text } = await request(base, 'POST', `/v1/deployments/${id}/reflect`, { force: true });
  const { outcome, trades_considered, model_used } = JSON.parse(text);
  if (status !== 200 || outcome !== 'ran' || trades_considered !== TRADES || model_used !== 'builtin')
    throw new Error(`reflect: ${status} ${text}`);
}

/** Prepares pgbench's deployments and records the statements of one reflection. */
async function recordReflection(stage, ids) {
  const recorded = await recordStatements(stage, STATEMENTS, (base) => reflect(base, ids[0]));
  Object.assign(stage.statement, recorded);
  const sent = Object.values(recorded).flatMap(({ params, sent }) => params.map((param, i) => [param, sent.at(-1)[i]]));
  stage.reflection = { deployments: ids.length, variables: Object.fromEntries(sent.filter(([, value]) => value !== null)) };
  await stage.query('create table bench.reflecting (n integer primary key, id uuid)');
  await stage.query('insert into bench.reflecting select n - 1, id from unnest($1::uuid[]) with ordinality as u (id, n)', [ids]);
  await stage.query('vacuum analyze bench.reflecting');
}

/** Waits until no reflection is running: it continues after its client has disconnected. */
const idle = (stage) =>
  until(
    async () =>
      (
        await stage.query(
          'select count(*)::int as n from daybook.reflection_claims k join pg_stat_activity a on a.pid = k.claim_pid and a.backend_start = k.claim_started',
        )
      )[0].n === 0,
    'reflections have ended',
  );

/** {name of the contender: runs}: Daybook with the number of connections, and pgbench with that of its clients. */
export async function measureReflect(stage, plan) {
  const ids = await newDeployments(stage, 2 * plan.reflecting);
  await fillTrades(stage.query, ids, TRADES);
  const [ours, theirs] = [ids.slice(0, plan.reflecting), ids.slice(plan.reflecting)];
  await recordReflection(stage, theirs);
  await preparePgbench(stage, 'reflect');
  writeIds(stage, 'reflect.txt', ours);
  const all = [
    ...[1, AT_ONCE].map((count) => daybookContender(stage, `${count}`, 'reflect', count, { more: ['reflect.txt'] })),
    ...[1, CLIENTS].map((count) => pgbenchContender(stage, `pgbench ${count}`, 'reflect', count)),
  ];
  return rounds(all, plan.rounds, plan.ledgerSeconds, async () => {
    await idle(stage);
    await stage.query('checkpoint'); // for equal conditions, as for POST /v1/lessons
  });
}
