// A throw-away PostgreSQL cluster: started for one test file, reached by a socket in its own folder, removed afterwards.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { KEPT } from './paths.mjs';
import { ended, run, start, until } from './processes.mjs';

const USER = 'postgres';
const INITDB = ['-U', USER, '-E', 'UTF8', '--locale=C.UTF-8', '--auth=trust', '--no-sync'];
const MEMORY = '/dev/shm';
const PLENTY = 4e9; // bytes; a cluster has 50 MB at first, and a few run at a time

/** The binaries of the newest PostgreSQL that has pgvector. */
function binaries() {
  const root = '/usr/lib/postgresql';
  const newest = existsSync(root)
    ? readdirSync(root)
        .filter((major) => existsSync(`/usr/share/postgresql/${major}/extension/vector.control`))
        .sort((a, b) => b - a)[0]
    : undefined;
  assert.ok(newest, 'no PostgreSQL with pgvector is installed: tools/setup');
  return `${root}/${newest}/bin`;
}

/** A process that nobody has waited for yet has ended too. */
function hasEnded(pid) {
  try {
    return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

/** Where clusters lie: in memory where there is plenty of it. A kill does the same there, and the thousand files of a cluster are made in no time. */
function place() {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return Math.min(bavail * bsize, freemem()) > PLENTY ? MEMORY : tmpdir();
}

/** What test files left behind that were killed goes: it takes memory. */
async function sweep(where) {
  for (const name of readdirSync(where)) {
    const pid = name.match(/^dbk-(\d+)-/)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) await rm(join(where, name), { recursive: true, force: true });
  }
}

/** A folder that the server may write. */
async function newFolder() {
  const where = place();
  if (where === MEMORY) await sweep(where);
  const folder = await mkdtemp(join(where, `dbk-${process.pid}-`));
  if (process.getuid() === 0) {
    const passwd = readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${USER}:[^:]*:(\\d+):(\\d+):`, 'm'));
    assert.ok(passwd, `no user ${USER}`);
    await chown(folder, Number(passwd[1]), Number(passwd[2]));
  }
  return folder;
}

async function must(what, command, args, options) {
  const { code, stderr } = await run(command, args, options);
  assert.equal(code, 0, `${what}: ${stderr}`);
}

/** The data of a new cluster, made by the first that asks and kept: initdb takes a second of CPU, to copy what it made a tenth. */
async function template(bin) {
  const like = [bin, process.getuid(), ...INITDB].join(' ');
  const kept = join(KEPT, `cluster-${createHash('sha256').update(like).digest('hex')}`);
  if (existsSync(kept)) return kept;
  const folder = await newFolder();
  const data = join(folder, 'data');
  await must('initdb', join(bin, 'initdb'), ['-D', data, ...INITDB], { user: USER, cwd: folder });
  await mkdir(KEPT, { recursive: true });
  await must('cp', 'cp', ['-a', data, `${kept}.${process.pid}`]);
  await rename(`${kept}.${process.pid}`, kept).catch(() => rm(`${kept}.${process.pid}`, { recursive: true })); // another was first
  await rm(folder, { recursive: true });
  return kept;
}

/** `durable`: fsync stays on, for tests that kill the server. `tcp`: listens on that port of 127.0.0.1 too. */
export async function startCluster({ durable = false, settings = {}, tcp } = {}) {
  const bin = binaries();
  const folder = await newFolder();
  const data = join(folder, 'data');
  await must('cp', 'cp', ['-a', await template(bin), data]);

  const all = {
    listen_addresses: tcp ? '127.0.0.1' : '',
    port: tcp ?? 5432,
    unix_socket_directories: folder,
    max_connections: 200,
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...settings,
  };
  let server;
  const open = [];

  const cluster = {
    folder,
    log: '',

    async start() {
      const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      server = start(join(bin, 'postgres'), ['-D', data, ...args], { user: USER, cwd: folder, deathSignal: 'QUIT' });
      server.ended = ended(server);
      for (const out of [server.stdout, server.stderr]) out.setEncoding('utf8').on('data', (text) => (cluster.log += text));
      await until(async () => {
        assert.equal(server.exitCode, null, `PostgreSQL did not start: ${cluster.log}`);
        return cluster.query('postgres', 'SELECT 1').catch(() => false);
      }, 'PostgreSQL accepts connections');
    },

    /** The orderly way: `fast` ends open transactions. */
    async stop() {
      if (server.exitCode === null && server.signalCode === null) server.kill('SIGINT');
      await server.ended;
    },

    /** As a power cut would: kill -9 of the server and all its processes. */
    async kill() {
      const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
      server.kill('SIGKILL');
      for (const pid of children) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {} // it has gone with its parent
      }
      await server.ended;
      await until(() => children.every(hasEnded), 'the processes of PostgreSQL are gone');
    },

    /** A new, empty database; gives its name. */
    async createDatabase(name = `test_${open.length}_${process.pid}`) {
      await cluster.query('postgres', `CREATE DATABASE ${name}`);
      open.push(name);
      return name;
    },

    url: (database, user = USER) => `postgresql://${user}@/${database}?host=${encodeURIComponent(folder)}&port=${all.port}`,

    /** A connected client of `pg`; the caller ends it. */
    async connect(database, user = USER) {
      const client = new pg.Client({ host: folder, port: all.port, user, database });
      client.on('error', () => {}); // a killed server is part of some tests
      await client.connect();
      return client;
    },

    /** The rows of one statement on a connection of its own. */
    async query(database, sql, values) {
      const client = await cluster.connect(database);
      try {
        return (await client.query(sql, values)).rows;
      } finally {
        await client.end();
      }
    },

    async close() {
      if (server.exitCode === null && server.signalCode === null) server.kill('SIGQUIT');
      await server.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };

  await cluster.start();
  return cluster;
}
