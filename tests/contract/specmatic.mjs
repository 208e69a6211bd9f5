// Runs Specmatic against a live service: it generates valid and invalid requests from the contract and checks every response against it.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openapi } from '../lib/contract.mjs';
import { newEpisode } from '../lib/episodes.mjs';
import { newVersion } from '../lib/ledger.mjs';
import { newLesson } from '../lib/lessons.mjs';
import { BIN } from '../lib/paths.mjs';
import { run, within } from '../lib/processes.mjs';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const LONG_AGO = '0001-01-01T00:00:00Z'; // before any time that Specmatic generates
const SKILL = { skill_id: 'specmatic', version: 'v1' };
const NAME = '[A-Za-z0-9][A-Za-z0-9_.-]{0,63}';

const TRADE_FILTERS = ['TradeDeployment', 'TradeSkill', 'TradeVersion', 'TradeStatus', 'TradeRegime', 'TradeLessons', 'TradeExitReason'].concat(
  ['EntrySince', 'EntryUntil', 'ExitSince', 'ExitUntil'],
);

const LISTS = [
  ['/v1/memories', ['MemoryKindFilter', 'MemoryStatusFilter', 'AsOf']],
  ['/v1/theses', ['ThesisStatusFilter', 'AsOf']],
  ['/v1/orders', ['action', 'AsOf']],
  ['/v1/memory_retrievals', ['kind', 'AsOf']],
  ['/v1/memory_events', ['after_seq', 'AsOf']],
  ['/v1/memory_events/verify', ['EventDeployment']],
  ['/v1/facts', ['source', 'AsOf']],
];
const WRITES = ['/v1/memories', '/v1/memories/search', '/v1/memories/{id}/retract', '/v1/theses', '/v1/theses/{id}', '/v1/theses/{id}/close'].concat(
  ['/v1/orders', '/v1/orders/{id}/outcome', '/v1/facts/{key}/correct', '/v1/facts/{key}/verify', '/v1/facts/{key}/restore', '/v1/facts/merge', '/v1/facts/decay'],
);

/** The contract for Specmatic, without the parts that specmatic-known.json excludes. */
function simplified() {
  const copy = structuredClone(openapi);
  const { paths, components } = copy;
  const leaveOut = (operation, names) =>
    (operation.parameters = operation.parameters.filter((p) => !names.includes(p.$ref?.split('/').at(-1))));
  for (const item of Object.values(paths))
    for (const operation of Object.values(item)) leaveOut(operation, ['RequestId', 'IfNoneMatch', 'IdempotencyKey', 'Cursor']);
  delete paths['/v1/episodic/search'];
  delete paths['/v1/deployments/{id}/recall'];
  leaveOut(paths['/v1/lessons'].get, ['TagsAll', 'Since', 'Until']);
  for (const { get } of Object.entries(paths).flatMap(([path, item]) => (path.endsWith('/export') ? [item] : []))) {
    get.parameters = [{ name: 'format', in: 'query', required: true, schema: { type: 'string', enum: ['ndjson'] } }];
    get.responses[200].content = { 'application/x-ndjson': get.responses[200].content['application/x-ndjson'] };
  }
  delete paths['/v1/lessons/block'].get.responses[200].content['text/plain'];
  delete paths['/v1/skills/{skill_id}/versions/{version}'].put.responses[200];
  for (const path of ['risk_state', 'context', 'lessons_segment'].map((name) => `/v1/deployments/{id}/${name}`).concat('/v1/decision_snapshots/{id}/context'))
    delete paths[path].get.responses[200].content['text/markdown'];
  const snapshots = paths['/v1/decision_snapshots'].get;
  snapshots.parameters = snapshots.parameters.filter((p) => !['engine_rule', 'action_kind', 'since', 'until'].includes(p.name));
  const notes = paths['/v1/reflection_notes'].get;
  notes.parameters = notes.parameters.filter((p) => !['version', 'scope', 'since', 'until'].includes(p.name));
  delete paths['/v1/reflection_notes/{id}/promote'].post.responses[200];
  for (const path of ['/v1/trade_history', '/v1/trade_history/stats']) leaveOut(paths[path].get, TRADE_FILTERS);
  delete paths['/v1/trade_history/{id}'];
  const compared = paths['/v1/skills/{skill_id}/ab'].get;
  leaveOut(compared, TRADE_FILTERS);
  compared.parameters = compared.parameters.filter((p) => !['since', 'until'].includes(p.name));
  for (const path of ['/v1/deployments/{id}/ticks', '/v1/deployments/{id}/ticks/bulk', '/v1/materialize']) delete paths[path];
  for (const path of ['/v1/episodic/bulk', '/v1/episodic/should_rerun', '/v1/episodic/restore']) delete paths[path];
  delete paths['/v1/episodic'].post;
  const episodes = paths['/v1/episodic'].get;
  episodes.parameters = episodes.parameters.filter((p) => !['source', 'embedding_status', 'since', 'until', 'task_type'].includes(p.name));
  delete paths['/v1/research/step'];
  delete paths['/v1/research/commit'].post.responses[200];
  delete components.schemas.NewResearch.properties.prior_id;
  for (const [path, kept] of LISTS) {
    const { get } = paths[path];
    get.parameters = get.parameters.filter((p) => kept.includes(p.name ?? p.$ref.split('/').at(-1)));
  }
  for (const path of WRITES) for (const method of ['post', 'patch']) delete paths[path][method];
  delete paths['/v1/trade_history/{id}/story'];
  for (const path of ['/v1/facts/{key}', '/v1/facts/{key}/history']) delete paths[path];
  delete paths['/v1/write_policy'].put;
  delete paths['/v1/memory_retrievals/{id}'];
  delete paths['/v1/memory_state'].get.responses[200].content['text/markdown'];
  delete paths['/openapi.json'];
  for (const name of ['RequestId', 'IfNoneMatch', 'IdempotencyKey', 'Cursor', 'TagsAll', 'Since', 'Until', ...TRADE_FILTERS])
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

/** Removes duplicates from lists that must be unique. */
const distinct = (list) => [...new Set(list)];
function distinctQuery(target) {
  const [path, query] = target.split('?');
  if (!query) return target;
  const pairs = query.split('&');
  const lists = ['tags', 'tags_all', 'suppress'].flatMap((name) => {
    const values = pairs.filter((pair) => pair.startsWith(`${name}=`)).flatMap((pair) => pair.slice(name.length + 1).split(/,|%2C/i));
    return values.length ? [`${name}=${distinct(values).join(',')}`] : [];
  });
  return `${path}?${[...pairs.filter((pair) => !/^(tags|tags_all|suppress)=/.test(pair)), ...lists].join('&')}`;
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

/** Replaces generated skill and version names by existing ones where they must exist. */
const withSkill = {
  path: (method, target) =>
    method === 'PUT'
      ? target
      : target
          .replace(new RegExp(`^(/v1/skills/)${NAME}(/versions/)${NAME}(?=$|[?])`), `$1${SKILL.skill_id}$2${SKILL.version}`)
          .replace(new RegExp(`^(/v1/skills/)${NAME}(/versions|/ab)(?=$|[?])`), `$1${SKILL.skill_id}$2`),
  body: (target, text) =>
    target === '/v1/deployments' ? text.replace(new RegExp(`"(skill_id|version)":\\s*"${NAME}"`, 'g'), (_, key) => `"${key}":"${SKILL[key]}"`) : text,
};

const makeDeployment = (write) => write('POST', '/v1/deployments', { ...SKILL, mode: 'sim', at: LONG_AGO });
const makeSnapshot = async (write) =>
  write('POST', `/v1/deployments/${await makeDeployment(write)}/ticks`, { tick_at: LONG_AGO, portfolio: { equity_usd: 1, positions: [] } });

const makeOrder = async (write) =>
  write('POST', '/v1/orders', { deployment_id: await makeDeployment(write), symbol: 'BTC', action: 'buy', side: 'long', at: LONG_AGO });

/** Creates a note with the built-in reflector under a new skill, because a skill does not take the same note twice. */
let skills = 0;
async function makeNote(write) {
  const skill = { skill_id: `specmatic-${++skills}`, version: 'v1' };
  await write('PUT', `/v1/skills/${skill.skill_id}/versions/${skill.version}`, newVersion({ at: LONG_AGO }));
  const path = `/v1/deployments/${await write('POST', '/v1/deployments', { ...skill, mode: 'sim', at: LONG_AGO })}`;
  const held = [{ symbol: 'BTC', side: 'long', size_base: 1, mark_price: 1 }];
  for (const [tick_at, positions] of [[LONG_AGO, held], [LONG_AGO.replace('00Z', '01Z'), []]])
    await write('POST', `${path}/ticks`, { tick_at, portfolio: { equity_usd: 1, positions }, marks: { BTC: 1 } });
  return write('POST', `${path}/reflect`, { force: true });
}

/** The resource that a UUID in a request must refer to, by path; the first match counts. */
const NAMED = [
  [/^\/v1\/episodic\/[^?]/, (write) => write('POST', '/v1/episodic', newEpisode({ created_at: LONG_AGO }))],
  [/^\/v1\/deployments\//, makeDeployment],
  [/^\/v1\/decision_snapshots\/[^?]/, makeSnapshot],
  [/^\/v1\/reflection_notes\/[^?]/, makeNote],
  [/^\/v1\/memories\/[^?]/, (write) => write('POST', '/v1/memories', { kind: 'note', text: 'A note.', at: LONG_AGO })],
  [/^\/v1\/theses\/[^?]/, (write) => write('POST', '/v1/theses', { symbol: 'BTC', text: 'A thesis.', parallel: true, at: LONG_AGO })],
  [/^\/v1\/orders\/[^?]/, makeOrder],
  [/^\/v1\/memory_(events|state)/, makeDeployment],
  [/^/, (write) => write('POST', '/v1/lessons', newLesson({ at: LONG_AGO }))],
];

/** A proxy that replaces generated UUIDs and names by those of resources it creates, and removes duplicates from lists. */
async function startProxy(base) {
  const seen = { requests: 0, failures: [] };
  const write = async (method, path, body) => {
    const made = await send(base, { method, path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    const { id, snapshot_id, note } = JSON.parse(made.body);
    return id ?? snapshot_id ?? note?.id;
  };
  await write('PUT', `/v1/skills/${SKILL.skill_id}/versions/${SKILL.version}`, newVersion({ at: LONG_AGO }));
  const withOwn = async (target, text) => {
    const [, make] = NAMED.find(([pattern]) => pattern.test(target));
    const ids = new Map();
    for (const id of text.match(UUID) ?? []) if (!ids.has(id)) ids.set(id, await make(write));
    return text.replaceAll(UUID, (id) => ids.get(id));
  };
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host, connection, ...headers } = request.headers;
    const { method, url } = request;
    const sent = { method, path: distinctQuery(withSkill.path(method, await withOwn(url, url))), headers };
    if (method === 'POST' || method === 'PUT') {
      sent.body = distinctBody(withSkill.body(url, await withOwn(url, Buffer.concat(chunks).toString())));
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

/** Runs Specmatic against the service; returns {tests, requests, failures, output}. */
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
      JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC', // the run is too short for the optimizing compiler to pay off
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
