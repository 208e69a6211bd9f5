// Lets Specmatic judge a live service: it makes requests from the contract, good and bad, and checks every answer against it.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openapi } from '../lib/contract.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { BIN } from '../lib/paths.mjs';
import { run, within } from '../lib/processes.mjs';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const LONG_AGO = '0001-01-01T00:00:00Z'; // before any time that Specmatic makes up

/** The contract as Specmatic gets it: without what specmatic-known.json says is left out. */
function simplified() {
  const copy = structuredClone(openapi);
  const { paths, components } = copy;
  const leaveOut = (operation, names) =>
    (operation.parameters = operation.parameters.filter((p) => !names.includes(p.$ref?.split('/').at(-1))));
  for (const item of Object.values(paths))
    for (const operation of Object.values(item)) leaveOut(operation, ['RequestId', 'IfNoneMatch', 'IdempotencyKey', 'Cursor']);
  leaveOut(paths['/v1/lessons'].get, ['TagsAll', 'Since', 'Until']);
  const exported = paths['/v1/lessons/export'].get;
  exported.parameters = [{ ...exported.parameters.find((p) => p.name === 'format'), schema: { type: 'string', enum: ['jsonl'] } }];
  delete exported.responses[200].content['text/markdown'];
  delete paths['/v1/lessons/block'].get.responses[200].content['text/plain'];
  delete paths['/openapi.json'];
  for (const name of ['RequestId', 'IfNoneMatch', 'IdempotencyKey', 'Cursor', 'TagsAll', 'Since', 'Until'])
    delete components.parameters[name];
  delete copy.security;
  return copy;
}

function send(base, { method, path, headers, body }) {
  return new Promise((resolve, reject) => {
    const request = http.request(base + path, { method, headers }, (response) => {
      const chunks = [];
      response
        .on('data', (chunk) => chunks.push(chunk))
        .on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** A list that should have no doubles, without its doubles. */
const distinct = (list) => [...new Set(list)];
function distinctQuery(target) {
  const [path, query] = target.split('?');
  if (!query) return target;
  const pairs = query.split('&');
  const lists = ['tags', 'tags_all'].flatMap((name) => {
    const values = pairs.filter((pair) => pair.startsWith(`${name}=`)).flatMap((pair) => pair.slice(name.length + 1).split(/,|%2C/i));
    return values.length ? [`${name}=${distinct(values).join(',')}`] : [];
  });
  return `${path}?${[...pairs.filter((pair) => !/^tags(_all)?=/.test(pair)), ...lists].join('&')}`;
}
function distinctBody(text) {
  try {
    return JSON.stringify(
      JSON.parse(text, (_, value) => (Array.isArray(value) && value.every((x) => typeof x === 'string') ? distinct(value) : value)),
    );
  } catch {
    return text;
  }
}

/** A proxy that puts a lesson of its own in the place of every UUID that Specmatic makes up, and doubles out of lists. */
async function startProxy(base) {
  const seen = { requests: 0, failures: [] };
  const lesson = async () => {
    const made = await send(base, {
      method: 'POST',
      path: '/v1/lessons',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(newLesson({ at: LONG_AGO })),
    });
    return JSON.parse(made.body).id;
  };
  const withLessons = async (text) => {
    const ids = new Map();
    for (const id of text.match(UUID) ?? []) if (!ids.has(id)) ids.set(id, await lesson());
    return text.replaceAll(UUID, (id) => ids.get(id));
  };
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host, connection, ...headers } = request.headers;
    const sent = { method: request.method, path: distinctQuery(await withLessons(request.url)), headers };
    if (request.method === 'POST') {
      sent.body = distinctBody(await withLessons(Buffer.concat(chunks).toString()));
      headers['content-length'] = Buffer.byteLength(sent.body);
      delete headers['transfer-encoding'];
    }
    const answer = await send(base, sent);
    seen.requests++;
    if (answer.status >= 500) seen.failures.push(`${sent.method} ${sent.path} ${sent.body ?? ''} -> ${answer.status} ${answer.body}`);
    delete answer.headers['transfer-encoding'];
    response
      .writeHead(answer.status, { ...answer.headers, 'content-length': answer.headers['content-length'] ?? answer.body.length })
      .end(answer.body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { seen, base: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** The test cases of Specmatic's JUnit reports: {name, failure}. */
async function cases(folder) {
  const unescape = (text) =>
    text
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&apos;', "'")
      .replaceAll('&#10;', '\n')
      .replaceAll('&amp;', '&');
  const found = [];
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.xml'))) {
    const xml = await readFile(join(folder, file), 'utf8');
    for (const [, attributes, inside] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)) {
      const display = inside?.match(/display-name: (.*)/)?.[1];
      found.push({
        name: unescape(display ?? attributes.match(/name="([^"]*)"/)[1]),
        failure: inside?.match(/<(?:failure|error)[^>]*>(.*?)<\/(?:failure|error)>/s)?.[1],
      });
    }
  }
  return found.map((c) => ({ ...c, failure: c.failure && unescape(c.failure.replace(/<!\[CDATA\[|\]\]>/g, '')) }));
}

/** Runs Specmatic against the service and gives {tests, requests, failures, output}. */
export async function specmatic(base, { seconds = 90 } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'daybook-specmatic-'));
  const proxy = await startProxy(base);
  try {
    await mkdir(join(folder, 'junit'));
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(simplified()));
    const args = ['test', 'openapi.json', `--testBaseURL=${proxy.base}`, '--junitReportDir=junit'];
    const env = {
      ...process.env,
      PATH: `${BIN}:${process.env.PATH}`,
      SPECMATIC_GENERATIVE_TESTS: 'true',
      MAX_TEST_REQUEST_COMBINATIONS: '2',
      IGNORE_INLINE_EXAMPLES: 'true',
      SPECMATIC_DISABLE_TELEMETRY: 'true',
    };
    const { stdout, stderr } = await within(seconds * 1000, run(join(BIN, 'specmatic'), args, { cwd: folder, env }), 'Specmatic');
    return {
      tests: await cases(join(folder, 'junit')),
      requests: proxy.seen.requests,
      failures: proxy.seen.failures,
      output: stdout + stderr,
    };
  } finally {
    proxy.close();
    await rm(folder, { recursive: true, force: true });
  }
}
