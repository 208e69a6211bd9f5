// Migrations: applied once however many services start, and refused when the database does not match the binary.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { createEpisode } from '../lib/episodes.mjs';
import { create } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { search } from '../lib/searches.mjs';
import { command, startService } from '../lib/service.mjs';

let cluster;

before(async () => {
  cluster = await startCluster();
});

after(async () => {
  await cluster?.close();
});

const applied = (database) => cluster.query(database, 'SELECT number, name, checksum FROM daybook.schema_migrations ORDER BY number');
const migrate = (database, user) => command(['migrate', '--database-url', cluster.url(database, user)]);

/** A database with every migration applied. */
async function migrated() {
  const database = await cluster.createDatabase();
  const { code, stderr } = await migrate(database);
  assert.equal(code, 0, stderr);
  return database;
}

test('services that start concurrently on an empty database all serve, and each migration runs once', async () => {
  const database = await cluster.createDatabase();
  const services = await Promise.all(Array.from({ length: 4 }, () => startService(cluster.url(database))));
  const ran = services.flatMap((service) => service.log.match(/migration=\S+/g) ?? []);
  const rows = await applied(database);
  assert.ok(rows.length >= 2);
  assert.equal(ran.length, rows.length);
  const clients = services.map((service) => makeClient(service.base));
  const { id } = await create(clients[0]);
  for (const api of clients) {
    await api.get(`/v1/lessons/${id}`, { status: 200 });
    api.close();
  }
  await Promise.all(services.map((service) => service.stop()));
});

test('migrating again changes nothing', async () => {
  const database = await migrated();
  const before = await applied(database);
  assert.equal((await migrate(database)).code, 0);
  assert.deepEqual(await applied(database), before);
});

test('migrations are numbered without gaps and have checksums', async () => {
  const rows = await applied(await migrated());
  rows.forEach(({ number, checksum }, i) => {
    assert.equal(number, i + 1);
    assert.match(checksum, /^[0-9a-f]{64}$/);
  });
});

/** Starting and migrating must both fail with one clear line and leave the database unchanged. */
async function refused(database, message, user) {
  const before = await cluster.query(
    database,
    "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace::regnamespace::text NOT LIKE 'pg_%'",
  );
  for (const args of [['migrate'], ['serve', '--listen', '127.0.0.1:0']]) {
    const { code, stdout, stderr } = await command([...args, '--database-url', cluster.url(database, user)]);
    assert.equal(code, 1, args[0]);
    assert.equal(stdout, '');
    assert.match(stderr, message);
    assert.equal(stderr.match(/^daybookd: /gm).length, 1, stderr);
  }
  assert.deepEqual(
    await cluster.query(database, "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace::regnamespace::text NOT LIKE 'pg_%'"),
    before,
  );
}

test('a database newer than the binary is refused', async () => {
  const database = await migrated();
  await cluster.query(database, "INSERT INTO daybook.schema_migrations (number, name, checksum) VALUES (9999, 'future', repeat('0', 64))");
  await refused(database, /^daybookd: .*9999.*newer/m);
});

test('a migration whose text changed after it was applied is refused', async () => {
  const database = await migrated();
  await cluster.query(database, "UPDATE daybook.schema_migrations SET checksum = repeat('0', 64) WHERE number = 1");
  await refused(database, /^daybookd: .*0001/m);
});

test('a gap in the applied migrations is refused', async () => {
  const database = await migrated();
  await cluster.query(database, 'DELETE FROM daybook.schema_migrations WHERE number = 1');
  await refused(database, /^daybookd: .*0001/m);
});

test('a role without the right to migrate gets a clear message', async () => {
  const database = await cluster.createDatabase();
  await cluster.query(database, 'CREATE ROLE nobody LOGIN');
  await refused(database, /^daybookd: the role nobody may not/m, 'nobody');
});

test('a role that is not superuser can migrate and serve once the extension is installed', async () => {
  const database = await cluster.createDatabase();
  await cluster.query(database, 'CREATE EXTENSION vector');
  await cluster.query(database, 'CREATE ROLE plain LOGIN');
  await cluster.query(database, `GRANT CREATE ON DATABASE ${database} TO plain`);
  const service = await startService(cluster.url(database, 'plain'));
  const api = makeClient(service.base);
  const { id } = await create(api);
  await api.get(`/v1/lessons/${id}`, { status: 200 });
  await api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }, { headers: { 'idempotency-key': 'k' }, status: 200 });
  api.close();
  await service.stop();
});

test('extensions that the role may not move stay where they are, with the statement to run, and the service works', async () => {
  const database = await cluster.createDatabase();
  await cluster.query(database, 'CREATE EXTENSION vector');
  await cluster.query(database, 'CREATE ROLE tenant LOGIN');
  await cluster.query(database, `GRANT CREATE ON DATABASE ${database} TO tenant`);
  assert.equal((await migrate(database, 'tenant')).code, 0);
  for (const name of ['vector', 'pg_trgm']) await cluster.query(database, `ALTER EXTENSION ${name} SET SCHEMA daybook`);
  const service = await startService(cluster.url(database, 'tenant'));
  assert.match(service.log, /extension_in_daybook extension=vector .*let a superuser run ALTER EXTENSION vector SET SCHEMA public/);
  const api = makeClient(service.base);
  const { id } = await createEpisode(api, { question: 'Are margins under pressure?' });
  const found = await search(api, { text: 'margins' });
  assert.deepEqual([found.degraded, found.items[0].id], [null, id]);
  // A superuser moves it while the service runs.
  assert.equal((await migrate(database)).code, 0);
  assert.deepEqual(await cluster.query(database, "SELECT DISTINCT extnamespace::regnamespace::text AS at FROM pg_extension WHERE extname IN ('vector', 'pg_trgm')"), [{ at: 'public' }]);
  await until(async () => (await api.post('/v1/episodic/search', { text: 'margins' })).status === 200, 'searches go on');
  await createEpisode(api);
  api.close();
  await service.stop();
});

test('without the right to create the extension, the message names the command to run', async () => {
  const database = await cluster.createDatabase();
  await cluster.query(database, 'CREATE ROLE unable LOGIN');
  await cluster.query(database, `GRANT CREATE ON DATABASE ${database} TO unable`);
  await refused(database, /^daybookd: .*CREATE EXTENSION vector/m, 'unable');
});

test('a database that is not UTF-8 is refused', async () => {
  await cluster.query('postgres', "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  await refused('latin', /^daybookd: .*UTF8/m);
});

test('an unreachable database is reported clearly, without the password', async () => {
  const { code, stderr } = await command([
    'serve',
    '--listen',
    '127.0.0.1:0',
    '--database-url',
    'postgresql://user:hunter2@127.0.0.1:1/nothing',
    '--start-timeout-ms',
    '0',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /^daybookd: /m);
  assert.doesNotMatch(stderr, /hunter2/);
  const garbage = await command(['serve', '--database-url', 'postgresql://a:hunter2@[']);
  assert.equal(garbage.code, 1);
  assert.doesNotMatch(garbage.stderr, /hunter2/);
});
