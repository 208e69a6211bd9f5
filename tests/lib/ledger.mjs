// Creates skills, deployments and ticks for tests.

let made = 0;

/** A valid body of a version. */
export const newVersion = (changes = {}) => ({ strategy: 'Buy the first pullback after a breakout on volume.', ...changes });

/** Writes a version, by default under a new skill; returns the response body. */
export async function putVersion(api, { skill_id = `skill-${made++}`, version = 'v1', ...changes } = {}, options) {
  return (await api('PUT', `/v1/skills/${skill_id}/versions/${version}`, { body: newVersion(changes), status: 201, ...options })).json;
}

/** Deploys a version, by default a new one in paper mode; returns the response body. */
export async function deploy(api, changes = {}, options) {
  const { skill_id, version } = changes.skill_id ? changes : await putVersion(api);
  return (await api.post('/v1/deployments', { skill_id, version, mode: 'paper', ...changes }, { status: 201, ...options })).json;
}

/** A position as a broker reports it. */
export const position = (symbol, mark_price, changes = {}) => ({ symbol, side: 'long', size_base: 1, mark_price, ...changes });

/** A tick in which nothing happened; `positions` and `equity_usd` are the portfolio's. */
export const newTick = (tick_at, { positions = [], equity_usd = 10000, ...changes } = {}) => ({
  tick_at,
  portfolio: { equity_usd, positions },
  ...changes,
});

/** Posts a tick of the deployment; returns the response body. */
export async function postTick(api, id, tick_at, changes, options) {
  return (await api.post(`/v1/deployments/${id}/ticks`, newTick(tick_at, changes), { status: 200, ...options })).json;
}
