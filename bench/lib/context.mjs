// The context read, and whether it grows with the ledger.
import pg from 'pg';
import { newHistory } from './ledger.mjs';
import { preparePgbench } from './pgbench.mjs';
import { ready, request, startDaybook } from './stage.mjs';
import { CLIENTS, CONNECTIONS, daybookContender, pgbenchContender, rounds } from './throughput.mjs';

const SHOWN = { trades: 10, positions: 3 };

/** A service with its own database in the cluster. */
export async function openDatabase(stage, name) {
  await stage.query(`create database ${name} owner daybook`);
  const client = new pg.Client({ ...stage.admin, database: name });
  client.on('error', () => {}); // the failing query reports it
  await client.connect();
  for (const extension of ['vector', 'pg_trgm']) await client.query(`create extension ${extension}`);
  const service = await startDaybook(
    stage.daybookd,
    ['--database-url', stage.url.replace('/daybook?', `/${name}?`)],
    'ignore',
  );
  await ready(service);
  return { service, client, query: async (...asked) => (await client.query(...asked)).rows, close: () => client.end() };
}

/** Checks the data before measuring: the number of closed trades, and a context of full size. */
async function check({ service, query, id, closed }) {
  const [{ n }] = await query(
    "select count(*)::int as n from daybook.trade_history where status = 'closed' and deployment_id = $1",
    [id],
  );
  const { text } = await request(service.base, 'GET', `/v1/deployments/${id}/context`);
  const { recent_trades, open_positions } = JSON.parse(text);
  if (n !== closed || recent_trades.length !== SHOWN.trades || open_positions.length !== SHOWN.positions)
    throw new Error(`the ledger of ${closed} trades has ${n}, and its context is ${text}`);
}

/** The longest ledger is in the database that all contenders share, each of the others in its own. */
async function openLedgers(stage, plan) {
  stage.ledgers = [];
  for (const [i, closed] of plan.ledgers.entries()) {
    const own = i < plan.ledgers.length - 1;
    const place = own ? await openDatabase(stage, `ledger_${closed}`) : { service: stage.service, query: stage.query };
    const ledger = { ...place, closed, id: await newHistory(place.service.base, place.query, closed) };
    await check(ledger);
    await place.close?.();
    stage.ledgers.push(ledger);
  }
}

/** {name of the contender: runs}: Daybook with the closed trades of its ledger and the number of connections, pgbench with its clients. */
export async function measureContext(stage, plan) {
  await stage.query('vacuum analyze'); // so that no autovacuum for earlier parts runs during the measurement
  await openLedgers(stage, plan);
  await preparePgbench(stage, 'context');
  const longest = stage.ledgers.at(-1);
  const ours = ({ service, id, closed }, connections) =>
    daybookContender(stage, `${closed} ${connections}`, 'context', connections, {
      service,
      more: [id],
    });
  const all = [
    ...stage.ledgers.map((ledger) => ours(ledger, CONNECTIONS)),
    pgbenchContender(stage, 'pgbench', 'context', CLIENTS),
    ours(longest, 16),
    ...stage.ledgers.map((ledger) => ours(ledger, 1)),
    pgbenchContender(stage, 'pgbench 1', 'context', 1),
    pgbenchContender(stage, 'pgbench 1 raw', 'context', 1, { mode: 'extended' }),
  ];
  const runs = await rounds(all, plan.rounds, plan.ledgerSeconds);
  for (const { service } of stage.ledgers.slice(0, -1)) await service.stop();
  return runs;
}
