// Without any key: owner local, loopback only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { create } from '../lib/lessons.mjs';
import { command, createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

test('without any key, every request belongs to owner local', async () => {
  const { id } = await create(s.api);
  await s.api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }, { status: 200 });
  assert.deepEqual(await s.query('SELECT DISTINCT owner FROM daybook.lessons'), [{ owner: 'local' }]);
});

test('without any key, the service refuses to start on an address that is not loopback', async () => {
  for (const listen of ['0.0.0.0:0', '[::]:0']) {
    const { code, stdout, stderr } = await command(['serve', '--listen', listen, '--database-url', s.url]);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /^daybookd: .*(loopback|key)/m);
  }
});

test('127.0.0.1, other loopback addresses and localhost are allowed', async () => {
  for (const listen of ['127.0.0.1:0', '127.0.0.2:0', 'localhost:0']) {
    const service = await s.another({ listen });
    assert.match(service.base, /^http:\/\/(127\.0\.0\.\d|\[::1\]):\d+$/);
    await service.stop();
  }
});

test('a port in use is reported clearly', async () => {
  const { code, stderr } = await command(['serve', '--listen', `127.0.0.1:${s.service.port}`, '--database-url', s.url]);
  assert.equal(code, 1);
  assert.match(stderr, /^daybookd: .*in use/m);
});

test('an invalid setting is rejected by name', async () => {
  for (const args of [
    ['--listen', 'nowhere'],
    ['--log-format', 'xml'],
    ['--max-body-bytes', 'many'],
    ['--max-body-bytes', '-1'],
    ['--no-such-thing', '1'],
  ]) {
    const { code, stderr } = await command(['serve', '--database-url', s.url, ...args]);
    assert.ok(code === 1 || code === 2);
    assert.match(stderr, new RegExp(`daybookd: .*${args[0]}`), args.join(' '));
  }
});

test('settings may come from the environment, and the command line overrides it', async () => {
  const service = await s.another({
    args: ['--max-json-depth', '5'],
    env: { DAYBOOK_MAX_BODY_BYTES: '2000', DAYBOOK_MAX_JSON_DEPTH: '50' },
  });
  const api = makeClient(service.base);
  await api.post('/v1/lessons', ' '.repeat(2001), { status: 413 });
  assert.equal((await api.post('/v1/lessons', '{"a":[[[[[]]]]]}', { status: 400 })).json.code, 'too_deep');
  api.close();
  await service.stop();
});

test('--version and --help need no database; an unknown command is a usage error', async () => {
  assert.match((await command(['--version'])).stdout, /daybook/i);
  const help = await command(['--help']);
  assert.equal(help.code, 0);
  for (const word of ['serve', 'migrate', 'key', '--listen', '--database-url']) assert.ok(help.stdout.includes(word), word);
  assert.equal((await command(['dance'])).code, 2);
});

test('once a key exists, owner local needs one too', async () => {
  const { key } = await createKey(s.url, 'local', 'agent');
  const service = await s.another({ listen: '0.0.0.0:0' });
  const api = makeClient(`http://127.0.0.1:${service.port}`);
  await api.get('/v1/lessons', { status: 401 });
  const mine = api.as(key);
  assert.equal((await mine.get('/v1/lessons', { status: 200 })).json.items.length, 1);
  mine.close();
  api.close();
  await service.stop();
});
