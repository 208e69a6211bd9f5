// Secrets are read from files and are not visible in the command line. The metrics may need a key.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { until } from '../lib/processes.mjs';
import { command, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const folder = await mkdtemp(join(tmpdir(), 'daybook-secrets-'));
after(() => rm(folder, { recursive: true, force: true }));

/** Writes a file that only its user may read. */
async function file(name, text, mode = 0o600) {
  const path = join(folder, name);
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

const commandLine = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1');
/** The URL of the database, with a password that the server does not ask for. */
const withPassword = () => `${s.url}${s.url.includes('?') ? '&' : '?'}password=hunter2`;

async function using(options, work, url = s.url) {
  const service = await startService(url, options);
  const api = makeClient(service.base);
  try {
    await work(service, api);
  } finally {
    api.close();
    await service.stop();
  }
}

test('secrets on the command line are overwritten, with a warning', async () => {
  const args = ['--metrics-key=hunter3'];
  await using({ args }, async (service, api) => {
    await api.get('/health/ready', { status: 200 });
    const seen = commandLine(service.pid);
    assert.doesNotMatch(seen, /hunter/);
    assert.match(seen, /--database-url\0\*+\0/);
    assert.match(seen, /--metrics-key=\*+\0/);
    for (const option of ['database-url', 'metrics-key'])
      assert.match(service.log, new RegExp(`warn secret_on_command_line option=--${option} `));
    assert.doesNotMatch(service.log, /hunter/);
  }, withPassword());
});

test('a URL without a password stays readable and gives no warning', async () => {
  assert.ok(commandLine(s.service.pid).includes(s.url));
  assert.doesNotMatch(s.service.log, /secret_on_command_line/);
});

test('the database URL and the other secrets may be in files', async () => {
  const key = await file('loose', '  s3cret\n', 0o644);
  const url = await file('url', `${withPassword()}\n`);
  const env = { DAYBOOK_METRICS_KEY_FILE: key };
  const given = await command(['migrate'], { env: { DAYBOOK_DATABASE_URL_FILE: url } });
  assert.equal(given.code, 0, given.stderr);
  await using({ env }, async (service, api) => {
    await api.get('/metrics', { status: 401 });
    await api.get('/metrics', { status: 200, headers: { authorization: 'Bearer s3cret' } });
    assert.match(service.log, /warn secret_readable file="[^"]*loose"/);
  });
});

test('files that hold no secret, and a secret given twice, are rejected', async () => {
  const cases = [
    [await file('empty', ' \n'), /must hold one line/],
    [await file('lines', 'a\nb\n'), /must hold one line/],
    [await file('nul', 'a\0b'), /must hold one line/],
    [join(folder, 'none'), /--database-url-file: cannot read .*none: No such file/],
  ];
  for (const [path, why] of cases) {
    const { code, stderr } = await command(['migrate', '--database-url-file', path]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, why);
  }
  const twice = await command(['migrate', '--database-url', 'x', '--database-url-file', cases[0][0]]);
  assert.equal(twice.code, 2);
  assert.match(twice.stderr, /give one of them/);
});

test('/metrics with a key of its own is for that key only', async () => {
  await using({ args: ['--metrics-key-file', await file('scrape', 's3cret')] }, async (service, api) => {
    assert.doesNotMatch(service.log, /secret_readable/);
    const { json, headers } = await api.get('/metrics', { status: 401 });
    assert.equal(json.code, 'unauthenticated');
    assert.match(headers['www-authenticate'], /^Bearer/);
    for (const authorization of ['Bearer s3cre', 'Bearer s3cret2', 'Basic s3cret', 'Bearer '])
      await api.get('/metrics', { status: 401, headers: { authorization } });
    const { text } = await api.get('/metrics', { status: 200, headers: { authorization: 'Bearer s3cret' } });
    assert.match(text, /^daybook_info/m);
    await api.get('/health/ready', { status: 200 });
  });
});

test('wrong metrics keys are limited and counted as unknown keys are, and the right one is not hurt', async () => {
  await using({ args: ['--metrics-key-file', await file('scrape', 's3cret'), '--max-failed-keys', '1'] }, async (service, api) => {
    const get = (key) => api.get('/metrics', { headers: { authorization: `Bearer ${key}` } });
    assert.equal((await get('guess')).status, 401);
    assert.equal((await get('guess2')).json.code, 'too_many_failed_keys');
    const { status, text } = await get('s3cret');
    assert.equal(status, 200);
    assert.match(text, /^daybook_keys_rejected_total\{reason="unknown"\} 1$/m);
    await until(() => / key_rejected /.test(service.log), 'it is logged');
  });
});

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

test('a password comes from the passfile, its variable or a service file', async () => {
  const port = await freePort();
  await chmod(folder, 0o755); // the server runs as another user
  const cluster = await startCluster({ tcp: port, settings: { hba_file: await file('hba', 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n', 0o644) } });
  try {
    const database = await cluster.createDatabase();
    await cluster.query(database, "CREATE ROLE desk SUPERUSER LOGIN PASSWORD 'hunter5'");
    const passfile = await file('passfile', `127.0.0.1:${port}:*:desk:hunter5\n`);
    const services = await file('services', `[daybook]\nhost=127.0.0.1\nport=${port}\nuser=desk\npassword=hunter5\ndbname=${database}\n`);
    const url = `postgresql://desk@127.0.0.1:${port}/${database}`;
    const refused = await command(['migrate', '--database-url', url], { env: { HOME: folder } });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /password/);
    for (const [given, env] of [
      [`${url}?passfile=${passfile}`, {}],
      [url, { PGPASSFILE: passfile }],
      ['service=daybook', { PGSERVICEFILE: services }],
    ])
      await using({ env }, async (service, api) => {
        await api.get('/health/ready', { status: 200 });
        assert.doesNotMatch(commandLine(service.pid), /hunter/);
        assert.doesNotMatch(service.log, /secret_on_command_line/);
      }, given);
  } finally {
    await cluster.close();
  }
});
