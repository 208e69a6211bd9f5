// Upgrades under load: build/asan/daybookd_next is this service with one migration more, which expands the schema.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '../lib/lessons.mjs';
import { daybookd } from '../lib/paths.mjs';
import { ended, eventually, start, until } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';
import { use } from '../lib/upgrades.mjs';

const NEXT = `${daybookd()}_next`;
const s = suite({ args: ['--request-timeout-ms', '60000'] });
const last = async () => (await s.query('SELECT number, name, compatible_from FROM daybook.schema_migrations ORDER BY number DESC LIMIT 1'))[0];

test('a migration that waits behind a long read lets other requests pass, and says whom it waits for', async () => {
  await create(s.api);
  const before = await last();
  const reader = await s.cluster.connect(s.database);
  await reader.query("SET application_name = 'report'; BEGIN");
  await reader.query('SELECT count(*) FROM daybook.lessons');
  const child = start(NEXT, ['migrate', '--database-url', s.url]);
  const end = ended(child);
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (log += text));
  let reads = 0;
  await until(async () => {
    await s.api.get('/v1/lessons', { status: 200 });
    await create(s.api);
    reads++;
    return (log.match(/migration_waits/g) ?? []).length >= 2 || child.exitCode !== null;
  }, 'the migration has tried twice');
  assert.equal(child.exitCode, null, log);
  assert.match(log, /migration_waits migration=\d+_next retry_ms=\d+ reason="a lock on \w+: process \d+ \(report, idle in transaction\) has a transaction open since \d{4}-/);
  assert.deepEqual(await last(), before, 'nothing is applied in part');
  await reader.query('ROLLBACK');
  await reader.end();
  assert.deepEqual(await eventually(end, 'the migration ends'), { code: 0, signal: null }, log);
  assert.match(log, /migrated migration=\d+_next/);
  assert.ok(reads > 0);
});

test('a service of the release before goes on, and restarts, beside a schema that allows it', async () => {
  const { number, compatible_from: from } = await last();
  assert.equal(from, number - 1);
  await use(s.query, s.service.base);
  const restarted = await startService(s.url);
  assert.match(restarted.log, new RegExp(`schema_newer migration=${number} known=${from}`));
  await use(s.query, restarted.base);
  const next = await startService(s.url, { binary: NEXT });
  assert.doesNotMatch(next.log, /schema_newer/);
  await use(s.query, next.base);
  await use(s.query, restarted.base);
  await Promise.all([restarted.stop(), next.stop()]);
  assert.equal((await command(['migrate', '--database-url', s.url])).code, 0);
});

test('it refuses a schema that does not allow it', async () => {
  const { number } = await last();
  for (const value of [number, null]) {
    await s.query('UPDATE daybook.schema_migrations SET compatible_from = $1 WHERE number = $2', [value, number]);
    const { code, stderr } = await command(['migrate', '--database-url', s.url]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^daybookd: the database is at migration ${number}, this binary knows ${number - 1}: use a newer daybookd`, 'm'));
  }
});
