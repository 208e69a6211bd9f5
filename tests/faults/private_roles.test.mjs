// The roles of the private cluster: the service is no superuser, readers see one owner, and older clusters are changed.
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { startPrivate } from '../lib/faults.mjs';
import { create, everyItem } from '../lib/lessons.mjs';
import { run } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';
import { blocks, read } from '../tour/guides.mjs';

let folder;
const open = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dbk-'));
  await chmod(folder, 0o755); // else root's PostgreSQL, which is another user's, has its socket elsewhere
});
after(async () => {
  for (const end of open.reverse()) await end();
  await rm(folder, { recursive: true, force: true });
});

/** A service with a private cluster in that folder, and its client. */
async function privateService(name) {
  const data = join(folder, name);
  const service = await startPrivate(data);
  const api = makeClient(service.base);
  let running = true;
  const stop = async () => {
    api.close();
    if (running) await service.stop();
    running = false;
  };
  open.push(stop);
  return { data, service, api, stop };
}

/** Runs statements as a role over the socket; returns the rows of the last. */
async function query(data, user, sql, password) {
  const client = new pg.Client({ host: `${data}/socket`, user, password, database: 'daybook' });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

const ATTRIBUTES = 'rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls';
const roleOf = async (data, name) => (await query(data, 'daybook', `select ${ATTRIBUTES} from pg_roles where rolname = '${name}'`))[0];
const NONE = { rolsuper: false, rolcreatedb: false, rolcreaterole: false, rolreplication: false, rolbypassrls: false };

/** Objects of the schema that belong neither to the service nor to an extension. */
const FOREIGN = `
  select oid::regclass::text as name from pg_class c where relnamespace = 'daybook'::regnamespace and relowner <> 'daybook'::regrole
    and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
  union all
  select oid::regprocedure::text from pg_proc p where pronamespace = 'daybook'::regnamespace and proowner <> 'daybook'::regrole
    and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')
  union all
  select nspname from pg_namespace where nspname = 'daybook' and nspowner <> 'daybook'::regrole
  union all
  select datname from pg_database where datname = 'daybook' and datdba <> 'daybook'::regrole`;

test('the service is no superuser, owns its schema, and cannot become more', async () => {
  const { data, service, api } = await privateService('new');
  await create(api);
  assert.deepEqual(await roleOf(data, 'daybook'), NONE);
  assert.equal((await roleOf(data, 'daybook_admin')).rolsuper, true);
  assert.deepEqual(await query(data, 'daybook', FOREIGN), []);
  const NO_RIGHT = { code: '42501' };
  for (const sql of [
    'set role daybook_admin',
    'set session authorization daybook_admin',
    'alter role daybook superuser',
    'create role more superuser',
    "copy (select 1) to program 'true'",
    "select pg_read_file('pg_hba.conf')",
    "alter system set log_statement = 'all'",
  ])
    await assert.rejects(query(data, 'daybook', sql), NO_RIGHT, sql);
  assert.doesNotMatch(service.log, /permission denied/);
});

test('a reader logs in as the guide says, and sees the rows of its owner only', async () => {
  const { data, api, stop } = await privateService('read');
  const key = async (owner) => {
    const made = await command(['key', 'create', '--owner', owner, '--role', 'agent', '--data', data]);
    assert.equal(made.code, 0, made.stderr);
    return api.as(made.stdout.trim());
  };
  for (const owner of ['desk-1', 'desk-2']) {
    const client = await key(owner);
    open.push(() => client.close());
    for (;;) {
      const answer = await client.get('/v1/lessons', { check: false });
      if (answer.status === 200) break; // the service reads the keys again every second
    }
    await create(client, { takeaway: `of ${owner}` });
  }

  const section = read('docs/operations.md').split('## Reading with SQL')[1].split('\n## ')[0];
  const [admin, sql, reader] = blocks(section).map(({ code }) => code.replaceAll('DIR', data).replace(/^\$ /, '').trim());
  const password = sql.match(/password '([^']+)'/)[1];
  const shell = (line, secret, input) =>
    run('bash', ['-c', input ? `${line} --set ON_ERROR_STOP=1 <<'END'\n${input}\nEND` : line], { env: { PATH: process.env.PATH, PGPASSWORD: secret } });
  const made = await shell(admin, '', sql);
  assert.equal(made.code, 0, made.stderr);
  const seen = await shell(reader, password);
  assert.equal(seen.code, 0, seen.stderr);
  assert.match(seen.stdout, /of desk-1/);
  assert.doesNotMatch(seen.stdout, /of desk-2/);

  assert.notEqual((await shell(reader, 'a wrong one')).code, 0);
  const as = (text) => query(data, 'alice', text, password);
  assert.deepEqual(await as('select distinct owner from daybook.lessons'), [{ owner: 'desk-1' }]);
  for (const text of ['select from daybook.api_keys', 'delete from daybook.lessons', 'set role daybook'])
    await assert.rejects(as(text), { code: '42501' }, text);
  await assert.rejects(query(data, 'postgres', 'select 1'), { code: '28000' });
  await stop();
});

test('the cluster of an older version, where the service was the superuser, is changed and keeps its data', async () => {
  // As initdb -U daybook made it, with the schema and the extensions of that superuser.
  const cluster = await startCluster({ durable: true });
  await cluster.query('postgres', 'create role renamer superuser login');
  const renamer = await cluster.connect('postgres', 'renamer');
  await renamer.query('alter role postgres rename to daybook');
  await renamer.query('create database daybook owner daybook');
  await renamer.query('drop role if exists daybook_reader');
  await renamer.end();
  const url = cluster.url('daybook', 'daybook');
  const service = await startService(url);
  const api = makeClient(service.base);
  for (let i = 0; i < 3; i++) await create(api);
  const stored = await everyItem(api, '/v1/lessons');
  api.close();
  await service.stop();
  await cluster.stop();
  const data = join(folder, 'old');
  await mkdir(data);
  const copied = await run('cp', ['-a', join(cluster.folder, 'data'), join(data, 'cluster')]);
  assert.equal(copied.code, 0, copied.stderr);
  await cluster.close();

  const first = await privateService('old');
  assert.match(first.service.log, /info postgres_roles /);
  assert.deepEqual(await roleOf(data, 'daybook'), NONE);
  assert.deepEqual(await query(data, 'daybook', FOREIGN), []);
  assert.deepEqual(await everyItem(first.api, '/v1/lessons'), stored);
  await create(first.api);
  await first.stop();
  const second = await privateService('old');
  assert.doesNotMatch(second.service.log, /postgres_roles/);
  assert.equal((await everyItem(second.api, '/v1/lessons')).length, 4);
});
