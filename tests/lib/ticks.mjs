// Ticks for tests, deployments to post them to, and checks of the resulting ledger.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { TESTS } from './paths.mjs';
import { suite } from './suite.mjs';

/** A suite whose `query` reuses one connection, for tests that read the tables after every request. */
export function ledgerSuite(options = {}) {
  const s = suite({
    ...options,
    cluster: { settings: { timezone: 'UTC' }, ...options.cluster },
    prepare: async () => {
      const client = await s.cluster.connect(s.database); // closed when the cluster stops
      let last = Promise.resolve();
      s.query = (sql, values) => {
        const rows = last.then(() => client.query(sql, values)).then((result) => result.rows);
        last = rows.catch(() => {});
        return rows;
      };
      await options.prepare?.();
    },
  });
  return s;
}

// ---- JSON with every digit ----

/** A number sent exactly as written: exact('1.10') becomes 1.10. */
export const exact = (lexeme) => JSON.rawJSON(lexeme);

/** Parses JSON and keeps numbers as written; JSON.stringify restores them. */
export const parseExact = (text) => JSON.parse(text, (key, value, { source }) => (typeof value === 'number' ? exact(source) : value));

// ---- deployments ----

/** Inserts a deployment with a new skill by SQL; returns its id. */
export async function deploy(query, { owner = 'local', mode = 'live', cadence = 'off', everyN = 10 } = {}) {
  const id = randomUUID();
  const skill = `skill-${id}`;
  await query(
    `WITH skill AS (INSERT INTO daybook.skills (owner, skill_id) VALUES ($1, $3)),
          version AS (INSERT INTO daybook.skill_versions (owner, skill_id, version, strategy) VALUES ($1, $3, '1', 'Buy low')),
          deployment AS (INSERT INTO daybook.deployments (owner, id, skill_id, version, mode, reflection_cadence, every_n_trades, created_at)
                         VALUES ($1, $2::uuid, $3, '1', $4, $5, $6, '2026-01-01'))
     INSERT INTO daybook.agent_state (owner, deployment_id) VALUES ($1, $2::uuid)`,
    [owner, id, skill, mode, cadence, everyN],
  );
  return id;
}

/** Inserts an active reflection note of the deployment. */
export async function addNote(query, deployment, { hash = '0123456789abcdef', at = '2026-01-01T00:00:00Z', owner = 'local' } = {}) {
  await query(
    `INSERT INTO daybook.reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at, lessons_text, content_hash, model_used)
     SELECT owner, $3, skill_id, version, id, 'active', $4, 'Wait for the retest', $5, 'builtin' FROM daybook.deployments WHERE owner = $1 AND id = $2`,
    [owner, deployment, randomUUID(), at, hash],
  );
}

// ---- ticks ----

const BASE = Date.UTC(2026, 5, 4, 10);

/** The nth minute of test time, in the service's format. */
export const minute = (n) => new Date(BASE + n * 60_000).toISOString().replace('.000Z', 'Z');

/** [symbol, side, size, mark, more]: numbers given as text are sent digit for digit. */
export const position = ([symbol, side, size, mark, more = {}]) => ({ symbol, side, size_base: numberOf(size), mark_price: numberOf(mark), ...more });
const numberOf = (n) => (typeof n === 'string' ? exact(n) : n);

/** A tick at the nth minute (or at that time) with these positions. */
export const tickOf = (at, positions = [], more = {}) => ({
  tick_at: typeof at === 'number' ? minute(at) : at,
  portfolio: { equity_usd: 10000, positions: positions.map(position) },
  ...more,
});

export const ticksPath = (deployment) => `/v1/deployments/${deployment}/ticks`;

/** Posts a tick and returns the response, which must be a success unless `options.status` says otherwise. */
export const post = (api, deployment, tick, options) => api.post(ticksPath(deployment), tick, { status: 200, ...options });

/** Posts ticks in bulk (a list, or the text itself); returns {lines, last, text}: the result of each line, parsed with every digit. */
export async function postBulk(api, deployment, ticks, options = {}) {
  const body = typeof ticks === 'string' || Buffer.isBuffer(ticks) ? ticks : ticks.map((tick) => `${JSON.stringify(tick)}\n`).join('');
  const headers = { 'content-type': 'application/x-ndjson', ...options.headers };
  const answer = await api.post(`${ticksPath(deployment)}/bulk`, body, { status: 200, ...options, headers });
  if (answer.status !== 200) return answer;
  const lines = answer.text.split('\n').slice(0, -1).map(parseExact);
  return { lines: lines.slice(0, -1), last: JSON.parse(JSON.stringify(lines.at(-1))), text: answer.text };
}

// ---- stored rows ----

/** The tables of a ledger and their sort order. */
const TABLES = {
  agent_state: 'ticks',
  decision_snapshots: 'tick_at',
  trade_history: 'entry_tick_at, symbol, id',
};

/** Every row of the deployment with its PostgreSQL row version: the text is unchanged only if nothing was written at all. */
export async function bytesOf(query, deployment) {
  const parts = Object.entries(TABLES).map(
    ([table, order]) => `coalesce((SELECT string_agg(t.xmin || ' ' || t.ctid || ' ' || row_to_json(t), E'\n' ORDER BY ${order}) FROM daybook.${table} AS t WHERE deployment_id = $1), '')`,
  );
  return (await query(`SELECT concat_ws(E'\n--\n', ${parts}) AS text`, [deployment]))[0].text;
}

/** The row counts of the ledger tables: a rejected request must not change them. */
export async function countRows(query) {
  const [row] = await query(
    `SELECT (SELECT count(*) FROM daybook.decision_snapshots)::int AS snapshots, (SELECT count(*) FROM daybook.trade_history)::int AS trades,
            (SELECT sum(ticks) FROM daybook.agent_state)::int AS ticks, (SELECT max(xmin::text::bigint) FROM daybook.agent_state)::int AS written`,
  );
  return row;
}

const WALL_CLOCK = ['owner', 'skill_id', 'created_at', 'updated_at', 'last_tick_n'];
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The rows of a table, with numbers as the database prints them. */
export async function rowsOf(query, table, deployment) {
  const rows = await query(`SELECT row_to_json(t)::text AS row FROM daybook.${table} AS t WHERE deployment_id = $1 ORDER BY ${TABLES[table]}`, [deployment]);
  return rows.map(({ row }) => parseExact(row));
}

/** The whole ledger of a deployment as text, without owner and wall clock, each id replaced by the position of its first occurrence. */
export async function ledgerOf(query, deployment) {
  let text = '';
  for (const table of Object.keys(TABLES))
    for (const row of await rowsOf(query, table, deployment)) {
      for (const column of WALL_CLOCK) delete row[column];
      text += `${table} ${JSON.stringify(row)}\n`;
    }
  const seen = new Map();
  return text.replace(UUID, (id) => {
    if (!seen.has(id)) seen.set(id, `id-${seen.size}`);
    return seen.get(id);
  });
}

/** Normalizes a time: the service and the database differ in the zone and in trailing zeros. */
export const sameTime = (text) => text && text.replace(/(?:\+00:00|Z)$/, '').replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');

const OF_OPEN = ['entry_price', 'entry_size_usd', 'entry_leverage', 'entry_reason', 'entry_snapshot_id', 'entry_regime_tag', 'entry_lessons_hash', 'size_base',
  'average_entry_price', 'realized_so_far_usd', 'mark_price', 'mfe_usd', 'mae_usd', 'fees_usd', 'symbol', 'side'];
const OF_CLOSE = ['exit_price', 'exit_reason', 'exit_snapshot_id', 'holding_minutes', 'realized_pnl_usd', 'size_base', 'average_entry_price', 'mark_price', 'mfe_usd',
  'mae_usd', 'fees_usd', 'symbol', 'side'];
const OF_ENTRY = OF_OPEN.filter((column) => column.startsWith('entry_'));

const pick = (row, columns) => JSON.stringify(columns.map((column) => row[column]));

/** Checks that the table matches the responses (texts, in order) digit for digit; returns its rows. */
export async function checkTable(query, deployment, answers) {
  const parsed = answers.map(parseExact);
  const rows = new Map((await rowsOf(query, 'trade_history', deployment)).map((row) => [row.id, row]));
  const open = parsed.at(-1)?.open ?? [];
  assert.deepEqual([...rows.values()].filter((r) => r.status === 'open').map((r) => r.id).sort(), open.map((o) => o.trade_id).sort());
  for (const said of open) {
    assert.equal(pick(rows.get(said.trade_id), OF_OPEN), pick(said, OF_OPEN));
    assert.equal(sameTime(rows.get(said.trade_id).entry_tick_at), sameTime(said.entry_tick_at));
    assert.equal(rows.get(said.trade_id).exit_tick_at, null);
  }
  const ops = parsed.flatMap((answer) => answer.ops);
  for (const op of ops.filter((o) => o.op === 'open_trade')) assert.equal(pick(rows.get(op.trade_id), OF_ENTRY), pick(op, OF_ENTRY));
  const closes = ops.filter((o) => o.op === 'close_trade');
  for (const op of closes) {
    const row = rows.get(op.trade_id);
    assert.equal(row.status, 'closed');
    assert.equal(pick(row, OF_CLOSE), pick(op, OF_CLOSE));
    assert.equal(sameTime(row.exit_tick_at), sameTime(op.exit_tick_at));
  }
  assert.equal(rows.size, ops.filter((o) => o.op === 'open_trade').length, 'one row per opened trade');
  assert.equal(rows.size, closes.length + open.length);
  return [...rows.values()];
}

export const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

// ---- the golden files of the materializer ----

const given = (column) => (column === undefined || column === '-' || column === '' ? undefined : column);
const givenNumber = (column) => given(column) && exact(column);

const LINES = {
  action: (tick, [kind, symbol, reason]) => (tick.proposed_action = { kind: given(kind), symbol: given(symbol), reason: given(reason) }),
  engine: (tick, [kind, rule]) => (tick.engine = { kind: given(kind), rule: given(rule) }),
  position: (tick, [symbol, side, size, mark, ...more]) =>
    tick.portfolio.positions.push({
      symbol,
      side,
      size_base: givenNumber(size),
      mark_price: givenNumber(mark),
      ...Object.fromEntries(more.filter(Boolean).map((pair) => [pair.split('=')[0], exact(pair.split('=')[1])])),
    }),
  mark: (tick, [symbol, price]) => {
    tick.marks ??= {};
    tick.marks[symbol] ??= exact(price); // the first of two counts; a JSON object cannot hold both
  },
  fee: (tick, [symbol, fees]) => (tick.fees ??= []).push({ symbol, fees_usd: exact(fees) }),
};

/** Every case: {name, ticks: [{tick, expected: [line, …]}]}. */
export function goldenCases() {
  const folder = `${TESTS}data/materialize/`;
  const cases = [];
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tsv')).sort())
    for (const line of readFileSync(folder + file, 'utf8').split('\n').filter((l) => l && !l.startsWith('#'))) {
      const [what, ...columns] = line.split('\t');
      if (what === 'case') cases.push({ name: `${file}: ${columns[0]}`, ticks: [] });
      else if (what === 'tick') cases.at(-1).ticks.push({ tick: tickOf(columns[0]), expected: [] });
      else if (what === '=') cases.at(-1).ticks.at(-1).expected.push(columns[0]);
      else LINES[what](cases.at(-1).ticks.at(-1).tick, columns);
    }
  return cases;
}

/** The result of the tick in the format of the golden files; `names` maps the snapshot ids seen so far. */
export function goldenLines(answerText, names = new Map()) {
  const { ops, unmatched_fees } = parseExact(answerText);
  const lines = ops.map(({ trade_id, ...op }) => JSON.stringify(op).replace(UUID, (id) => names.get(id) ?? id));
  lines.push(...unmatched_fees.map(({ symbol, fees_usd }) => `stray ${symbol} ${JSON.stringify(fees_usd)}`));
  return lines.length ? lines : ['nothing'];
}

/** A golden op without snapshot ids, which the endpoint without storage does not return. */
export const withoutSnapshots = (line) => line.replace(/("(?:entry|exit)_snapshot_id":)"s\d+"/g, '$1null');

// ---- walks ----

/** A seeded random generator: random() in [0, 1). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
