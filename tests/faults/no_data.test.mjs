// Commands with a wrong or missing setting: they say so, and leave nothing behind.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startPrivate } from '../lib/faults.mjs';
import { create } from '../lib/lessons.mjs';
import { command } from '../lib/service.mjs';

const ID = '01890000-0000-7000-8000-000000000000';
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dbk-'));
});
after(() => rm(folder, { recursive: true, force: true }));

test('key with another folder than the one of the service creates nothing', async () => {
  const typo = join(folder, 'deep/typo');
  for (const words of [['create', '--owner', 'desk-1', '--role', 'agent'], ['list'], ['rotate', ID], ['revoke', ID]]) {
    for (const [args, env] of [
      [['--data', typo], {}],
      [[], { DAYBOOK_DATA: typo }],
    ]) {
      const { code, stdout, stderr } = await command(['key', ...words, ...args], { env });
      assert.equal(stderr, `daybookd: there is no Daybook data in ${typo}: start daybookd serve --data ${typo} first, or name another --data\n`);
      assert.equal(code, 1);
      assert.equal(stdout, '');
    }
  }
  assert.deepEqual(readdirSync(folder), []);
});

test('serve checks its settings before it creates a database', async () => {
  const data = join(folder, 'unused');
  for (const [args, message] of [
    [['--listen', '8080'], /--listen 8080: must be ADDRESS:PORT, with a port from 0 to 65535/],
    [['--listen', '127.0.0.1:65536'], /--listen 127.0.0.1:65536: must be ADDRESS:PORT/],
    [['--listen', '127.0.0.1:99999'], /--listen 127.0.0.1:99999: must be ADDRESS:PORT/],
    [['--trusted-proxies', 'proxy'], /--trusted-proxies: "proxy" is not an address or network/],
    [['--cors-origin', 'foo.com/'], /--cors-origin must be an origin such as .*, not "foo.com\/"/],
    [['--cors-origin', 'https://foo.com/'], /--cors-origin must be an origin/],
    [['--allowed-hosts', 'desk,http://x'], /--allowed-hosts: "http:\/\/x" is not a host name/],
    [['--tls-cert', 'absent.pem'], /--tls-cert and --tls-key must be given together/],
    [['--tls-cert', 'absent.pem', '--tls-key', 'absent.pem'], /TLS: .*absent\.pem/],
  ]) {
    const { code, stderr } = await command(['serve', ...args, '--data', data]);
    assert.match(stderr, message);
    assert.ok(code === 1 || code === 2, `${code}`);
  }
  assert.ok(!existsSync(data));
});

test('the hint to create a key names the database, and the first key of another owner is explained', async () => {
  const data = join(folder, 'a b');
  const open = ['serve', '--listen', '0.0.0.0:0', '--data', data];
  const refused = await command(open);
  assert.equal(refused.code, 1);
  assert.ok(refused.stderr.endsWith(`daybookd key create --owner NAME --role agent --data '${data}'\n`), refused.stderr);
  const make = (owner) => command(['key', 'create', '--owner', owner, '--role', 'agent', '--data', data]);
  const service = await startPrivate(data);
  const api = makeClient(service.base);
  await create(api);
  api.close();
  await service.stop();
  assert.match((await make('desk-1')).stderr, /belongs to the owner local, .*--owner local/);
  assert.doesNotMatch((await make('desk-2')).stderr, /owner local/);
});
