// Do lessons help? The trades of a skill grouped by the lessons they were made under, checked against a simple calculation of the same figures.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { faults } from '../lib/lessons.mjs';
import { metricsOf } from '../lib/metrics.mjs';
import { until } from '../lib/processes.mjs';
import { createKey, startService } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const MIN = 20;
const FIRST = '1111111111111111';
const SECOND = '2222222222222222';
const THIRD = '3333333333333333';
const REGIMES = ['chop_lowvol', 'trend_up_hivol', null];

const ab = async (skill, query = '', options) => (await s.api.get(`/v1/skills/${skill}/ab${query}`, { status: 200, ...options })).json;
const instant = (minutes) => new Date(Date.UTC(2026, 5, 1) + minutes * 60_000).toISOString().replace('.000Z', 'Z');

// ---- test data ----

/** Inserts an empty skill by SQL, with one deployment per version; `deployments` has their ids by version. */
async function makeSkill(versions = { v1: 'live' }, { owner = 'local', skill = `skill-${randomUUID()}`, query = s.query } = {}) {
  const deployments = {};
  await query('insert into daybook.skills (owner, skill_id) values ($1, $2)', [owner, skill]);
  for (const [version, mode] of Object.entries(versions)) {
    deployments[version] = randomUUID();
    await query("insert into daybook.skill_versions (owner, skill_id, version, strategy, created_at) values ($1, $2, $3, 'x', '2026-01-01')", [owner, skill, version]);
    await query(
      `insert into daybook.deployments (owner, id, skill_id, version, mode, reflection_cadence, every_n_trades, created_at)
       values ($1, $2, $3, $4, $5, 'off', 10, '2026-01-01')`,
      [owner, deployments[version], skill, version, mode],
    );
  }
  return { skill, deployments, owner, query };
}

/** Pseudo-random trades from a fixed seed; `changes(i)` overrides fields of trade i. PnL and fees are in cents. */
function makeTrades(count, seed, changes = () => ({})) {
  let state = seed;
  const random = (n) => (state = (state * 48271) % 2147483647) % n;
  return Array.from({ length: count }, (_, i) => ({
    id: randomUUID(),
    version: 'v1',
    symbol: ['BTC', 'ETH', 'SOL'][random(3)],
    regime: REGIMES[random(3)],
    entry: instant(i),
    exit: instant(i + 5),
    size: 10_000 + random(40_000),
    gross: random(20_000) - 10_000,
    fees: random(100),
    lessons: null,
    ...changes(i),
  }));
}

async function store({ skill, deployments, owner, query }, trades) {
  await query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price, entry_size_usd,
       entry_lessons_hash, entry_regime_tag, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd, fees_usd, size_base,
       average_entry_price, mark_price, last_tick_at)
     select $2, t.id, ($3::json ->> t.version)::uuid, $4, t.version, symbol, 'long', case when exit is null then 'open' else 'closed' end, entry, 1, size / 100,
       lessons, regime, exit, 1, 'target', 5, gross / 100, fees / 100, case when exit is null then 1 else 0 end, 1, 1, coalesce(exit, entry)
     from json_to_recordset($1) as t (id uuid, version text, symbol text, regime text, entry timestamptz, exit timestamptz, size numeric,
       gross numeric, fees numeric, lessons text)`,
    [JSON.stringify(trades), owner, JSON.stringify(deployments), skill],
  );
}

async function storeNote({ skill, deployments, owner, query }, { hash, text = 'Wait for the retest', at = instant(-1), suppressed = [], version = 'v1' }) {
  const id = randomUUID();
  await query(
    `insert into daybook.reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at, superseded_at, lessons_text, content_hash, model_used, suppressed)
     values ($1, $2, $3, $4, $5, 'superseded', $6, $6, $7, $8, 'builtin', $9)`,
    [owner, id, skill, version, deployments[version], at, text, hash, suppressed],
  );
  return id;
}

// ---- expected figures ----

const near = (actual, wanted, what) => {
  if (wanted === null) assert.equal(actual, null, what);
  else assert.ok(Math.abs(actual - wanted) <= 1e-8 * Math.max(1, Math.abs(wanted)), `${what}: ${actual} is not ${wanted}`);
};

const METRICS = { net_usd: (t) => (t.gross - t.fees) / 100, return_pct: (t) => (100 * (t.gross - t.fees)) / t.size };

function figures(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const sum = (list) => list.reduce((x, y) => x + y, 0);
  const lost = -sum(values.filter((v) => v < 0));
  const middle = sorted.length / 2;
  return {
    mean: sum(values) / values.length,
    median: sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2,
    win_rate: values.filter((v) => v > 0).length / values.length,
    profit_factor: lost > 0 ? sum(values.filter((v) => v > 0)) / lost : null,
  };
}

function assertGroup(group, trades, what) {
  assert.equal(group.trades, trades.length, what);
  assert.equal(group.not_enough_trades, trades.length < MIN, what);
  for (const [metric, value] of Object.entries(METRICS)) {
    const measured = group[metric];
    if (trades.length < MIN) {
      assert.equal(measured, null, what);
      continue;
    }
    assert.equal(measured.count, trades.length, what);
    for (const [name, wanted] of Object.entries(figures(trades.map(value)))) near(measured[name], wanted, `${what} ${metric} ${name}`);
    assert.ok(measured.ci_low < measured.mean && measured.mean < measured.ci_high, what);
  }
}

const groupsOf = (json) => json.revisions.flatMap((r) => [r, ...r.by_regime, ...r.by_symbol]);

/** Checks every group of the response against the trades in it. */
function assertAnswer(json, trades) {
  assert.equal(json.trades, trades.length);
  for (const revision of json.revisions) {
    const own = trades.filter((t) => t.lessons === revision.lessons_hash);
    assertGroup(revision, own, revision.lessons_hash);
    assert.equal(revision.first_entry_at, own.map((t) => t.entry).toSorted()[0]);
    assert.equal(revision.last_entry_at, own.map((t) => t.entry).toSorted().at(-1));
    for (const key of ['regime', 'symbol']) {
      const groups = revision[`by_${key}`];
      assert.deepEqual(new Set(groups.map((g) => g[key])), new Set(own.map((t) => t[key])));
      assert.deepEqual(groups.map((g) => g.trades), groups.map((g) => g.trades).toSorted((a, b) => b - a));
      for (const group of groups) assertGroup(group, own.filter((t) => t[key] === group[key]), `${revision.lessons_hash} ${group[key]}`);
    }
  }
}

// ---- figures ----

test('each revision has the figures of its trades, in total, by regime and by symbol', async () => {
  const skill = await makeSkill();
  const trades = makeTrades(400, 7, (i) => ({ lessons: [null, FIRST, SECOND][Math.floor(i / 134)] }));
  await store(skill, trades);
  const json = await ab(skill.skill);
  assert.deepEqual(json.revisions.map((r) => r.lessons_hash), [null, FIRST, SECOND]);
  assertAnswer(json, trades);
  assert.equal(json.min_trades, MIN);
  assert.equal(json.as_of, null);
});

test('a plain SQL join of notes and trades yields the same averages', async () => {
  const skill = await makeSkill({ v1: 'live', v2: 'paper' });
  await store(skill, makeTrades(300, 11, (i) => ({ version: i % 2 ? 'v1' : 'v2', lessons: [FIRST, SECOND][i % 2] })));
  const ids = [await storeNote(skill, { hash: FIRST, version: 'v2' }), await storeNote(skill, { hash: SECOND })];
  const rows = await s.query(
    `select n.content_hash as hash, avg(t.realized_pnl_usd)::float8 as gross, avg(t.realized_pnl_usd - t.fees_usd)::float8 as mean, count(*)::int as count
     from daybook.reflection_notes n join daybook.trade_history t on t.entry_lessons_hash = n.content_hash and t.deployment_id = n.deployment_id
     where n.skill_id = $1 and t.status = 'closed' group by n.content_hash order by n.content_hash`,
    [skill.skill],
  );
  const { revisions } = await ab(skill.skill);
  assert.equal(rows.length, 2);
  for (const [i, row] of rows.entries()) {
    const revision = revisions.find((r) => r.lessons_hash === row.hash);
    assert.equal(revision.trades, row.count);
    near(revision.net_usd.mean, row.mean, row.hash);
    near(revision.mean_realized_pnl_usd, row.gross, row.hash);
    assert.deepEqual(revision.note_ids, [ids[i]]);
  }
});

test('a revision with too few trades has no figures, and the next is compared with the last one that has enough', async () => {
  const skill = await makeSkill();
  const lessons = (i) => (i < 40 ? FIRST : i < 59 ? SECOND : THIRD);
  const trades = makeTrades(100, 13, (i) => ({ lessons: lessons(i), symbol: 'BTC', regime: null }));
  await store(skill, trades);
  const json = await ab(skill.skill);
  assertAnswer(json, trades);
  assert.deepEqual(json.revisions.map((r) => r.not_enough_trades), [false, true, false]);
  assert.deepEqual(json.revisions.map((r) => r.versus_previous?.lessons_hash), [undefined, undefined, FIRST]);
  const [first, , third] = json.revisions;
  near(third.versus_previous.difference_net_usd, third.net_usd.mean - first.net_usd.mean, 'difference');
  near(third.versus_previous.difference_return_pct, third.return_pct.mean - first.return_pct.mean, 'difference');
});

test('within a regime or symbol, the baseline is the last revision with enough trades there', async () => {
  const skill = await makeSkill();
  const trades = makeTrades(150, 17, (i) => ({ lessons: [FIRST, SECOND, THIRD][Math.floor(i / 50)], symbol: i >= 50 && i < 100 ? 'ETH' : 'BTC', regime: null }));
  await store(skill, trades);
  const [first, second, third] = (await ab(skill.skill)).revisions;
  assert.equal(second.versus_previous.lessons_hash, FIRST);
  assert.equal(third.versus_previous.lessons_hash, SECOND);
  assert.equal(first.by_symbol[0].versus_previous, null);
  assert.equal(second.by_symbol[0].versus_previous, null);
  assert.equal(third.by_symbol[0].versus_previous.lessons_hash, FIRST);
  assert.equal(third.by_regime[0].versus_previous.lessons_hash, SECOND);
});

test('a real effect is found, and all p-values of the response are corrected together', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(600, 19, (i) => ({ lessons: [FIRST, SECOND, THIRD][Math.floor(i / 200)], ...(i >= 400 ? { gross: 6_000 + ((i * 7919) % 12_000) } : {}) })));
  const json = await ab(skill.skill);
  {
    const pairs = groupsOf(json)
      .filter((g) => g.versus_previous)
      .flatMap(({ versus_previous: v }) => ['net_usd', 'return_pct'].map((metric) => [v[`p_${metric}`], v[`p_${metric}_corrected`]]))
      .toSorted(([a], [b]) => a - b);
    assert.equal(pairs.length, json.comparisons);
    let least = 0;
    for (const [i, [p, corrected]] of pairs.entries()) {
      least = Math.max(least, Math.min(1, p * (pairs.length - i)));
      assert.ok(Math.abs(corrected - least) < 1e-5 * Math.max(least, 1e-3), `${i}: ${corrected} is not ${least}`);
    }
  }
  const [, second, third] = json.revisions;
  assert.ok(third.versus_previous.difference_net_usd > 50);
  assert.ok(third.versus_previous.p_net_usd_corrected < 0.001);
  assert.ok(second.versus_previous.p_net_usd_corrected > 0.05);
});

test('the same trades yield the same bytes, in any insertion order and from every service', async () => {
  const trades = makeTrades(300, 23, (i) => ({ lessons: [FIRST, SECOND][i % 2] }));
  const [one, two] = [await makeSkill(), await makeSkill()];
  await store(one, trades);
  await store(two, trades.toReversed().map((t) => ({ ...t, id: randomUUID() })));
  const texts = [];
  const other = await s.another({ args: ['--loops', '1'] });
  const client = makeClient(other.base);
  try {
    for (const api of [s.api, client]) for (const { skill } of [one, two]) texts.push((await api.get(`/v1/skills/${skill}/ab`, { status: 200 })).text.replace(skill, ''));
  } finally {
    client.close();
    await other.stop();
  }
  assert.equal(new Set(texts).size, 1);
});

// ---- parameters ----

test('each filter selects the matching trades', async () => {
  const skill = await makeSkill({ v1: 'live', v2: 'sim' });
  const trades = makeTrades(300, 29, (i) => ({ version: i % 3 ? 'v1' : 'v2', lessons: [FIRST, SECOND][Math.floor(i / 150)] }));
  await store(skill, trades);
  const cases = {
    'version=v2': (t) => t.version === 'v2',
    [`deployment_id=${skill.deployments.v1}`]: (t) => t.version === 'v1',
    'mode=sim': (t) => t.version === 'v2',
    'mode=paper': () => false,
    'symbol=ETH': (t) => t.symbol === 'ETH',
    'regime=chop_lowvol': (t) => t.regime === 'chop_lowvol',
    'regime=none': (t) => t.regime === null,
    [`since=${instant(100)}`]: (t) => t.entry >= instant(100),
    [`until=${instant(100)}`]: (t) => t.entry < instant(100),
    'version=v1&symbol=BTC': (t) => t.version === 'v1' && t.symbol === 'BTC',
    'version=v3': () => false,
    [`deployment_id=${randomUUID()}`]: () => false,
  };
  for (const [query, fits] of Object.entries(cases)) assertAnswer(await ab(skill.skill, `?${query}`), trades.filter(fits));
});

test('as_of includes only trades closed and notes written by then', async () => {
  const skill = await makeSkill();
  const trades = makeTrades(100, 31, (i) => ({ lessons: FIRST, exit: i < 90 ? instant(i + 5) : null, ...(i < 90 ? {} : { symbol: `S${i}`, gross: null }) }));
  await store(skill, trades);
  const notes = [await storeNote(skill, { hash: FIRST, at: instant(10) }), await storeNote(skill, { hash: FIRST, at: instant(60) })];
  assertAnswer(await ab(skill.skill), trades.slice(0, 90));
  const then = await ab(skill.skill, `?as_of=${instant(54)}`);
  assertAnswer(then, trades.slice(0, 50));
  assert.equal(then.as_of, instant(54));
  assert.deepEqual(then.revisions[0].note_ids, notes.slice(0, 1));
  const text = async () => (await s.api.get(`/v1/skills/${skill.skill}/ab?as_of=${instant(54)}`, { status: 200 })).text;
  const before = await text();
  await store(skill, makeTrades(50, 37, (i) => ({ lessons: SECOND, exit: instant(55 + i) })));
  await storeNote(skill, { hash: FIRST, at: instant(55) });
  assert.equal(await text(), before);
  await s.api.get(`/v1/skills/${skill.skill}/ab?as_of=2025-12-31T23:59:59Z`, { status: 404 });
});

test('an unknown skill is 404; one without trades has no revisions', async () => {
  await s.api.get('/v1/skills/nobody/ab', { status: 404 });
  const { skill } = await makeSkill();
  assert.deepEqual(await ab(skill), { skill_id: skill, as_of: null, min_trades: MIN, trades: 0, comparisons: 0, revisions_omitted: 0, revisions: [] });
});

test('invalid parameters are rejected by name', async () => {
  const refused = async (query) => faults(await s.api.get(`/v1/skills/any/ab?${query}`, { status: 422 }));
  assert.deepEqual(await refused('version=%20'), ['version: invalid_name']);
  assert.deepEqual(await refused('deployment_id=1'), ['deployment_id: invalid_uuid']);
  assert.deepEqual(await refused('mode=demo'), ['mode: not_a_choice']);
  assert.deepEqual(await refused('symbol='), ['symbol: too_short']);
  assert.deepEqual(await refused(`regime=${'x'.repeat(65)}`), ['regime: too_long']);
  assert.deepEqual((await refused('since=now&until=1&as_of=x')).toSorted(), ['as_of: invalid_time', 'since: invalid_time', 'until: invalid_time']);
  assert.deepEqual(await refused('limit=1'), ['limit: unknown_field']);
});

test('a request over the trade limit is rejected, a narrower one accepted', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(1001, 41));
  const service = await s.another({ args: ['--max-compared-trades', '1000'] });
  const client = makeClient(service.base);
  try {
    assert.deepEqual(faults(await client.get(`/v1/skills/${skill.skill}/ab`, { status: 422 })), ['since: too_many']);
    assert.equal((await client.get(`/v1/skills/${skill.skill}/ab?since=${instant(1)}`, { status: 200 })).json.trades, 1000);
  } finally {
    client.close();
    await service.stop();
  }
});

test('at most 200 revisions and 50 symbols are shown, and the response says so', async () => {
  const skill = await makeSkill();
  const hash = (n) => String(n).padStart(16, '0');
  await store(skill, makeTrades(203, 43, (i) => ({ lessons: hash(i) })));
  await store(skill, makeTrades(120, 47, (i) => ({ lessons: FIRST, entry: instant(1000 + i), exit: instant(2000), symbol: i < 60 ? `A${i}` : `B${i % 49}` })));
  const json = await ab(skill.skill);
  assert.equal(json.trades, 323);
  assert.equal(json.revisions_omitted, 4);
  assert.deepEqual(json.revisions.map((r) => r.lessons_hash), [...Array.from({ length: 199 }, (_, i) => hash(i + 4)), FIRST]);
  const last = json.revisions.at(-1);
  assert.equal(last.by_symbol.length, 50);
  assert.equal(last.symbols_omitted, 59);
  assert.ok(last.by_symbol.every((g) => g.symbol.startsWith('B') || g.trades === 1));
});

test('a reader sees only the trades of its owner', async () => {
  const database = await s.cluster.createDatabase();
  const url = s.cluster.url(database);
  const keys = {};
  for (const owner of ['ann', 'bob']) keys[owner] = (await createKey(url, owner, 'reader', owner)).key;
  const service = await startService(url);
  const client = makeClient(service.base);
  const query = (sql, values) => s.cluster.query(database, sql, values);
  try {
    const trades = {};
    const notes = {};
    for (const [owner, seed] of [['ann', 53], ['bob', 59]]) {
      const skill = await makeSkill({ v1: 'live' }, { owner, skill: 'shared', query });
      trades[owner] = makeTrades(50, seed, () => ({ lessons: FIRST }));
      await store(skill, trades[owner]);
      notes[owner] = await storeNote(skill, { hash: FIRST });
    }
    await makeSkill({ v1: 'live' }, { owner: 'ann', skill: 'of-ann', query });
    for (const owner of ['ann', 'bob']) {
      const { json } = await client.as(keys[owner]).get('/v1/skills/shared/ab', { status: 200 });
      assertAnswer(json, trades[owner]);
      assert.deepEqual(json.revisions[0].note_ids, [notes[owner]]);
    }
    await client.as(keys.ann).get('/v1/skills/of-ann/ab', { status: 200 });
    await client.as(keys.bob).get('/v1/skills/of-ann/ab', { status: 404 });
    await client.get('/v1/skills/shared/ab', { status: 401 });
  } finally {
    client.close();
    await service.stop();
  }
});

test('trades with identical results show no difference', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(233, 101, (i) => ({ lessons: i < 100 ? FIRST : SECOND, gross: 0, fees: 30, size: 100_000, symbol: 'BTC', regime: null })));
  const { versus_previous: versus } = (await ab(skill.skill)).revisions[1];
  near(versus.difference_net_usd, 0, 'difference');
  assert.deepEqual([versus.p_net_usd, versus.p_net_usd_corrected, versus.p_return_pct, versus.p_return_pct_corrected], [1, 1, 1, 1]);
});

// ---- texts ----

const SLOTS = { entry_timing: 'Entry timing', sizing: 'Sizing', symbol_selection: 'Symbol selection', exit_timing: 'Exit timing', regime_fit: 'Regime fit' };
const textOf = (slots) => slots.map((slot) => `### ${SLOTS[slot]}\n- About ${slot}: 12 of 20 trades, n=20.`).join('\n');
const hashOf = (text) => createHash('sha256').update(text.replace(/\s+/g, ' ').trim()).digest('hex').slice(0, 16);

test('a text with suppressed slots is matched to its note', async () => {
  const skill = await makeSkill();
  const all = Object.keys(SLOTS);
  const without = (...slots) => textOf(all.filter((slot) => !slots.includes(slot)));
  const texts = [textOf(all), without('sizing'), without('entry_timing', 'regime_fit'), 'no note has this'];
  await store(skill, makeTrades(texts.length, 61, (i) => ({ lessons: hashOf(texts[i]) })));
  const note = await storeNote(skill, { hash: hashOf(texts[0]), text: texts[0], at: instant(1) });
  const again = await storeNote(skill, { hash: hashOf(texts[0]), text: texts[0], at: instant(2) });
  const { revisions } = await ab(skill.skill);
  assert.deepEqual(
    revisions.map((r) => [r.note_ids, r.suppressed]),
    [
      [[note, again], []],
      [[note, again], ['sizing']],
      [[note, again], ['entry_timing', 'regime_fit']],
      [[], []],
    ],
  );
});

test('a note written with suppressed slots lists them together with those suppressed later', async () => {
  const skill = await makeSkill();
  const text = textOf(['entry_timing', 'symbol_selection', 'exit_timing', 'regime_fit']);
  const less = textOf(['entry_timing', 'symbol_selection', 'exit_timing']);
  await store(skill, makeTrades(2, 67, (i) => ({ lessons: hashOf([text, less][i]) })));
  const note = await storeNote(skill, { hash: hashOf(text), text, suppressed: ['sizing'] });
  const { revisions } = await ab(skill.skill);
  assert.deepEqual(revisions.map((r) => [r.note_ids, r.suppressed]), [[[note], ['sizing']], [[note], ['sizing', 'regime_fit']]]);
});

test('of many notes with the same text the oldest 20 are named and the others counted', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(1, 71, () => ({ lessons: FIRST })));
  const ids = [];
  for (let i = 0; i < 22; i++) ids.push(await storeNote(skill, { hash: FIRST, at: instant(i) }));
  const [revision] = (await ab(skill.skill)).revisions;
  assert.deepEqual(revision.note_ids, ids.slice(0, 20));
  assert.equal(revision.note_ids_omitted, 2);
});

// ---- faults ----

/** Trades that are slow to compare: every revision differs from the previous one by what may be chance. */
async function heavySkill() {
  const skill = await makeSkill();
  await store(skill, makeTrades(24_000, 73, (i) => {
    const revision = Math.floor(i / 200);
    return { lessons: String(revision).padStart(16, '0'), gross: ((i * 7919) % 20_000) - 10_000 + (revision % 2) * 3_000, symbol: 'BTC', regime: null };
  }));
  return skill.skill;
}

const atWork = (client, jobs) => until(async () => (await metricsOf(client)).get('daybook_worker_jobs') === jobs, `${jobs} jobs at work`);

/** Runs `work(client, service)` on a service with one loop; at its stop the sanitizer reports leaks. */
async function withService(args, work) {
  const service = await s.another({ args: ['--loops', '1', ...args] });
  const client = makeClient(service.base);
  try {
    await work(client, service);
  } finally {
    client.close();
    if (service.child.exitCode === null) await service.stop();
  }
}

test('a request over its time limit is 504, and its work is dropped', async () => {
  const skill = await heavySkill();
  await withService(['--request-timeout-ms', '300'], async (client) => {
    const answer = await client.get(`/v1/skills/${skill}/ab`, { status: 504 });
    assert.equal(answer.json.code, 'request_timeout');
    await atWork(client, 0);
  });
});

test('a client that disconnects and a stop during the work do no harm', async () => {
  const skill = await heavySkill();
  await withService(['--stop-timeout-ms', '0'], async (client, service) => {
    const leaving = new AbortController();
    const left = fetch(`${service.base}/v1/skills/${skill}/ab`, { signal: leaving.signal }).then(() => 'answered', () => 'left');
    await atWork(client, 1);
    leaving.abort();
    assert.equal(await left, 'left');
    await client.post('/v1/episodic/search', { text: 'the worker serves others meanwhile' }, { status: 200 });
    await atWork(client, 0);
    const open = client.get(`/v1/skills/${skill}/ab`, { check: false }).catch(() => {});
    await atWork(client, 1);
    await service.stop();
    await open;
  });
});

test('many concurrent requests queue, and all are served', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(2_000, 103, (i) => ({ lessons: i < 1_000 ? FIRST : SECOND })));
  await withService([], async (client) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.get(`/v1/skills/${skill.skill}/ab`, { status: 200 })));
    for (const answer of answers) assert.equal(answer.text, answers[0].text);
  });
});

test('a queued request waits no longer than the request timeout, and expired ones leave the queue', async () => {
  const skill = await makeSkill();
  await store(skill, makeTrades(50, 107));
  await withService(['--request-timeout-ms', '1500'], async (client) => {
    const holder = await s.cluster.connect(s.database);
    try {
      await holder.query('begin');
      await holder.query('lock table daybook.trade_history');
      const answers = await Promise.all(Array.from({ length: 4 }, () => client.get(`/v1/skills/${skill.skill}/ab`, { status: 504 })));
      for (const answer of answers) assert.equal(answer.json.code, 'request_timeout');
    } finally {
      await holder.end();
    }
    assert.equal((await client.get(`/v1/skills/${skill.skill}/ab`, { status: 200 })).json.trades, 50);
  });
});
