// Several hosts in the database URL: a mute one, a primary that dies, and a primary that becomes a standby.
import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { assertQuiet, checkWritten, startLoad } from '../lib/faults.mjs';
import { create, newLesson } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';

let primary, standby, database;

before(async () => {
  primary = await startCluster({ durable: true });
  database = await primary.createDatabase('moved');
});
after(async () => {
  await standby?.close();
  await primary?.close();
});

const urlOf = (hosts, more = '') =>
  `postgresql://postgres@/${database}?host=${hosts.map(([host]) => encodeURIComponent(host)).join(',')}&port=${hosts.map(([, port]) => port).join(',')}${more}`;
const hostOf = (cluster) => [cluster.folder, 5432];

/** A TCP server that accepts and says nothing, or forwards to the socket of a cluster. */
async function listen(target = () => null, address = '127.0.0.1', port = 0) {
  const open = new Set();
  const server = net.createServer((socket) => {
    const to = target();
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    if (!to) return;
    const other = net.connect(`${to.folder}/.s.PGSQL.5432`);
    other.on('error', () => {}).on('close', () => socket.destroy());
    socket.on('close', () => other.destroy());
    socket.pipe(other).pipe(socket);
  });
  await new Promise((resolve) => server.listen(port, address, resolve));
  const cut = () => open.forEach((socket) => socket.destroy());
  return { host: [address, server.address().port], cut, close: () => (cut(), new Promise((resolve) => server.close(resolve))) };
}

async function withService(url, args, work) {
  const service = await startService(url, { args });
  const api = makeClient(service.base);
  try {
    await work(service, api);
  } finally {
    api.close();
    await service.stop();
  }
  assertQuiet(service.log);
}

const reason = async (api) => (await api.get('/health/ready')).json.detail ?? '';
const ready = (api) => until(async () => (await api.get('/health/ready')).status === 200, 'it is ready');
const written = (api) => until(async () => (await api.post('/v1/lessons', newLesson())).status === 201, 'writes succeed');

test('a mute first host delays neither the start nor a reconnect for long, and the log names each host', async () => {
  const mute = await listen();
  try {
    await withService(urlOf([mute.host, hostOf(primary)]), ['--loops', '1'], async (service, api) => {
      await create(api);
      await primary.stop();
      const lost = (host) => until(() => service.log.includes(`host="${host.join(':')}"`), `${host} is named`);
      await lost(hostOf(primary));
      await lost(mute.host);
      await primary.start();
      await written(api);
      await ready(api);
      const lines = service.log.split('\n').filter((line) => / db_(lost|connected) /.test(line));
      assert.ok(lines.some((line) => / db_connected /.test(line) && line.includes(`host="${primary.folder}:5432"`)), lines.join('\n'));
      assert.ok(lines.every((line) => / connections=\d+ lanes=[a-z,]+ host="[^"]+" attempts?=\d+/.test(line)), lines.join('\n'));
      console.log(`  ${lines.length} lines about ${lines.reduce((sum, line) => sum + Number(line.match(/connections=(\d+)/)[1]), 0)} connections lost and established`);
    });
  } finally {
    await mute.close();
  }
});

test('a host name whose first address is mute is reached at its second', async (t) => {
  const addresses = (await lookup('localhost', { all: true, order: 'verbatim' })).map(({ address }) => address);
  if (addresses.length < 2) {
    t.skip('localhost has one address here');
    return;
  }
  const forward = await listen(() => primary, addresses[1]);
  const mute = await listen(() => null, addresses[0], forward.host[1]);
  try {
    await withService(urlOf([['localhost', forward.host[1]]]), ['--loops', '1'], async (service, api) => {
      await create(api);
      forward.cut();
      await until(() => service.log.includes(`host="localhost:${forward.host[1]}(${addresses[1]})"`), 'the address is named');
      await written(api);
    });
  } finally {
    await mute.close();
    await forward.close();
  }
});

test('an invalid list of hosts is rejected at start, without the URL', async () => {
  for (const query of ['host=a,,b&password=hidden', 'host=a,b&port=1,2,3&password=hidden']) {
    const { code, stderr } = await command(['serve', '--listen', '127.0.0.1:0', '--start-timeout-ms', '0', '--database-url', `postgresql:///x?${query}`]);
    assert.equal(code, 1, stderr);
    assert.ok(!stderr.includes('hidden'), stderr);
  }
});

test('a start without a usable server waits and logs why, or ends when the time is over', async () => {
  const mute = await listen();
  const nobody = `postgresql://postgres@/none?host=${encodeURIComponent(`${primary.folder}/nowhere`)},127.0.0.1&port=5432,${mute.host[1]}`;
  const { code, stderr } = await command(['serve', '--listen', '127.0.0.1:0', '--start-timeout-ms', '1', '--database-url', nobody]);
  assert.equal(code, 1);
  assert.match(stderr, /^daybookd: cannot connect to PostgreSQL at /m);
  await mute.close();

  await primary.stop();
  const starting = startService(primary.url(database));
  starting.catch(() => {}); // awaited below
  await primary.start();
  const service = await eventually(starting, 'the service starts');
  await service.stop();

  const refused = await command(['serve', '--listen', '127.0.0.1:0', '--database-url', primary.url('no_such_database')]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot connect to PostgreSQL at .*no_such_database/);
});

test('a leader that becomes read-only is left by the write lane, readiness says so, and reads go on', async () => {
  await withService(primary.url(database), [], async (service, api) => {
    const { id } = await create(api);
    await ready(api);
    await primary.query('postgres', "ALTER SYSTEM SET default_transaction_read_only = on");
    await primary.query('postgres', 'SELECT pg_reload_conf()');
    await until(async () => /read-only/.test(await reason(api)), 'readiness says why');
    await until(async () => {
      const answer = await api.post('/v1/lessons', newLesson());
      return answer.status === 503 && /read-only/.test(answer.json.detail);
    }, 'the answer says why');
    await until(async () => (await api.get(`/v1/lessons/${id}`)).status === 200, 'reads are served');
    await until(() => / db_lost .*lanes=[a-z,]*write.*read-only/.test(service.log), 'the log says why');
    await primary.query('postgres', 'ALTER SYSTEM RESET default_transaction_read_only');
    await primary.query('postgres', 'SELECT pg_reload_conf()');
    await written(api);
    await ready(api);
  });
});

test('behind one address that moves to a standby: writes are refused until it is promoted, reads go on', async () => {
  const first = await startCluster({ durable: true });
  let second, forward;
  try {
    await first.createDatabase(database);
    let target = first;
    forward = await listen(() => target);
    await withService(urlOf([forward.host]), [], async (service, api) => {
      const { id } = await create(api);
      second = await startCluster({ durable: true, standbyOf: first });
      await until(async () => (await second.query(database, 'SELECT 1 FROM daybook.lessons').catch(() => [])).length, 'the standby has the row');
      target = second;
      forward.cut();
      await until(async () => /read-only/.test(await reason(api)), 'readiness says why');
      await until(async () => (await api.get(`/v1/lessons/${id}`)).status === 200, 'the standby serves reads');
      assert.equal((await api.post('/v1/lessons', newLesson(), { status: 503 })).json.code, 'database_unavailable');
      await second.query('postgres', 'SELECT pg_promote()');
      await written(api);
      await ready(api);
    });
  } finally {
    await forward?.close();
    await second?.close();
    await first.close();
  }
});

for (const more of ['', '&target_session_attrs=read-write']) {
  test(`after the primary dies and its synchronous standby is promoted, nothing acknowledged is lost${more && ` (${more.slice(1)})`}`, async () => {
    const first = await startCluster({ durable: true, settings: { wal_keep_size: '256MB' } });
    let second;
    try {
      await first.createDatabase(database);
      second = await startCluster({ durable: true, standbyOf: first });
      await first.query('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'");
      await first.query('postgres', 'SELECT pg_reload_conf()');
      await until(async () => (await first.query('postgres', "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")).length, 'the standby is synchronous');
      await withService(urlOf([hostOf(first), hostOf(second)], more), [], async (service, api) => {
        const load = startLoad(() => service.base);
        await load.during(async () => {
          await until(() => load.count(201) > 50, 'the load runs');
          await first.kill();
          const died = Date.now();
          await second.query('postgres', 'SELECT pg_promote()');
          const promoted = Date.now();
          const writtenAt = await until(() => load.attempts.find((a) => a.status === 201 && a.at > promoted)?.at, 'writes succeed again');
          console.log(`  first write ${writtenAt - died} ms after the kill, ${writtenAt - promoted} ms after the promotion`);
          await ready(api);
          const before = load.count(201);
          await until(() => load.count(201) > before + 50, 'the load goes on');
        });
        await checkWritten(load, (sql) => second.query(database, sql));
      });
    } finally {
      await second?.close();
      await first.close();
    }
  });
}
