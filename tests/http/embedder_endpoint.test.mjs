// A configured embedding endpoint: the requests it gets, and that nothing is lost while it fails.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import * as model from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const models = await model.startModelServer({ dimension: 64, synonyms: { autos: 'cars' } });
// Long enough for a busy machine, shorter than the Retry-After below.
const settings = models.embeddingEnv({ DAYBOOK_EMBEDDING_TIMEOUT_MS: '9000' });
const impatient = {}; // another service, with a short timeout for the endpoint: {service, api}
const s = suite({
  env: settings,
  args: ['--loops', '1'],
  prepare: async () => {
    impatient.service = await s.another({ env: { ...settings, DAYBOOK_EMBEDDING_TIMEOUT_MS: '1500' } });
    impatient.api = makeClient(impatient.service.base);
  },
});
after(async () => {
  impatient.api?.close();
  await impatient.service?.stop();
  await models.close();
});

let made = 0;
const entry = (changes) => ({ ticker: 'ACME', task_type: 'tone', question: `Question ${made++}`, answer: 'Orders grow.', ...changes });
const create = async (changes, api = s.api) => (await api.post('/v1/episodic', entry(changes), { status: 201 })).json;
const read = async (id) => (await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json;
const search = async (body, api = s.api) => (await api.post('/v1/episodic/search', body, { status: 200 })).json;
const spaces = async () => (await s.api.get('/v1/embeddings', { status: 200 })).json;

/** Brings the endpoint back and waits until the service calls it again. */
async function endpointUp() {
  models.embeddings.reset();
  await until(async () => (await create()).embedding_status !== 'pending', 'the endpoint is called again');
}

/** Waits until every pending entry is embedded, too. */
async function recovered() {
  await endpointUp();
  await until(async () => {
    await create();
    return (await spaces()).pending === 0;
  }, 'all pending entries are embedded');
}

test('the endpoint embeds an entry; it gets the model, the text and the key', async () => {
  models.embeddings.reset();
  const made = await create({ question: 'Will margins hold?', answer: 'They will.' });
  assert.equal(made.embedding_status, 'embedded');
  assert.equal(made.embedding_model, 'test-embedding');
  assert.equal(made.embedding_dim, 64);
  const [request] = models.embeddings.requests;
  assert.deepEqual(request.body, { model: 'test-embedding', input: ['Will margins hold?\nThey will.'], encoding_format: 'float' });
  assert.equal(request.headers.authorization, `Bearer ${models.key}`);
  const { kind, available, model: name, dim } = await spaces();
  assert.deepEqual({ kind, available, name, dim }, { kind: 'endpoint', available: true, name: 'test-embedding', dim: 64 });
});

test('a search with vectors of the endpoint finds an entry that shares no word', async () => {
  const { id } = await create({ ticker: 'WHEELS', question: 'autos autos autos', answer: 'autos' });
  await create({ ticker: 'WHEELS', question: 'bonds yields curve', answer: 'steeper' });
  const found = await search({ text: 'cars', ticker: 'WHEELS', k: 1 });
  assert.equal(found.items[0].id, id);
  assert.equal(found.degraded, null);
});

test('vectors are assigned by their index, in whatever order they arrive', async () => {
  models.embeddings.next(model.embed({ shuffle: true }));
  const words = ['copper', 'silver', 'nickel', 'cobalt'];
  const body = words.map((word) => `${JSON.stringify(entry({ ticker: 'METAL', question: word, answer: word }))}\n`).join('');
  await s.api.post('/v1/episodic/bulk', body, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  for (const word of words) {
    const { items } = await search({ vector: model.embedText(`${word} ${word}`, 64), model: 'test-embedding', ticker: 'METAL', k: 1, mode: 'vector' });
    assert.equal(items[0].question, word);
  }
});

const failures = {
  'a status 500': model.status(500),
  'a status 401': model.status(401),
  'an early close': model.closeEarly(),
  'a close midway': model.closeMidway(),
  'bytes that are not HTTP': model.garbage(),
  'invalid JSON': model.invalidJson(),
  'an empty body': model.emptyBody(),
  'another dimension': model.embed({ dimension: 63 }),
  'no vector': model.vectors([]),
  'two vectors for one text': model.vectors([new Array(64).fill(1), new Array(64).fill(1)]),
  'a vector of zeros': model.vectors([new Array(64).fill(0)]),
  'a vector with null': model.vectors([[null, ...new Array(63).fill(1)]]),
  'a redirect': model.redirect('http://127.0.0.1:9/'),
  'a hang': model.hang(),
  'a 429 with a long Retry-After': model.status(429, { retryAfter: 60 }),
};

for (const [n, [name, behaviour]] of Object.entries(failures).entries())
  test(`with ${name} an entry is stored and embedded later, and a search uses words and says so`, async () => {
    await recovered();
    const api = name === 'a hang' ? impatient.api : s.api;
    models.embeddings.always(behaviour);
    const made = await create({ ticker: `FAULT${n}`, answer: `zirconium ${name}` }, api);
    assert.equal(made.embedding_status, 'pending');
    assert.equal(made.embedding_model, null);
    const found = await search({ text: 'zirconium', ticker: `FAULT${n}` }, api);
    assert.equal(found.degraded, 'embedder_unavailable');
    assert.deepEqual(
      found.items.map(({ id }) => id),
      [made.id],
    );
    await recovered();
    assert.equal((await read(made.id)).embedding_status, 'embedded');
  });

test('a temporary 429 or 5xx is retried unnoticed', async () => {
  await recovered();
  models.embeddings.next(model.status(429, { retryAfter: 0 }), model.status(503), model.embed());
  assert.equal((await create()).embedding_status, 'embedded');
  assert.ok(models.embeddings.requests.length >= 3);
});

test('while the circuit is open the endpoint is not called; then one successful attempt closes it', async () => {
  await recovered();
  const log = s.service.log.length;
  models.embeddings.always(model.status(401));
  for (let i = 0; i < 3; i++) assert.equal((await create()).embedding_status, 'pending');
  const calls = models.embeddings.requests.length;
  assert.equal((await create()).embedding_status, 'pending');
  assert.equal(models.embeddings.requests.length, calls);
  assert.equal((await spaces()).available, false);
  const open = await metricsOf(s.api);
  assert.equal(open.get('daybook_embedding_circuit_open'), 1);
  assert.ok(open.get('daybook_embedding_calls_total{outcome="circuit_open"}') > 0);
  await recovered();
  assert.equal((await spaces()).available, true);
  await until(async () => (await metricsOf(s.api)).get('daybook_embedding_circuit_open') === 0, 'the circuit is closed');
  await until(() => /embedder_down .*embedder_back /s.test(s.service.log.slice(log)), 'the log has both events');
});

test('an outage of the endpoint loses nothing', async () => {
  await recovered();
  await models.stop();
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push((await create()).id);
  for (const id of ids) assert.equal((await read(id)).embedding_status, 'pending');
  assert.equal((await spaces()).pending, 5);
  await models.start();
  await recovered();
  for (const id of ids) assert.equal((await read(id)).embedding_status, 'embedded');
});

test('only the beginning of a text over the limit is embedded', async () => {
  await recovered();
  models.embeddings.reset();
  assert.equal((await create({ answer: 'é'.repeat(40_000) })).embedding_status, 'embedded');
  const [text] = models.embeddings.requests[0].body.input;
  assert.ok(Buffer.byteLength(text) <= 16_000 && Buffer.byteLength(text) > 15_990);
});

test('a text too long for the endpoint is shortened until it is accepted, and the rest of its batch is embedded too', async () => {
  await recovered();
  models.embeddings.always(model.embed({ longest: 2000 }));
  const lines = Array.from({ length: 64 }, (_, i) => JSON.stringify(entry({ ticker: 'LONG', answer: i === 37 ? 'long '.repeat(3000) : `short ${i}` })));
  const answer = await s.api.post('/v1/episodic/bulk', `${lines.join('\n')}\n`, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  const given = answer.text.trim().split('\n').map((line) => JSON.parse(line));
  for (const line of given.slice(0, -1)) assert.equal(line.embedding_status, 'embedded');
  assert.equal(given.length, 65);
  assert.ok(models.embeddings.requests.length < 25);
});

const rejectPoison = (request, response, server) =>
  (request.text.includes('poison') ? model.status(400, { type: 'invalid_request_error' }) : model.embed())(request, response, server);

test('a text that the endpoint always rejects blocks no others, not even those of its batch', async () => {
  await recovered();
  models.embeddings.always(model.status(503));
  const made = [];
  for (const answer of ['first', 'poison', 'third']) made.push(await create({ ticker: 'NEVER', answer }));
  assert.deepEqual(made.map((e) => e.embedding_status), ['pending', 'pending', 'pending']);
  models.embeddings.always(rejectPoison);
  const statuses = async () => (await s.api.get('/v1/episodic?ticker=NEVER', { status: 200 })).json.items.map((e) => e.embedding_status).sort();
  await until(async () => {
    await create({ ticker: 'OTHER' });
    return (await statuses()).filter((status) => status === 'embedded').length === 2;
  }, 'the others are embedded');
  await s.api.post('/v1/embeddings/rebuild', {}, { status: 200 }); // of other tests that are still pending
  for (let i = 0; i < 4; i++) { // each response is about the text, not a failure of the endpoint
    const rebuilt = await s.api.post('/v1/embeddings/rebuild', {}, { status: 200 });
    assert.deepEqual(rebuilt.text.trim().split('\n').map((line) => JSON.parse(line)), [
      { embedded: 0, failed: 1, remaining: 1 },
      { done: true, embedded: 0, refused: 1, remaining: 1 },
    ]);
  }
  assert.equal((await spaces()).available, true);
  assert.deepEqual(await statuses(), ['embedded', 'embedded', 'pending']);
  const poisoned = () => models.embeddings.requests.filter(({ text }) => text.includes('poison')).length;
  const before = poisoned();
  for (let i = 0; i < 20; i++) await Promise.all([create({ ticker: 'OTHER' }), search({ text: 'anything', ticker: 'OTHER' })]);
  assert.ok(poisoned() - before < 10, `40 requests sent the rejected text ${poisoned() - before} times`);
  const found = await search({ text: 'poison', ticker: 'NEVER' });
  assert.deepEqual([found.degraded, found.items.map(({ id }) => id)], ['embedder_unavailable', [made[1].id]]);
});

test('many rejected texts do not block accepted ones', async () => {
  await endpointUp();
  await s.query('delete from daybook.episodic_memory');
  const service = await startService(s.cluster.url(await s.cluster.createDatabase()), { args: ['--loops', '1'], env: { ...settings, DAYBOOK_BACKFILL: 'off' } });
  const api = makeClient(service.base);
  models.embeddings.always(model.status(503));
  for (let i = 0; i < 43; i++) await create({ answer: i > 2 ? 'poison' : 'fine', created_at: new Date(Date.UTC(2026, 0, 1, 0, i)).toISOString() }, api);
  await until(async () => (await api.get('/v1/embeddings', { status: 200 })).json.available, 'the endpoint is called again');
  models.embeddings.always(rejectPoison);
  const rebuilt = await api.post('/v1/embeddings/rebuild', { batch: 40 }, { status: 200 });
  assert.deepEqual(JSON.parse(rebuilt.text.trim().split('\n').at(-1)), { done: true, embedded: 3, refused: 40, remaining: 40 });
  api.close();
  await service.stop();
});

test('rejected texts do not block the background job, for their owner or for others', async () => {
  await recovered();
  models.embeddings.always(model.status(503));
  for (let i = 0; i < 43; i++) await create({ ticker: 'MANY', answer: i > 2 && i < 40 ? 'poison' : 'fine', created_at: new Date(Date.UTC(2026, 0, 1, 0, i)).toISOString() });
  models.embeddings.always(rejectPoison);
  const pendingOf = async (owner) => (await s.query("select count(*)::int as n from daybook.episodic_memory where owner = $1 and embedding_status = 'pending' and answer = 'fine'", [owner]))[0].n;
  await s.query(
    `insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, confidence, source, embedding_status, content_hash)
     values ('zoe', gen_random_uuid(), 'A', 't', '2026-01-01', 'q', 'fine', 0.6, 'external', 'pending', 'x')`,
  );
  await until(async () => (await pendingOf('local')) === 0 && (await pendingOf('zoe')) === 0, 'the others are embedded');
  assert.equal((await spaces()).pending, 37);
  await s.query('delete from daybook.episodic_memory');
});

test('an endpoint that rejects every text counts as failed', async () => {
  models.embeddings.always(model.status(400, { type: 'invalid_request_error' }));
  await s.api.post('/v1/episodic', entry(), { status: 201 });
  const refused = await s.api.post('/v1/embeddings/rebuild', {}, { status: 503 });
  assert.equal(refused.json.code, 'embedder_unavailable');
  models.embeddings.reset();
  await s.query('delete from daybook.episodic_memory');
});

test('the dimension is requested only with --embedding-shorten', async () => {
  const shorter = await s.another({ env: { ...settings, DAYBOOK_EMBEDDING_DIMENSION: '32', DAYBOOK_EMBEDDING_SHORTEN: 'true' } });
  const api = makeClient(shorter.base);
  models.embeddings.reset();
  assert.equal((await create({}, api)).embedding_dim, 32);
  assert.equal(models.embeddings.requests[0].body.dimensions, 32);
  api.close();
  await shorter.stop();
});

test('a service stopped while the endpoint hangs exits cleanly', async () => {
  models.embeddings.reset();
  models.embeddings.always(model.hang());
  const service = await s.another({ env: { ...settings, DAYBOOK_STOP_TIMEOUT_MS: '200', DAYBOOK_EMBEDDING_TIMEOUT_MS: '60000' } });
  const api = makeClient(service.base);
  const requests = Array.from({ length: 20 }, () => api.post('/v1/episodic', entry(), { check: false }).catch(({ code }) => ({ code })));
  await until(() => models.embeddings.hanging >= 20, 'all requests hang');
  await service.stop();
  for (const { status, code } of await Promise.all(requests)) assert.ok(status === 503 || code === 'ECONNRESET', `${status} ${code}`);
  api.close();
  models.embeddings.reset();
});

test('a service stopped while its background job waits for the endpoint exits cleanly', async () => {
  await recovered();
  await s.query("update daybook.episodic_memory set embedding_status = 'pending', embedding_model = null, embedding_dim = null");
  await s.query('delete from daybook.episodic_vectors');
  models.embeddings.always(model.hang());
  const service = await s.another({ env: { ...settings, DAYBOOK_EMBEDDING_TIMEOUT_MS: '60000' } });
  await until(() => models.embeddings.hanging >= 1, 'the endpoint is called');
  await service.stop();
  await until(() => models.embeddings.hanging === 0, 'the request is aborted');
  await recovered();
});

test('the API key appears in no response and no log line', async () => {
  await until(() => s.service.log.includes('embedder_failed'), 'failures are logged');
  assert.ok(!s.service.log.includes(models.key));
  assert.ok(!(await s.api.get('/metrics')).text.includes(models.key));
  assert.ok(!JSON.stringify(await spaces()).includes(models.key));
});
