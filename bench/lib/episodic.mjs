// Episodic memory: should_rerun with and without a reuse, and entries that the service embeds.
import { writeFileSync } from 'node:fs';
import { until } from '../../tests/lib/processes.mjs';
import { preparePgbench } from './pgbench.mjs';
import { request } from './stage.mjs';
import { CLIENTS, CONNECTIONS, daybookContender, pgbenchContender, rounds } from './throughput.mjs';

const TICKERS = 500;
const TASKS = 20;

/** One entry of the last week for each ticker and task type, and older ones. */
async function fillEntries(stage) {
  await stage.query(
    `insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, probability, confidence, source,
       embedding_status, embedding_model, embedding_dim, content_hash)
     select 'local', gen_random_uuid(), 'T' || t, 'task_' || k, now() - a * interval '20 days' - (t % 100) * interval '1 hour',
       'How firm is the guidance for the next two quarters?', repeat('Orders hold, margins give way a little, and inventories are lean. ', 4),
       0.6, 0.8, 'tool_verified', 'supplied', 'bench', 1536, format('%s %s %s', t, k, a)
     from generate_series(1, $1) as t, generate_series(1, $2) as k, generate_series(0, 4) as a`,
    [TICKERS, TASKS],
  );
  await stage.query('vacuum analyze daybook.episodic_memory');
  stage.pairs = Array.from({ length: TICKERS * TASKS }, (_, i) => [`T${1 + (i % TICKERS)}`, `task_${1 + Math.floor(i / TICKERS)}`]);
  writeFileSync(stage.file('pairs.txt'), stage.pairs.map((pair) => `${pair.join(' ')}\n`).join(''));
}

/** Checks the response before measuring. */
async function check(stage, signals, wanted) {
  const [ticker, task_type] = stage.pairs[0];
  const body = { ticker, task_type, new_signals: JSON.parse(signals) };
  const { text } = await request(stage.service.base, 'POST', '/v1/episodic/should_rerun', body);
  const { rerun, prior } = JSON.parse(text);
  if (rerun !== wanted || !prior) throw new Error(`should_rerun: ${text}`);
}

const SIGNALS = { rerun: '{"new_filing_since":true}', reuse: '{}' };

/** {name of the contender: runs}: `rerun` finds a prior that no longer holds, `reuse` one that does and counts the read. */
export async function measureRerun(stage, plan) {
  await fillEntries(stage);
  const all = [];
  for (const [kind, signals] of Object.entries(SIGNALS)) {
    await check(stage, signals, kind === 'rerun');
    await preparePgbench(stage, kind);
    all.push(
      daybookContender(stage, kind, 'rerun', CONNECTIONS, { more: [signals] }),
      pgbenchContender(stage, `${kind} pgbench`, kind, CLIENTS),
    );
  }
  return rounds(all, plan.rounds, plan.seconds, () => stage.query('checkpoint'));
}

/** wrk exits without waiting for its last requests, which the service still processes: waits until they are done. */
async function rest(stage) {
  const inFlight = async () => {
    const { text } = await request(stage.service.base, 'GET', '/metrics');
    return Number(text.match(/^daybook_requests_in_flight (\d+)$/m)[1]);
  };
  await until(async () => (await inFlight()) <= 1, 'the service is idle', 60_000); // this request itself
  await stage.query('checkpoint');
}

/** {name of the contender: runs}: entries embedded by the built-in embedder, by connections. */
export const measureEntries = (stage, plan) =>
  rounds(
    [1, CONNECTIONS].map((connections) => daybookContender(stage, `${connections}`, 'episode', connections)),
    plan.rounds,
    plan.ledgerSeconds,
    () => rest(stage),
  );
