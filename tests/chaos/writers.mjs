// Writers that retry each write until it is acknowledged, and remember every acknowledgement.
import { createHash } from 'node:crypto';
import { sleep } from '../lib/faults.mjs';
import { RETRIED } from '../lib/killed.mjs';
import { deploy, tickOf, ticksPath } from '../lib/ticks.mjs';

const ATTEMPT_MS = 8_000; // a client gives up earlier than the service, and asks the other one
const BULK_LINES = 20;
const AFTER_WRITE_MS = 10;
const AFTER_FAILURE_MS = 50;
const MAY_FAIL = [...RETRIED, 'insufficient_storage', 'storage_full'];

/** The lines of the response that arrived, even if it broke off: each is an acknowledgement. */
async function linesOf(response) {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true });
  } catch {} // what has arrived counts
  return text.split('\n').slice(0, -1).map((line) => JSON.parse(line));
}

const takeaway = (writer, n) => `Writer ${writer}, ${n}: ${createHash('sha256').update(`${writer} ${n}`).digest('hex').replace(/.{5}/g, '$& ')}`;
/** With its time: without one, the same lines sent again are new entries. */
const episode = (writer, n) => ({ ticker: writer.ticker, task_type: 'chaos', question: `Question ${n}`, answer: `Answer ${n} ${'a'.repeat(200)}`, created_at: '2026-01-01T00:00:00Z' });
/** A second apart, so that an hour of writes stays in the past. */
const secondOf = (n) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString().replace('.000Z', 'Z');
const tick = (n) => tickOf(secondOf(n), n % 3 ? [['BTC', n % 7 < 4 ? 'long' : 'short', 1 + (n % 5), 100 + (n % 11)]] : [], { marks: { BTC: 100 + (n % 11) } });
const countOf = (n) => Array.from({ length: BULK_LINES }, (_, i) => n + i);
const json = { 'content-type': 'application/json' };
const ndjson = { 'content-type': 'application/x-ndjson' };
const withKey = (writer, n) => ({ ...json, 'idempotency-key': `${writer.ticker}-${n}` });

/**
 * Each kind of write: its request for the nth item, the ids that the lines of a response acknowledge, and where they are stored.
 * `stored`: SQL for (name, id). `listed`: the list that shows them. `name`: of the nth item, as stored.
 */
export const KINDS = {
  lessons: {
    request: (w, n) => ['/v1/lessons', withKey(w, n), JSON.stringify({ context: 'Chaos', outcome: 'Seen', takeaway: takeaway(w.number, n), tags: [w.ticker.toLowerCase()], evidence: [`decision-log ${n}`] })],
    ids: ([{ id }]) => [id],
    stored: (w) => ['SELECT takeaway AS name, id FROM daybook.lessons WHERE version = 1 AND tags = ARRAY[$1]', [w.ticker.toLowerCase()]],
    listed: (w) => `/v1/lessons?tags=${w.ticker.toLowerCase()}`,
    name: (w, n) => takeaway(w.number, n),
  },
  memories: {
    request: (w, n) => ['/v1/memories', withKey(w, n), JSON.stringify({ kind: 'note', text: takeaway(w.number, n), agent_name: w.ticker, at: '2026-01-01T00:00:00Z' })],
    ids: ([{ id }]) => [id],
    stored: (w) => ['SELECT text AS name, id FROM daybook.memories WHERE agent_name = $1', [w.ticker]],
    listed: (w) => `/v1/memories?agent_name=${w.ticker}`,
    name: (w, n) => takeaway(w.number, n),
  },
  episodes: {
    request: (w, n) => ['/v1/episodic', withKey(w, n), JSON.stringify(episode(w, n))],
    ids: ([{ id }]) => [id],
  },
  'episodes in bulk': {
    request: (w, n) => ['/v1/episodic/bulk', ndjson, countOf(n).map((i) => `${JSON.stringify(episode(w, i))}\n`).join('')],
    ids: (lines) => lines.filter((l) => l.line && l.status).map((l) => l.id),
  },
  ticks: {
    request: (w, n) => [ticksPath(w.deployment), json, JSON.stringify(tick(n))],
    ids: ([{ snapshot_id }]) => [snapshot_id],
  },
  'ticks in bulk': {
    request: (w, n) => [`${ticksPath(w.deployment)}/bulk`, ndjson, countOf(n).map((i) => `${JSON.stringify(tick(i))}\n`).join('')],
    ids: (lines) => lines.filter((l) => l.snapshot_id).map((l) => l.snapshot_id),
  },
};

const OF_EPISODES = {
  stored: (w) => ['SELECT question AS name, id FROM daybook.episodic_memory WHERE ticker = $1', [w.ticker]],
  listed: (w) => `/v1/episodic?ticker=${w.ticker}`,
  name: (_, n) => `Question ${n}`,
};
const OF_TICKS = {
  stored: (w) => [`SELECT to_char(tick_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS name, id FROM daybook.decision_snapshots WHERE deployment_id = $1`, [w.deployment]],
  listed: (w) => `/v1/decision_snapshots?deployment_id=${w.deployment}`,
  name: (_, n) => tick(n).tick_at,
};
for (const [kind, more] of [['episodes', OF_EPISODES], ['episodes in bulk', OF_EPISODES], ['ticks', OF_TICKS], ['ticks in bulk', OF_TICKS]]) Object.assign(KINDS[kind], more);

/** The problem in a response or in its last line, if there is one. */
const problemOf = (status, lines) => (status >= 400 ? lines[0] : lines.at(-1)?.problem ?? lines.at(-1)?.error);

/** Sends the request for the nth item; returns the acknowledged ids. Unexpected answers are recorded. */
async function send(writer, base, n, unexpected) {
  const kind = KINDS[writer.kind];
  const [path, headers, body] = kind.request(writer, n);
  const response = await fetch(base + path, { method: 'POST', headers, body, signal: AbortSignal.timeout(ATTEMPT_MS) }).catch(() => null);
  if (!response) return [];
  const lines = headers === ndjson && response.ok ? await linesOf(response) : await response.json().then((one) => [one], () => []);
  const problem = lines.length && problemOf(response.status, lines);
  if (problem && !MAY_FAIL.includes(problem.code)) unexpected.push(`${writer.ticker} ${n}: ${JSON.stringify(problem)}`);
  return response.ok && lines.length ? kind.ids(lines) : [];
}

/** `routes`: the services that it asks in turn. `ids[n]` is what the nth item was acknowledged with. */
export async function startWriter(world, number, kind, routes, unexpected) {
  const writer = { number, kind, ticker: `W${number}`, ids: [], retries: 0, onWrite: () => {} };
  writer.deployment = kind.startsWith('ticks') ? await deploy(world.query) : null;
  let going = true;
  const done = (async () => {
    for (let attempt = 0, ids = []; going || !ids.length; attempt++) { // the last write may be stored without a response
      ids = await send(writer, routes[attempt % routes.length].base, writer.ids.length, unexpected);
      writer.ids.push(...ids);
      if (ids.length) writer.onWrite();
      else writer.retries++;
      await sleep(ids.length ? AFTER_WRITE_MS : AFTER_FAILURE_MS);
    }
  })();
  done.catch(() => {}); // reported by stop()
  writer.stop = () => ((going = false), done);
  return writer;
}

/** A writer of each kind for each service, and one that changes between both. `from`: the number of the first. */
export async function startWriters(world, unexpected, from = 0) {
  const [a, b] = world.services;
  const writers = [];
  for (const kind of Object.keys(KINDS))
    for (const routes of [[a], [b], [a, b]]) writers.push(await startWriter(world, from + writers.length, kind, routes, unexpected));
  return writers;
}
