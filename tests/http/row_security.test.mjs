// Row-level security: a database user with read access sees the rows of one owner and can change nothing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { create } from '../lib/lessons.mjs';
import { command, createKey, startService } from '../lib/service.mjs';

let cluster, database, service, ann, eve;

before(async () => {
  cluster = await startCluster();
  database = await cluster.createDatabase();
  const url = cluster.url(database);
  assert.equal((await command(['migrate', '--database-url', url])).code, 0);
  const keys = [await createKey(url, 'alpha', 'agent'), await createKey(url, 'beta', 'agent')];
  service = await startService(url);
  const api = makeClient(service.base);
  for (const { key } of keys) {
    const owner = api.as(key);
    for (let i = 0; i < 3; i++) await create(owner, {}, { headers: { 'idempotency-key': `k${i}` } });
    owner.close();
  }
  await cluster.query(database, 'CREATE ROLE ann LOGIN IN ROLE daybook_reader');
  await cluster.query(database, 'CREATE ROLE eve LOGIN IN ROLE daybook_reader');
  await cluster.query(database, "INSERT INTO daybook.reader_owners VALUES ('ann', 'alpha')");
  ann = await cluster.connect(database, 'ann');
  eve = await cluster.connect(database, 'eve');
});

after(async () => {
  await ann?.end();
  await eve?.end();
  try {
    await service?.stop();
  } finally {
    await cluster?.close();
  }
});

const owners = async (client, sql = 'SELECT owner, count(*)::int AS n FROM daybook.lessons GROUP BY owner') =>
  (await client.query(sql)).rows;
const NO_RIGHT = { code: '42501' };

test('a reader sees only the rows of its owner', async () => {
  assert.deepEqual(await owners(ann), [{ owner: 'alpha', n: 3 }]);
  assert.deepEqual(await owners(ann, "SELECT owner FROM daybook.lessons WHERE owner = 'beta'"), []);
});

test('a reader without an owner sees nothing', async () => {
  assert.deepEqual(await owners(eve), []);
});

test('a reader cannot switch to another owner', async () => {
  for (const sql of [
    'SET ROLE daybook_reader',
    'SET row_security = off',
    "SET search_path = pg_temp, public; CREATE TEMP TABLE reader_owners AS SELECT 'ann'::text AS role_name, 'beta'::text AS owner",
  ]) {
    await ann.query(sql).catch(() => {});
    const seen = await owners(ann).catch(() => []);
    assert.ok(
      seen.every((row) => row.owner === 'alpha'),
      sql,
    );
  }
  await ann.query('RESET ROLE; RESET row_security; RESET search_path');
  await assert.rejects(ann.query("INSERT INTO daybook.reader_owners VALUES ('eve', 'beta')"), NO_RIGHT);
  await assert.rejects(ann.query('SET SESSION AUTHORIZATION postgres'), NO_RIGHT);
});

test("a function in the filter is not called with other owners' rows", async () => {
  await ann.query('CREATE TEMP TABLE seen (takeaway text)');
  await ann.query(
    'CREATE FUNCTION pg_temp.spy(text, text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN INSERT INTO pg_temp.seen VALUES ($1); RETURN true; END $$',
  );
  await ann.query('SELECT id FROM daybook.lessons WHERE pg_temp.spy(owner, takeaway)');
  const { rows } = await ann.query('SELECT DISTINCT takeaway FROM pg_temp.seen');
  assert.deepEqual(rows, [{ takeaway: 'alpha' }]);
});

test('a reader can change nothing', async () => {
  for (const sql of [
    "UPDATE daybook.lessons SET takeaway = 'x'",
    'DELETE FROM daybook.lessons',
    'TRUNCATE daybook.lessons',
    "INSERT INTO daybook.lessons (owner) VALUES ('alpha')",
    'CREATE TABLE daybook.mine (a int)',
    'ALTER TABLE daybook.lessons DISABLE ROW LEVEL SECURITY',
    "SELECT daybook.protect_owned('daybook.lessons')",
  ])
    await assert.rejects(ann.query(sql), NO_RIGHT, sql);
});

test('readers cannot read keys, stored responses or the list of readers', async () => {
  for (const table of ['api_keys', 'idempotency_keys', 'reader_owners'])
    await assert.rejects(ann.query(`SELECT * FROM daybook.${table}`), NO_RIGHT, table);
});

test('every readable table with an owner has row-level security', async () => {
  const open = await cluster.query(
    database,
    `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'owner' AND NOT a.attisdropped
     WHERE c.relnamespace = 'daybook'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND has_table_privilege('daybook_reader', c.oid, 'SELECT')
       AND NOT (c.relrowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))`,
  );
  assert.deepEqual(open, []);
  const [{ n }] = await cluster.query(
    database,
    "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace = 'daybook'::regnamespace AND relrowsecurity",
  );
  assert.ok(n >= 1);
});

test('PUBLIC has no access to the schema', async () => {
  await cluster.query(database, 'CREATE ROLE passer_by LOGIN');
  const client = await cluster.connect(database, 'passer_by');
  await assert.rejects(client.query('SELECT * FROM daybook.lessons'), NO_RIGHT);
  await client.end();
});
