// Trade ledgers for the benchmarks: deployments that only tick, and long histories, multiplied by SQL from rows of the service.
import { writeFileSync } from 'node:fs';
import { request } from './stage.mjs';

const SKILL = { skill_id: 'bench', version: '1' };
const PAIR_MINUTES = 20; // of a history: one tick opens, another closes ten minutes later
const MARKETS = { BTC: 65200.12, ETH: 3410.5, SOL: 155.25, XRP: 0.5213, DOGE: 0.0964 };

async function ask(base, method, path, body, wanted) {
  const { status, text } = await request(base, method, path, body);
  if (status !== wanted) throw new Error(`${method} ${path}: ${status} ${text}`);
  return JSON.parse(text);
}

const time = (ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const positions = (symbols, change) =>
  symbols.map((symbol) => ({
    symbol,
    side: 'long',
    size_base: Number((250 / MARKETS[symbol]).toPrecision(4)),
    mark_price: Number((MARKETS[symbol] * (1 + change)).toPrecision(7)),
  }));
const tick = (at, held, kind, engine = { kind: 'executed' }) => ({
  tick_at: time(at),
  portfolio: { equity_usd: 10000.37, positions: held },
  proposed_action: { kind, reason: 'breakout above the prior swing high on volume' },
  engine,
});
export const postTick = (base, id, body) => ask(base, 'POST', `/v1/deployments/${id}/ticks`, body, 200);

async function newSkill(base) {
  const { status, text } = await request(base, 'PUT', '/v1/skills/bench/versions/1', {
    strategy: 'Buy the first pullback.',
  });
  if (status !== 201 && status !== 200 && status !== 409) throw new Error(`the skill: ${status} ${text}`);
}

/* ---- deployments that tick ---- */

/** Creates `count` deployments without ticks; returns their ids. */
export async function newDeployments(stage, count) {
  await newSkill(stage.service.base);
  const rows = await stage.query(
    `with made as (
       insert into daybook.deployments (owner, id, skill_id, version, mode, reflection_cadence, every_n_trades, created_at)
       select 'local', gen_random_uuid(), $1, $2, 'paper', 'off', 10, now() from generate_series(1, $3) returning owner, id
     ), states as (insert into daybook.agent_state (owner, deployment_id) select owner, id from made)
     select id from made`,
    [SKILL.skill_id, SKILL.version, count],
  );
  return rows.map((row) => row.id);
}

const BEGIN = Date.UTC(2024, 0, 1); // wrk/tick_update.lua continues from here
const HELD = [
  { symbol: 'BTC', side: 'long', size_base: 0.0038, mark_price: 65200.12 },
  { symbol: 'ETH', side: 'short', size_base: 0.0586, mark_price: 3410.5 },
  { symbol: 'SOL', side: 'long', size_base: 1.61, mark_price: 155.25 },
];

/** Creates deployments with three positions each; returns their ids. */
export async function holdingDeployments(stage, count) {
  const ids = await newDeployments(stage, count);
  const left = [...ids];
  const worker = async () => {
    for (let id; (id = left.pop()); ) await postTick(stage.service.base, id, tick(BEGIN, HELD, 'propose_order'));
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return ids;
}

/** The nth tick (from 1) of such a deployment, like those that wrk/tick_update.lua posts. */
export const updateTick = (n) => ({
  tick_at: time(BEGIN + n * 1000),
  portfolio: {
    equity_usd: 10000.37,
    positions: HELD.map((held) => ({
      ...held,
      mark_price: Number((held.mark_price * (1 + ((n * 37) % 200) / 1e4)).toFixed(2)),
    })),
  },
  proposed_action: { kind: 'hold', reason: 'the trend is intact' },
  engine: { kind: 'none' },
});

export const writeIds = (stage, name, ids) => writeFileSync(stage.file(name), ids.join('\n') + '\n');

/* ---- histories ---- */

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/**
 * SQL that inserts copies 2 … count of a row that belongs to a pair of ticks, the first one at `begin`. Each text in `tokens` is replaced by
 * the value of the copy in every column, also inside JSON. A token is [text, its format specifier].
 */
function copies(table, columns, tokens, count, begin) {
  const expression = ({ value, type }) => {
    if (value === null) return 'null';
    const template = tokens.reduce((text, [from, to]) => text.replaceAll(from, to), value.replaceAll('%', '%%'));
    return template === value
      ? `${quoted(value)}::${type}`
      : `format(${quoted(template)}, n.opened, n.closed, n.suffix)::${type}`;
  };
  const text = (at) => `to_char(${at}, 'YYYY-MM-DD"T"HH24:MI:SS')`;
  return `insert into daybook.${table} (${columns.map(({ key }) => key).join(', ')})
    select ${columns.map(expression).join(', ')}
    from (select i, timestamp ${quoted(begin)} + (i - 1) * interval '${PAIR_MINUTES} minutes' as at from generate_series(2, ${count}) as i) as p,
      lateral (select ${text('at')} as opened, ${text(`at + interval '${PAIR_MINUTES / 2} minutes'`)} as closed,
        lpad(to_hex(i), 12, '0') as suffix offset 0) as n`;
}

/** The columns of a row as text, with their types; JSON as it is stored. */
const columnsOf = (query, table, id) =>
  query(
    `select c.key, c.value, format_type(a.atttypid, a.atttypmod) as type
     from daybook.${table} as t, json_each_text(row_to_json(t)) as c
     join pg_attribute as a on a.attrelid = 'daybook.${table}'::regclass and a.attname = c.key
     where t.id = $1`,
    [id],
  );

/**
 * Creates a live deployment with that many closed trades up to now; returns its id. The service writes the first ones, opened by one tick
 * and closed by the next. SQL copies them with new ids and times. The service writes the last hour.
 */
export async function newHistory(base, query, closed) {
  const symbols = Object.keys(MARKETS);
  const pairs = closed / symbols.length;
  const now = Date.now();
  const begin = Math.floor((now - 3_600_000) / 1000) * 1000 - pairs * PAIR_MINUTES * 60_000;
  const end = begin + (PAIR_MINUTES / 2) * 60_000;
  await newSkill(base);
  const { id } = await ask(base, 'POST', '/v1/deployments', { ...SKILL, mode: 'live', at: time(begin) }, 201);
  const opened = await postTick(base, id, tick(begin, positions(symbols, 0), 'propose_order'));
  const ended = await postTick(base, id, {
    ...tick(end, [], 'propose_order'),
    marks: Object.fromEntries(positions(symbols, 0.004).map((p) => [p.symbol, p.mark_price])),
  });

  const ids = [opened.snapshot_id, ended.snapshot_id, ...opened.open.map((trade) => trade.trade_id)];
  const tokens = [
    [time(begin).slice(0, 19), '%1$s'],
    [time(end).slice(0, 19), '%2$s'],
    ...ids.map((from, i) => [from, `0190000${i}-0000-7000-8000-%3$s`]),
  ];
  await query('set session_replication_role = replica'); // skips foreign key checks
  await query('set default_toast_compression = lz4'); // the default would take most of the time
  for (const [i, from] of ids.entries()) {
    const table = i < 2 ? 'decision_snapshots' : 'trade_history';
    await query(copies(table, await columnsOf(query, table, from), tokens, pairs, time(begin)));
  }
  await query('set session_replication_role = origin');
  await query(
    `update daybook.agent_state as a
     set ticks = $2::bigint * 2, closed_trades = $3, closed_since_reflection = $3, last_tick_at = s.tick_at, last_snapshot_id = s.id
     from (select * from daybook.decision_snapshots where deployment_id = $1 order by tick_at desc limit 1) as s
     where a.deployment_id = $1`,
    [id, pairs, closed],
  );
  await lastHour(base, id, now);
  await query('vacuum analyze daybook.decision_snapshots');
  await query('vacuum analyze daybook.trade_history');
  await query('checkpoint');
  return id;
}

/** Posts the last hour: three open positions and a few rejected orders. */
async function lastHour(base, id, now) {
  const symbols = Object.keys(MARKETS).slice(0, 3);
  for (let minute = 30; minute >= 0; minute -= 2) {
    const engine = minute % 6 === 4 ? { kind: 'rejected', rule: 'max_position_size' } : { kind: 'executed' };
    const held = positions(symbols, (30 - minute) / 10_000);
    await postTick(base, id, tick(now - minute * 60_000, held, 'propose_order', engine));
  }
}
