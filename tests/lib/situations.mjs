// Round trips and recalls for tests.
import { newTick, position, postTick } from './ledger.mjs';
import { until } from './processes.mjs';

/** An instant, `hours` after 2026-06-04T10:00:00Z, a Thursday, as the service writes it. */
export const hour = (hours) => new Date(Date.UTC(2026, 5, 4, 10) + hours * 3_600_000).toISOString().replace('.000', '');

/** The two ticks of a trade of $1,000 that starts at `hour(from)` and makes `percent`. */
export function roundTrip({ from, symbol = 'BTC', side = 'long', reason, percent = 1, exit = 'target reached', bars, leverage, hours = 1 }) {
  const mark = 100 * (1 + (side === 'long' ? percent : -percent) / 100);
  const act = (kind, text) => ({ proposed_action: { kind, symbol, reason: text }, engine: { kind: 'executed' } });
  return [
    newTick(hour(from), { positions: [position(symbol, 100, { side, size_base: 10, leverage })], bars: bars && { [symbol]: bars }, ...act('propose_order', reason) }),
    newTick(hour(from + hours), { marks: { [symbol]: mark }, ...act('close_position', exit) }),
  ];
}

/** Posts round trips tick by tick, two hours apart by default. */
export async function postTrades(api, id, trades) {
  for (const [i, trade] of trades.entries()) for (const { tick_at, ...tick } of roundTrip({ from: 2 * i, ...trade })) await post(api, id, tick_at, tick);
}

const post = (api, id, tick_at, { portfolio, ...tick }) => postTick(api, id, tick_at, { ...portfolio, ...tick });

/** Posts round trips in one body. Responses for 20 or more are not checked against the contract, which would take long. */
export async function postTradesAtOnce(api, id, trades) {
  const lines = trades.flatMap((trade, i) => roundTrip({ from: 2 * i, ...trade }));
  const body = lines.map((tick) => JSON.stringify(tick) + '\n').join('');
  const { text } = await api.post(`/v1/deployments/${id}/ticks/bulk`, body, { headers: { 'content-type': 'application/x-ndjson' }, status: 200, check: trades.length < 20 });
  return JSON.parse(text.trimEnd().split('\n').at(-1));
}

export const recall = async (api, id, body, options) => (await api.post(`/v1/deployments/${id}/recall`, body, { status: 200, ...options })).json;

/** Recalls once every situation has its vector. */
export const recallAll = (api, id, body, options) =>
  until(async () => {
    const found = await recall(api, id, body, options);
    return found.pending === 0 && found;
  }, 'every situation has its vector');

/** The stored situations of a deployment, oldest first. */
export const summaries = async (query, id) =>
  (await query('select summary from daybook.situations where deployment_id = $1 order by entry_tick_at, summary', [id])).map((row) => row.summary);
