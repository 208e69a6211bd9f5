// The README and every guide in docs/ work as written: each runs in one shell against a fresh service.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { run, within } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';
import { guides, read, runnable } from './guides.mjs';

let cluster;
before(async () => {
  cluster = await startCluster();
});
after(() => cluster?.close());

/* A curl with -f must succeed. One without -f demonstrates an error: it exits with 0 on an HTTP error too. */
const CURL = `
curl() {
  local word
  for word; do
    case $word in
    --fail | --fail-with-body | -[!-]*f* | -f*) command curl --show-error --max-time 60 "$@"; return ;;
    esac
  done
  command curl --fail-with-body --max-time 60 "$@" && echo "a curl without -f was not refused: $*" >&2 && return 1
  [ $? = 22 ]
}
`;

/** The blocks of a document as one script for bash. */
const script = (blocks) =>
  ['set -euo pipefail', CURL, ...blocks.map(({ language, code }) => (language === 'sh' ? code : `python3 - <<'END_OF_PYTHON'\n${code}END_OF_PYTHON`))].join(
    '\n',
  );

/** Runs the blocks of a document against a fresh service; `check` gets a client and the output of the blocks. */
async function follow(path, check = () => {}) {
  const service = await startService(cluster.url(await cluster.createDatabase()));
  const api = makeClient(service.base);
  try {
    const { code, stdout, stderr } = await within(
      300_000,
      run('bash', ['-c', script(runnable(read(path)))], { env: { ...process.env, DAYBOOK: service.base } }),
      path,
    );
    assert.equal(code, 0, `${path}: ${stderr}\n${stdout}`.slice(-4000));
    await check(api, stdout);
  } finally {
    api.close();
    await service.stop();
  }
}

/** What a document must store or print, apart from the success of every command. */
const promises = {
  'README.md': async (api, printed) => {
    const { items } = (await api.get('/v1/trade_history?status=closed', { status: 200 })).json;
    assert.ok(items.length > 0, 'the loop of the README closes no trade');
    assert.match(printed, /## Recent trades/, 'the loop of the README prints no context');
  },
  'docs/tour.md': async (api) => {
    assert.ok((await api.get('/v1/lessons', { status: 200 })).json.items.length > 0, 'the tour leaves no lessons behind');
  },
};

for (const path of ['README.md', ...guides].filter((path) => runnable(read(path)).length > 0))
  test(`every command of ${path} succeeds, in one shell`, () => follow(path, promises[path]));

test('the README, the tour and most guides have commands to run', () => {
  const withCommands = ['README.md', ...guides].filter((path) => /curl|urllib/.test(runnable(read(path)).map(({ code }) => code).join('')));
  for (const path of Object.keys(promises)) assert.ok(withCommands.includes(path), `${path} calls nothing`);
  assert.ok(withCommands.length >= 10, `only ${withCommands.join(', ')}`);
});

test('the hashes of lessons in the guide are what another implementation computes', () => {
  const rows = [...read('docs/reflection.md').matchAll(/^\| `(".*")` \| `([0-9a-f]{16})` \|$/gm)];
  assert.ok(rows.length >= 6, 'the guide has no table of hashes');
  for (const [, text, hash] of rows) {
    const plain = JSON.parse(text).replace(/\p{White_Space}+/gu, ' ').replace(/^ | $/g, '');
    assert.equal(createHash('sha256').update(plain, 'utf8').digest('hex').slice(0, 16), hash, text);
  }
});
