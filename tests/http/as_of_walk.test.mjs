// A backtest must not see its own future. Every read in the contract is sent with an as_of in the past; then newer rows of every kind are
// written, and the same reads must return the same bytes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openapi, operations } from '../lib/contract.mjs';
import { openThesis, order, remember } from '../lib/journal.mjs';
import { addRows } from '../lib/exports.mjs';
import { correctFact, decayFacts, factPath, putFact, verifyFact } from '../lib/facts.mjs';
import { deploy, position, postTick, putVersion } from '../lib/ledger.mjs';
import { create, day, OUTCOME } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { commit, newResearch, prepare } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';
import { addNote, randomOf } from '../lib/ticks.mjs';

const s = suite();
const w = {}; // ids of the rows created in the past

const LATE = day(90);
/** The instants to read at: before, at and after a past event, and at the end of the past. */
const INSTANTS = [day(5), day(10), day(15, '00:00:00.000001'), day(20)];
/** More of them, for the journal. */
const random = randomOf(50);
const RANDOM_INSTANTS = Array.from({ length: 50 }, () => new Date(Date.parse(day(3)) + Math.floor(random() * 18 * 86_400_000)).toISOString());

// ---- the reads to check ----

const follow = (object) => {
  if (!object?.$ref) return object;
  return object.$ref.split('/').slice(1).reduce((at, key) => at[key], openapi);
};
const parametersOf = ({ operation }) => (operation.parameters ?? []).map(follow);
const bodyOf = ({ operation }) => follow(operation.requestBody?.content['application/json']?.schema)?.properties ?? {};
const nameOf = ({ method, path }) => `${method} ${path}`;
const hasAsOf = (o) => parametersOf(o).some((p) => p.in === 'query' && p.name === 'as_of') || 'as_of' in bodyOf(o);
/** GET requests, and the POSTs that change nothing and therefore take no Idempotency-Key. */
const isRead = (o) => o.path.startsWith('/v1/') && (o.method === 'GET' || (o.method === 'POST' && !parametersOf(o).some((p) => p.name === 'Idempotency-Key')));

/** Reads without as_of, each with the reason it needs none. */
const TIMELESS = {
  'POST /v1/materialize': 'computes from its body only',
  'POST /v1/regime': 'computes from its body only',
  'GET /v1/embeddings': 'describes the service as it is now',
  'GET /v1/memory_events/verify': 'checks the stored rows as they are now, in the order in which they were written',
  'POST /v1/write_policy/check': 'answers what the policy of now would do, by which every write is judged, whatever its time',
  'POST /v1/embeddings/rebuild': 'writes vectors, which can be rebuilt from the entries at any time',
};

/** Operations with as_of that this test skips, each with the reason. */
const NOT_ASKED = {
  'POST /v1/research/step': 'calls a model and writes; it reads what /v1/research/prepare reads',
  'POST /v1/deployments/{id}/reflect': 'writes, and rejects an instant before the active note; reflect.test.mjs covers as_of',
};

/** The requests to send for each operation: queries for a GET, bodies for a POST, without as_of. */
const ASKS = {
  'GET /v1/lessons': () => ['', '?status=proposed', '?status=retired', '?active=true', '?tags=regime-shift', '?tags_all=all', '?text=odds'],
  'GET /v1/lessons/{id}': () => w.lessons.map((id) => ({ id })),
  'GET /v1/lessons/{id}/history': () => w.lessons.map((id) => ({ id })),
  'GET /v1/lessons/block': () => ['', '?tags=all', '?max_tokens=60', '?status=validated'],
  'GET /v1/lessons/export': () => ['?format=md', '?format=jsonl', '?format=csv', '?format=parquet'],
  'GET /v1/lessons/curation': () => ['', '?stale_days=1'],
  'GET /v1/facts': () => ['', '?scope=desk', '?prefix=rates', '?archived=true', '?stale=true', '?needs_verification=true', '?source=agent_inferred', '?limit=2'],
  'GET /v1/facts/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/facts/{key}': () => w.facts.map((key) => ({ key })),
  'GET /v1/facts/{key}/history': () => w.facts.map((key) => ({ key })),
  'POST /v1/facts/merge': () => ['global', 'desk'].map((scope) => ({ body: { scope, corrections: [{ key: 'rates.view', value: 'corrected' }], at: day(3) } })),
  'GET /v1/write_policy': () => [''],
  'GET /v1/deployments/{id}/risk_state': () => w.deployments.map((id) => ({ id })),
  'GET /v1/deployments/{id}/context': () => w.deployments.flatMap((id) => ['', '?k=1', '?max_tokens=80', '?recall=a%20long%20position', '?journal=true'].map((query) => ({ id, query }))),
  'POST /v1/deployments/{id}/recall': () =>
    w.deployments.flatMap((id) => ['deployment', 'skill'].map((scope) => ({ id, body: { text: 'a long position', scope, min_similarity: 0, k: 50 } }))),
  'GET /v1/decision_snapshots': () => ['', '?engine_kind=rejected', `?deployment_id=${w.deployments[0]}`],
  'GET /v1/decision_snapshots/{id}': () => w.snapshots.map((id) => ({ id })),
  'GET /v1/decision_snapshots/{id}/context': () => w.snapshots.flatMap((id) => [{ id }, { id, query: '?journal=true' }]),
  'GET /v1/reflections': () => ['', '?outcome=skipped', `?deployment_id=${w.deployments[0]}`],
  'GET /v1/deployments/{id}/lessons_segment': () => w.deployments.flatMap((id) => ['', '?suppress=sizing'].map((query) => ({ id, query }))),
  'GET /v1/reflection_notes': () => ['', '?diff=true', '?status=active', '?status=superseded', '?scope=skill', `?deployment_id=${w.deployments[0]}`, `?skill_id=${w.skill}&version=v1`],
  'GET /v1/reflection_notes/{id}': () => w.notes.map((id) => ({ id })),
  'GET /v1/memory_events': () => ['?journal=owner', '?limit=200', '?kind=lesson.proposed', `?subject_id=${w.lessons[0]}`, '?after_seq=2', ...w.deployments.map((id) => `?deployment_id=${id}`)],
  'GET /v1/memory_retrievals': () => ['', '?kind=episodic', '?symbol=BTC', `?memory_id=${w.theses[0]}`, ...w.deployments.map((id) => `?deployment_id=${id}`)],
  'GET /v1/memory_retrievals/{id}': () => w.retrievals.map((id) => ({ id })),
  'POST /v1/memories/search': () => [
    ...['', 'miners and a later text', 'odds of a later day'].map((text) => ({ body: { text: text || undefined, k: 50, max_tokens: 4000 } })),
    { body: { text: 'spot demand', kind: ['thesis'], status: ['open', 'closed'], symbol: 'BTC', k: 50 } },
    { body: { tags: ['all', 'later'], k: 50 } },
    { body: { kind: ['lesson'], status: ['proposed', 'validated', 'retired', 'superseded'], k: 50 } },
    ...w.deployments.map((deployment_id) => ({ body: { text: 'funding flipped', deployment_id, k: 50 } })),
  ],
  'GET /v1/memory_state': () => ['', ...w.deployments.map((id) => `?deployment_id=${id}`)],
  'GET /v1/trade_history/{id}/story': () => w.trades.map((id) => ({ id })),
  'GET /v1/skills': () => [''],
  'GET /v1/skills/{skill_id}/versions': () => [{ skill_id: w.skill }],
  'GET /v1/skills/{skill_id}/versions/{version}': () => [{ skill_id: w.skill, version: 'v1' }],
  'GET /v1/skills/{skill_id}/ab': () => ['', '?symbol=BTC', '?mode=sim'].map((query) => ({ skill_id: w.skill, query })),
  'GET /v1/deployments': () => ['', '?mode=sim', `?skill_id=${w.skill}`],
  'GET /v1/deployments/{id}': () => w.deployments.map((id) => ({ id })),
  'GET /v1/trade_history': () => ['', '?status=open', '?status=closed', '?symbol=BTC', '?side=long'],
  'GET /v1/trade_history/{id}': () => w.trades.map((id) => ({ id })),
  'GET /v1/trade_history/stats': () => ['', '?group_by=symbol', '?group_by=month', '?group_by=lessons'],
  'GET /v1/memories': () => ['', '?status=any', '?status=retracted', '?kind=risk_note', '?symbol=BTC', '?tags=all', `?deployment_id=${w.deployments[0]}`],
  'GET /v1/memories/{id}': () => w.memories.map((id) => ({ id })),
  'GET /v1/memories/{id}/history': () => w.memories.map((id) => ({ id })),
  'GET /v1/theses': () => ['', '?status=open', '?status=closed', '?symbol=BTC', `?deployment_id=${w.deployments[0]}`],
  'GET /v1/theses/{id}': () => w.theses.map((id) => ({ id })),
  'GET /v1/theses/{id}/history': () => w.theses.map((id) => ({ id })),
  'GET /v1/orders': () => ['', '?outcome=unknown', '?outcome=none', '?outcome=filled', '?symbol=BTC', `?deployment_id=${w.deployments[0]}`],
  'GET /v1/orders/{id}': () => w.orders.map((id) => ({ id })),
  'GET /v1/trade_history/export': () => ['?format=csv', '?format=ndjson', '?format=parquet'],
  'GET /v1/episodic/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/decision_snapshots/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/reflection_notes/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/memories/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/theses/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/orders/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/memory_retrievals/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/memory_events/export': () => ['?format=ndjson', '?format=parquet'],
  'GET /v1/episodic': () => ['', '?ticker=ACME', '?task_type=tone', '?archived=true', '?min_confidence=0.7', '?source=external', '?limit=2'],
  'GET /v1/episodic/{id}': () => w.entries.map((id) => ({ id })),
  'GET /v1/research/savings': () => ['', '?task_type=tone', `?since=${day(8)}`],
  // new_filing_since prevents reuse: a reuse would write.
  'POST /v1/episodic/should_rerun': () =>
    ['ACME', 'BETA', 'GONE', 'BACK'].map((ticker) => ({ body: { ticker, task_type: 'tone', new_signals: { new_filing_since: true }, days_threshold: 365 } })),
  'POST /v1/research/prepare': () =>
    ['ACME', 'BETA', 'NEW'].map((ticker) => ({
      body: { ticker, task_type: 'tone', question: 'Does the tone of guidance hold?', new_signals: { new_filing_since: true }, k: 20, max_tokens: 20_000 },
    })),
  'POST /v1/episodic/search': () => [
    ...['hybrid', 'vector', 'text'].map((mode) => ({ body: { text: 'Does the tone of guidance hold?', mode, k: 100 } })),
    { body: { id: w.entries[0], k: 100 } },
    { body: { text: 'orders and guidance', regime: { rates: 'cutting' }, min_confidence: 0.5, task_type: 'tone' } },
    { body: { vector: [0.1, 0.9, 0.2], model: 'mine', k: 100 } },
  ],
};

/** Reads of immutable rows. */
const UNCHANGING = {
  'GET /v1/decision_snapshots/{id}': 'a tick that is stored stays as it is',
  'GET /v1/memory_retrievals/{id}': 'a search on record stays as it is',
  'GET /v1/decision_snapshots/{id}/context': 'the context of a tick can be made again, byte for byte',
  'GET /v1/skills/{skill_id}/versions/{version}': 'a version that is deployed does not change',
  'GET /v1/deployments/{id}': 'a deployment does not change',
};

/** A dry-run eviction is a read as well; it calls its instant `at`. */
const DRY_RUN = { dry_run: true, max_age_days: 3, keep_per_pair: 1, unread_days: 1, samples: 100 };

async function ask({ method, path }, { query = '', body, ...names }, as_of) {
  const at = path.replace(/\{(\w+)\}/g, (_, name) => names[name]);
  if (method === 'POST') return s.api.post(at, { ...body, as_of }, { status: 200 });
  const answer = await s.api.get(`${at}${query}${query ? '&' : '?'}as_of=${as_of}`);
  assert.ok([200, 404].includes(answer.status), `${at}: ${answer.text}`); // 404: the row did not exist yet
  return answer;
}

/** The text to compare. A problem document names its request, so every 404 counts as the same; each search has an id of its own. */
const textOf = (answer) => (answer.status === 404 ? '404' : answer.text.replace(/^\{"retrieval_id":"[^"]+",/, '{'));

/** A search leaves a record at its instant, which other reads of that instant show. */
const isSearch = (o) => nameOf(o) === 'POST /v1/memories/search';
/** The reads of the journal that are fast enough for many instants. */
const isOfJournal = ({ path }) => /^\/v1\/(memor|theses|orders|trade_history\/\{id\}\/story)/.test(path) && !path.endsWith('/export');

/** Adds every response of these operations at that instant, keyed by "METHOD path what". */
async function askOf(asked, answers, as_of) {
  for (const o of asked)
    for (const what of ASKS[nameOf(o)]()) {
      const request = typeof what === 'string' ? { query: what } : what;
      answers.set(`${nameOf(o)} ${JSON.stringify(what)}`, textOf(await ask(o, request, as_of)));
    }
}

/** Every response at each instant: {instant: {what: text}}. `searchesFirst`: then the other reads show
 * the records of these searches; otherwise those of earlier ones only. */
async function askAll(searchesFirst) {
  const all = operations.filter((operation) => ASKS[nameOf(operation)]);
  const answers = new Map([...INSTANTS, LATE, ...RANDOM_INSTANTS].map((instant) => [instant, new Map()]));
  const search = async () => {
    for (const [instant, found] of answers) await askOf(all.filter(isSearch), found, instant);
  };
  if (searchesFirst) await search();
  for (const [instant, found] of answers) {
    const few = RANDOM_INSTANTS.includes(instant);
    await askOf(all.filter((o) => !isSearch(o) && (!few || isOfJournal(o))), found, instant);
    if (!few) found.set('POST /v1/episodic/evict dry run', (await s.api.post('/v1/episodic/evict', { ...DRY_RUN, at: instant }, { status: 200 })).text);
  }
  if (!searchesFirst) await search();
  return answers;
}

/** A search shows which memories have a vector. */
const allEmbedded = () => until(async () => (await s.query("SELECT FROM daybook.memory_texts WHERE embedding_status = 'pending'")).length === 0, 'every text has a vector');

// ---- the past and the future ----

const entry = async (changes, options) => (await s.api.post('/v1/episodic', newResearch({ task_type: 'tone', ...changes }), { status: 201, ...options })).json;
const reuse = async (ticker, at) => {
  const { json } = await s.api.post('/v1/episodic/should_rerun', { ticker, task_type: 'tone', as_of: at, cost_usd: 0.25, days_threshold: 60 }, { status: 200 });
  assert.equal(json.rerun, false, `${ticker} is reused at ${at}`);
};
const evict = async (ticker, at) => {
  const { json } = await s.api.post('/v1/episodic/evict', { policies: ['time'], max_age_days: 1, ticker, at, dry_run: false }, { status: 200 });
  assert.ok(json.evicted > 0, `${ticker} is evicted at ${at}`);
  return json.eviction_id;
};
const change = (id, what, body) => s.api.post(`/v1/lessons/${id}/${what}`, body, { status: 200 });

async function makeLessons() {
  const lessons = [];
  for (let n = 1; n <= 8; n++) lessons.push(await create(s.api, { at: day(n), tags: ['all', n % 2 ? 'calibration' : 'tone'] }));
  lessons.push(await create(s.api, { at: day(9), tags: ['all'], takeaway: `${lessons[0].takeaway} again` }));
  w.lessons = lessons.map(({ id }) => id);
  await change(w.lessons[0], 'validate', { outcome: OUTCOME, at: day(10) });
  await change(w.lessons[1], 'retire', { reason: 'over', at: day(11) });
  await change(w.lessons[2], 'supersede', { by: w.lessons[3], at: day(12) });
}

async function makeLedger() {
  w.skill = (await putVersion(s.api, { at: day(1), strategy: 'Buy the pullback' })).skill_id;
  const at = { skill_id: w.skill, version: 'v1', at: day(2) };
  w.deployments = [(await deploy(s.api, { ...at, mode: 'sim' })).id, (await deploy(s.api, { ...at, mode: 'paper' })).id];
  const snapshots = [];
  for (const id of w.deployments) {
    await addNote(s.query, id, { hash: '00000000000000aa', at: day(3) });
    for (const [n, positions] of [
      [4, [position('BTC', 100), position('ETH', 10)]],
      [9, [position('BTC', 110), position('ETH', 9)]],
      [14, [position('BTC', 120)]],
    ])
      snapshots.push((await postTick(s.api, id, day(n), { positions, marks: { ETH: 8 }, engine: { kind: n === 9 ? 'rejected' : 'executed', rule: n === 9 ? 'too_large' : undefined } })).snapshot_id);
  }
  w.snapshots = snapshots;
  w.notes = (await s.api.get('/v1/reflection_notes', { status: 200 })).json.items.map(({ id }) => id);
  w.notes.push((await s.api.post(`/v1/reflection_notes/${w.notes[0]}/promote`, { at: day(10) }, { status: 201 })).json.id);
  w.trades = (await s.api.get('/v1/trade_history', { status: 200 })).json.items.map(({ id }) => id);
  assert.equal(w.trades.length, 4);
}

/** Attempts to reflect; an attempt is stored even when no reflection is due. */
async function makeReflections(at) {
  for (const id of w.deployments) assert.equal((await s.api.post(`/v1/deployments/${id}/reflect`, { as_of: at }, { status: 200 })).json.outcome, 'skipped');
}

async function makeEntries() {
  const made = [];
  made.push(await entry({ ticker: 'ACME', created_at: day(3), regime_tag: { rates: 'cutting' } }));
  made.push(await entry({ ticker: 'BETA', created_at: day(4), source: 'external', confidence: undefined }));
  made.push(await entry({ ticker: 'GONE', created_at: day(4), probability: undefined }));
  made.push(await entry({ ticker: 'BACK', created_at: day(4) }));
  made.push(await entry({ ticker: 'BRIEF', created_at: day(4), ttl_seconds: 10 * 86400 }));
  made.push(await entry({ ticker: 'MINE', created_at: day(5), embedding: [1, 2, 3], embedding_model: 'mine' }));
  made.push((await commit(s.api, { ticker: 'ACME', task_type: 'tone', created_at: day(9), probability: 0.95 })).episode);
  w.entries = made.map(({ id }) => id);
  await reuse('GONE', day(6));
  await evict('GONE', day(7));
  const run = await evict('BACK', day(8));
  await s.api.post('/v1/episodic/restore', { eviction_id: run, at: day(12) }, { status: 200 });
  await reuse('ACME', day(11));
  w.lessons.push(...(await s.api.get('/v1/lessons?tags=regime-shift', { status: 200 })).json.items.map(({ id }) => id));
}

const changeThesis = (id, body) => s.api('PATCH', `/v1/theses/${id}`, { body, status: 200 });
const closeThesis = (id, body) => s.api.post(`/v1/theses/${id}/close`, { reason: 'done', ...body }, { status: 200 });
const retract = (id, at) => s.api.post(`/v1/memories/${id}/retract`, { reason: 'wrong', at }, { status: 200 });
const report = (id, outcome, at) => s.api.post(`/v1/orders/${id}/outcome`, { outcome, at }, { status: 200 });

const searchMemories = async (body) => (await s.api.post('/v1/memories/search', body, { status: 200 })).json;

async function makeJournal() {
  [w.memories, w.theses, w.orders, w.retrievals] = [[], [], [], []];
  for (const deployment_id of w.deployments) {
    const of = { deployment_id, symbol: 'BTC' };
    const [kept, closed] = [await openThesis(s.api, { ...of, at: day(4) }), await openThesis(s.api, { ...of, parallel: true, at: day(5) })];
    await changeThesis(kept.id, { target: 'higher', at: day(10) });
    await closeThesis(closed.id, { at: day(15) });
    w.theses.push(kept.id, closed.id);
    const notes = [
      await remember(s.api, { ...of, thesis_id: kept.id, tags: ['all'], at: day(5) }),
      await remember(s.api, { ...of, kind: 'risk_note', at: day(9) }),
      await remember(s.api, { ...of, kind: 'decision', action: 'buy', at: day(10) }),
    ];
    await retract(notes[1].id, day(15));
    w.memories.push(...notes.map(({ id }) => id));
    const orders = [await order(s.api, { ...of, at: day(4) }), await order(s.api, { ...of, at: day(10) }), await order(s.api, { ...of, at: day(11) })];
    await report(orders[0].id, 'filled', day(6));
    await report(orders[1].id, 'unknown', day(11));
    w.orders.push(...orders.map(({ id }) => id));
    for (const n of [10, 16]) w.retrievals.push((await searchMemories({ text: 'spot demand', ...of, as_of: day(n) })).retrieval_id);
  }
}

/** Facts that were corrected, confirmed, decayed, deleted and restored in the past, one that expires, and memories about them. */
async function makeFacts() {
  w.facts = ['rates.view', 'confirmed', 'fading', 'deleted', 'expiring', 'archived', 'global.only'];
  for (const scope of ['global', 'desk']) {
    const put = (key, changes) => putFact(s.api, key, { value: key, source: 'agent_inferred', at: day(3), ...changes }, { scope });
    for (const key of w.facts.slice(0, 6)) await put(key);
    await put('expiring', { value: 'short', ttl_seconds: 7 * 86400, at: day(4) });
    await put('archived', { confidence: 0.35, at: day(4) });
    await correctFact(s.api, 'rates.view', { value: 'cutting', at: day(8) }, { scope });
    await verifyFact(s.api, 'confirmed', { at: day(9) }, { scope });
    await decayFacts(s.api, { scope, dry_run: false, at: day(7) });
    await s.api('DELETE', factPath('deleted', '', { scope, at: day(12) }), { status: 204 });
    await s.api.post(factPath('archived', '/restore', { scope }), { at: day(14) }, { status: 200 });
  }
  await putFact(s.api, 'global.only', { at: day(5) });
  await remember(s.api, { text: 'We think that they will hike', tags: ['rates.view'], ttl_days: 9, at: day(6) });
  await s.api('PUT', '/v1/write_policy', { body: { types: [RULE('user_stated_preference'), RULE('extra')], at: day(6) }, status: 200 });
}
const RULE = (observation_type) => ({ observation_type, store: true, ttl_seconds: null });

async function addFutureFacts() {
  for (const scope of ['global', 'desk']) {
    await putFact(s.api, 'rates.view', { value: 'hiking', at: day(30) }, { scope });
    await verifyFact(s.api, 'archived', { at: day(30) }, { scope });
    await putFact(s.api, 'deleted', { at: day(30) }, { scope });
    await decayFacts(s.api, { scope, dry_run: false, at: day(31) });
    await s.api('DELETE', factPath('confirmed', '', { scope, at: day(31) }), { status: 204 });
    await putFact(s.api, 'new', { at: day(31) }, { scope });
  }
  await remember(s.api, { text: 'They held', tags: ['rates.view'], at: day(30) });
  await s.api('PUT', '/v1/write_policy', { body: { types: [RULE('user_stated_preference')], at: day(32) }, status: 200 });
}

async function addFutureJournal() {
  for (const [i, deployment_id] of w.deployments.entries()) {
    const of = { deployment_id, symbol: 'BTC' };
    await changeThesis(w.theses[2 * i], { text: 'a later text', tags: ['later'], at: day(30) });
    await closeThesis(w.theses[2 * i], { at: day(31) });
    await openThesis(s.api, { ...of, at: day(32) });
    await retract(w.memories[3 * i], day(30));
    await remember(s.api, { ...of, kind: 'risk_note', tags: ['all'], at: day(30) });
    await report(w.orders[3 * i + 1], 'filled', day(30));
    await report(w.orders[3 * i + 2], 'unknown', day(30));
    await order(s.api, { ...of, at: day(30) });
    await searchMemories({ text: 'spot demand', ...of, as_of: day(30) });
  }
}

async function addFutureLessons() {
  const [validated, , , fourth, fifth, sixth, seventh] = w.lessons;
  await change(validated, 'retire', { reason: 'later', at: day(30) });
  await change(fourth, 'validate', { outcome: OUTCOME, at: day(30) });
  const next = await create(s.api, { at: day(31), tags: ['all', 'calibration', 'tone'], takeaway: 'Never trust the odds of a later day' });
  await change(fifth, 'supersede', { by: next.id, at: day(32) });
  await s.api.post('/v1/lessons/merge', { into: sixth, ids: [seventh], at: day(33) }, { status: 200 });
  for (const id of w.lessons.slice(7)) await change(id, 'retire', { reason: 'all over', at: day(34) });
}

async function addFutureLedger() {
  for (const id of w.deployments) {
    await s.query("UPDATE daybook.reflection_notes SET status = 'superseded', superseded_at = $2 WHERE deployment_id = $1", [id, day(29)]);
    await addNote(s.query, id, { hash: '00000000000000bb', at: day(29) });
    const [next] = (await s.api.get(`/v1/reflection_notes?deployment_id=${id}`, { status: 200 })).json.items;
    await s.api.post(`/v1/reflection_notes/${next.id}/promote`, { at: day(30) });
    await postTick(s.api, id, day(30), { positions: [position('BTC', 90), position('SOL', 5)], engine: { kind: 'rejected', rule: 'too_late' } });
    await postTick(s.api, id, day(31), { positions: [position('SOL', 6)], marks: { BTC: 80 } });
  }
  await putVersion(s.api, { skill_id: w.skill, version: 'v2', at: day(30), strategy: 'Sell the rally' });
  await putVersion(s.api, { at: day(30) });
  await deploy(s.api, { skill_id: w.skill, version: 'v2', mode: 'sim', at: day(31) });
}

async function addFutureEntries() {
  await reuse('ACME', day(21));
  await reuse('BACK', day(22));
  assert.equal((await prepare(s.api, { ticker: 'MINE', task_type: 'tone', as_of: day(23), days_threshold: 30, cost_usd: 1 })).source, 'cached');
  const surprising = await commit(s.api, { ticker: 'ACME', task_type: 'tone', created_at: day(22), probability: 0.05 });
  assert.ok(surprising.lesson);
  for (const ticker of ['BETA', 'BACK', 'NEW', 'OTHER'])
    await entry({ ticker, created_at: day(24), source: 'external', question: 'Does the tone of guidance hold?', answer: `It holds (${ticker}).` });
  await entry({ ticker: 'MINE', created_at: day(24), embedding: [1, 2, 3.5], embedding_model: 'mine' });
  for (const ticker of ['ACME', 'BETA', 'BRIEF']) await evict(ticker, day(40));
  const run = await evict('MINE', day(41));
  await s.api.post('/v1/episodic/restore', { eviction_id: run, at: day(42) }, { status: 200 });
  await s.api.post('/v1/episodic/restore', { ids: [w.entries[2]], at: day(43) }, { status: 200 });
}

async function addFutureSearches() {
  await s.api.post('/v1/episodic/search', { text: 'Does the tone of guidance hold?', record: true, as_of: day(44) }, { status: 200 });
  await searchMemories({ text: 'spot demand', as_of: day(44) });
}

/** Rows of the journal. */
async function addJournal(at) {
  for (const name of ['memories', 'theses', 'orders', 'memory_events', 'memory_retrievals']) await addRows(s.query, { id: w.deployments[0] }, name, 3, at);
}

// ---- the tests ----

test('every read of stored data takes as_of', () => {
  const without = operations.filter((o) => isRead(o) && !hasAsOf(o)).map(nameOf);
  assert.deepEqual(without.filter((name) => !TIMELESS[name]), []);
});

test('this test covers every operation that takes as_of', () => {
  const withAsOf = operations.filter(hasAsOf).map(nameOf);
  assert.deepEqual(withAsOf.filter((name) => !ASKS[name] && !NOT_ASKED[name]), []);
  assert.ok(withAsOf.length > 20);
});

test('newer rows of every kind change no response about the past', async () => {
  await makeLessons();
  await makeLedger();
  await makeReflections(day(16));
  await makeJournal();
  await makeEntries();
  await makeFacts();
  await addJournal(day(10));
  await allEmbedded();
  const past = await askAll(true);
  await addFutureLessons();
  await addFutureLedger();
  await addFutureJournal();
  await makeReflections(day(35));
  await addFutureEntries();
  await addFutureFacts();
  await addFutureSearches();
  await addJournal(day(44));
  await allEmbedded();
  const now = await askAll(false);
  for (const instant of [...INSTANTS, ...RANDOM_INSTANTS])
    for (const [what, text] of now.get(instant)) assert.equal(text, past.get(instant).get(what), `${what} at ${instant}`);

  // Proof that the newer rows are visible at all: read at LATE, every operation now responds differently.
  const changed = new Set();
  for (const [what, text] of now.get(LATE)) if (text !== past.get(LATE).get(what)) changed.add(what.split(' ').slice(0, 2).join(' '));
  const walked = operations.map(nameOf).filter((name) => ASKS[name]);
  assert.deepEqual(walked.filter((name) => !changed.has(name) && !UNCHANGING[name]), []);
});
