// Shared by the fault tests: load that records every response, misbehaving clients, and a service with a private cluster.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { checkAnswer } from './contract.mjs';
import { newLesson } from './lessons.mjs';
import { daybookd } from './paths.mjs';
import { ended, eventually, start, until } from './processes.mjs';

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- load ----

let writers = 0;

/**
 * Writers and readers that send requests and record the responses until `stop()`.
 * `attempts` holds {name, key, status, code, ms, error} of every POST; a writer with a key retries until it gets 201.
 * `target()` returns the base URL for the next request, or null if there is no service at the moment.
 */
export function startLoad(target, { plain = 4, keyed = 4, readers = 2 } = {}) {
  const load = { attempts: [], reads: [] };
  const agent = new http.Agent({ keepAlive: true });
  let going = true;
  let givenUp = false;

  const ask = async (method, path, body, key) => {
    const base = target();
    if (!base) return { error: 'no service' };
    const started = Date.now();
    try {
      const answer = await eventually(send(agent, base, method, path, body, key), `${method} ${path}`);
      return { ...answer, ms: Date.now() - started };
    } catch (error) {
      if (error.message.includes('not within')) load.hung = error;
      return { error: error.code ?? error.message, ms: Date.now() - started };
    }
  };

  const post = async (body, key) => {
    const answer = await ask('POST', '/v1/lessons', body, key);
    const { status, error, ms = 0 } = answer;
    const attempt = { name: body.takeaway, key, status, error, ms, code: status >= 400 ? JSON.parse(answer.text).code : undefined, at: Date.now() };
    if (status === 503) assert.ok(Number(answer.headers['retry-after']) >= 1, 'a 503 has Retry-After');
    load.attempts.push(attempt);
    return attempt;
  };

  const writer = async (withKey) => {
    const id = writers++;
    for (let n = 0; going; n++) {
      const body = newLesson({ takeaway: `writer ${id} ${withKey ? 'keyed' : 'plain'} lesson ${n}` });
      const key = withKey ? `key ${id} ${n}`.replaceAll(' ', '-') : undefined;
      for (;;) {
        const { status, error } = await post(body, key);
        if (status !== 201) await sleep(error ? 50 : 20);
        if (status === 201 || !withKey || givenUp) break; // with a key it retries even after stop(): it must get a response
      }
    }
  };

  const reader = async () => {
    while (going) {
      const answer = await ask('GET', '/v1/lessons?limit=5');
      load.reads.push({ status: answer.status, error: answer.error, ms: answer.ms, at: Date.now() });
      await sleep(answer.status === 200 ? 1 : 20);
    }
  };

  const all = [
    ...Array.from({ length: plain }, () => writer(false)),
    ...Array.from({ length: keyed }, () => writer(true)),
    ...Array.from({ length: readers }, () => reader()),
  ];
  const failed = Promise.all(all);
  failed.catch(() => {}); // reported by stop()
  load.stop = async () => {
    going = false;
    try {
      await eventually(failed, 'every request is answered');
    } finally {
      givenUp = true;
      agent.destroy();
    }
    assert.equal(load.hung, undefined);
  };
  /** Runs `work` under the load, then stops the load. */
  load.during = async (work) => {
    try {
      await work();
    } catch (error) {
      going = false;
      givenUp = true;
      throw error;
    }
    await load.stop();
  };
  load.count = (status) => load.attempts.filter((a) => a.status === status).length;
  return load;
}

function send(agent, base, method, path, body, key) {
  const text = body && JSON.stringify(body);
  const headers = text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...(key && { 'idempotency-key': key }) } : {};
  return new Promise((resolve, reject) => {
    const request = http.request(base + path, { method, agent, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const answer = { status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() };
        try {
          checkAnswer({ method, path, requestText: text, ...answer });
          resolve(answer);
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on('error', reject);
    request.end(text);
  });
}

/** Compares the table with the recorded responses: nothing lost, nothing stored twice. `query` returns rows. */
export async function checkWritten(load, query) {
  const rows = await query("SELECT takeaway AS name, count(*)::int AS n FROM daybook.lessons WHERE version = 1 AND takeaway LIKE 'writer %' GROUP BY takeaway");
  const stored = new Map(rows.map(({ name, n }) => [name, n]));
  const twice = rows.filter(({ n }) => n > 1).map(({ name }) => name);
  assert.deepEqual(twice, [], 'stored twice');
  const byName = new Map();
  for (const attempt of load.attempts) byName.set(attempt.name, [...(byName.get(attempt.name) ?? []), attempt]);
  const lost = [];
  const denied = [];
  for (const [name, attempts] of byName) {
    const acknowledged = attempts.some((a) => a.status === 201);
    if (acknowledged && !stored.has(name)) lost.push(name);
    // Any response except 201 and outcome_unknown says that nothing was stored. Without a response the outcome is open.
    const mayBe = acknowledged || attempts.some((a) => a.code === 'outcome_unknown' || a.error);
    if (!mayBe && stored.has(name)) denied.push({ name, attempts });
  }
  assert.deepEqual(lost, [], 'acknowledged but lost');
  assert.deepEqual(denied, [], 'refused but stored');
  return stored.size;
}

// ---- the database ----

/** Runs `work` while the table is locked; `work` gets a function to unlock it early. */
export async function whileLocked(cluster, database, work, table = 'daybook.lessons') {
  const holder = await cluster.connect(database);
  let held = true;
  const unlock = async () => {
    if (held) await holder.query('ROLLBACK');
    held = false;
  };
  try {
    await holder.query('BEGIN');
    await holder.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return await work(unlock);
  } finally {
    await unlock();
    await holder.end();
  }
}

/** The current sessions of the service in this database. */
export const sessions = (query, where = 'true') =>
  query(`SELECT pid, state, wait_event_type, query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'daybookd' AND ${where}`);

/** Waits until that many sessions of the service are blocked by a lock. */
export const blocked = (query, count) => until(async () => (await sessions(query, "wait_event_type = 'Lock'")).length >= count, `${count} statements wait for a lock`);

/** Inserts `count` lessons of about `bytes` bytes (at most 19,000) for `owner` by SQL. */
export const fill = (query, count, bytes = 3000, owner = 'local') =>
  query(
    `INSERT INTO daybook.lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence, status, status_at, similar_keys)
     SELECT $1, gen_random_uuid(), 1, '2026-01-01', timestamptz '2026-01-01' - n * interval '1 second', repeat('c', 1250), repeat('o', 1250), 'filled ' || n,
            '{filled}', ARRAY(SELECT lpad(i::text, 500, 'e') FROM generate_series(1, greatest(1, ($3 - 2500) / 500)) AS i), 'proposed', '2026-01-01', '{}' FROM generate_series(1, $2) AS n`,
    [owner, count, bytes],
  );

// ---- the service ----

/** A value from /metrics; `labels` in the notation of the page. */
export async function metric(api, name, labels = '') {
  const { text } = await api.get('/metrics', { status: 200, check: false });
  const line = text.split('\n').find((l) => l.startsWith(`${name}${labels} `));
  assert.ok(line, `no metric ${name}${labels}`);
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

/** Waits until the gauges return to the baseline, to prove that nothing leaked. The connection that reads them is included. */
export async function settled(api, { connections, requests }) {
  let seen;
  await until(async () => {
    try {
      seen = { connections: await metric(api, 'daybook_connections'), requests: await metric(api, 'daybook_requests_in_flight') };
    } catch (error) {
      if (error.code !== 'ECONNRESET') throw error;
      return false; // the connection was closed as idle at the moment of its reuse
    }
    return seen.connections <= connections && seen.requests <= requests;
  }, 'connections and requests return to the baseline').catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(seen)} instead of ${JSON.stringify({ connections, requests })}`);
  });
}

export const gauges = async (api) => ({ connections: await metric(api, 'daybook_connections'), requests: await metric(api, 'daybook_requests_in_flight') });

/** Starts the service with its private PostgreSQL in `folder`. */
export async function startPrivate(folder) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DAYBOOK_')));
  const child = start(daybookd(), ['serve', '--listen', '127.0.0.1:0', '--data', folder], { env });
  const end = ended(child);
  const service = { child, log: '', end };
  child.stderr.setEncoding('utf8').on('data', (text) => (service.log += text));
  const line = new Promise((resolve) => {
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      const found = stdout.match(/^daybook listening on (http:\/\/\S+)$/m);
      if (found) resolve(found[1]);
    });
  });
  service.base = await eventually(Promise.race([line, end.then(() => null)]), 'the service listens');
  assert.ok(service.base, `daybookd ended: ${service.log}`);
  /** The process id of the private PostgreSQL. */
  service.postmaster = () => Number(readFileSync(`${folder}/cluster/postmaster.pid`, 'utf8').split('\n')[0]);
  service.stop = async () => {
    child.kill('SIGTERM');
    const result = await eventually(end, 'the service stops').catch((error) => {
      child.kill('SIGKILL');
      throw error;
    });
    assert.deepEqual(result, { code: 0, signal: null }, service.log.slice(-3000));
    assertQuiet(service.log);
  };
  return service;
}

/** stderr may contain only log lines and the sanitizer's warning about coroutines. */
export function assertQuiet(log) {
  const strange = log.split('\n').filter((line) => line && !/^\d{4}-\d\d-\d\dT|^\{"ts":|^==\d+==WARNING: ASan doesn't fully support makecontext/.test(line));
  assert.deepEqual(strange, [], 'lines on stderr that are not log lines');
}

// ---- misbehaving clients ----

/** Opens a connection and sends `bytes`. `from`: the local address, such as 127.0.0.2. Socket errors are expected. */
export function connectAndSend(port, bytes = '', from = '127.0.0.1') {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress: from });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => {});
      if (bytes) socket.write(bytes);
      resolve(socket);
    });
  });
}

/** Opens many such connections, a few at a time. */
export async function connectMany(count, port, bytesOf, from) {
  const sockets = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(100, count - sockets.length) }, (_, i) => connectAndSend(port, bytesOf(sockets.length + i), from));
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

export const closed = (socket) => (socket.destroyed || socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve)));

/** The bytes of a request to create a lesson: {head, body}. */
export function createBytes(changes, headers = '') {
  const body = JSON.stringify(newLesson(changes));
  return { head: `POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`, body };
}
