// Clients that mean no good, each as a row: the bytes that it sends, and how it leaves. None of them needs a key.
import { setTimeout as sleep } from 'node:timers/promises';
import { closed, connectAndSend } from '../lib/faults.mjs';

const HOST = 'Host: localhost\r\n';
const POST = `POST /v1/lessons HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`;
const BULK = `POST /v1/episodic/bulk HTTP/1.1\r\n${HOST}Content-Type: application/x-ndjson\r\n`;

/** `ends`: the service closes the connection; otherwise the client leaves after a moment, by FIN or by reset. */
export const HOSTILE = [
  { name: 'half a request line', bytes: 'GET /v1/less' },
  { name: 'half a head', bytes: `GET /v1/lessons HTTP/1.1\r\n${HOST}X: ` },
  { name: 'half a body', bytes: `${POST}Content-Length: 100\r\n\r\n{` },
  { name: 'half a bulk body', bytes: `${BULK}Content-Length: 1000000\r\n\r\n${'{"a":1}\n'.repeat(10_000)}` },
  { name: 'half a chunk', bytes: `${BULK}Transfer-Encoding: chunked\r\n\r\n1000\r\n{"a":` },
  { name: 'nothing', bytes: '' },
  { name: 'an export that is not read', bytes: `GET /v1/lessons/export?format=jsonl HTTP/1.1\r\n${HOST}\r\n`, unread: true },
  { name: 'many requests whose responses are not read', bytes: `GET /v1/lessons?limit=50 HTTP/1.1\r\n${HOST}\r\n`.repeat(50), unread: true },
  { name: 'a request that leaves at once', bytes: `GET /v1/lessons/curation HTTP/1.1\r\n${HOST}\r\n`, at: 0 },
  { name: 'TLS', bytes: '\x16\x03\x01\x02\x00\x01\x00\x01', ends: true },
  { name: 'a smuggled length', bytes: `${POST}Content-Length : 5\r\n\r\n12345`, ends: true },
  { name: 'two lengths', bytes: `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, ends: true },
  { name: 'lines that end with LF', bytes: 'GET / HTTP/1.1\nHost: localhost\n\n', ends: true },
  { name: 'a malformed chunk', bytes: `${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, ends: true },
  { name: 'trailers', bytes: `${POST}Transfer-Encoding: chunked\r\n\r\n0\r\n${'a:b\r\n'.repeat(100)}\r\n`, ends: true },
  { name: 'a head of 100 KB', bytes: `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n${HOST}\r\n`, ends: true },
  { name: 'cookies', bytes: `GET /v1/lessons?limit=1 HTTP/1.1\r\n${HOST}Connection: close\r\nCookie: ${'a=b;'.repeat(1_700)}\r\n\r\n`, ends: true },
  { name: 'many headers of one name', bytes: `GET /v1/lessons?limit=1 HTTP/1.1\r\n${HOST}Connection: close\r\n${'X-Forwarded-For: 192.0.2.1\r\n'.repeat(50)}\r\n`, ends: true },
  { name: 'an unknown key', bytes: `GET /v1/lessons HTTP/1.1\r\n${HOST}Connection: close\r\nAuthorization: Bearer dbk_unknown\r\n\r\n`, ends: true },
  { name: 'a foreign host', bytes: 'GET /v1/lessons HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n', ends: true },
  { name: 'JSON that is nested too deep', bytes: `${POST}Connection: close\r\nContent-Length: 20000\r\n\r\n${'['.repeat(20_000)}`, ends: true },
  { name: 'a body that is too large', bytes: `${POST}Connection: close\r\nContent-Length: 3000000\r\n\r\n${'x'.repeat(3_000_000)}`, ends: true },
];

/** Sends one of them; returns once its connection is closed. */
export async function attack(port, row, random) {
  const socket = await connectAndSend(port, Buffer.from(row.bytes, 'latin1')).catch(() => null);
  if (!socket) return;
  if (!row.unread) socket.resume();
  if (row.ends) return closed(socket);
  await sleep(row.at ?? random() * 500);
  if (random() < 0.3) socket.resetAndDestroy();
  else if (random() < 0.5) socket.destroy();
  else socket.end(), await sleep(random() * 100), socket.destroy();
  await closed(socket);
}
