// Memories, theses and orders for tests.
import { deploy, position, postTick } from './ledger.mjs';
import { day } from './lessons.mjs';

let made = 0;

/** A valid body of a note. */
export const newMemory = (changes = {}) => ({ kind: 'note', text: `Funding on perpetuals flipped (${made++})`, ...changes });
/** A valid body of a thesis. */
export const newThesis = (changes = {}) => ({ symbol: `SYM${made++}`, text: 'Spot demand absorbs the supply of miners.', ...changes });
/** A valid body of an order. */
export const newOrder = (changes = {}) => ({ symbol: 'BTC', action: 'buy', side: 'long', ...changes });

const poster = (path, body) => async (api, changes, options) => (await api.post(path, body(changes), { status: 201, ...options })).json;

/** Store one; return the response body. */
export const remember = poster('/v1/memories', newMemory);
export const openThesis = poster('/v1/theses', newThesis);
export const order = poster('/v1/orders', newOrder);

/** A simulation that holds the symbol since day(2); returns its id. */
export async function holding(api, symbol = 'BTC', changes = {}) {
  const { id } = await deploy(api, { mode: 'sim', at: day(1), ...changes });
  await postTick(api, id, day(2), { positions: [position(symbol, 100)], engine: { kind: 'executed' } });
  return id;
}

/** Searches the journal; returns the response body. */
export const searchMemories = async (api, body, options) => (await api.post('/v1/memories/search', body, { status: 200, ...options })).json;

/** The events of a subject, in the order of writes. */
export const eventsOf = (query, subject) =>
  query('SELECT kind, at, symbol, agent_name, model_call_id, data FROM daybook.memory_events WHERE subject_id = $1 ORDER BY n', [subject]);

/** Records a search of the journal that returned these theses, as POST /v1/memories/search does. */
export const retrieved = (query, ids, at, { owner = 'local', deployment = null } = {}) =>
  query(
    `INSERT INTO daybook.memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id)
     VALUES ($1, daybook.uuid7(), 'memories', $2, '{}', '{}', '[]', $3, $4)`,
    [owner, at, ids, deployment],
  );
