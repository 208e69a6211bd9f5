// A throw-away PostgreSQL cluster: started for one test file, reached by a socket in its own folder, removed afterwards.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { ended, run, start, until } from './processes.mjs';

const USER = 'postgres';

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

/** `durable`: fsync stays on, for tests that kill the server. `tcp`: listens on that port of 127.0.0.1 too. */
export async function startCluster({ durable = false, settings = {}, tcp } = {}) {
  const bin = binaries();
  const folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  if (process.getuid() === 0) {
    const passwd = readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${USER}:[^:]*:(\\d+):(\\d+):`, 'm'));
    assert.ok(passwd, `no user ${USER}`);
    await chown(folder, Number(passwd[1]), Number(passwd[2]));
  }
  const data = join(folder, 'data');
  const made = await run(join(bin, 'initdb'), ['-D', data, '-U', USER, '-E', 'UTF8', '--locale=C.UTF-8', '--auth=trust', '--no-sync'], {
    user: USER,
    cwd: folder,
  });
  assert.equal(made.code, 0, `initdb: ${made.stderr}`);

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
