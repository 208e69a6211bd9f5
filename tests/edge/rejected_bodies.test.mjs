// A client whose large body is rejected gets the problem document, not a reset, whatever its HTTP library is.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connectMany } from '../lib/faults.mjs';
import { run, until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ args: ['--max-bulk-bytes', '20000000'] });
const folder = mkdtempSync(join(tmpdir(), 'daybook-bodies-'));
after(() => rmSync(folder, { recursive: true }));

const file = (name, text) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

const python = file('send.py', `
import http.client, sys
host, path, kind, bytes, chunked = sys.argv[1:6]
body = b'x' * int(bytes)
c = http.client.HTTPConnection(host, timeout=60)
c.request('POST', path, body=iter([body[i:i + 65536] for i in range(0, len(body), 65536)]) if chunked == 'true' else body,
          headers={'Content-Type': kind}, encode_chunked=chunked == 'true')
r = c.getresponse()
print(r.status, r.read().decode())
`);
const go = file('send.go', `
package main

import ("bytes"; "fmt"; "io"; "net/http"; "os"; "strconv")

func main() {
	n, _ := strconv.Atoi(os.Args[4])
	var body io.Reader = bytes.NewReader(bytes.Repeat([]byte("x"), n))
	if os.Args[5] == "true" { body = io.MultiReader(body) }
	r, err := http.Post("http://"+os.Args[1]+os.Args[2], os.Args[3], body)
	if err != nil { fmt.Println("error", err); os.Exit(1) }
	text, _ := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, string(text))
}
`);
before(async () => {
  const built = await run('go', ['build', '-o', join(folder, 'send'), go], { env: { ...process.env, GOCACHE: join(folder, 'cache'), GO111MODULE: 'off', CGO_ENABLED: '0' } });
  assert.equal(built.code, 0, built.stderr);
});

const printed = async (program, args) => {
  const { code, stdout, stderr } = await run(program, args);
  assert.equal(code, 0, `${stdout}${stderr}`);
  return { status: Number(stdout.slice(0, 3)), text: stdout.slice(4) };
};

const CLIENTS = {
  'Python http.client': (...args) => printed('python3', [python, ...args]),
  'Go net/http': (...args) => printed(join(folder, 'send'), args),
  curl: async (host, path, kind, bytes, chunked) => {
    const body = file(`body-${bytes}`, 'x'.repeat(Number(bytes)));
    const more = chunked === 'true' ? ['-H', 'Transfer-Encoding: chunked'] : [];
    const { code, stdout, stderr } = await run('curl', ['-sS', '-i', '-H', `Content-Type: ${kind}`, '-H', 'Expect:', ...more, '--data-binary', `@${body}`, `http://${host}${path}`]);
    assert.equal(code, 0, stderr);
    return { status: Number(stdout.slice(9, 12)), text: stdout.slice(stdout.indexOf('\r\n\r\n') + 4) };
  },
  'Node fetch': async (host, path, kind, bytes, chunked) => {
    const data = new Uint8Array(Number(bytes)).fill(120);
    const body = chunked === 'true' ? new Blob([data]).stream() : data;
    const response = await fetch(`http://${host}${path}`, { method: 'POST', headers: { 'content-type': kind }, body, ...(chunked === 'true' && { duplex: 'half' }) });
    return { status: response.status, text: await response.text() };
  },
};

const CASES = [
  ['a tick of 7 MB', '/v1/deployments/0197c3a2-5f10-7c41-9d0e-3a5b7c9d1e30/ticks', 'application/json', 7_000_000, 413, 'body_too_large'],
  ['a lesson of 40 MB', '/v1/lessons', 'application/json', 40_000_000, 413, 'body_too_large'],
  ['30 MB in another media type', '/v1/lessons', 'text/plain', 30_000_000, 413, 'body_too_large'],
  ['a bulk body of 60 MB', '/v1/episodic/bulk', 'application/x-ndjson', 60_000_000, 413, 'body_too_large'],
  ['7 MB to a path that does not exist', '/v1/nothing', 'application/json', 7_000_000, 404, 'not_found'],
];

for (const [client, send] of Object.entries(CLIENTS))
  for (const [what, path, kind, bytes, status, code] of CASES)
    for (const chunked of [false, true])
      test(`${client} gets the ${status} for ${what}${chunked ? ' in chunks' : ''}`, async () => {
        const answer = await send(new URL(s.service.base).host, path, kind, String(bytes), String(chunked));
        const expected = chunked && kind === 'text/plain' ? [415, 'unsupported_media_type'] : [status, code];
        assert.deepEqual([answer.status, JSON.parse(answer.text).code], expected);
      });

test('a rejected body that never ends is cut, with a log line', async () => {
  const [socket] = await connectMany(1, s.service.port, () => 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
  const chunk = `100000\r\n${'x'.repeat(0x100000)}\r\n`;
  let open = true;
  socket.on('close', () => (open = false));
  for (let i = 0; i < 200 && open; i++) await new Promise((resolve) => socket.write(chunk, resolve));
  await until(() => !open, 'it is cut');
  await until(() => /status=499 .*code=body_too_large/.test(s.service.log), 'the reason is logged');
});
