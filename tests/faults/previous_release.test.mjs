// The binary from before the newest migration, on the schema after it. It is built from the history, once per commit.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../lib/paths.mjs';
import { run } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';
import { use } from '../lib/upgrades.mjs';

const s = suite();
const newest = readdirSync(join(ROOT, 'migrations')).sort().at(-1);

async function must(program, args, options) {
  const { code, stdout, stderr } = await run(program, args, { cwd: ROOT, ...options });
  assert.equal(code, 0, `${program} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout.trim();
}

const git = (...args) => run('git', ['-c', `safe.directory=${ROOT.replace(/\/$/, '')}`, ...args], { cwd: ROOT });

/** The commit before the one that added the newest migration; undefined without the history. */
async function previousCommit() {
  const added = (await git('log', '-1', '--diff-filter=A', '--format=%H', '--', `migrations/${newest}`)).stdout.trim();
  const { code, stdout } = await git('rev-parse', '--verify', '--quiet', `${added || 'HEAD'}~1`);
  return code === 0 ? stdout.trim() : undefined;
}

/** The folder of its sources, built. */
async function build(commit) {
  const all = join(ROOT, 'build/previous');
  const folder = join(all, commit);
  if (existsSync(join(folder, 'build/release/daybookd'))) return folder;
  await mkdir(all, { recursive: true });
  for (const old of await readdir(all)) await rm(join(all, old), { recursive: true, force: true });
  const made = `${folder}.new`;
  await mkdir(made);
  await must('bash', ['-c', 'set -o pipefail; git -c safe.directory="$PWD" archive "$0" | tar -x -C "$1"', commit, made]);
  await must('tools/build', ['release'], { cwd: made, env: { ...process.env, CC: 'gcc' } });
  await rename(made, folder);
  return folder;
}

test('the release before lives beside the newest migration, or refuses it, as the migration says', async (t) => {
  const commit = await previousCommit();
  if (!commit) return t.skip('the history is not here');
  const folder = await build(commit);
  const known = readdirSync(join(folder, 'migrations')).length;
  const binary = join(folder, 'build/release/daybookd');
  const newer = await s.query('SELECT * FROM daybook.schema_migrations WHERE number > $1 ORDER BY number', [known]);
  assert.ok(newer.length >= 1, 'the newest migration is newer than the release before');
  const allowed = newer.every((row) => row.compatible_from <= known);
  t.diagnostic(`${commit.slice(0, 12)} knows ${known} migrations and ${allowed ? 'may' : 'may not'} serve ${newest}`);
  if (!allowed) {
    const { code, stderr } = await command(['migrate', '--database-url', s.url], { binary });
    assert.equal(code, 1);
    assert.match(stderr, /^daybookd: the database is at migration \d+, this binary knows \d+: use a newer daybookd/m);
    return;
  }
  // A release from before compatible_from refuses every newer schema, so it is not shown what it cannot read.
  const reads = readFileSync(join(folder, 'db/admin_migrate.c'), 'utf8').includes('compatible_from');
  if (!reads) await s.query('DELETE FROM daybook.schema_migrations WHERE number > $1', [known]);
  const previous = await startService(s.url, { binary });
  try {
    await use(s.query, previous.base, { check: false });
    await use(s.query, s.service.base);
    await use(s.query, previous.base, { check: false });
  } finally {
    await previous.stop();
  }
});
