// Entries of the episodic memory for tests.
import assert from 'node:assert/strict';
import { makeClient } from './client.mjs';
import { command, createKey, startService } from './service.mjs';

let made = 0;

/** A valid body with a unique question. */
export function newEpisode(changes = {}) {
  const n = made++;
  return { ticker: 'ACME', task_type: 'guidance_tone', question: `Question ${n}`, answer: `Answer ${n}`, ...changes };
}

/** Stores an entry; returns the response body. */
export async function createEpisode(api, changes, options) {
  return (await api.post('/v1/episodic', newEpisode(changes), { status: 201, ...options })).json;
}

/** Posts entries in bulk (a list, or the text itself); returns {lines, last}: the result of each line, and the final line. */
export async function postEpisodes(api, entries, options = {}) {
  const body = typeof entries === 'string' || Buffer.isBuffer(entries) ? entries : entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  const headers = { 'content-type': 'application/x-ndjson', ...options.headers };
  const answer = await api.post('/v1/episodic/bulk', body, { status: 200, ...options, headers });
  if (answer.status !== 200) return answer;
  const lines = answer.text.split('\n').slice(0, -1).map((line) => JSON.parse(line));
  return { lines: lines.slice(0, -1), last: lines.at(-1), text: answer.text };
}

export const shouldRerun = async (api, body, options) =>
  (await api.post('/v1/episodic/should_rerun', { ticker: 'ACME', task_type: 'guidance_tone', ...body }, { status: 200, ...options })).json;

export const evict = async (api, body, options) => (await api.post('/v1/episodic/evict', body, { status: 200, ...options })).json;
export const restore = async (api, body, options) => (await api.post('/v1/episodic/restore', body, { status: 200, ...options })).json;

/** Runs `work` against a service with keys on a new database, with a client for each role of owner alpha and one for an agent of beta. */
export async function withKeys(s, work) {
  const database = await s.cluster.createDatabase();
  const url = s.cluster.url(database);
  assert.equal((await command(['migrate', '--database-url', url])).code, 0);
  const keys = {};
  for (const role of ['reader', 'researcher', 'agent']) keys[role] = (await createKey(url, 'alpha', role)).key;
  keys.other = (await createKey(url, 'beta', 'agent')).key;
  const service = await startService(url);
  const anonymous = makeClient(service.base);
  const as = Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, anonymous.as(key)]));
  try {
    await work(as, (sql, values) => s.cluster.query(database, sql, values));
  } finally {
    for (const api of [anonymous, ...Object.values(as)]) api.close();
    await service.stop();
  }
}

/** The stored vectors of an entry: {model, dim, width, length}; `width` is that of the column. */
export async function vectorsOf(query, id) {
  const rows = await query(
    `SELECT model, dim, coalesce(v384::text, v768::text, v1024::text, v1536::text, v3072::text, v4000::text) AS vector
     FROM daybook.episodic_vectors WHERE episode_id = $1 ORDER BY model`,
    [id],
  );
  return rows.map(({ model, dim, vector }) => {
    const numbers = JSON.parse(vector);
    return { model, dim, width: numbers.length, length: Number(Math.hypot(...numbers).toFixed(2)) };
  });
}
