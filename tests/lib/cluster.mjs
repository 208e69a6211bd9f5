// A temporary PostgreSQL cluster for one test file, reached by a socket in its own folder.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { CACHE } from './paths.mjs';
import { ended, run, start, until } from './processes.mjs';

export const USER = 'postgres';
const INITDB = ['-U', USER, '-E', 'UTF8', '--locale=C.UTF-8', '--auth=trust', '--no-sync'];
const MEMORY = '/dev/shm';
const PLENTY = 4e9; // bytes; a new cluster takes 50 MB, and a few run at a time

/** The bin directory of the newest PostgreSQL with pgvector. */
export function binaries() {
  const root = '/usr/lib/postgresql';
  const newest = existsSync(root)
    ? readdirSync(root)
        .filter((major) => existsSync(`/usr/share/postgresql/${major}/extension/vector.control`))
        .sort((a, b) => b - a)[0]
    : undefined;
  assert.ok(newest, 'no PostgreSQL with pgvector is installed: tools/setup');
  return `${root}/${newest}/bin`;
}

/** True for a zombie too: a process that has ended but was not waited for. */
function hasEnded(pid) {
  try {
    return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

/** The parent directory of clusters: in memory if there is enough. Kills behave the same there, and creating a cluster is fast. */
function place() {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return Math.min(bavail * bsize, freemem()) > PLENTY ? MEMORY : tmpdir();
}

/** Removes clusters left behind by killed test files: they take memory. */
async function sweep(where) {
  for (const name of readdirSync(where)) {
    const pid = name.match(/^dbk-(\d+)-/)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) await rm(join(where, name), { recursive: true, force: true });
  }
}

/** A new folder that the server may write. */
export async function newFolder(where = place()) {
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

/** A cached data directory to copy: initdb takes a second of CPU, a copy a tenth of that. */
async function template(bin) {
  const like = [bin, process.getuid(), ...INITDB].join(' ');
  const cached = join(CACHE, `cluster-${createHash('sha256').update(like).digest('hex')}`);
  if (existsSync(cached)) return cached;
  const folder = await newFolder();
  const data = join(folder, 'data');
  await must('initdb', join(bin, 'initdb'), ['-D', data, ...INITDB], { user: USER, cwd: folder });
  await mkdir(CACHE, { recursive: true });
  await must('cp', 'cp', ['-a', data, `${cached}.${process.pid}`]);
  await rename(`${cached}.${process.pid}`, cached).catch(() => rm(`${cached}.${process.pid}`, { recursive: true })); // another process was faster
  await rm(folder, { recursive: true });
  return cached;
}

/**
 * `durable`: keeps fsync on, for tests that kill the server. `from`: the data directory to copy, instead of an empty
 * cluster. `standbyOf`: another cluster that this one follows. `tcp`: also listens on that port of 127.0.0.1.
 * `where`: the parent folder.
 */
export async function startCluster({ durable = false, settings = {}, tcp, from, standbyOf, where } = {}) {
  const bin = binaries();
  const folder = await newFolder(where);
  const data = join(folder, 'data');
  if (standbyOf) await must('pg_basebackup', join(bin, 'pg_basebackup'), ['-h', standbyOf.folder, '-U', USER, '-D', data, '-R', '-c', 'fast', '--no-sync'], { user: USER, cwd: folder });
  else await must('cp', 'cp', ['-a', from ?? (await template(bin)), data]);

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

    /** An orderly shutdown; `fast` aborts open transactions. */
    async stop() {
      if (cluster.isRunning()) server.kill('SIGINT');
      await server.ended;
    },

    isRunning: () => server.exitCode === null && server.signalCode === null,

    /** Simulates a power cut: kill -9 of the server and all its processes. Without `backends` they notice it and end by themselves. */
    async kill({ backends = true } = {}) {
      const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
      server.kill('SIGKILL');
      for (const pid of backends ? children : []) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {} // it ended with its parent
      }
      await server.ended;
      await until(() => children.every(hasEnded), 'the processes of PostgreSQL are gone');
    },

    /** Freezes all processes (SIGSTOP); returns the function that resumes them. */
    freeze() {
      const all = [server.pid, ...readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)];
      const each = (signal) => {
        for (const pid of all) {
          try {
            process.kill(pid, signal);
          } catch {} // it has ended in the meantime
        }
      };
      each('SIGSTOP');
      return () => each('SIGCONT');
    },

    /** Creates an empty database; returns its name. */
    async createDatabase(name = `test_${open.length}_${process.pid}`) {
      await cluster.query('postgres', `CREATE DATABASE ${name}`);
      open.push(name);
      return name;
    },

    /** Runs a program of PostgreSQL, such as pg_dump, as the user of the server: {code, stdout, stderr}. */
    tool: (program, args, options) => run(join(bin, program), args, { user: USER, cwd: folder, ...options }),
    /** The arguments that connect such a program. */
    where: ['-h', folder, '-p', String(all.port), '-U', USER],
    /** Settings of the next start. */
    settings: all,

    url: (database, user = USER) => `postgresql://${user}@/${database}?host=${encodeURIComponent(folder)}&port=${all.port}`,

    /** A connected client of `pg`; the caller ends it. */
    async connect(database, user = USER) {
      const client = new pg.Client({ host: folder, port: all.port, user, database });
      client.on('error', () => {}); // some tests kill the server
      await client.connect();
      return client;
    },

    /** Runs one statement on a new connection; returns its rows. */
    async query(database, sql, values) {
      const client = await cluster.connect(database);
      try {
        return (await client.query(sql, values)).rows;
      } finally {
        await client.end();
      }
    },

    async close() {
      if (cluster.isRunning()) server.kill('SIGQUIT');
      await server.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };

  await cluster.start();
  return cluster;
}
