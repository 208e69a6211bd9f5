// The HTTP client of the tests: returns raw status, headers and bytes, and checks every response against the contract.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { gunzipSync } from 'node:zlib';
import { checkAnswer } from './contract.mjs';

/** A response. `bytes` are as received, `text` is decompressed; `json` is parsed on demand. Integers above 2^53 and long decimals lose digits there: use `text`. */
function answerOf(status, headers, bytes) {
  const compressed = headers['content-encoding'] === 'gzip' && bytes.length > 0;
  const text = (compressed ? gunzipSync(bytes) : bytes).toString('utf8');
  const answer = { status, headers, bytes, text };
  return Object.defineProperty(answer, 'json', { get: () => JSON.parse(text) });
}

/**
 * Returns `api(method, path, {body, headers, status, check})`.
 * body: text or bytes are sent unchanged, anything else as JSON. headers: undefined removes a header. status: the expected status.
 */
export function makeClient(base, { headers: common = {}, agent = new http.Agent({ keepAlive: true }), check: checks = true } = {}) {
  const api = async (method, path, { body, headers = {}, status, check = checks } = {}) => {
    const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    const sent = raw ? body : JSON.stringify(body);
    const all = {
      ...(sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }),
      ...common,
      ...headers,
    };
    const answer = await new Promise((resolve, reject) => {
      const request = http.request(base + path, {
        method,
        agent,
        headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve(answerOf(response.statusCode, response.headers, Buffer.concat(chunks))));
      });
      request.end(sent);
    });
    if (check) checkAnswer({ method, path, requestText: sent?.toString(), ...answer });
    if (status !== undefined) assert.equal(answer.status, status, `${method} ${path}: ${answer.text.slice(0, 1000)}`);
    return answer;
  };
  return Object.assign(api, {
    get: (path, options) => api('GET', path, options),
    post: (path, body, options) => api('POST', path, { ...options, body }),
    as: (key) => makeClient(base, { headers: { ...common, authorization: `Bearer ${key}` }, check: checks }),
    close: () => agent.destroy(),
  });
}

/** Sends bytes on a new connection and reads to the end; returns the first response (`received`: all bytes), or null without one. */
export function exchange(port, bytes, { method, path } = {}) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error) => (chunks.length ? finish() : error.code === 'ECONNRESET' ? resolve(null) : reject(error)));
    socket.on('close', () => finish());
    const finish = () => {
      const all = Buffer.concat(chunks);
      const split = all.indexOf('\r\n\r\n');
      if (split < 0) return resolve(null);
      const [start, ...lines] = all.subarray(0, split).toString('latin1').split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
      );
      const answer = answerOf(
        Number(start.split(' ')[1]),
        headers,
        all.subarray(split + 4, split + 4 + Number(headers['content-length'] ?? Infinity)),
      );
      if (method) checkAnswer({ method, path, ...answer });
      resolve(Object.assign(answer, { received: all }));
    };
  });
}
