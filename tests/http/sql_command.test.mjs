// `daybookd sql` prints the statements as they are sent to PostgreSQL, for review.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { command } from '../lib/service.mjs';

const statements = async () => {
  const { code, stdout } = await command(['sql', '--list']);
  assert.equal(code, 0);
  return stdout.trimEnd().split('\n').map((line) => line.split(/ {2,}/));
};

test('--list shows every statement with its lane, shape and parameters', async () => {
  const list = await statements();
  assert.ok(list.length > 100);
  for (const [name, lane, shape, params, ...more] of list) {
    assert.match(lane, /^(read|write|slow)$/);
    assert.match(shape, /^(one|list|none)$/);
    // What finds out who the owner is cannot take it.
    const unowned = { key_refresh: 'seconds, after, page', key_find: 'token_hash', unsealed_owner: 'after' }[name];
    if (unowned) assert.equal(params, unowned);
    else if (!['backfill_owner', 'backfill_count'].includes(name)) assert.match(params, /^(-|owner(, \w+)*)$/); // those two find the owners
    assert.deepEqual(more, []);
  }
  assert.deepEqual(list.find(([name]) => name === 'lesson_get'), ['lesson_get', 'read', 'one', 'owner, id, as_of']);
});

test('a name prints the expanded text with numbered parameters', async () => {
  const { code, stdout } = await command(['sql', 'lesson_get']);
  assert.equal(code, 0);
  assert.match(stdout, /^-- lesson_get :read :one: \$1 owner, \$2 id, \$3 as_of\nselect id, at, /);
  assert.match(stdout, /where owner = \$1 and id = \$2::uuid/);
  assert.doesNotMatch(stdout, /\{\w+\}|[^:]:[a-z]+::/);
});

test('a one-row read has a second form for several requests', async () => {
  const { code, stdout } = await command(['sql', 'lesson_get_together']);
  assert.equal(code, 0);
  assert.match(stdout, /unnest\(\$1::text\[\]/);
  assert.match(stdout, /where owner = q\.p1 and id = q\.p2::uuid/);
});

test('the build directory has the same text in one file', async () => {
  const all = await readFile(join(dirname(process.env.DAYBOOKD), 'gen/statements.gen.sql'), 'utf8');
  for (const [name] of await statements()) {
    const { stdout } = await command(['sql', name]);
    assert.ok(all.includes(`${stdout.trimEnd()};\n`), name);
  }
});

test('an unknown name, no name and extra arguments are usage errors', async () => {
  const unknown = await command(['sql', 'lesson_gett']);
  assert.equal(unknown.code, 2);
  assert.equal(unknown.stdout, '');
  assert.match(unknown.stderr, /there is no statement lesson_gett \(see daybookd sql --list\)/);
  for (const words of [[], ['--all'], ['lesson_get', 'lesson_list']]) {
    const { code, stderr } = await command(['sql', ...words]);
    assert.equal(code, 2);
    assert.match(stderr, /daybookd sql --help/);
  }
  const help = await command(['sql', '--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /usage: daybookd sql NAME/);
});
