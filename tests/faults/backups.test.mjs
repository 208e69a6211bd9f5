// The commands of docs/operations.md: a dump is restored into an empty database of another cluster, and a base backup is recovered to an
// instant under load. Both must have every row.
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import pg from 'pg';
import { allEmbedded } from '../lib/backfill.mjs';
import { makeClient } from '../lib/client.mjs';
import { binaries, startCluster } from '../lib/cluster.mjs';
import { createEpisode, evict } from '../lib/episodes.mjs';
import { checkWritten, startLoad, startPrivate } from '../lib/faults.mjs';
import { openThesis, order, remember, searchMemories } from '../lib/journal.mjs';
import { putVersion } from '../lib/ledger.mjs';
import { create } from '../lib/lessons.mjs';
import { run, until } from '../lib/processes.mjs';
import { reflect, traded } from '../lib/reflect.mjs';
import { command, createKey, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ cluster: { durable: true } });
const others = [];
after(async () => {
  for (const cluster of others) await cluster.close();
});

async function another(options) {
  const cluster = await startCluster(options);
  others.push(cluster);
  return cluster;
}

async function tool(cluster, program, args) {
  const { code, stderr } = await cluster.tool(program, args);
  assert.equal(code, 0, `${program}: ${stderr}`);
  assert.equal(stderr, '', program);
}

/** Every row of every table, as text. */
async function rowsOf(query) {
  const tables = await query("SELECT relname AS name FROM pg_class WHERE relnamespace = 'daybook'::regnamespace AND relkind = 'r' ORDER BY 1");
  const all = {};
  for (const { name } of tables) all[name] = (await query(`SELECT t::text AS row FROM daybook.${name} t ORDER BY 1`)).map(({ row }) => row);
  return all;
}

/** Rows in every table, through the API where it can make them. */
async function fillAll(api) {
  await create(api, {}, { headers: { 'idempotency-key': 'kept' } });
  const version = await putVersion(api, { skill_id: 'replaced' });
  await putVersion(api, { skill_id: version.skill_id, strategy: 'Another.' }, { status: 200 });
  const { id } = await traded(api, 4);
  await reflect(api, id);
  await createEpisode(api, { question: 'What did ACME guide to?', answer: 'Higher margins.', created_at: '2026-06-01T00:00:00Z' });
  await createEpisode(api, { question: 'old', created_at: '2020-01-01T00:00:00Z' });
  await evict(api, { dry_run: false, policies: ['time'], at: '2026-06-02T00:00:00Z' });
  await s.query("INSERT INTO daybook.reader_owners VALUES ('ann', 'local') ON CONFLICT DO NOTHING");
  await s.query('INSERT INTO daybook.reflection_claims SELECT owner, id, id, 0, now(), now() FROM daybook.deployments LIMIT 1');
  await s.query(`INSERT INTO daybook.episodic_reads SELECT owner, gen_random_uuid(), id, task_type, created_at, 0.5 FROM daybook.episodic_memory LIMIT 1`);
  await s.query(`INSERT INTO daybook.memory_retrievals SELECT owner, gen_random_uuid(), 'episodic', created_at, '{}', '{}', '[]', array[id] FROM daybook.episodic_memory LIMIT 1`);
  const thesis = await openThesis(api, { deployment_id: id, symbol: 'BTC' });
  await remember(api, { thesis_id: thesis.id });
  await order(api, { deployment_id: id, thesis_id: thesis.id });
  await searchMemories(api, { text: 'funding', deployment_id: id });
  await api('PUT', '/v1/facts/desk.timezone', { body: { value: 'Europe/Berlin', source: 'user_stated', observation_type: 'user_stated_preference' }, status: 201 });
  await api('PUT', '/v1/write_policy', { body: { types: [{ observation_type: 'user_stated_preference', store: true }] }, status: 200 });
  await allEmbedded(api); // the background changes nothing more
  await api.get('/v1/memory_events/verify', { status: 200 });
  for (const [table, rows] of Object.entries(await rowsOf(s.query))) assert.ok(rows.length || table === 'api_keys', `${table} is empty: fill it here`);
}

/** Serves the restored database and compares it with the first. */
async function same(cluster, database, before, answers) {
  const url = cluster.url(database);
  const query = (sql, values) => cluster.query(database, sql, values);
  assert.deepEqual(await rowsOf(query), before);
  assert.deepEqual(await query('SELECT oid FROM pg_largeobject_metadata'), []);
  const { code, stderr } = await command(['migrate', '--database-url', url]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /readers_restored/);
  const { key } = await createKey(url, 'local', 'agent');
  const service = await startService(url);
  const api = makeClient(service.base).as(key);
  for (const [ask, text] of answers) assert.equal((await ask(api)).text, text);
  await create(api);
  api.close();
  await service.stop();
  // Roles belong to the server; their privileges and policies are those of the first.
  await query('CREATE ROLE ann LOGIN IN ROLE daybook_reader');
  const ann = await cluster.connect(database, 'ann');
  assert.equal((await ann.query('SELECT DISTINCT owner FROM daybook.episodic_memory')).rows[0].owner, 'local');
  await assert.rejects(ann.query('SELECT FROM daybook.api_keys'), /permission denied/);
  await assert.rejects(ann.query("SELECT daybook.protect_owned('daybook.lessons')"), /permission denied/);
  await ann.end();
}

test('a dump restores into an empty database of a fresh cluster, with every row', async () => {
  await fillAll(s.api);
  const asked = [
    (api) => api.post('/v1/episodic/search', { text: 'guidance on margins', as_of: '2026-06-03T00:00:00Z' }, { status: 200 }),
    (api) => api.get('/v1/lessons', { status: 200 }),
    (api) => api.get('/v1/trade_history', { status: 200 }),
  ];
  const answers = [];
  for (const ask of asked) answers.push([ask, (await ask(s.api)).text]);
  assert.match(answers[0][1], /Higher margins/);
  await s.query('SELECT lo_create(0)'); // every role may, and only its owner may read it
  const before = await rowsOf(s.query);
  const custom = join(s.cluster.folder, 'daybook.dump');
  const plain = join(s.cluster.folder, 'daybook.sql');
  await tool(s.cluster, 'pg_dump', [...s.cluster.where, '--format=custom', '--no-owner', '--no-privileges', '--no-blobs', `--file=${custom}`, s.database]);
  await tool(s.cluster, 'pg_dump', [...s.cluster.where, '--no-owner', '--no-privileges', '--no-blobs', `--file=${plain}`, s.database]);

  const one = await another();
  await tool(one, 'createdb', [...one.where, 'daybook']);
  await tool(one, 'pg_restore', [...one.where, '--no-owner', '--no-privileges', '--exit-on-error', '--dbname=daybook', custom]);
  await same(one, 'daybook', before, answers);

  const two = await another();
  await tool(two, 'createdb', [...two.where, 'daybook']);
  await tool(two, 'psql', [...two.where, '--no-psqlrc', '--quiet', '--output=/dev/null', '--set=ON_ERROR_STOP=1', '--single-transaction', `--file=${plain}`, 'daybook']);
  await same(two, 'daybook', before, answers);

  const part = await one.createDatabase('part');
  await tool(one, 'pg_restore', [...one.where, '--no-owner', '--no-privileges', '--section=pre-data', '--section=data', `--dbname=${part}`, custom]);
  for (const start of [['migrate'], ['serve', '--listen', '127.0.0.1:0']]) {
    const { code, stderr } = await command([...start, '--database-url', one.url(part)]);
    assert.equal(code, 1);
    assert.match(stderr, /lacks \d+ of .*the first are: index \w+, index \w+, index \w+;/);
  }
});

test('a dump of the private cluster restores into a fresh cluster, and over its own data', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  await chmod(folder, 0o755); // else root's PostgreSQL, which is another user's, has its socket elsewhere
  const data = join(folder, 'data');
  const open = [() => rm(folder, { recursive: true, force: true })];
  t.after(async () => {
    for (const end of open.reverse()) await end();
  });
  const serve = async () => {
    const service = await startPrivate(data);
    const api = makeClient(service.base);
    let stopped;
    const stop = () => {
      api.close();
      return (stopped ??= service.stop());
    };
    open.push(stop);
    return { api, stop };
  };
  const query = async (sql, values) => {
    const client = new pg.Client({ host: `${data}/socket`, user: 'daybook', database: 'daybook' });
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end();
    }
  };
  const own = async (program, args) => {
    const { code, stderr } = await run(join(binaries(), program), [`--host=${data}/socket`, ...args]);
    assert.equal(code, 0, stderr);
  };
  const first = await serve();
  const { id } = await create(first.api);
  await createEpisode(first.api, { question: 'What did ACME guide to?', answer: 'Higher margins.', created_at: '2026-06-01T00:00:00Z' });
  const before = await rowsOf(query);
  const dump = join(folder, 'daybook.dump');
  await own('pg_dump', ['--username=daybook', '--format=custom', '--no-owner', '--no-privileges', `--file=${dump}`, 'daybook']);
  await chmod(dump, 0o644);

  const one = await another();
  await tool(one, 'createdb', [...one.where, 'daybook']);
  await tool(one, 'pg_restore', [...one.where, '--no-owner', '--no-privileges', '--exit-on-error', '--dbname=daybook', dump]);
  const migrated = await command(['migrate', '--database-url', one.url('daybook')]);
  assert.equal(migrated.code, 0, migrated.stderr);
  assert.deepEqual(await rowsOf((sql, values) => one.query('daybook', sql, values)), before);

  await create(first.api);
  await own('pg_restore', ['--username=daybook_admin', '--clean', '--if-exists', '--single-transaction', '--dbname=daybook', dump]);
  await first.stop();
  const second = await serve();
  assert.deepEqual(await rowsOf(query), before);
  await second.api.get(`/v1/lessons/${id}`, { status: 200 });
  await create(second.api);
});

test('a base backup and the archived log recover to an instant, with all that was acknowledged before it', async (t) => {
  const archive = (folder) => ({ archive_mode: 'on', archive_command: `test ! -f ${folder}/archive/%f && cp %p ${folder}/archive/%f` });
  const cluster = await another({ durable: true });
  await mkdir(join(cluster.folder, 'archive'), { mode: 0o777 });
  await chmod(join(cluster.folder, 'archive'), 0o777);
  await cluster.stop();
  Object.assign(cluster.settings, archive(cluster.folder));
  await cluster.start();
  const database = await cluster.createDatabase('daybook');
  const query = (sql, values) => cluster.query(database, sql, values);
  const service = await startService(cluster.url(database));
  const base = join(cluster.folder, 'base');
  const load = startLoad(() => service.base);
  let target;
  let acknowledged;
  await load.during(async () => {
    await until(() => load.count(201) > 50, 'the load runs');
    await tool(cluster, 'pg_basebackup', [...cluster.where, `--pgdata=${base}`, '--checkpoint=fast', '--wal-method=stream']);
    const begun = load.count(201);
    await until(() => load.count(201) > begun + 500, 'the load runs on');
    acknowledged = load.attempts.filter((a) => a.status === 201).map((a) => a.name);
    [{ target }] = await query('SELECT clock_timestamp()::text AS target');
    await until(() => load.count(201) > acknowledged.length + 100, 'the load runs on');
  });
  await checkWritten(load, query);
  const [{ last }] = await query('SELECT pg_walfile_name(pg_switch_wal()) AS last');
  await until(async () => (await query('SELECT last_archived_wal >= $1 AS done FROM pg_stat_archiver', [last]))[0].done, 'the log is archived');
  await service.stop();
  await cluster.kill();

  await writeFile(join(base, 'recovery.signal'), '');
  const restored = await another({
    durable: true,
    from: base,
    settings: { restore_command: `cp ${cluster.folder}/archive/%f %p`, recovery_target_time: target, recovery_target_action: 'promote' },
  });
  await until(async () => (await restored.query('postgres', 'SELECT pg_is_in_recovery() AS r'))[0].r === false, 'the recovery is over');
  const found = new Set((await restored.query('daybook', "SELECT takeaway FROM daybook.lessons WHERE takeaway LIKE 'writer %'")).map((row) => row.takeaway));
  const lost = acknowledged.filter((name) => !found.has(name));
  assert.deepEqual(lost, [], 'acknowledged before the target, and lost');
  assert.ok(found.size < load.count(201), 'what came after the target is not there');
  const again = await startService(restored.url('daybook'));
  const api = makeClient(again.base);
  await create(api);
  api.close();
  await again.stop();
  t.diagnostic(`${acknowledged.length} writes acknowledged before the target, ${lost.length} lost; ${load.count(201) - acknowledged.length} acknowledged after it`);
});
