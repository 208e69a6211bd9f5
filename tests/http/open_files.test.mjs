// The service raises its limit of open files, and warns at start if that is less than it may need.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { suite } from '../lib/suite.mjs';

const s = suite();
const SETTINGS = ['--loops', '2', '--write-connections', '3', '--slow-connections', '2'];
const NEEDED = (connections) => 2 * connections + 2 * 160 + 2 * (1 + 3 + 2) + 64;

/** Starts a service with these limits and settings. Returns its soft limit and its warnings. */
async function startWith(soft, hard, args) {
  const service = await s.another({ args: [...SETTINGS, ...args], wrapper: ['prlimit', `--nofile=${soft}:${hard}`] });
  const [, limit] = readFileSync(`/proc/${service.pid}/limits`, 'utf8').match(/^Max open files +(\d+)/m);
  await service.stop();
  return { limit: Number(limit), warnings: service.log.split('\n').filter((line) => line.includes(' open_files_limited ')) };
}

test('the soft limit is raised to the hard one, and there is no warning if that suffices', async () => {
  const hard = NEEDED(1000);
  assert.deepEqual(await startWith(100, hard, ['--max-connections', '1000']), { limit: hard, warnings: [] });
});

test('a limit that is too low is logged once, with both numbers and what to do', async () => {
  const hard = NEEDED(1000) - 1;
  const { limit, warnings } = await startWith(100, hard, ['--max-connections', '1000']);
  assert.equal(limit, hard);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], new RegExp(` warn open_files_limited limit=${hard} needed=${hard + 1} advice="raise .*LimitNOFILE.* or lower --max-connections"$`));
});

test('fewer client or database connections need fewer files', async () => {
  const hard = NEEDED(1000) - 1;
  assert.deepEqual((await startWith(hard, hard, ['--max-connections', '999'])).warnings, []);
  assert.deepEqual((await startWith(hard, hard, ['--max-connections', '1000', '--max-db-connections', '10'])).warnings, []);
});
