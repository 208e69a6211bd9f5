// should_rerun: the reasons, alone and combined, the prior and its age. Only a reuse counts as a read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEpisode, evict, shouldRerun } from '../lib/episodes.mjs';
import { day, faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';
import { exact } from '../lib/ticks.mjs';

const s = suite();
let tickers = 0;
const newTicker = () => `R${tickers++}`;
const readsOf = (id) => s.query('SELECT read_at, cost_usd, task_type FROM daybook.episodic_reads WHERE episode_id = $1 ORDER BY read_at', [id]);
const entryOf = async (id) => (await s.api.get(`/v1/episodic/${id}`, { status: 200 })).json;
const strip = ({ duplicate, ...entry }) => entry;

/** Creates an entry on day 10 and asks about it on day 12. */
async function newPrior(entry = {}) {
  const ticker = newTicker();
  const made = strip(await createEpisode(s.api, { ticker, created_at: day(10), confidence: 0.9, ...entry }));
  return { ticker, made, ask: (body = {}) => shouldRerun(s.api, { ticker, as_of: day(12), ...body }) };
}

test('without a prior the answer is to research', async () => {
  assert.deepEqual(await shouldRerun(s.api, { ticker: newTicker(), new_signals: { new_filing_since: true, rates: 'cutting' } }), {
    rerun: true,
    reasons: ['no_prior'],
    regime_keys: { changed: [], unknown: [] },
    prior: null,
    prior_age_days: null,
  });
});

test('a prior that still holds is returned in full with its age, and counts as one read', async () => {
  const { made, ask } = await newPrior({ regime_tag: { rates: 'cutting' }, probability: 0.7, source_citations: ['10-K'] });
  const answer = await ask({ new_signals: { rates: 'cutting', vol: 'low', new_filing_since: false, guidance_update_since: false }, cost_usd: exact('0.450') });
  assert.deepEqual(answer, { rerun: false, reasons: [], regime_keys: { changed: [], unknown: [] }, prior: made, prior_age_days: 2 });
  const { read_count, last_read_at } = await entryOf(made.id);
  assert.deepEqual([read_count, last_read_at], [1, day(12)]);
  const reads = await readsOf(made.id);
  assert.deepEqual(reads.map((r) => [r.read_at.toISOString(), r.cost_usd, r.task_type]), [[`${day(12).slice(0, -1)}.000Z`, '0.450', 'guidance_tone']]);
});

test('each reason is reported alone, and all of them in a fixed order', async () => {
  const { ask } = await newPrior({ regime_tag: { rates: 'cutting', vix: 18.5, season: true } });
  const same = { rates: 'cutting', vix: 18.5, season: true };
  const of = async (signals) => {
    const { rerun, reasons, regime_keys } = await ask({ new_signals: { ...same, ...signals } });
    assert.equal(rerun, reasons.length > 0);
    return [reasons, regime_keys.changed, regime_keys.unknown];
  };
  assert.deepEqual(await of({}), [[], [], []]);
  assert.deepEqual(await of({ vix: exact('1.850e1') }), [[], [], []]);
  assert.deepEqual(await of({ more: 'says nothing' }), [[], [], []]);
  assert.deepEqual(await of({ new_filing_since: true }), [['new_filing'], [], []]);
  assert.deepEqual(await of({ guidance_update_since: true }), [['guidance_update'], [], []]);
  assert.deepEqual(await of({ rates: 'holding' }), [['regime_changed'], ['rates'], []]);
  assert.deepEqual(await of({ season: 'true' }), [['regime_changed'], ['season'], []]);
  assert.deepEqual(await of({ vix: undefined }), [['regime_unknown'], [], ['vix']]);
  assert.deepEqual(await of({ rates: 'holding', vix: 18.6, season: undefined }), [['regime_changed', 'regime_unknown'], ['rates', 'vix'].sort((a, b) => a.length - b.length), ['season']]);

  const weak = await newPrior({ confidence: 0.3, regime_tag: { rates: 'cutting', vol: 'low' } });
  const all = await weak.ask({ new_signals: { rates: 'holding', new_filing_since: true, guidance_update_since: true } });
  assert.deepEqual(all.reasons, ['new_filing', 'guidance_update', 'regime_changed', 'regime_unknown', 'low_confidence']);
  assert.equal(all.prior.id, weak.made.id, 'the prior is still returned');
  assert.equal((await entryOf(weak.made.id)).read_count, 0, 'and does not count as read');
  assert.deepEqual(await readsOf(weak.made.id), []);
});

test('confidence below 0.55 is low, whether stated or derived from the source', async () => {
  for (const [entry, reasons] of [
    [{ confidence: exact('0.55') }, []],
    [{ confidence: exact('0.549999999999999999') }, ['low_confidence']],
    [{ confidence: undefined, source: 'agent_inferred' }, []],
    [{ confidence: undefined, source: 'recalled' }, ['low_confidence']],
  ])
    assert.deepEqual((await (await newPrior(entry)).ask()).reasons, reasons, JSON.stringify(entry));
});

test('the prior is the newest entry of the requested number of days', async () => {
  const ticker = newTicker();
  const old = await createEpisode(s.api, { ticker, created_at: day(10) });
  const newer = await createEpisode(s.api, { ticker, created_at: day(20) });
  await createEpisode(s.api, { ticker, task_type: 'another', created_at: day(21) });
  const of = async (as_of, days_threshold) => (await shouldRerun(s.api, { ticker, as_of, days_threshold })).prior?.id;
  assert.equal(await of(day(21)), newer.id);
  assert.equal(await of(day(19)), old.id, 'a later entry is not visible');
  assert.equal(await of(day(10)), old.id, 'the instant itself is included');
  assert.equal(await of(day(34)), newer.id, 'the default is fourteen days');
  assert.equal(await of(day(34, '00:00:00.000001')), undefined);
  assert.equal(await of(day(36), 16), newer.id);
  assert.equal(await of(day(36), 15), undefined);
  assert.equal((await shouldRerun(s.api, { ticker, as_of: day(20, '18:00:00') })).prior_age_days, 0.75);
});

test('an entry is no prior once it has expired or been evicted', async () => {
  const { ticker, made } = await newPrior({ ttl_seconds: 86400 * 3 });
  const at = async (n, time) => (await shouldRerun(s.api, { ticker, as_of: day(n, time) })).prior?.id;
  assert.equal(await at(12, '23:59:59.999999'), made.id);
  assert.equal(await at(13), undefined, 'it expires exactly at expires_at');
  const second = await newPrior();
  await evict(s.api, { ticker: second.ticker, dry_run: false, policies: ['time'], max_age_days: 1, at: day(14) });
  const of = async (n) => (await shouldRerun(s.api, { ticker: second.ticker, as_of: day(n) })).prior?.id;
  assert.equal(await of(13), second.made.id);
  assert.equal(await of(14), undefined);
});

test('with as_of the prior has the reads of that instant', async () => {
  const { ticker, made } = await newPrior();
  for (const n of [11, 13, 15]) await shouldRerun(s.api, { ticker, as_of: day(n) });
  assert.equal((await shouldRerun(s.api, { ticker, as_of: day(12) })).prior.read_count, 1);
  const { read_count, last_read_at } = await entryOf(made.id);
  assert.deepEqual([read_count, last_read_at], [4, day(15)], 'a read dated earlier does not change last_read_at');
});

test('concurrent reads are all counted, with and without an Idempotency-Key', async () => {
  const { made, ask } = await newPrior();
  await Promise.all(Array.from({ length: 40 }, (_, i) => shouldRerun(s.api, { ticker: made.ticker, as_of: day(12) }, { headers: i % 2 ? {} : { 'idempotency-key': `reuse-${i}` } })));
  await Promise.all(Array.from({ length: 10 }, () => shouldRerun(s.api, { ticker: made.ticker, as_of: day(12) }, { headers: { 'idempotency-key': 'reuse-0' }, status: undefined })));
  assert.equal((await entryOf(made.id)).read_count, 40);
  assert.equal((await readsOf(made.id)).length, 40);
  assert.equal((await ask()).prior.read_count, 40);
});

test('concurrent requests each get their own prior', async () => {
  const made = await Promise.all(Array.from({ length: 30 }, () => newPrior()));
  const answers = await Promise.all(made.map(({ ask }, i) => (i % 3 ? ask() : shouldRerun(s.api, { ticker: `NONE${i}`, as_of: day(12) }))));
  assert.deepEqual(answers.map((a) => a.prior?.id), made.map((m, i) => (i % 3 ? m.made.id : undefined)));
});

test('every invalid field is rejected by name', async () => {
  const refused = async (body) => faults(await s.api.post('/v1/episodic/should_rerun', body, { status: 422 }));
  assert.deepEqual(await refused({}), ['task_type: required', 'ticker: required']);
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', days_threshold: 0, cost_usd: -1, as_of: 'now', k: 1 }), [
    'as_of: invalid_time',
    'cost_usd: out_of_range',
    'days_threshold: out_of_range',
    'k: unknown_field',
  ]);
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', days_threshold: 3651 }), ['days_threshold: out_of_range']);
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', new_signals: { new_filing_since: 'yes', guidance_update_since: 1, rates: 'x' } }), [
    'new_signals.guidance_update_since: wrong_type',
    'new_signals.new_filing_since: wrong_type',
  ]);
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', new_signals: { rates: null, vol: [], 'a b': 1 } }), [
    'new_signals.a b: invalid_name',
    'new_signals.rates: wrong_type',
    'new_signals.vol: wrong_type',
  ]);
  const many = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', new_signals: many(17) }), ['new_signals: too_many']);
  assert.deepEqual(await refused({ ticker: 'A', task_type: 'b', new_signals: many(19) }), ['new_signals: too_many']);
  await shouldRerun(s.api, { new_signals: { ...many(16), new_filing_since: true, guidance_update_since: false } });
});
