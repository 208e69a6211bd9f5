// Behind nginx with docker/nginx.conf: headers, streams, uploads and the limit per client work as without it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import tls from 'node:tls';
import { certificates } from '../lib/certificates.mjs';
import { makeClient } from '../lib/client.mjs';
import { fill, metric } from '../lib/faults.mjs';
import { ROOT } from '../lib/paths.mjs';
import { ended, eventually, start, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const LIMIT = 3;
const certs = await certificates();
const { cert, key } = await certs.selfSigned('proxy');
const s = suite({ args: ['--trusted-proxies', '127.0.0.1', '--max-connections-per-address', String(LIMIT)] });
/** A port that is free now; somebody may take it before nginx does. */
const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const free = server.address().port;
      server.close(() => resolve(free));
    });
  });
let nginx, api, port;

/** Runs nginx with the committed configuration: only its ports and paths are replaced. */
async function startNginx(tries = 5) {
  port = await freePort();
  const site = readFileSync(join(ROOT, 'docker/nginx.conf'), 'utf8')
    .replace('127.0.0.1:8080', `127.0.0.1:${s.service.port}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replace('desk.example', 'localhost')
    .replace('/etc/daybook/cert.pem', cert)
    .replace('/etc/daybook/key.pem', key);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${certs.at(name)};`).join('\n');
  const main = `daemon off; master_process off; pid ${certs.at('pid')}; error_log stderr; events {}\nhttp { access_log off;\n${paths}\n${site}}\n`;
  await mkdir(certs.at('client_body'), { recursive: true });
  await writeFile(certs.at('nginx.conf'), main);
  nginx = start('/usr/sbin/nginx', ['-e', 'stderr', '-c', certs.at('nginx.conf')]);
  nginx.ended = ended(nginx);
  nginx.stdout.resume();
  nginx.stderr.setEncoding('utf8').on('data', (text) => (nginx.log = (nginx.log ?? '') + text));
  const taken = () => nginx.exitCode !== null && /Address already in use/.test(nginx.log);
  api = makeClient(`https://localhost:${port}`, { agent: new https.Agent({ keepAlive: true, servername: 'localhost', ca: readFileSync(cert) }) });
  await until(async () => {
    if (taken()) return true;
    assert.equal(nginx.exitCode, null, nginx.log);
    return (await api.get('/health/ready').catch(() => null))?.status === 200;
  }, 'nginx serves');
  if (taken() && tries > 1) await startNginx(tries - 1);
}

after(async () => {
  api?.close();
  nginx?.kill('SIGTERM');
  await nginx?.ended;
  await certs.close();
});

/** Opens a connection from `address` and sends the head of an upload and the start of its body. */
const upload = (address, bytes = '{') =>
  new Promise((resolve, reject) => {
    const socket = tls.connect({ port, host: '127.0.0.1', localAddress: address, servername: 'localhost', ca: readFileSync(cert) });
    socket.on('error', reject).on('secureConnect', () => {
      socket.write(`POST /v1/episodic/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000000\r\n\r\n${bytes}`);
      resolve(socket);
    });
  });

test('the committed configuration works', { skip: !existsSync('/usr/sbin/nginx') && 'nginx is not installed' }, async (t) => {
  await startNginx();
  await t.test('the request id, the host and the keyless checks pass through', async () => {
    const answer = await api.get('/v1/lessons?limit=1', { status: 200, headers: { 'x-request-id': 'mine-1' } });
    assert.equal(answer.headers['x-request-id'], 'mine-1');
    await api.get('/v1/lessons', { status: 421, headers: { host: 'evil.example' } });
    await api.get('/metrics', { status: 404, check: false });
  });

  await t.test('connections to the service are kept', async () => {
    for (let i = 0; i < 40; i++) await api.get('/v1/lessons?limit=1', { status: 200 });
    assert.ok((await metric(s.api, 'daybook_connections')) < 20);
  });

  await t.test('an upload reaches the service before it is complete, and a client has the limit of an address', async () => {
    const sockets = [];
    for (let i = 0; i < LIMIT; i++) sockets.push(await upload('127.0.0.2'));
    await until(async () => (await metric(s.api, 'daybook_requests_in_flight')) >= LIMIT, 'they have begun');
    const rejected = await upload('127.0.0.2');
    const [bytes] = await eventually(new Promise((resolve) => rejected.once('data', (chunk) => resolve([chunk]))), 'the reply');
    assert.match(bytes.toString(), /^HTTP\/1\.1 429 /);
    const other = await upload('127.0.0.3');
    await until(async () => (await metric(s.api, 'daybook_requests_in_flight')) >= LIMIT + 1, 'another client is served');
    for (const socket of [...sockets, rejected, other]) socket.destroy();
    await until(async () => (await metric(s.api, 'daybook_requests_in_flight')) <= 1, 'the service notices that they have gone');
  });

  await t.test('an export is passed on whole', async () => {
    await fill(s.query, 200, 16_000);
    const { text } = await api.get('/v1/lessons/export?format=jsonl&tags=filled', { status: 200, check: false });
    assert.equal(text.trimEnd().split('\n').length, 200);
  });
});
