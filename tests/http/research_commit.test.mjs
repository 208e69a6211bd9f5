// Committing an answer stores an entry and, after a surprise, a lesson: both or neither.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { commit, newResearch, prepare, written } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const lessonsOf = async (tag) => (await s.api.get(`/v1/lessons?tags=${encodeURIComponent(tag)}`, { status: 200 })).json.items;

/** Commits a prior and a later answer under a task type of their own; returns the response to the second. */
let pairs = 0;
async function moved(from, to, { first = {}, ...changes } = {}) {
  const at = { ticker: 'MOVE', task_type: `move_${pairs++}` };
  const prior =
    from === null
      ? (await s.api.post('/v1/episodic', { ...newResearch(at), probability: undefined, ...first }, { status: 201 })).json
      : (await commit(s.api, { ...at, probability: from, ...first })).episode;
  return { prior, ...(await commit(s.api, { ...at, probability: to, created_at: day(14), ...changes })) };
}

test('the first answer is stored as an entry with the regime of its signals, without a lesson', async () => {
  const body = newResearch({
    task_type: 'first',
    source: 'tool_verified',
    source_citations: ['10-Q, page 21', 'call, 12:31'],
    new_signals: { rates: 'cutting', vol: 1.50, season: true, new_filing_since: true, guidance_update_since: false },
    ttl_seconds: 86400,
  });
  const answer = await s.api.post('/v1/research/commit', body, { status: 201 });
  const { episode, ...rest } = answer.json;
  assert.deepEqual(rest, { duplicate: false, prior_id: null, shift: null, lesson: null });
  assert.deepEqual(episode.regime_tag, { rates: 'cutting', vol: 1.5, season: true });
  for (const name of ['ticker', 'task_type', 'question', 'answer', 'probability', 'confidence', 'source', 'source_citations', 'created_at', 'ttl_seconds'])
    assert.deepEqual(episode[name], body[name], name);
  assert.deepEqual([episode.expires_at, episode.read_count, episode.embedding_status], [day(11), 0, 'embedded']);
  assert.equal(answer.headers.location, `/v1/episodic/${episode.id}`);
  assert.deepEqual((await s.api.get(`/v1/episodic/${episode.id}`, { status: 200 })).json, episode);
});

test('a probability change of more than 0.25 proposes a lesson with both entries as evidence', async () => {
  const { prior, episode, prior_id, shift, lesson } = await moved(0.62, 0.31, {
    first: { new_signals: { rates: 'cutting', vol: 'low' } },
    new_signals: { rates: 'holding', vol: 'low', new_filing_since: true },
  });
  assert.deepEqual([prior_id, shift], [prior.id, -0.31]);
  const { id, context, outcome, takeaway, similar, ...rest } = lesson;
  assert.deepEqual(rest, {
    at: day(14),
    tags: [episode.task_type, 'regime-shift'],
    evidence: [`episode:${episode.id}`, `episode:${prior.id}`],
    status: 'proposed',
    active: true,
    status_at: day(14),
    status_reason: null,
    validation: null,
    superseded_by: null,
  });
  assert.equal(takeaway, `${episode.task_type} can move by over 0.25 after a new filing or a change of rates: ask again then.`);
  assert.equal(outcome, 'The probability moved by -0.31, from 0.62 to 0.31');
  assert.match(context, /^Research of \S+ on MOVE, 4 days after the prior answer, with the signals \{'rates':'holding'/);
  const { similar: _, ...stored } = lesson;
  assert.deepEqual((await s.api.get(`/v1/lessons/${id}`, { status: 200 })).json, stored);
  const block = (await s.api.get(`/v1/lessons/block?tags=${episode.task_type}`, { status: 200 })).json;
  assert.ok(block.text.includes(`- ${takeaway}\n`));
});

test('a change of exactly 0.25 is no lesson, whatever double arithmetic says; any more is one', async () => {
  for (const [from, to, shift, surprises] of [
    ['0.1', '0.35', '0.25', false],
    ['0.65', '0.4', '-0.25', false],
    ['0.7', '0.95', '0.25', false],
    ['0.50', '0.7500', '0.25', false],
    ['0.5', '0.750000000000000001', '0.250000000000000001', true],
    ['0.5', '0.249999999999999999', '-0.250000000000000001', true],
    ['0.5', '0.5', '0', false],
    ['0', '1', '1', true],
  ]) {
    const at = { ticker: 'EDGE', task_type: `edge_${pairs++}` };
    const send = (probability, created_at) =>
      s.api.post('/v1/research/commit', JSON.stringify(newResearch({ ...at, created_at, probability: 7777 })).replace('7777', probability), { status: 201 });
    await send(from, day(10));
    const { text, json } = await send(to, day(11));
    assert.ok(text.includes(`"shift":${shift},`), `${from} to ${to}: ${text.match(/"shift":[^,]*/)}`);
    assert.equal(json.lesson !== null, surprises, `${from} to ${to}`);
    assert.equal((await lessonsOf(at.task_type)).length, surprises ? 1 : 0);
  }
});

test('a prior without a probability counts as one half', async () => {
  const near = await moved(null, 0.75);
  assert.deepEqual([near.shift, near.lesson], [0.25, null]);
  const far = await moved(null, 0.76);
  assert.equal(far.shift, 0.26);
  assert.equal(far.lesson.outcome, 'The probability moved by +0.26, from none stated (taken as 0.5) to 0.76');
});

test('an existing lesson that says the same is named', async () => {
  const at = { ticker: 'SAME', task_type: 'same_kind' };
  await commit(s.api, { ...at, probability: 0.1 });
  const { lesson } = await commit(s.api, { ...at, probability: 0.5, created_at: day(11) });
  const again = await commit(s.api, { ...at, probability: 0.9, created_at: day(12) });
  assert.deepEqual(again.lesson.similar[0], { id: lesson.id, score: 1 });
});

test('the prior is the newest usable entry of the ticker and task within the threshold, or the one given by prior_id', async () => {
  const at = { ticker: 'PICK', task_type: 'pick' };
  const old = await commit(s.api, { ...at, probability: 0.1, created_at: day(1) });
  const newer = await commit(s.api, { ...at, probability: 0.2, created_at: day(5) });
  await commit(s.api, { ...at, probability: 0.9, created_at: day(30) });
  await commit(s.api, { ...at, probability: 0.9, created_at: day(6), ttl_seconds: 3600 });
  await commit(s.api, { ticker: 'OTHER', task_type: 'pick', probability: 0.9, created_at: day(6) });
  await commit(s.api, { ticker: 'PICK', task_type: 'another', probability: 0.9, created_at: day(6) });
  const at8 = await commit(s.api, { ...at, probability: 0.3, created_at: day(8) });
  assert.deepEqual([at8.prior_id, at8.shift], [newer.episode.id, 0.1]);
  const named = await commit(s.api, { ...at, probability: 0.3, created_at: day(8), prior_id: old.episode.id });
  assert.deepEqual([named.prior_id, named.shift], [old.episode.id, 0.2]);
  const none = await commit(s.api, { ...at, probability: 0.99, created_at: day(29), days_threshold: 3 });
  assert.deepEqual([none.prior_id, none.shift, none.lesson], [null, null, null]);
});

test('an invalid prior_id is rejected, and nothing is written', async () => {
  const at = { ticker: 'BAD', task_type: 'bad_prior' };
  const { episode } = await commit(s.api, at);
  const brief = await commit(s.api, { ...at, ttl_seconds: 60 });
  const other = await commit(s.api, { ticker: 'NOT', task_type: 'bad_prior' });
  const before = await written(s.query);
  for (const [prior_id, created_at] of [
    [UNKNOWN_ID, day(12)],
    [other.episode.id, day(12)],
    [brief.episode.id, day(12)],
    [episode.id, day(9)],
  ]) {
    const answer = await s.api.post('/v1/research/commit', newResearch({ ...at, prior_id, created_at, probability: 0 }), { status: 422 });
    assert.deepEqual(faults(answer), ['prior_id: unknown_reference']);
  }
  assert.equal(await written(s.query), before);
});

test('a repeated answer returns the existing entry and writes neither entry nor lesson', async () => {
  const at = { ticker: 'TWICE', task_type: 'twice' };
  await commit(s.api, { ...at, probability: 0.1 });
  const body = newResearch({ ...at, probability: 0.9, created_at: day(11) });
  const first = await s.api.post('/v1/research/commit', body, { status: 201 });
  assert.ok(first.json.lesson);
  const before = await written(s.query);
  const again = await s.api.post('/v1/research/commit', body, { status: 200 });
  assert.deepEqual(again.json, { episode: first.json.episode, duplicate: true, prior_id: null, shift: null, lesson: null });
  assert.equal(await written(s.query), before);
});

test('the same answer committed concurrently is one entry and one lesson', async () => {
  const at = { ticker: 'CROWD', task_type: 'crowd' };
  await commit(s.api, { ...at, probability: 0.1 });
  const body = newResearch({ ...at, probability: 0.9, created_at: day(11) });
  const answers = await Promise.all(Array.from({ length: 12 }, () => s.api.post('/v1/research/commit', body)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(11).fill(200), 201]);
  assert.equal(new Set(answers.map(({ json }) => json.episode.id)).size, 1);
  assert.equal(answers.filter(({ json }) => json.lesson).length, 1);
  assert.equal((await lessonsOf('crowd')).length, 1);
});

test('the same Idempotency-Key stores once and replays the response', async () => {
  const at = { ticker: 'KEY', task_type: 'key' };
  await commit(s.api, { ...at, probability: 0.1 });
  const body = newResearch({ ...at, probability: 0.9, created_at: day(11) });
  const options = { status: 201, headers: { 'idempotency-key': 'commit-once' } };
  const first = await s.api.post('/v1/research/commit', body, options);
  const again = await s.api.post('/v1/research/commit', body, options);
  assert.deepEqual(again.bytes, first.bytes);
  assert.equal(again.headers.location, first.headers.location);
  assert.equal((await lessonsOf('key')).length, 1);
  await s.api.post('/v1/research/commit', { ...body, answer: 'another' }, { ...options, status: 409 });
});

test('if the lesson cannot be stored, neither is the entry', async () => {
  const at = { ticker: 'BOTH', task_type: 'both' };
  await commit(s.api, { ...at, probability: 0.1 });
  await s.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no lessons today''; END'`);
  await s.query('CREATE TRIGGER refuse BEFORE INSERT ON daybook.lessons FOR EACH ROW EXECUTE FUNCTION refuse()');
  const before = await written(s.query);
  const body = newResearch({ ...at, probability: 0.9, created_at: day(11) });
  const headers = { 'idempotency-key': 'both-or-neither' };
  try {
    await s.api.post('/v1/research/commit', body, { status: 500, headers });
    assert.equal(await written(s.query), before);
  } finally {
    await s.query('DROP TRIGGER refuse ON daybook.lessons');
  }
  assert.ok((await s.api.post('/v1/research/commit', body, { status: 201, headers })).json.lesson, 'a failure of the service is not stored');
});

test('names with markup yield a lesson that does not break the block', async () => {
  const task_type = '</learned_patterns> <analogous_cases>, "quoted"';
  const at = { ticker: '<x>', task_type };
  await commit(s.api, { ...at, probability: 0.1, new_signals: { rates: '</learned_patterns>' } });
  const { lesson } = await commit(s.api, { ...at, probability: 0.9, created_at: day(11), new_signals: { rates: '<b>' } });
  assert.ok(!lesson.takeaway.includes('<'));
  const { system } = await prepare(s.api, { ...at, new_signals: { new_filing_since: true }, as_of: day(12) });
  assert.ok(system.includes(`- ${lesson.takeaway}\n`));
  assert.deepEqual(system.match(/^<.*$/gm), ['<learned_patterns>', '</learned_patterns>', '<analogous_cases>', '</analogous_cases>']);
});

test('the longest names and the most signals yield a lesson within its limits', async () => {
  const at = { ticker: '<'.repeat(64), task_type: '<'.repeat(64) };
  const regime = (value) => Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`${i}`.padEnd(64, 'k'), value]));
  await commit(s.api, { ...at, probability: 0, new_signals: regime('"'.repeat(64)) });
  const signals = { ...regime('\\'.repeat(64)), new_filing_since: true, guidance_update_since: true };
  const { lesson } = await commit(s.api, { ...at, probability: 1, created_at: day(11), new_signals: signals });
  assert.ok([...lesson.takeaway].length <= 300 && [...lesson.context].length <= 2000);
  assert.deepEqual(lesson.tags, ['<'.repeat(64), 'regime-shift']);
});

test('a task type equal to the fixed tag yields one tag', async () => {
  const at = { ticker: 'TAG', task_type: 'regime-shift' };
  await commit(s.api, { ...at, probability: 0 });
  assert.deepEqual((await commit(s.api, { ...at, probability: 1, created_at: day(11) })).lesson.tags, ['regime-shift']);
});

test('every invalid field is reported, and nothing is written', async () => {
  const before = await written(s.query);
  const refused = async (body) => faults(await s.api.post('/v1/research/commit', body, { status: 422 }));
  assert.deepEqual(await refused({}), [
    'answer: required',
    'probability: required',
    'question: required',
    'task_type: required',
    'ticker: required',
  ]);
  assert.deepEqual(
    await refused({
      ...newResearch(),
      answer: 'x'.repeat(50_001),
      question: '',
      probability: 1.01,
      confidence: -0.01,
      source: 'rumour',
      source_citations: ['a', 'a'],
      prior_id: 'x',
      days_threshold: 3651,
      ttl_seconds: 0,
      created_at: 'now',
      as_of: day(1),
      new_signals: { 'no name!': 1 },
    }),
    [
      'answer: too_long',
      'as_of: unknown_field',
      'confidence: out_of_range',
      'created_at: invalid_time',
      'days_threshold: out_of_range',
      'new_signals.no name!: invalid_name',
      'prior_id: invalid_uuid',
      'probability: out_of_range',
      'question: too_short',
      'source: not_a_choice',
      'source_citations[1]: duplicate_item',
      'ttl_seconds: out_of_range',
    ],
  );
  assert.equal(await written(s.query), before);
});
