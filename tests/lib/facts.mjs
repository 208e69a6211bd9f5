// Facts for tests.
let made = 0;

/** A valid body of a fact. */
export const newFact = (changes = {}) => ({ value: `a value (${made++})`, observation_type: 'user_stated_preference', source: 'user_stated', ...changes });

/** The path of a fact; `rest`: what follows the key, such as "/history". */
export const factPath = (key, rest = '', query = {}) => {
  const given = new URLSearchParams(query).toString();
  return `/v1/facts/${encodeURIComponent(key)}${rest}${given ? `?${given}` : ''}`;
};

/** Stores a fact; returns the response body. `query`: scope. */
export const putFact = async (api, key, changes, query) => (await api('PUT', factPath(key, '', query), { body: newFact(changes) })).json;
/** Reads a fact; undefined if it is not found. */
export async function readFact(api, key, query) {
  const { status, json } = await api.get(factPath(key, '', query));
  if (status === 404) return undefined;
  return json;
}
export const historyOf = async (api, key, query) => (await api.get(factPath(key, '/history', { limit: 200, ...query }), { status: 200 })).json.items;
export const correctFact = async (api, key, body, query) => (await api.post(factPath(key, '/correct', query), body, { status: 200 })).json;
export const verifyFact = async (api, key, body = {}, query) => (await api.post(factPath(key, '/verify', query), body, { status: 200 })).json;
export const decayFacts = async (api, body) => (await api.post('/v1/facts/decay', body, { status: 200 })).json;
