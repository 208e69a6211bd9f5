// The checklist for a new resource in CONTRIBUTING.md is complete: a copy of the tree with exactly those files added for
// a toy resource builds, starts and passes its tests.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { CACHE, ROOT, TESTS } from '../lib/paths.mjs';
import { run } from '../lib/processes.mjs';
import { read } from './guides.mjs';
import { edits } from './toy/edits.mjs';

const TOY = join(TESTS, 'tour/toy');
const MIGRATION = 'migrations/NNNN_labels.sql';

/** The files that the toy resource adds, as paths in the tree. */
const added = readdirSync(TOY, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== 'edits.mjs')
  .map((entry) => join(entry.parentPath, entry.name).slice(TOY.length + 1));

const copy = mkdtempSync(join(tmpdir(), 'daybook-contributing-'));
after(() => rmSync(copy, { recursive: true, force: true }));

/** Runs a command in the copy; it must succeed. */
async function inCopy(command, args, env = {}) {
  const { code, stdout, stderr } = await run(command, args, { cwd: copy, env: { ...process.env, ...env } });
  assert.equal(code, 0, `${command} ${args.join(' ')}\n${(stdout + stderr).slice(-6000)}`);
  return stdout;
}

/** Copies the working tree, changed and new files included; installed packages and build output are shared. */
async function copyTree() {
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  for (const file of stdout.split('\0').filter((name) => name && name !== 'tests/node_modules'))
    cpSync(join(ROOT, file), join(copy, file), { recursive: true, force: true });
  symlinkSync(join(TESTS, 'node_modules'), join(copy, 'tests/node_modules'));
  mkdirSync(CACHE, { recursive: true });
  mkdirSync(join(copy, 'build/test'), { recursive: true });
  symlinkSync(CACHE, join(copy, 'build/test/kept'));
}

/** The path of a toy file in the copy; its migration gets the next number. */
function placeOf(file) {
  if (file !== MIGRATION) return file;
  const last = Math.max(...readdirSync(join(copy, 'migrations')).map((name) => parseInt(name, 10)));
  return file.replace('NNNN', String(last + 1).padStart(4, '0'));
}

function applyToy() {
  for (const file of added) {
    const to = join(copy, placeOf(file));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(TOY, file), to);
  }
  for (const { file, after: mark, lines } of edits) {
    const all = readFileSync(join(copy, file), 'utf8').split('\n');
    const at = all.findLastIndex((line) => mark.test(line));
    assert.ok(at >= 0, `${file} has no line ${mark}`);
    all.splice(at + 1, 0, ...lines);
    writeFileSync(join(copy, file), all.join('\n'));
  }
}

test('the checklist in CONTRIBUTING.md names exactly the files that the toy resource touches', () => {
  const [, section] = read('CONTRIBUTING.md').match(/^## Add a resource\n(.*?)(?=^## )/ms) ?? [];
  assert.ok(section, 'CONTRIBUTING.md has no section "Add a resource"');
  const steps = [...section.matchAll(/^\d+\. \*\*`([^`]+)`\*\*/gm)].map(([, file]) => file);
  assert.deepEqual(steps.sort(), [...new Set([...added, ...edits.map(({ file }) => file)])].sort());
});

test('a resource that follows the checklist builds, isolates owners, matches the contract and works', async () => {
  await copyTree();
  applyToy();
  await inCopy(process.execPath, ['tests/lib/generate.mjs']);

  const build = join(copy, 'build/toy');
  const { code: noCcache } = await run('sh', ['-c', 'command -v ccache']);
  const launcher = noCcache ? [] : ['-DCMAKE_C_COMPILER_LAUNCHER=ccache'];
  const options = ['-DCMAKE_BUILD_TYPE=Debug', '-DDAYBOOK_TESTS=ON', '-DDAYBOOK_WERROR=ON', '-DDAYBOOK_COMMIT=toy', ...launcher];
  await inCopy('cmake', ['-S', copy, '-B', build, ...options]);
  const targets = ['daybookd', 'db_test_rls', 'db_test_statements'];
  await inCopy('cmake', ['--build', build, '--parallel', String(availableParallelism()), '--target', ...targets], {
    CCACHE_BASEDIR: copy,
    CCACHE_NOHASHDIR: '1',
  });

  const env = { DAYBOOK_ROOT: copy, DAYBOOKD: join(build, 'daybookd') };
  await inCopy(join(build, 'db_test_rls'), [], env);
  await inCopy(join(build, 'db_test_statements'), [], env);
  // The external linters and testers are slow, and the toy resource would not change their findings.
  const node = ['--test', '--test-skip-pattern=/Specmatic|Spectral|Redocly/'];
  const contract = await inCopy(process.execPath, [...node, 'tests/contract/contract.test.mjs'], { ...env, NODE_TEST_CONTEXT: undefined });
  assert.match(contract, /pass [1-9]/);
  const labels = await inCopy(process.execPath, [...node, 'tests/http/labels.test.mjs'], { ...env, NODE_TEST_CONTEXT: undefined });
  assert.match(labels, /pass 6\b/);
});
