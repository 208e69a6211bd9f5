// The README's five-minute tour works as it is written.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { README } from '../lib/paths.mjs';
import { run, within } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

/** The sh blocks between the heading of the tour and the next heading of its level. */
function tour() {
  const [, section] = readFileSync(README, 'utf8').match(/^## [^\n]*five-minute tour[^\n]*\n(.*?)(?=^## |$(?![^]))/ims) ?? [];
  assert.ok(section, 'the README has no section "Five-minute tour"');
  const blocks = [...section.matchAll(/^```(?:sh|bash)\n(.*?)^```$/gms)].map(([, block]) => block);
  // What starts the service is not run again: one is running.
  return blocks.filter((block) => !/^\s*(?:\.\/run|git clone|cd )/m.test(block));
}

/* A curl of the tour either has -f and succeeds, or shows a refusal. Without -f curl exits with 0 on an HTTP error too. */
const CURL = `
curl() {
  local word
  for word; do
    case $word in
    --fail | --fail-with-body | -[!-]*f* | -f*) command curl --show-error --max-time 20 "$@"; return ;;
    esac
  done
  command curl --fail-with-body --max-time 20 "$@" && echo "a curl without -f was not refused: $*" >&2 && return 1
  [ $? = 22 ]
}
`;

test('every command of the tour succeeds, in one shell', async () => {
  const blocks = tour();
  assert.ok(
    blocks.some((block) => block.includes('curl')),
    'the tour has no curl',
  );
  const script = `set -euo pipefail\n${CURL}\n${blocks.join('\n')}`;
  const { code, stdout, stderr } = await within(
    120_000,
    run('bash', ['-c', script], { env: { ...process.env, DAYBOOK: s.service.base } }),
    'the tour',
  );
  assert.equal(code, 0, `${stderr}\n${stdout}`.slice(-4000));
});

test('the tour leaves lessons behind', async () => {
  assert.ok((await s.api.get('/v1/lessons', { status: 200 })).json.items.length > 0);
});

test('the hashes of lessons in the README are what another implementation computes', () => {
  const rows = [...readFileSync(README, 'utf8').matchAll(/^\| `(".*")` \| `([0-9a-f]{16})` \|$/gm)];
  assert.ok(rows.length >= 6, 'the README has no table of hashes');
  for (const [, text, hash] of rows) {
    const plain = JSON.parse(text).replace(/\p{White_Space}+/gu, ' ').replace(/^ | $/g, '');
    assert.equal(createHash('sha256').update(plain, 'utf8').digest('hex').slice(0, 16), hash, text);
  }
});
