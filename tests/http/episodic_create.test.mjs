// Creating entries: stored fields, defaults, duplicates, vectors, rejected input, deletion and roles.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEpisode, newEpisode, postEpisodes, restore, evict, shouldRerun, vectorsOf, withKeys } from '../lib/episodes.mjs';
import { day, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';
import { exact } from '../lib/ticks.mjs';

const s = suite();
const post = (changes, options) => s.api.post('/v1/episodic', newEpisode(changes), options);
const invalidFields = async (changes) => faults(await post(changes, { status: 422 }));
const count = async () => (await s.query('SELECT count(*)::int AS n FROM daybook.episodic_memory'))[0].n;
const storedVectors = (id) => vectorsOf(s.query, id);

test('a new entry is returned as it was written', async () => {
  const body = newEpisode({
    probability: 0.62,
    confidence: 0.81,
    source: 'tool_verified',
    source_citations: ['10-Q p. 14', 'call 2026-05-02 00:41:10'],
    regime_tag: { rates: 'cutting', vix: 18.5, earnings_season: true },
    created_at: day(10),
    ttl_seconds: 86400,
  });
  const answer = await s.api.post('/v1/episodic', body, { status: 201 });
  const { id, duplicate, ...rest } = answer.json;
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(duplicate, false);
  assert.equal(answer.headers.location, `/v1/episodic/${id}`);
  const { embedding_model, embedding_dim, ...others } = rest;
  assert.deepEqual(others, { ...body, expires_at: day(11), observation_type: null, read_count: 0, last_read_at: null, embedding_status: 'embedded', evicted_at: null });
  assert.deepEqual((await s.api.get(answer.headers.location, { status: 200 })).json, { id, ...rest });
  const [{ model, dim, length }] = await storedVectors(id);
  assert.deepEqual([model, dim, length], [embedding_model, embedding_dim, 1]);
});

test('absent fields get their defaults or null', async () => {
  const before = Date.now();
  const made = await createEpisode(s.api);
  assert.ok(Date.parse(made.created_at) >= before - 1 && Date.parse(made.created_at) <= Date.now() + 1, made.created_at);
  assert.deepEqual(
    [made.probability, made.source, made.source_citations, made.regime_tag, made.ttl_seconds, made.expires_at],
    [null, 'agent_inferred', [], {}, null, null],
  );
});

test('the confidence follows from the source, unless the caller states one', async () => {
  for (const [source, confidence] of Object.entries({ user_stated: 1, tool_verified: 0.9, agent_inferred: 0.6, recalled: 0.5, external: 0.3 })) {
    assert.equal((await createEpisode(s.api, { source })).confidence, confidence, source);
    assert.equal((await createEpisode(s.api, { source, confidence: 0.42 })).confidence, 0.42, source);
    assert.equal((await createEpisode(s.api, { source, confidence: 0 })).confidence, 0, source);
  }
  assert.deepEqual(await invalidFields({ source: 'hearsay' }), ['source: not_a_choice']);
});

test('numbers keep every digit', async () => {
  const { text } = await post({ probability: exact('0.620'), confidence: exact('0.9000'), regime_tag: { vix: exact('18.50') } }, { status: 201 });
  assert.match(text, /"probability":0\.620,"confidence":0\.9000,/);
  assert.match(text, /"vix": ?18\.50}/);
});

test('text in any script is returned byte for byte', async () => {
  const texts = {
    ticker: 'BRK.B/東京',
    task_type: 'o\'brien "q" \\ {x}',
    question: 'Zürich, 東京, 🚀 "quoted" \\ / \t tab\nline',
    answer: '<b>&amp;</b> é e\u0301 \u2028 \u{1F469}\u200D\u{1F4BB} $1 %s null',
    source_citations: ['a,b', '{"json": true}', '%s $1', 'null', '"'],
    regime_tag: { 'a.b-c_1': '東京 "q" \\', null: 'null', t: true, f: false },
  };
  const made = await createEpisode(s.api, texts);
  const { json } = await s.api.get(`/v1/episodic/${made.id}`);
  for (const [name, value] of Object.entries(texts)) assert.deepEqual(json[name], value, name);
});

test('a time with an offset is stored as the same instant in UTC', async () => {
  assert.equal((await createEpisode(s.api, { created_at: '2026-06-04T12:30:00.123456+02:30' })).created_at, '2026-06-04T10:00:00.123456Z');
});

test('length limits count characters, not bytes, and are inclusive', async () => {
  const r = '🚀';
  await createEpisode(s.api, {
    ticker: r.repeat(64),
    task_type: r.repeat(64),
    question: r.repeat(4000),
    answer: r.repeat(50000),
    source_citations: Array.from({ length: 64 }, (_, i) => 'é'.repeat(998) + String(i).padStart(2, '0')),
    regime_tag: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, r.repeat(64)])),
    ttl_seconds: 315360000,
    probability: 1,
    confidence: 1,
  });
  assert.deepEqual(await invalidFields({ ticker: r.repeat(65), task_type: r.repeat(65), question: 'x'.repeat(4001), answer: 'x'.repeat(50001) }), [
    'answer: too_long',
    'question: too_long',
    'task_type: too_long',
    'ticker: too_long',
  ]);
  assert.deepEqual(await invalidFields({ source_citations: Array.from({ length: 65 }, (_, i) => `c${i}`) }), ['source_citations: too_many']);
  assert.deepEqual(await invalidFields({ source_citations: ['x'.repeat(1001)] }), ['source_citations[0]: too_long']);
  assert.deepEqual(await invalidFields({ regime_tag: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 1])) }), ['regime_tag: too_many']);
  assert.deepEqual(await invalidFields({ ttl_seconds: 0 }), ['ttl_seconds: out_of_range']);
  assert.deepEqual(await invalidFields({ ttl_seconds: 315360001 }), ['ttl_seconds: out_of_range']);
  assert.deepEqual(await invalidFields({ probability: 1.0001, confidence: -0.1 }), ['confidence: out_of_range', 'probability: out_of_range']);
});

test('every invalid field is reported, and nothing is stored', async () => {
  const before = await count();
  const answer = await s.api.post('/v1/episodic', { ticker: '', task_type: 'a\nb', question: '  \n ', answer: 7, probability: 'high', extra: 1, source_citations: [''], regime_tag: [] }, { status: 422 });
  assert.deepEqual(faults(answer), [
    'answer: wrong_type',
    'extra: unknown_field',
    'probability: wrong_type',
    'question: too_short',
    'regime_tag: wrong_type',
    'source_citations[0]: too_short',
    'task_type: several_lines',
    'ticker: too_short',
  ]);
  assert.deepEqual(faults(await s.api.post('/v1/episodic', {}, { status: 422 })), ['answer: required', 'question: required', 'task_type: required', 'ticker: required']);
  assert.equal(await count(), before);
});

test('a regime has keys with scalar values only', async () => {
  assert.deepEqual(await invalidFields({ regime_tag: { rates: ['cutting'], vol: { a: 1 }, ok: 1, none: null } }), [
    'regime_tag.none: wrong_type',
    'regime_tag.rates: wrong_type',
    'regime_tag.vol: wrong_type',
  ]);
  assert.deepEqual(await invalidFields({ regime_tag: { 'two words': 1 } }), ['regime_tag.two words: invalid_name']);
  assert.deepEqual(await invalidFields({ regime_tag: { rates: 'x'.repeat(65), vol: '' } }), ['regime_tag.rates: too_long', 'regime_tag.vol: too_short']);
});

test('a body over the limit, an invalid number and invalid JSON each get their own error code', async () => {
  const before = await count();
  const code = async (body, status) => (await s.api.post('/v1/episodic', body, { status, check: status !== 413 })).json.code;
  const text = (answer) => JSON.stringify(newEpisode({ answer }));
  assert.equal(await code(text('x'.repeat(1024 * 1024)), 413), 'body_too_large');
  assert.equal(await code(text('x'.repeat(1024 * 1000)), 422), 'invalid_fields');
  for (const number of ['NaN', 'Infinity', '-Infinity', '0x10']) assert.equal(await code(`{"ticker":"A","probability":${number}}`, 400), 'invalid_json', number);
  for (const number of ['1e999', '-1e999']) assert.equal(await code(`{"ticker":"A","embedding":[1,${number}]}`, 400), 'number_out_of_range', number);
  assert.equal(await code('{"ticker":"A","ticker":"B"}', 400), 'duplicate_key');
  assert.equal(await code('{"regime_tag":{"a":1,"a":2}}', 400), 'duplicate_key');
  assert.equal(await code('{"question":"a\\u0000b"}', 400), 'null_character');
  assert.equal(await count(), before);
});

// ---- vectors ----

test("the caller's vector is stored with length 1 in the narrowest column, under its own model", async () => {
  for (const [dim, width] of [[1, 384], [384, 384], [385, 768], [768, 768], [1024, 1024], [1536, 1536], [3072, 3072], [4000, 4000]]) {
    const embedding = Array.from({ length: dim }, (_, i) => Math.sin(i + 1) * 7);
    const made = await createEpisode(s.api, { embedding, embedding_model: 'acme/embed-3' });
    assert.deepEqual([made.embedding_status, made.embedding_model, made.embedding_dim], ['supplied', 'acme/embed-3', dim]);
    assert.deepEqual(await storedVectors(made.id), [{ model: 'acme/embed-3', dim, width, length: 1 }]);
  }
});

test('a zero vector, one with too many numbers and one without a model are rejected', async () => {
  const model = { embedding_model: 'm' };
  assert.deepEqual(await invalidFields({ embedding: [0, 0, 0], ...model }), ['embedding: invalid_vector']);
  assert.deepEqual(await invalidFields({ embedding: [1e-60, 0], ...model }), ['embedding: invalid_vector']);
  assert.deepEqual(await invalidFields({ embedding: [1e300, 1], ...model }), ['embedding: invalid_vector']);
  assert.deepEqual(await invalidFields({ embedding: [], ...model }), ['embedding: too_few']);
  assert.deepEqual(await invalidFields({ embedding: Array(4001).fill(1), ...model }), ['embedding: too_many']);
  assert.deepEqual(await invalidFields({ embedding: [1, 'x', null], ...model }), ['embedding[1]: wrong_type', 'embedding[2]: wrong_type']);
  assert.deepEqual(await invalidFields({ embedding: [1, 2] }), ['embedding_model: required']);
  assert.deepEqual(await invalidFields({ embedding_model: 'm' }), ['embedding: required']);
  assert.deepEqual(await invalidFields({ embedding: [1], embedding_model: 'x'.repeat(101) }), ['embedding_model: too_long']);
});

test("a vector that claims the service's own model must have its dimension", async () => {
  const { embedding_model, embedding_dim } = await createEpisode(s.api);
  assert.deepEqual(await invalidFields({ embedding: Array(embedding_dim + 1).fill(1), embedding_model }), ['embedding: invalid_vector']);
  const made = await createEpisode(s.api, { embedding: Array(embedding_dim).fill(1), embedding_model });
  assert.equal(made.embedding_status, 'supplied');
});

// ---- duplicates ----

test('the same entry again returns the first one, even if other fields differ', async () => {
  const body = newEpisode({ created_at: '2026-06-04T10:00:00Z', probability: 0.4 });
  const first = (await s.api.post('/v1/episodic', body, { status: 201 })).json;
  const before = await count();
  for (const again of [body, { ...body, created_at: '2026-06-04T12:00:00.000+02:00' }, { ...body, probability: 0.9, source: 'external', embedding: [1, 2], embedding_model: 'm' }]) {
    const answer = await s.api.post('/v1/episodic', again, { status: 200 });
    assert.deepEqual(answer.json, { ...first, duplicate: true });
    assert.equal(answer.headers.location, `/v1/episodic/${first.id}`);
  }
  assert.equal(await count(), before);
});

test('a different ticker, task, question, answer or time makes a different entry', async () => {
  const body = newEpisode({ ticker: 'AB', task_type: 'C', question: 'q', answer: 'a', created_at: day(3) });
  await s.api.post('/v1/episodic', body, { status: 201 });
  for (const changes of [{ ticker: 'A', task_type: 'BC' }, { task_type: 'D' }, { question: 'q?' }, { answer: 'b' }, { created_at: day(3, '00:00:00.000001') }])
    await s.api.post('/v1/episodic', { ...body, ...changes }, { status: 201 });
});

test('the same entry sent concurrently is stored once', async () => {
  const body = newEpisode({ created_at: day(4) });
  const answers = await Promise.all(Array.from({ length: 20 }, () => s.api.post('/v1/episodic', body)));
  assert.equal(answers.filter((a) => a.status === 201).length, 1);
  assert.equal(new Set(answers.map((a) => a.json.id)).size, 1);
  assert.equal(answers.filter((a) => a.json.duplicate).length, 19);
  assert.equal((await storedVectors(answers[0].json.id)).length, 1);
});

test('a retry with the same Idempotency-Key replays the response and stores nothing', async () => {
  const headers = { 'idempotency-key': 'episode-1' };
  const body = newEpisode(); // without a time, only the key shows that it is the same request
  const first = await s.api.post('/v1/episodic', body, { headers, status: 201 });
  const before = await count();
  const again = await s.api.post('/v1/episodic', body, { headers, status: 201 });
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await s.api.post('/v1/episodic', newEpisode(), { headers, status: 409 })).json.code, 'idempotency_conflict');
  assert.equal(await count(), before);
});

// ---- deletion ----

test('deleting an entry deletes its vectors, and its savings still count', async () => {
  const { id } = await createEpisode(s.api, { ticker: 'GONE' });
  assert.equal((await shouldRerun(s.api, { ticker: 'GONE', cost_usd: 0.5 })).rerun, false);
  await s.api('DELETE', `/v1/episodic/${id}`, { status: 204 });
  await s.api.get(`/v1/episodic/${id}`, { status: 404 });
  await s.api('DELETE', `/v1/episodic/${id}`, { status: 404 });
  assert.deepEqual(await storedVectors(id), []);
  assert.equal((await s.query('SELECT count(*)::int AS n FROM daybook.episodic_reads WHERE episode_id = $1', [id]))[0].n, 1);
  assert.deepEqual((await shouldRerun(s.api, { ticker: 'GONE' })).reasons, ['no_prior']);
});

test('a malformed ID is rejected, an unknown one is 404', async () => {
  await s.api.get(`/v1/episodic/${UNKNOWN_ID}`, { status: 404 });
  await s.api.get('/v1/episodic/42', { status: 422 });
  await s.api('DELETE', '/v1/episodic/42', { status: 422 });
  assert.deepEqual(faults(await s.api.get(`/v1/episodic/${UNKNOWN_ID}?as_off=2026-01-01T00:00:00Z`, { status: 422 })), ['as_off: unknown_field']);
});

// ---- owners and roles ----

test("owners never see each other's entries, and each role may do its part", () =>
  withKeys(s, async ({ reader, researcher, agent, other }, query) => {
    const body = newEpisode({ created_at: day(1) });
    await reader.post('/v1/episodic', body, { status: 403 });
    await postEpisodes(reader, [body], { status: 403 });
    await reader.post('/v1/episodic/should_rerun', { ticker: 'ACME', task_type: 'guidance_tone' }, { status: 403 });
    const mine = (await researcher.post('/v1/episodic', body, { status: 201 })).json;
    const theirs = (await other.post('/v1/episodic', body, { status: 201 })).json;
    assert.notEqual(mine.id, theirs.id, 'the same entry of another owner is not a duplicate');
    for (const api of [reader, researcher, agent]) {
      assert.deepEqual((await api.get('/v1/episodic', { status: 200 })).json.items.map((e) => e.id), [mine.id]);
      await api.get(`/v1/episodic/${theirs.id}`, { status: 404 });
    }
    for (const api of [reader, researcher]) {
      await api('DELETE', `/v1/episodic/${mine.id}`, { status: 403 });
      await api.post('/v1/episodic/evict', {}, { status: 403 });
      await api.post('/v1/episodic/restore', { ids: [mine.id] }, { status: 403 });
    }
    await agent('DELETE', `/v1/episodic/${theirs.id}`, { status: 404 });
    assert.equal((await evict(other, { dry_run: false, policies: ['time'], max_age_days: 1 })).evicted, 1);
    assert.deepEqual(await restore(agent, { ids: [theirs.id] }), { restored: 0, skipped: 1, remaining: 0 });
    assert.equal((await agent.get('/v1/episodic', { status: 200 })).json.items.length, 1);
    assert.equal((await shouldRerun(researcher, { as_of: day(2) })).prior.id, mine.id);
    assert.deepEqual((await query('SELECT owner, episode_id FROM daybook.episodic_reads')).map((r) => [r.owner, r.episode_id]), [['alpha', mine.id]]);
    await agent('DELETE', `/v1/episodic/${mine.id}`, { status: 204 });
  }));
