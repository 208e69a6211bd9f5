// Deployments with closed trades, and reflections on them.
import { deploy, newTick, position, putVersion } from './ledger.mjs';

const START = Date.UTC(2026, 5, 1);
const timeOf = (minutes) => new Date(START + minutes * 60_000).toISOString().replace('.000Z', 'Z');

/** The entry of the nth trade (from 0), half an hour before its exit; there is one trade per hour. */
export const entryOf = (n) => timeOf(n * 60);
export const exitOf = (n) => timeOf(n * 60 + 30);

/** The two ticks of the nth trade, in BTC, ETH and SOL in turn: an entry, and an exit with a gain of `gain(n)` USD. */
export function ticksOf(n, { reason = `breakout ${n}`, gain = (i) => (i % 3 ? 5 : -7) } = {}) {
  const symbol = ['BTC', 'ETH', 'SOL'][n % 3];
  return [
    newTick(entryOf(n), { positions: [position(symbol, 100)], proposed_action: { kind: 'propose_order', symbol, reason }, engine: { kind: 'executed' } }),
    newTick(exitOf(n), { marks: { [symbol]: 100 + gain(n) }, proposed_action: { kind: 'close_position', symbol, reason: 'target' }, engine: { kind: 'executed' } }),
  ];
}

/** Opens and closes the trades `from` to `to` (exclusive) of a deployment. */
export async function trade(api, id, from, to, options) {
  const ticks = Array.from({ length: to - from }, (_, i) => ticksOf(from + i, options)).flat();
  const body = ticks.map((tick) => `${JSON.stringify(tick)}\n`).join('');
  const { text } = await api.post(`/v1/deployments/${id}/ticks/bulk`, body, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  if (!text.includes('"done":true')) throw new Error(text.slice(-1000));
}

/** A deployment of a new skill with that many closed trades; returns the deployment. Its clock is its ticks. */
export async function traded(api, trades = 3, { avoid = [], reflection = { cadence: 'per_n_trades', every_n_trades: 3 }, memory, ...options } = {}) {
  const { skill_id, version } = await putVersion(api, { avoid, memory });
  const deployment = await deploy(api, { skill_id, version, mode: 'sim', reflection, at: timeOf(-60) });
  if (trades) await trade(api, deployment.id, 0, trades, options);
  return deployment;
}

export const reflectPath = (id) => `/v1/deployments/${id}/reflect`;

/** Reflects on a deployment; returns the outcome. */
export const reflect = async (api, id, body = {}, options) => (await api.post(reflectPath(id), body, { status: 200, ...options })).json;

export const HEADINGS = {
  entry_timing: '### Entry timing',
  sizing: '### Sizing',
  symbol_selection: '### Symbol selection',
  exit_timing: '### Exit timing',
  regime_fit: '### Regime fit',
};

/** A valid model answer: one bullet per slot, or the given bullets (null: the slot is missing). */
export const noteText = (slots = {}) =>
  Object.entries(HEADINGS)
    .filter(([slot]) => slots[slot] !== null)
    .map(([slot, heading]) => `${heading}\n${(slots[slot] ?? [`${slot}: 2 of 3 trades`]).map((bullet) => `- ${bullet}`).join('\n')}\n`)
    .join('\n');

/** The stored notes of a deployment, oldest first. */
export const notesOf = (query, id) =>
  query('SELECT id, status, generated_at, superseded_at, lessons_text, content_hash FROM daybook.reflection_notes WHERE deployment_id = $1 ORDER BY created_at, id', [id]);

/** Everything that reflections store, as one text: it is unchanged only if nothing was written. */
export const reflectionsOf = async (query) =>
  (
    await query(
      `SELECT concat_ws('|', (SELECT string_agg(n.xmin || n.id::text || n.status, ',' ORDER BY id) FROM daybook.reflection_notes n),
                             (SELECT string_agg(r.xmin || r.id::text, ',' ORDER BY id) FROM daybook.reflections r),
                             (SELECT string_agg(k.claim::text, ',') FROM daybook.reflection_claims k),
                             (SELECT string_agg(a.xmin::text, ',' ORDER BY deployment_id) FROM daybook.agent_state a)) AS text`,
    )
  )[0].text;

/** Runs `work` while a transaction that executed `sql` is open; `work` gets a function to end it early. */
export async function whileHeld(cluster, database, sql, work) {
  const holder = await cluster.connect(database);
  let held = true;
  const release = async () => {
    if (held) await holder.query('ROLLBACK');
    held = false;
  };
  try {
    await holder.query('BEGIN');
    await holder.query(sql);
    return await work(release);
  } finally {
    await release();
    await holder.end();
  }
}

/** For whileHeld: attempts can be read but not stored. */
export const NONE_STORED = 'LOCK TABLE daybook.reflections IN SHARE MODE';
