// TLS: the certificate and its reload, and the same edge as without TLS.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import https from 'node:https';
import net from 'node:net';
import { after, test } from 'node:test';
import tls from 'node:tls';
import { certificates, options } from '../lib/certificates.mjs';
import { makeClient } from '../lib/client.mjs';
import { closed, connectMany, fill, metric, whileLocked } from '../lib/faults.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { eventually, run, until } from '../lib/processes.mjs';
import { sendRaw } from '../lib/raw.mjs';
import { command } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const certs = await certificates();
const first = await certs.selfSigned('first');
after(() => certs.close());
const s = suite();

const clientOf = (service, cert) => makeClient(service.base, { agent: new https.Agent({ keepAlive: true, ca: readFileSync(cert) }) });

/** Runs `work` with a service over TLS. */
async function withTls(work, { pair = first, args = [] } = {}) {
  const service = await s.another({ args: [...options(pair), ...args] });
  const api = clientOf(service, pair.cert);
  try {
    await work({ service, api });
  } finally {
    api.close();
    await service.stop();
  }
}

const connect = (service, more) => tls.connect({ port: service.port, host: '127.0.0.1', servername: 'localhost', ca: readFileSync(first.cert), ...more });

/** Sends bytes, all at once or a record for each, and returns everything until the server closes. */
const send = (service, bytes, more) => sendRaw(service.port, bytes, { ...more, connect: () => connect(service) });

/** The common name of the certificate that a new handshake gets. */
const presented = (service) =>
  eventually(
    new Promise((resolve, reject) => {
      const socket = connect(service, { rejectUnauthorized: false }).on('error', reject);
      socket.on('secureConnect', () => {
        resolve(socket.getPeerCertificate().subject.CN);
        socket.destroy();
      });
    }),
    'the handshake',
  );

test('requests are served over TLS 1.3 and 1.2 with HTTP/1.1, and not over older versions', async () => {
  await withTls(async ({ service, api }) => {
    assert.match(service.base, /^https:\/\/127\.0\.0\.1:\d+$/);
    const { json } = await api.post('/v1/lessons', newLesson(), { status: 201 });
    await api.get(`/v1/lessons/${json.lesson_id ?? json.id}`, { status: 200 });
    for (const version of ['TLSv1.3', 'TLSv1.2', 'TLSv1.1']) {
      const socket = connect(service, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'], ciphers: 'DEFAULT@SECLEVEL=0' });
      const spoken = await new Promise((resolve) => socket.on('secureConnect', () => resolve(socket.getProtocol())).on('error', () => resolve(null)));
      assert.equal(spoken, version === 'TLSv1.1' ? null : version);
      if (spoken) assert.equal(socket.alpnProtocol, 'http/1.1');
      socket.destroy();
    }
    assert.ok((await metric(api, 'daybook_tls_expiry_seconds')) * 1000 > Date.now());
  });
});

test('daybookd health asks over TLS', async () => {
  await withTls(async ({ service }) => {
    const listen = ['--listen', `127.0.0.1:${service.port}`];
    const asked = await command(['health', ...listen, '--tls-cert', first.cert]);
    assert.equal(asked.code, 0, asked.stderr);
    const plain = await command(['health', ...listen]);
    assert.equal(plain.code, 1);
    assert.match(plain.stderr, /does not answer over HTTP/);
  });
});

test('a client that never finishes its handshake is cut, and plain HTTP gets no answer', async () => {
  await withTls(
    async ({ service, api }) => {
      const hello = Buffer.from('16030100', 'hex');
      const sockets = await connectMany(100, service.port, (i) => (i % 2 ? hello : ''));
      await api.get('/v1/lessons?limit=1', { status: 200 });
      await eventually(Promise.all(sockets.map((socket) => (socket.resume(), closed(socket)))), 'they are cut');
      assert.match(service.log, /connection_cut address=127\.0\.0\.1 reason="the head of the request did not arrive in time" count=1$/m);
      const plain = net.connect({ port: service.port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {});
      plain.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const answer = (await plain.toArray().catch(() => [])).join('');
      assert.doesNotMatch(answer, /HTTP\/1/);
      await until(() => /connection_cut address=127\.0\.0\.2 reason="the TLS handshake was not finished"/.test(service.log), 'the log says why');
    },
    { args: ['--header-timeout-ms', '5000'] },
  );
});

test('a connection that is closed before, during and after the handshake is released at once', async () => {
  await withTls(async ({ service, api }) => {
    await api.get('/version', { status: 200 });
    const before = await metric(api, 'daybook_connections');
    const silent = await connectMany(50, service.port, () => Buffer.from('160301', 'hex'));
    const open = await Promise.all(
      Array.from({ length: 50 }, (_, i) => new Promise((resolve) => {
        const socket = connect(service).on('error', () => {});
        socket.once('secureConnect', () => socket.write(i % 2 ? 'GET /v1/les' : 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{', () => resolve(socket)));
      })),
    );
    silent.forEach((socket, i) => (i % 2 ? socket.destroy() : socket.end()));
    open.forEach((socket, i) => (i % 4 < 2 ? socket.destroy() : socket.end()));
    // The idle time-out is a minute: only noticing the close releases them.
    await until(async () => (await metric(api, 'daybook_connections')) <= before, 'all are released', 30_000);
    for (const socket of [...silent, ...open]) socket.destroy();
  });
});

test('ambiguous requests are rejected, also in one record for each byte', async () => {
  const next = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const post = 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  await withTls(async ({ service }) => {
    for (const bytes of [
      `${post}Content-Length : ${next.length}\r\n\r\n${next}`,
      `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${next}`,
      `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n${next}`,
      `GET /health/live HTTP/1.1\nHost: a\n\n${next}`,
      `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${next}`,
    ])
      for (const slowly of [false, true]) {
        const answer = await send(service, bytes, { slowly });
        assert.match(answer, /^HTTP\/1\.[01] 400 /);
        assert.equal(answer.match(/HTTP\/1\.[01] \d/g).length, 1, 'the rest is not read as a second request');
      }
    const lesson = JSON.stringify(newLesson());
    const bytes = `${next}${post}Content-Length: ${lesson.length}\r\n\r\n${lesson}${next.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`;
    for (const slowly of [false, true])
      assert.deepEqual((await send(service, bytes, { slowly })).match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 201', 'HTTP/1.1 200']);
  });
});

test('bodies and streams larger than any buffer arrive whole', async () => {
  await withTls(async ({ api }) => {
    await fill(s.query, 200, 16_000);
    const { text } = await api.get('/v1/lessons/export?format=jsonl&tags=filled', { status: 200, check: false });
    const lines = text.trimEnd().split('\n').map((line) => JSON.parse(line));
    assert.equal(lines.length, 200);
    assert.ok(text.length > 200 * 16_000);
    const evidence = Array.from({ length: 50 }, (_, i) => `log:${i}-${'x'.repeat(100)}`);
    await api.post('/v1/lessons', { ...newLesson(), evidence: evidence.slice(0, 20) }, { status: 201 });
    const oversize = await api.post('/v1/lessons', { ...newLesson(), context: 'x'.repeat(3_000_000) }, { check: false });
    assert.equal(oversize.status, 413);
  });
});

test('SIGHUP gives new handshakes the new certificate, and open connections stay', async () => {
  const pair = await certs.selfSigned('served');
  await copyFile(pair.cert, certs.at('old.pem'));
  await withTls(
    async ({ service, api }) => {
      await api.get('/version', { status: 200 });
      const open = connect(service, { rejectUnauthorized: false });
      await new Promise((resolve) => open.once('secureConnect', resolve));
      assert.equal(await presented(service), 'served');
      const renewed = await certs.selfSigned('renewed', { days: 3 });
      await copyFile(renewed.cert, pair.cert);
      await copyFile(renewed.key, pair.key);
      service.child.kill('SIGHUP');
      await until(() => /tls_reloaded expires=\d{4}-/.test(service.log), 'it reloads');
      await until(() => /tls_expires_soon file="[^"]*" expires=\S+ days=[23]/.test(service.log), 'it warns');
      assert.equal(await presented(service), 'renewed');
      open.write('GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      assert.match((await open.toArray()).join(''), /^HTTP\/1\.1 200 /);

      await writeFile(pair.cert, 'broken');
      service.child.kill('SIGHUP');
      await until(() => /tls_reload_failed reason="[^"]*holds no certificate[^"]*stays in use"/.test(service.log), 'it says why not');
      await copyFile(first.cert, pair.cert);
      service.child.kill('SIGHUP');
      await until(() => /tls_reload_failed reason="[^"]*does not belong to/.test(service.log), 'it says why not');
      assert.equal(await presented(service), 'renewed');
    },
    { pair },
  );
});

test('reloads while many handshakes are made lose no request', async () => {
  await withTls(async ({ service }) => {
    const seen = () => (service.log.match(/tls_reloaded/g) ?? []).length;
    for (let round = 1; round <= 5; round++) {
      const requests = Array.from({ length: 40 }, () => send(service, 'GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'));
      service.child.kill('SIGHUP');
      for (const answer of await Promise.all(requests)) assert.match(answer, /^HTTP\/1\.1 200 /);
      await until(() => seen() === round, 'it reloads');
    }
  });
});

test('SIGHUP without TLS changes nothing', async () => {
  const service = await s.another();
  const api = makeClient(service.base);
  try {
    service.child.kill('SIGHUP');
    await until(() => /reload reason="without TLS there is nothing to reload"/.test(service.log), 'it says so');
    await api.get('/version', { status: 200 });
    assert.doesNotMatch(await (await api.get('/metrics')).text, /daybook_tls/);
  } finally {
    api.close();
    await service.stop();
  }
});

test('files that cannot be used stop the start with a reason', async () => {
  const [other, expired, client] = [
    await certs.selfSigned('other'),
    await certs.expired('expired'),
    await certs.selfSigned('client', { extensions: ['extendedKeyUsage=clientAuth'] }),
  ];
  const cases = [
    [['--tls-cert', first.cert], /--tls-cert and --tls-key must be given together/],
    [['--tls-key', first.key], /--tls-cert and --tls-key must be given together/],
    [['--tls-cert', certs.at('none.pem'), '--tls-key', first.key], /cannot read .*none\.pem: No such file/],
    [['--tls-cert', first.cert, '--tls-key', certs.folder], /cannot read .*: it is no regular file/],
    [['--tls-cert', '/dev/stdin', '--tls-key', first.key], /cannot read \/dev\/stdin: it is no regular file/],
    [['--tls-cert', first.key, '--tls-key', first.key], /holds no certificate in PEM/],
    [['--tls-cert', first.cert, '--tls-key', first.cert], /holds no private key in PEM/],
    [['--tls-cert', first.cert, '--tls-key', other.key], /does not belong to the certificate/],
    [options(expired), /expired at \d{4}-\d\d-\d\dT/],
    [options(client), /is not for servers/],
  ];
  for (const [args, why] of cases) {
    const { code, stderr } = await command(['serve', '--listen', '127.0.0.1:0', '--database-url', s.url, ...args]);
    assert.equal(code, 1, `${args}: ${stderr}`);
    assert.match(stderr, why);
  }
});

test('a key that everybody may read is reported', async () => {
  const pair = await certs.selfSigned('loose');
  await chmod(pair.key, 0o644);
  await withTls(async ({ service }) => assert.match(service.log, /secret_readable file="[^"]*loose\.key"/), { pair });
});

const PYTHON = 'import ssl, sys, urllib.request as u; print(u.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2])).status)';
const GO = `package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "net/http"; "os")
func main() {
	pem, _ := os.ReadFile(os.Args[2])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	answer, err := client.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	fmt.Println(answer.StatusCode)
}
`;

test('curl, Python, Node and Go verify the certificate and are served', async () => {
  await writeFile(certs.at('client.go'), GO);
  await withTls(async ({ service }) => {
    const url = `https://localhost:${service.port}/health/live`;
    const clients = [
      ['curl', ['-sf', '-o', '/dev/null', '-w', '%{http_code}', '--cacert', first.cert, url]],
      ['python3', ['-c', PYTHON, url, first.cert]],
      [process.execPath, ['-e', `fetch(${JSON.stringify(url)}).then((r) => console.log(r.status))`], { NODE_EXTRA_CA_CERTS: first.cert }],
      ['go', ['run', certs.at('client.go'), url, first.cert], { GOFLAGS: '-mod=mod', GOCACHE: certs.at('go') }],
    ];
    for (const [program, args, env] of clients) {
      const { code, stdout, stderr } = await eventually(run(program, args, { env: { ...process.env, ...env } }), program);
      assert.equal(`${code} ${stdout.trim()}`, '0 200', `${program}: ${stderr}`);
    }
  });
});

test('a client that leaves while its request is worked on releases its connection', async () => {
  await withTls(async ({ service, api }) => {
    const before = await metric(api, 'daybook_connections');
    await whileLocked(s.cluster, s.database, async () => {
      const sockets = Array.from({ length: 10 }, () => connect(service).on('error', () => {}));
      for (const socket of sockets) socket.once('secureConnect', () => socket.write('GET /v1/lessons HTTP/1.1\r\nHost: localhost\r\n\r\n'));
      await until(async () => (await metric(api, 'daybook_requests_in_flight')) >= 10, 'all are worked on');
      for (const socket of sockets) socket.destroy();
      await until(async () => (await metric(api, 'daybook_connections')) <= before, 'all are released', 5_000);
    });
  });
});
