// Bulk uploads of entries: each line is stored on its own, in order and once, in bounded memory.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { createEpisode, newEpisode, postEpisodes, vectorsOf } from '../lib/episodes.mjs';
import { day } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const BATCH = 64; // lines that the service stores at a time; tests cover the boundaries
const LONG = 5 * BATCH; // takes seconds to embed, so anything after the first batch happens midway
const count = async (where = 'true') => (await s.query(`SELECT count(*)::int AS n FROM daybook.episodic_memory WHERE ${where}`))[0].n;
const entries = (n, changes = {}) => Array.from({ length: n }, (_, i) => newEpisode({ created_at: day(1 + (i % 300)), ...changes }));

test('every line gets a result in order, and the last line has the totals', async () => {
  for (const n of [1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH]) {
    const list = entries(n, { ticker: `N${n}` });
    const { lines, last } = await postEpisodes(s.api, list);
    assert.deepEqual(lines.map((l) => [l.line, l.status, l.embedding_status]), list.map((_, i) => [i + 1, 'created', 'embedded']));
    assert.deepEqual(last, { done: true, created: n, duplicates: 0, rejected: 0, resume_at: null, error: null });
    assert.equal(await count(`ticker = 'N${n}'`), n);
  }
});

test('a line stores the same entry as a single request', async () => {
  const body = newEpisode({ created_at: day(5), probability: 0.3, regime_tag: { rates: 'cutting' }, source: 'external', ttl_seconds: 60, source_citations: ['a'] });
  const { lines } = await postEpisodes(s.api, [body, newEpisode({ embedding: [3, 4], embedding_model: 'm' })]);
  const alone = await createEpisode(s.api, { ...body, ticker: 'ALONE' });
  const { id, ...stored } = (await s.api.get(`/v1/episodic/${lines[0].id}`, { status: 200 })).json;
  const { id: otherId, duplicate, ...expected } = alone;
  assert.deepEqual(stored, { ...expected, ticker: 'ACME' });
  assert.equal(lines[1].embedding_status, 'supplied');
  assert.deepEqual(await vectorsOf(s.query, lines[1].id), [{ model: 'm', dim: 2, width: 384, length: 1 }]);
  const sums = await s.query('SELECT v768::text AS v FROM daybook.episodic_vectors WHERE episode_id = ANY ($1)', [[id, otherId]]);
  assert.equal(sums.length, 2);
  assert.equal(sums[0].v, sums[1].v, 'the vector too');
});

test('the same body again stores nothing and returns the existing IDs', async () => {
  const list = entries(BATCH + 10);
  const first = await postEpisodes(s.api, list);
  const before = await count();
  const again = await postEpisodes(s.api, list);
  assert.deepEqual(again.lines, first.lines.map((l) => ({ ...l, status: 'duplicate' })));
  assert.deepEqual([again.last.created, again.last.duplicates], [0, list.length]);
  assert.equal(await count(), before);
});

test('duplicates in one body are detected, within a batch and across batches', async () => {
  const [a, b] = entries(2);
  const rest = entries(BATCH);
  const { lines, last } = await postEpisodes(s.api, [a, b, a, ...rest, a, b]);
  assert.deepEqual([lines[0], lines[1], lines[2]].map((l) => l.status), ['created', 'created', 'duplicate']);
  for (const [at, first] of [[2, 0], [BATCH + 3, 0], [BATCH + 4, 1]]) assert.deepEqual([lines[at].status, lines[at].id], ['duplicate', lines[first].id]);
  assert.deepEqual([last.created, last.duplicates], [BATCH + 2, 3]);
});

test('a bad line is reported with its number and its problem, and the others are stored', async () => {
  const good = () => JSON.stringify(newEpisode());
  const body = [good(), '{bad', '', good(), '{"ticker":"A","question":" ","extra":1}', '[1]', good(), JSON.stringify(newEpisode({ embedding: [0], embedding_model: 'm' })), '', good()].join('\n');
  const { lines, last } = await postEpisodes(s.api, body);
  assert.deepEqual(lines.map((l) => [l.line, l.status, l.error?.code]), [
    [1, 'created', undefined],
    [2, 'rejected', 'invalid_json'],
    [4, 'created', undefined],
    [5, 'rejected', 'invalid_fields'],
    [6, 'rejected', 'invalid_json'],
    [7, 'created', undefined],
    [8, 'rejected', 'invalid_fields'],
    [10, 'created', undefined],
  ]);
  assert.deepEqual(lines[3].error.errors.map((e) => `${e.field}: ${e.code}`).sort(), ['answer: required', 'extra: unknown_field', 'question: too_short', 'task_type: required']);
  assert.deepEqual(lines[6].error.errors.map((e) => `${e.field}: ${e.code}`), ['embedding: invalid_vector']);
  assert.deepEqual(last, { done: true, created: 4, duplicates: 0, rejected: 4, resume_at: null, error: null });
});

test('only the line that is too long is rejected', async () => {
  const long = JSON.stringify(newEpisode({ answer: 'x'.repeat(1024 * 1024) }));
  const { lines, last } = await postEpisodes(s.api, `${JSON.stringify(newEpisode())}\n${long}\n${JSON.stringify(newEpisode())}\n`);
  assert.deepEqual(lines.map((l) => [l.line, l.status, l.error?.code]), [[1, 'created', undefined], [2, 'rejected', 'line_too_long'], [3, 'created', undefined]]);
  assert.equal(last.rejected, 1);
});

test('a body of only bad lines and an empty body get a summary too', async () => {
  const all = await postEpisodes(s.api, 'x\n'.repeat(BATCH + 5));
  assert.deepEqual(all.last, { done: true, created: 0, duplicates: 0, rejected: BATCH + 5, resume_at: null, error: null });
  assert.deepEqual((await postEpisodes(s.api, '\n\n')).last.created, 0);
});

test('another media type is rejected', async () => {
  await s.api.post('/v1/episodic/bulk', newEpisode(), { status: 415 });
});

test('two concurrent bodies with the same entries in opposite order store each entry once', async () => {
  const list = entries(2 * BATCH);
  const [x, y] = await Promise.all([postEpisodes(s.api, list), postEpisodes(s.api, list.toReversed())]);
  assert.equal(x.last.created + y.last.created, list.length);
  assert.equal(x.last.duplicates + y.last.duplicates, list.length);
  assert.deepEqual(x.lines.map((l) => l.id), y.lines.map((l) => l.id).reverse());
});

test('memory does not grow with the body', async () => {
  const service = await s.another({ env: { ASAN_OPTIONS: 'exitcode=99:quarantine_size_mb=1' } }); // by default ASan keeps freed memory
  const api = makeClient(service.base);
  try {
    const peak = () => Number(readFileSync(`/proc/${service.pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1]);
    const body = (n) => entries(n, { answer: 'the same long answer '.repeat(800), embedding: [1, 2], embedding_model: 'm' }).map((e) => `${JSON.stringify(e)}\n`).join('');
    await postEpisodes(api, body(125), { check: false });
    const before = peak();
    const large = body(1000);
    assert.equal((await postEpisodes(api, large, { check: false })).last.created, 1000);
    const grown = peak() - before;
    assert.ok(grown < large.length / 1024 / 3, `${grown} KB more for a body of ${Math.round(large.length / 1024)} KB`);
    const bad = '{"x":1}\n'.repeat(40000); // would take 20 MB if the details of each were kept
    assert.equal((await postEpisodes(api, bad, { check: false })).last.rejected, 40000);
    const more = peak() - before - grown;
    assert.ok(more < 8 * 1024, `${more} KB more for 40,000 bad lines`);
  } finally {
    api.close();
    await service.stop();
  }
});

test('a client that disconnects leaves whole batches behind, and can send the rest later', async () => {
  const list = entries(LONG, { ticker: 'LEFT' });
  const body = list.map((e) => `${JSON.stringify(e)}\n`).join('');
  const { hostname, port } = new URL(s.service.base);
  const socket = net.connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write(`POST /v1/episodic/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`);
  socket.write(body);
  await new Promise((resolve) => socket.on('data', (data) => data.includes('"created"') && resolve()));
  socket.destroy();
  await until(async () => !(await s.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd' AND state <> 'idle' AND query LIKE '%episodic%'`)).length, 'the upload has stopped');
  const left = await count(`ticker = 'LEFT'`);
  assert.ok(left > 0 && left % BATCH === 0, `${left} entries`);
  const [{ n }] = await s.query(`SELECT count(*)::int AS n FROM daybook.episodic_memory m LEFT JOIN daybook.episodic_vectors v ON v.episode_id = m.id WHERE ticker = 'LEFT' AND v.model IS NULL`);
  assert.equal(n, 0, 'every entry has its vector');
  const { last } = await postEpisodes(s.api, list);
  assert.equal(last.created + last.duplicates, list.length);
  assert.equal(await count(`ticker = 'LEFT'`), list.length);
});

test('a service stopped midway says where to resume, and has stored what it acknowledged', async () => {
  const list = entries(LONG, { ticker: 'STOPPED' });
  const service = await s.another({ args: ['--stop-timeout-ms', '100', '--loops', '1'] });
  const api = makeClient(service.base);
  const answered = postEpisodes(api, list);
  await until(() => count(`ticker = 'STOPPED'`), 'the first batch is stored');
  await service.stop();
  const { lines, last } = await answered;
  api.close();
  assert.deepEqual([last.done, last.error.code, last.created], [false, 'shutting_down', lines.length]);
  assert.ok(last.resume_at >= lines.length && last.resume_at <= lines.length + 1, `${last.resume_at} after ${lines.length}`);
  const stored = await s.query(`SELECT id FROM daybook.episodic_memory WHERE ticker = 'STOPPED'`);
  const ids = new Set(stored.map((row) => row.id));
  for (const { id } of lines) assert.ok(ids.has(id));
  assert.equal(stored.length % BATCH, 0);
  const rest = await postEpisodes(s.api, list.slice(last.resume_at - 1));
  assert.equal(rest.last.done, true);
  assert.equal(await count(`ticker = 'STOPPED'`), list.length);
});

test('a database lost midway is reported, and the rest can be sent again', async () => {
  const list = entries(LONG, { ticker: 'LOST' });
  const answered = postEpisodes(s.api, list);
  await until(() => count(`ticker = 'LOST'`), 'the first batch is stored');
  await s.cluster.stop();
  const { lines, last } = await answered;
  await s.cluster.start();
  assert.equal(last.done, false);
  assert.ok(['database_unavailable', 'outcome_unknown'].includes(last.error.code), last.error.code);
  await until(async () => (await s.api.get('/health/ready')).status === 200, 'it is back');
  const rest = await postEpisodes(s.api, list.slice(last.resume_at - 1));
  assert.deepEqual([rest.last.done, rest.last.rejected], [true, 0]);
  assert.equal(await count(`ticker = 'LOST'`), list.length);
  assert.equal(last.resume_at, lines.length + 1);
});
