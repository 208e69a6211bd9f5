// The parts of docker/compose.ha.yaml as processes of this machine: three etcd, three nodes with Patroni and PostgreSQL, and HAProxy.
// They run the very files of docker/ha; the environment names ports and folders, as the compose file does.
import { copyFileSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { binaries, newFolder, USER } from '../lib/cluster.mjs';
import { ROOT } from '../lib/paths.mjs';
import { ended, run, start, until } from '../lib/processes.mjs';

const HA = join(ROOT, 'docker/ha');
export const LOGS = join(ROOT, 'build/test/ha');
const NUMBERS = [1, 2, 3];

const PROGRAMS = ['/usr/bin/etcd', '/usr/bin/patroni', '/usr/sbin/haproxy', '/usr/lib/python3/dist-packages/etcd'];
/** The programs that are not installed; tools/setup ha installs them. */
export const missing = () => PROGRAMS.filter((path) => !existsSync(path));

/** Any characters will do that need no escape in a URL. */
const PASSWORDS = { superuser: 'of-the-superuser', replication: 'of-the-standbys', restapi: 'of-the-rest-api', daybook: 'of-daybook' };
export const REST = { authorization: `Basic ${Buffer.from(`daybook:${PASSWORDS.restapi}`).toString('base64')}` };

// ---- ports ----

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** Free ports below those that the kernel gives to clients: the port of a killed process must still be free when it returns. */
async function freePorts(count) {
  const end = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t')[0]);
  const ports = [];
  for (let port = 10_000 + Math.floor(Math.random() * (end - 11_000)); ports.length < count && port < end; port++)
    if (await isFree(port)) ports.push(port);
  return ports;
}

// ---- processes ----

const signal = (pids, name) => {
  for (const pid of pids)
    try {
      process.kill(pid, name);
    } catch {} // it has ended
};

const readOr = (read, otherwise) => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};

/** The processes that work in `folder`: every process of a PostgreSQL server has its data directory as its current one. */
const processesIn = (folder) =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readOr(() => readlinkSync(`/proc/${name}/cwd`)) === folder)
    .map(Number);

const childrenOf = (pid) => readOr(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), '').split(' ').filter(Boolean).map(Number);
const withDescendants = (pid) => [pid, ...childrenOf(pid).flatMap(withDescendants)];

/** Processes that are still to be killed when the test ends early: {killNow}. */
const running = new Set();
const killAll = () => running.forEach((part) => part.killNow());
process.on('exit', killAll);
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => process.exit(130));

/** A process that can be killed and started again. */
function part(name, folder, command, args, env) {
  const self = {
    name,
    start() {
      const log = openSync(join(LOGS, `${name}.log`), 'a');
      const PATH = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
      self.child = start(command, args, { user: USER, cwd: folder, env: { PATH, LC_ALL: 'C.UTF-8', ...env }, stdio: ['ignore', log, log] });
      self.ended = ended(self.child);
      running.add(self);
    },
    pids: () => (self.child.exitCode === null && self.child.signalCode === null ? withDescendants(self.child.pid) : []),
    killNow: () => signal(self.pids(), 'SIGKILL'),
    async kill() {
      self.killNow();
      await self.ended;
      running.delete(self);
    },
  };
  return self;
}

// ---- etcd ----

function etcdMembers(folder, clientPorts, peerPorts) {
  const cluster = NUMBERS.map((n, i) => `etcd${n}=http://127.0.0.1:${peerPorts[i]}`).join(',');
  return NUMBERS.map((n, i) => {
    const client = `http://127.0.0.1:${clientPorts[i]}`;
    const peer = `http://127.0.0.1:${peerPorts[i]}`;
    return Object.assign(
      part(`etcd${n}`, folder, '/usr/bin/etcd', [], {
        ETCD_NAME: `etcd${n}`,
        ETCD_DATA_DIR: join(folder, `etcd${n}`),
        ETCD_LISTEN_CLIENT_URLS: client,
        ETCD_ADVERTISE_CLIENT_URLS: client,
        ETCD_LISTEN_PEER_URLS: peer,
        ETCD_INITIAL_ADVERTISE_PEER_URLS: peer,
        ETCD_INITIAL_CLUSTER: cluster,
        ETCD_HEARTBEAT_INTERVAL: '250',
        ETCD_ELECTION_TIMEOUT: '2500',
        ETCD_ENABLE_V2: 'true',
        ETCD_LOGGER: 'zap',
      }),
      { healthy: () => fetch(`${client}/health`).then((answer) => answer.ok, () => false) },
    );
  });
}

// ---- nodes ----

const environmentOf = (name, folder, data, port, restPort, etcdPorts) => ({
  PATRONI_NAME: name,
  // Patroni 3.0.2 of Debian 12 must not use its etcd3 driver. A leader that was paused creates a new lease when it wakes up, and
  // writes its name over the lock that another node holds by then. That one then discards what it has acknowledged.
  // Patroni 3.0.3 and later have the fix (pull request 2689); docker/compose.ha.yaml runs such a version with etcd3.
  PATRONI_ETCD_HOSTS: etcdPorts.map((p) => `127.0.0.1:${p}`).join(','),
  PATRONI_RESTAPI_LISTEN: `127.0.0.1:${restPort}`,
  PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${restPort}`,
  PATRONI_RESTAPI_USERNAME: 'daybook',
  PATRONI_RESTAPI_PASSWORD: PASSWORDS.restapi,
  PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${port}`,
  PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${port}`,
  PATRONI_POSTGRESQL_DATA_DIR: data,
  PATRONI_POSTGRESQL_BIN_DIR: binaries(),
  PATRONI_POSTGRESQL_PGPASS: join(folder, `${name}.pgpass`),
  PATRONI_SUPERUSER_USERNAME: 'postgres',
  PATRONI_SUPERUSER_PASSWORD: PASSWORDS.superuser,
  PATRONI_REPLICATION_USERNAME: 'replicator',
  PATRONI_REPLICATION_PASSWORD: PASSWORDS.replication,
});

function node(n, folder, port, restPort, etcdPorts) {
  const name = `node${n}`;
  const data = join(folder, name);
  const env = environmentOf(name, folder, data, port, restPort, etcdPorts);
  const patroni = part(name, folder, '/usr/bin/patroni', [join(folder, 'patroni.yml')], env);
  const ownPids = patroni.pids;
  const rest = (path, options) => fetch(`http://127.0.0.1:${restPort}${path}`, { signal: AbortSignal.timeout(30_000), ...options });
  const self = Object.assign(patroni, {
    port,
    restPort,
    rest,
    isLeader: () => rest('/primary', { signal: AbortSignal.timeout(2000) }).then((answer) => answer.ok, () => false),
    /** The processes of Patroni and PostgreSQL. */
    pids: () => [...new Set([...ownPids(), ...processesIn(data)])],
    postmaster: () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]),
    async kill() {
      for (let pids = self.pids(); pids.length; pids = processesIn(data)) signal(pids, 'SIGKILL'); // until none is left
      await self.ended;
      running.delete(self);
    },
    /** Patroni is killed; PostgreSQL stops at once, in a way that gives its shared memory back. */
    async stop() {
      const pids = processesIn(data); // some are children of Patroni
      const postmaster = readOr(self.postmaster);
      signal(ownPids().filter((pid) => !pids.includes(pid)), 'SIGKILL');
      signal(pids, 'SIGCONT');
      if (pids.includes(postmaster)) signal([postmaster], 'SIGQUIT');
      await until(() => !processesIn(data).length, `${name} stops`, 20_000).catch(() => {});
      await self.kill();
    },
    killPostmaster: () => process.kill(self.postmaster(), 'SIGKILL'),
    pause: () => [1, 2].forEach(() => signal(self.pids(), 'SIGSTOP')), // twice: one may have started a child meanwhile
    resume: () => signal(self.pids(), 'SIGCONT'),
    async query(sql, values, database = 'daybook') {
      const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password: PASSWORDS.superuser, database, connectionTimeoutMillis: 5000 });
      client.on('error', () => {});
      await client.connect();
      try {
        return (await client.query(sql, values)).rows;
      } finally {
        await client.end();
      }
    },
  });
  return self;
}

// ---- all of it ----

/** Kills the PostgreSQL servers of an earlier run that could not clean up: they outlive their Patroni. */
function sweep() {
  for (const name of readdirSync('/proc').filter((pid) => /^\d+$/.test(pid))) {
    const cwd = readOr(() => readlinkSync(`/proc/${name}/cwd`), '');
    const owner = cwd.match(/\/dbk-(\d+)-[^/]*\/node\d( \(deleted\))?$/)?.[1];
    if (owner && !existsSync(`/proc/${owner}`)) signal([Number(name)], 'SIGKILL');
  }
}

/** The files that the processes read, in a folder that their user may read. */
async function newRun() {
  sweep();
  await rm(LOGS, { recursive: true, force: true });
  mkdirSync(LOGS, { recursive: true });
  const folder = await newFolder();
  for (const file of ['patroni.yml', 'haproxy.cfg', 'database.sql']) copyFileSync(join(HA, file), join(folder, file));
  return folder;
}

async function createDatabase(folder, { port }) {
  const psql = ['-X', '-q', '-h', '127.0.0.1', '-p', port, '-U', 'postgres', '-d', 'postgres', '-f', join(folder, 'database.sql')];
  const env = { ...process.env, PGPASSWORD: PASSWORDS.superuser, DAYBOOK_DATABASE_PASSWORD: PASSWORDS.daybook };
  const { code, stderr } = await run('psql', psql, { env });
  if (code) throw new Error(`database.sql: ${stderr}`);
}

/** Whom Patroni and PostgreSQL see in which role. */
function view(nodes, etcd, healthPort) {
  const self = {
    async leader() {
      const leading = await Promise.all(nodes.map(async (n) => (await n.isLeader()) && n));
      return leading.find(Boolean);
    },

    members: async () => (await (await self.leader()).rest('/cluster').then((answer) => answer.json())).members,

    async synchronousStandby() {
      const { name } = (await self.members()).find((member) => member.role === 'sync_standby');
      return nodes.find((n) => n.name === name);
    },

    /** True if there are a leader, a synchronous standby and another one, all streaming, and every etcd and HAProxy are well. */
    async isWhole() {
      const leader = await self.leader();
      if (!leader || !(await Promise.all(etcd.map((member) => member.healthy()))).every(Boolean)) return false;
      const roles = (await self.members()).filter((m) => ['running', 'streaming'].includes(m.state)).map((m) => m.role).sort();
      if (roles.join() !== 'leader,replica,sync_standby') return false;
      const [{ streaming }] = await leader.query("SELECT count(*)::int AS streaming FROM pg_stat_replication WHERE state = 'streaming'", [], 'postgres');
      const answer = await fetch(`http://127.0.0.1:${healthPort}/health`);
      return streaming === 2 && answer.ok;
    },

    whole: (what) => until(() => self.isWhole().catch(() => false), `three members are back (${what})`),
  };
  return self;
}

/** Starts everything; returns the parts, with `url` for each way to connect, once the database of Daybook exists. */
export async function startParts() {
  const folder = await newRun();
  const ports = await freePorts(14);
  const take = () => NUMBERS.map(() => ports.pop());
  const [clients, peers, servers, rests] = [take(), take(), take(), take()];
  const [leaderPort, healthPort] = ports;

  const etcd = etcdMembers(folder, clients, peers);
  const nodes = NUMBERS.map((n, i) => node(n, folder, servers[i], rests[i], clients));
  const haproxy = part('haproxy', folder, '/usr/sbin/haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], {
    LEADER_LISTEN: `127.0.0.1:${leaderPort}`,
    HEALTH_LISTEN: `127.0.0.1:${healthPort}`,
    ...Object.fromEntries(nodes.flatMap((n, i) => [[`NODE${i + 1}`, `127.0.0.1:${n.port}`], [`NODE${i + 1}_REST_PORT`, String(n.restPort)]])),
  });
  const all = [...etcd, ...nodes, haproxy];
  const login = `postgresql://daybook:${PASSWORDS.daybook}@`;
  const ha = {
    etcd,
    nodes,
    url: {
      HAProxy: `${login}127.0.0.1:${leaderPort}/daybook`,
      'several hosts': `${login}${servers.map((p) => `127.0.0.1:${p}`).join(',')}/daybook?target_session_attrs=read-write`,
    },
    ...view(nodes, etcd, healthPort),

    async close() {
      for (const each of all.filter((p) => p.child).reverse()) await (each.stop ?? each.kill)();
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    for (const each of all) each.start();
    await ha.whole('at the start');
    await createDatabase(folder, await ha.leader());
  } catch (error) {
    await ha.close();
    throw error;
  }
  return ha;
}
