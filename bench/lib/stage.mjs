// The stage that all contenders share: one durable private cluster with its library, the service and the Fastify server on it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { ended, start, until, within } from '../../tests/lib/processes.mjs';
import { recordStatements } from './statements.mjs';
import { lessonMaker, words } from './texts.mjs';

/** The measured statements, by their names in the benchmark. */
const STATEMENTS = {
  get: 'lesson_get',
  list: 'lesson_list',
  create: 'lesson_create',
  context: 'context_get',
  tick_state: 'tick_state',
  tick_write: 'tick_write',
  episode_prior: 'episode_prior',
  episode_reuse: 'episode_reuse',
};

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const fast = new http.Agent({ keepAlive: true, maxSockets: 32 });

/** One request: {status, text}. */
export function request(base, method, path, body, agent = fast) {
  return new Promise((resolve, reject) => {
    const req = http.request(
      base + path,
      { method, agent, headers: body ? { 'content-type': 'application/json' } : {} },
      (res) => {
        let text = '';
        res
          .setEncoding('utf8')
          .on('data', (part) => (text += part))
          .on('end', () => resolve({ status: res.statusCode, text }));
      },
    );
    req.on('error', reject);
    req.end(body && JSON.stringify(body));
  });
}

/** The file system type of a folder. */
export function residentFileSystem(folder) {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  const under = mounts.filter(
    ([, point]) => point && (folder + '/').startsWith(point.endsWith('/') ? point : point + '/'),
  );
  return under.sort((a, b) => b[1].length - a[1].length)[0][2];
}

/** The environment without settings of another Daybook or PostgreSQL. */
const environment = (extra = {}) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(DAYBOOK_|PG)/.test(name))),
  ...extra,
});

const running = new Set();

/** Starts a server and waits for the line with its address. Its log goes to `log`. */
export async function startServer(command, args, { pattern, log, env }) {
  const child = start(command, args, { env: environment(env), stdio: ['ignore', 'pipe', log] });
  const end = ended(child);
  const server = {
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM');
      await within(30_000, end, `${command} stops`).catch(() => child.kill('SIGKILL'));
      running.delete(server);
    },
  };
  running.add(server);
  let said = '';
  const line = new Promise((resolve) =>
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
      const found = said.match(pattern);
      if (found) resolve(found[1]);
    }),
  );
  server.base = await within(60_000, Promise.race([line, end.then(() => null)]), `${command} starts`);
  if (!server.base)
    throw new Error(`${command} ended with ${child.exitCode ?? child.signalCode} before it served ${said}`);
  return server;
}

/** `daybookd serve` with its defaults, the log of a line a request included. */
export const startDaybook = (daybookd, args, log, env) =>
  startServer(daybookd, ['serve', '--listen', '127.0.0.1:0', ...args], {
    pattern: /^daybook listening on (http:\S+)$/m,
    log,
    env,
  });

/** The status of GET /health/ready, with minimal overhead. */
function readiness(port) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () =>
      socket.write('GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'),
    );
    socket.on('error', reject);
    socket.once('data', (data) => {
      socket.destroy();
      resolve(Number(data.toString('latin1', 9, 12)));
    });
  });
}

/** Polls without a pause until the service is ready. */
export async function ready(service) {
  const port = Number(new URL(service.base).port);
  const limit = performance.now() + 60_000;
  while ((await readiness(port)) !== 200)
    if (performance.now() > limit) throw new Error('the service was not ready within a minute');
}

/**
 * Marks what has no vector yet, so that the service does not compute vectors for it while others are measured. It computes few while
 * requests arrive.
 */
export async function skipVectors(query) {
  for (const table of ['lessons', 'memories'])
    await query(`update daybook.${table} set embedding_status = 'embedded' where embedding_status = 'pending'`);
}

async function fillLibrary(base, count) {
  const next = lessonMaker(7);
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const { status, text } = await request(base, 'POST', '/v1/lessons', next());
      if (status !== 201) throw new Error(`the library: ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

/** Moves the newest lessons out of the library for pgbench to write: real texts with the similarity keys of the service. */
async function setSparesAside(stage, count) {
  await stage.query('create schema bench');
  await stage.query('grant usage on schema bench to daybook');
  await stage.query('alter default privileges in schema bench grant all on tables to daybook');
  await stage.query(
    `create table bench.spares as
     with gone as (delete from daybook.lessons where id in (select id from daybook.lessons order by id desc limit ${count}) returning *)
     select row_number() over () - 1 as n, context, outcome, takeaway, tags, evidence, similar_keys from gone`,
  );
  await stage.query('vacuum analyze daybook.lessons');
  await stage.query('vacuum analyze bench.spares');
}

/** An empty stage. close() stops and removes everything, even if openStage did not finish. */
export function makeStage(daybookd, plan) {
  const folder = mkdtempSync(join(process.env.TMPDIR ?? '/var/tmp', 'daybook-bench-')); // not /tmp, which may be in memory, where fsync is cheap
  const stage = { daybookd, folder, spares: plan.spares, file: (name) => join(folder, name) };
  stage.close = async () => {
    fast.destroy();
    await stage.client?.end().catch(() => {});
    for (const server of [...running].reverse()) await server.stop(); // the first one owns the cluster
    rmSync(folder, { recursive: true, force: true });
  };
  return stage;
}

export async function openStage(stage, plan, say) {
  say('starting the service and its private cluster …');
  stage.service = await startDaybook(stage.daybookd, ['--data', stage.file('data')], 'ignore');
  await ready(stage.service);
  const [postmaster, , , port, socket] = readFileSync(stage.file('data/cluster/postmaster.pid'), 'utf8').split('\n');
  stage.postmaster = Number(postmaster);
  stage.database = { host: socket, port, user: 'daybook', database: 'daybook' };
  stage.url = `postgresql://daybook@/daybook?host=${encodeURIComponent(socket)}&port=${port}`;
  // The service has no rights beyond its schema; the stage makes databases, checkpoints and data.
  stage.admin = { ...stage.database, user: 'daybook_admin', options: '-c search_path=daybook,public' };
  stage.client = new pg.Client(stage.admin);
  stage.client.on('error', () => {}); // the failing query reports it
  await stage.client.connect();
  stage.query = async (sql, values) => (await stage.client.query(sql, values)).rows;
  for (const [setting, wanted] of [
    ['fsync', 'on'],
    ['synchronous_commit', 'on'],
    ['full_page_writes', 'on'],
  ]) {
    const [{ value }] = await stage.query('select current_setting($1) as value', [setting]);
    if (value !== wanted) throw new Error(`the cluster is not durable: ${setting} is ${value}`);
  }

  const recorded = await recordStatements(stage, Object.values(STATEMENTS));
  stage.statement = Object.fromEntries(Object.entries(STATEMENTS).map(([kind, name]) => [kind, recorded[name]]));

  say(`writing ${plan.lessons} lessons …`);
  await fillLibrary(stage.service.base, plan.lessons + plan.spares);
  await skipVectors(stage.query);
  await setSparesAside(stage, plan.spares);
  stage.ids = (await stage.query('select id from daybook.lessons')).map((row) => row.id);
  writeFileSync(stage.file('ids.txt'), stage.ids.join('\n') + '\n');
  writeFileSync(stage.file('words.txt'), words.join('\n') + '\n');

  say('starting Fastify …');
  const keys = (await stage.query('select similar_keys::text as keys from bench.spares limit 1000')).map(
    (row) => row.keys,
  );
  writeFileSync(
    stage.file('fastify.json'),
    JSON.stringify({ database: stage.database, statements: stage.statement, keys }),
  );
  stage.fastify = await startServer(process.execPath, [here('fastify/server.mjs'), stage.file('fastify.json')], {
    pattern: /^listening on (http:\S+)$/m,
    log: 'inherit',
    env: { NODE_ENV: 'production' },
  });
  await sameAnswers(stage);
}

/** Comparing two servers is meaningful only if their responses are the same. */
async function sameAnswers(stage) {
  const shape = (value) =>
    Array.isArray(value)
      ? value.slice(0, 1).map(shape)
      : value && typeof value === 'object'
        ? Object.keys(value).map((key) => [key, shape(value[key])])
        : typeof value;
  const body = lessonMaker(8)();
  const asked = [
    ['GET', `/v1/lessons/${stage.ids[0]}`],
    ['GET', '/v1/lessons?limit=10'],
    ['POST', '/v1/lessons', body],
  ];
  for (const [method, path, sent] of asked) {
    const [ours, theirs] = await Promise.all(
      [stage.service, stage.fastify].map((server) => request(server.base, method, path, sent)),
    );
    const same =
      ours.status === theirs.status &&
      JSON.stringify(shape(JSON.parse(ours.text))) === JSON.stringify(shape(JSON.parse(theirs.text)));
    if (!same)
      throw new Error(
        `the servers answer ${method} ${path} differently:\n${ours.status} ${ours.text}\n${theirs.status} ${theirs.text}`,
      );
  }
}

/** Waits until the cluster has closed the connections of a finished load generator. */
export const settled = (stage) =>
  until(
    async () =>
      (await stage.query("select count(*)::int as n from pg_stat_activity where application_name = 'pgbench'"))[0].n ===
      0,
    'pgbench has left',
  );
