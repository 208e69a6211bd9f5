// The story of a trade: why it was made and what came of it, in the order of time, at any instant.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { journalRows } from '../lib/journal_rows.mjs';
import { deploy, position, postTick } from '../lib/ledger.mjs';
import { at } from '../lib/ledger_rows.mjs';
import { UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const journal = journalRows((...q) => s.query(...q));
const story = async (id, query = '') => (await s.api.get(`/v1/trade_history/${id}/story${query}`, { status: 200 })).json;
const propose = (reason) => ({ proposed_action: { kind: 'propose_order', symbol: 'BTC', reason }, engine: { kind: 'executed' } });

/** A deployment whose first trade of BTC is from minute 10 to minute 60, by real ticks. */
async function traded(before = async () => {}) {
  const d = await deploy(s.api, { mode: 'sim', at: at(-60) });
  await journal.note(d.id, { at: at(-30), hash: '00000000000000aa', text: '### Sizing\n- Stay small' });
  await before(d.id);
  const entry = await postTick(s.api, d.id, at(10), { positions: [position('BTC', 100)], ...propose('breakout') });
  const trade = entry.open[0].trade_id;
  return { d: d.id, trade, entry: entry.snapshot_id, tick: (minute, changes) => postTick(s.api, d.id, at(minute), changes) };
}
const exit = (t, minute = 60) => t.tick(minute, { marks: { BTC: 120 }, proposed_action: { kind: 'close_position', symbol: 'BTC', reason: 'target' }, engine: { kind: 'executed' } });

/** A trade with everything; returns the ids. */
async function whole() {
  const w = {};
  const t = await traded(async (d) => {
    w.search = await journal.retrieval(d, { at: at(1), symbol: 'BTC', text: 'BTC thesis' });
    await journal.retrieval(d, { at: at(1), symbol: 'ETH', text: 'another symbol' });
    w.thesis = await journal.thesis({ deployment_id: d, symbol: 'BTC', at: at(2), side: 'long', text: 'Breakout holds', evidence: ['volume 3x'] });
    w.proposal = await journal.memory({ kind: 'proposal', deployment_id: d, symbol: 'BTC', at: at(3), text: 'Buy a retest' });
    w.risk = await journal.memory({ kind: 'risk_note', deployment_id: d, symbol: 'BTC', at: at(4), text: 'Funding is high' });
    w.decision = await journal.memory({ kind: 'decision', deployment_id: d, symbol: 'BTC', at: at(5), text: 'Buy the break', evidence: ['volume 3x', 'range of 12 days'], thesis_id: w.thesis });
    w.order = await journal.order(d, { at: at(6), reason: 'break', thesis_id: w.thesis, size: '1.50', outcome: 'filled', outcome_at: at(11), outcome_data: { price: 100.5 } });
  });
  Object.assign(w, t);
  await journal.change(w.thesis, at(20), { text: 'Breakout holds, retest done' });
  w.found = await journal.retrieval(w.d, { at: at(25), selection: [w.thesis], text: 'anything open' });
  w.observation = await journal.event(w.d, { kind: 'thesis.outcome_observed', at: at(30), subject_id: w.thesis, data: { trade_id: w.trade, quantity: 1.5 } });
  w.add = await journal.order(w.d, { at: at(40), action: 'reduce', warnings: [{ code: 'thesis_not_retrieved', thesis_id: w.thesis }] });
  w.warning = await journal.event(w.d, { kind: 'thesis.not_retrieved', at: at(40), subject_id: w.thesis, data: { order_id: w.add } });
  w.exit = (await exit(t)).snapshot_id;
  w.validated = await journal.lesson({ at: at(-50), validated: at(61), takeaway: 'Breakouts need volume' });
  await journal.close(w.thesis, at(61), { reason: 'target reached', outcome: { metric: 'return', value: 0.2, baseline: 0 }, validates: [w.validated] });
  w.lesson = await journal.lesson({ at: at(70), takeaway: 'Wait for the retest', evidence: [`trade ${w.trade}`] });
  w.other = await journal.lesson({ at: at(70), takeaway: 'Of another trade', evidence: [`trade ${UNKNOWN_ID}`] });
  w.later = await journal.memory({ kind: 'note', at: at(80), thesis_id: w.thesis, text: 'Looking back' });
  w.note = await journal.note(w.d, { at: at(90), from: at(0), to: at(80), hash: '00000000000000bb' });
  await journal.note(w.d, { at: at(100), from: at(0), to: at(95), hash: '00000000000000cc' });
  return w;
}

test('everything about the trade is told in the order of time, with its id', async () => {
  const w = await whole();
  const got = await story(w.trade);
  assert.deepEqual(got.entries.map((e) => [e.kind, e.id]), [
    ['retrieval', w.search],
    ['thesis.opened', w.thesis],
    ['proposal', w.proposal],
    ['risk_note', w.risk],
    ['decision', w.decision],
    ['order', w.order],
    ['lessons', got.entries[6].id],
    ['context', w.entry],
    ['entry', w.entry],
    ['observation', got.entries[9].id],
    ['order.outcome', w.order],
    ['thesis.changed', w.thesis],
    ['retrieval', w.found],
    ['observation', w.observation],
    ['order', w.add],
    ['warning', w.warning],
    ['action', w.exit],
    ['exit', w.exit],
    ['thesis.closed', w.thesis],
    ['lesson', w.validated],
    ['lesson', w.lesson],
    ['note', w.later],
    ['reflection_note', w.note],
  ]);
  assert.equal(got.trade.id, w.trade);
  assert.deepEqual(got.window, { since: null, until: at(60) });
  assert.ok(Object.values(got.omitted).every((count) => count === 0));
  assert.equal(got.entries[6].data.lessons_hash, '00000000000000aa');
  assert.match(got.entries[6].text, /Stay small/);
  assert.equal(got.entries[5].data.size, 1.5);
  assert.equal(got.entries[9].data.mark_price, 100);
  assert.equal(got.entries[13].data.quantity, 1.5);
  assert.equal(got.entries[14].data.warnings[0].code, 'thesis_not_retrieved');
  assert.deepEqual([got.entries[16].data.action, got.entries[16].text, got.entries[16].link], ['close', 'target', `/v1/decision_snapshots/${w.exit}`]);
  assert.equal(got.entries[18].data.outcome.value, 0.2);
});

test('the summary answers why, on what evidence, with which thesis, and what was learned', async () => {
  const w = await whole();
  const { summary } = await story(w.trade);
  assert.deepEqual(summary, {
    why: { source: 'decision', id: w.decision, text: 'Buy the break' },
    evidence: ['volume 3x', 'range of 12 days'],
    open_thesis: { source: 'thesis.opened', id: w.thesis, text: 'Breakout holds' },
    outcome: { source: 'thesis.closed', id: w.thesis, text: 'target reached: return 0.2 against 0' },
    learned: [
      { source: 'lesson', id: w.validated, text: 'Breakouts need volume' },
      { source: 'lesson', id: w.lesson, text: 'Wait for the retest' },
      { source: 'reflection_note', id: w.note, text: '### Sizing\n- Wait' },
    ],
    searched_first: true,
    warnings: 1,
  });
  const text = (await s.api.get(`/v1/trade_history/${w.trade}/story`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
  assert.match(text, /^# BTC long, /);
  assert.match(text, /- Searched first: yes\n/);
  assert.ok(text.includes(`decision ${w.decision} "Buy the break"`));
});

test('the context of the entry is named by the hash of the text that its link returns', async () => {
  const w = await whole();
  const context = (await story(w.trade)).entries.find((e) => e.kind === 'context');
  const text = (await s.api.get(context.link, { headers: { accept: 'text/markdown' }, status: 200 })).text;
  assert.equal(createHash('sha256').update(text).digest('hex'), context.data.sha256);
  assert.ok(text.includes('Stay small'));
});

test('without a journal it says what is not known', async () => {
  const t = await traded();
  await exit(t);
  const { summary, entries } = await story(t.trade);
  assert.deepEqual(summary, { why: { source: 'entry_reason', id: null, text: 'breakout' }, evidence: [], open_thesis: null, outcome: null, learned: [], searched_first: null, warnings: 0 });
  assert.deepEqual(entries.map((e) => e.kind), ['lessons', 'context', 'entry', 'action', 'exit']);
  const silent = await traded((d) => journal.memory({ kind: 'decision', deployment_id: d, symbol: 'BTC', at: at(5), text: 'On a whim' }));
  assert.equal((await story(silent.trade)).summary.searched_first, false);
});

test('an instant shows nothing later', async () => {
  const w = await whole();
  await s.api.get(`/v1/trade_history/${w.trade}/story?as_of=${at(9)}`, { status: 404 });
  for (const minute of [10, 11, 20, 30, 45, 60, 61, 70, 85, 95]) {
    const got = await story(w.trade, `?as_of=${at(minute)}`);
    assert.ok(got.entries.every((e) => e.at <= at(minute)), `at ${minute}`);
    assert.equal(got.trade.status, minute < 60 ? 'open' : 'closed');
    assert.equal(got.trade.net_pnl_usd === null, minute < 60);
    assert.equal(got.summary.outcome === null, minute < 61);
    assert.equal(got.entries.some((e) => e.kind === 'order.outcome'), minute >= 11);
    assert.equal(got.summary.learned.length, minute < 61 ? 0 : minute < 70 ? 1 : minute < 90 ? 2 : 3);
  }
  const early = await story(w.trade, `?as_of=${at(45)}`);
  assert.ok(!JSON.stringify(early).includes('target reached'));
});

test('the window begins with the exit before it, and other symbols, deployments and owners are not told', async () => {
  const t = await traded();
  await exit(t);
  await journal.memory({ kind: 'decision', deployment_id: t.d, symbol: 'BTC', at: at(65), text: 'Second idea' });
  await journal.memory({ kind: 'decision', deployment_id: t.d, symbol: 'ETH', at: at(65), text: 'Other symbol' });
  const other = await deploy(s.api, { mode: 'sim', at: at(-60) });
  await journal.memory({ kind: 'decision', deployment_id: other.id, symbol: 'BTC', at: at(65), text: 'Other deployment' });
  await journal.memory({ kind: 'decision', symbol: 'BTC', at: at(65), text: 'No deployment' });
  const second = (await t.tick(70, { positions: [position('BTC', 110)], ...propose('again') })).open[0].trade_id;
  const got = await story(second);
  assert.deepEqual(got.window, { since: at(60), until: null });
  assert.deepEqual(got.entries.filter((e) => e.kind === 'decision').map((e) => e.text), ['Second idea']);
  assert.ok(!JSON.stringify(await story(t.trade)).includes('Second idea'));
});

test('a decision to skip or to close, or one that was retracted, is not why the trade was made', async () => {
  const wrong = { kind: 'decision', symbol: 'BTC', evidence: ['a wrong volume'] };
  const t = await traded(async (d) => {
    await journal.retract(await journal.memory({ ...wrong, deployment_id: d, at: at(3), text: 'Buy at once' }), at(4));
    for (const action of ['sell', 'reduce', 'close', 'hold', 'skip']) await journal.memory({ kind: 'decision', action, deployment_id: d, symbol: 'BTC', at: at(5), text: action });
    await journal.order(d, { at: at(6), reason: 'the range broke' });
    await journal.order(d, { at: at(7), action: 'close', reason: 'out' });
  });
  const { summary } = await story(t.trade);
  assert.equal(summary.why.text, 'the range broke');
  assert.deepEqual(summary.evidence, []);
  const text = (await s.api.get(`/v1/trade_history/${t.trade}/story`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
  assert.match(text, /decision [0-9a-f-]{36} buy, retracted "Buy at once"/);
});

test('of parallel theses the one for the side of the trade was the thesis at the entry', async () => {
  const ids = {};
  const t = await traded(async (d) => {
    ids.up = await journal.thesis({ deployment_id: d, symbol: 'BTC', at: at(1), side: 'long', text: 'Up' });
    ids.down = await journal.thesis({ deployment_id: d, symbol: 'BTC', at: at(2), side: 'short', parallel: true, text: 'Down' });
  });
  assert.equal((await story(t.trade)).summary.open_thesis.id, ids.up);
});

test('an order without a search for two theses is counted once, and each warning names its thesis', async () => {
  const t = await traded();
  const order = await journal.order(t.d, { at: at(20), action: 'add' });
  for (const parallel of [false, true]) {
    const id = await journal.thesis({ deployment_id: t.d, symbol: 'BTC', at: at(15), parallel });
    await journal.event(t.d, { kind: 'thesis.not_retrieved', at: at(20), subject_id: id, data: { order_id: order, action: 'add' } });
    const text = (await s.api.get(`/v1/trade_history/${t.trade}/story`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
    assert.ok(text.includes(`: no search returned thesis ${id}\n`), text);
    assert.match(text, /Orders and actions before which no search returned the open thesis: 1\n/);
  }
});

test('the story of a flip has the decision and the order that led to it', async () => {
  const t = await traded();
  await t.tick(30, { positions: [position('BTC', 105)] });
  await journal.memory({ kind: 'decision', action: 'hold', deployment_id: t.d, symbol: 'BTC', at: at(20), text: 'Of the first trade' });
  const decision = await journal.memory({ kind: 'decision', action: 'sell', deployment_id: t.d, symbol: 'BTC', at: at(31), text: 'Flip' });
  const order = await journal.order(t.d, { at: at(32), action: 'sell', side: 'short', outcome: 'filled', outcome_at: at(40) });
  const flipped = await t.tick(40, { positions: [{ ...position('BTC', 110), side: 'short' }], ...propose('flip') });
  const got = await story(flipped.open[0].trade_id);
  assert.equal(got.summary.why.id, decision);
  assert.deepEqual(got.window, { since: at(30), until: null });
  assert.deepEqual(got.entries.filter((e) => e.kind.startsWith('order')).map((e) => [e.kind, e.id]), [['order', order], ['order.outcome', order]]);
  assert.ok(!JSON.stringify(got).includes('Of the first trade'));
});

test('what closes at the instant of the exit before it is about that trade', async () => {
  const t = await traded();
  await exit(t);
  await journal.memory({ kind: 'decision', action: 'close', deployment_id: t.d, symbol: 'BTC', at: at(60), text: 'Out of the first' });
  await journal.order(t.d, { at: at(60), action: 'close', reason: 'Out of the first', outcome: 'filled', outcome_at: at(60) });
  await journal.order(t.d, { at: at(60), action: 'buy', reason: 'In again' });
  const second = (await t.tick(70, { positions: [position('BTC', 110)], ...propose('again') })).open[0].trade_id;
  const got = await story(second);
  assert.ok(!JSON.stringify(got).includes('Out of the first'));
  assert.equal(got.summary.why.text, 'In again');
});

test('the text shows what was ordered, filled, held and paid', async () => {
  const w = await whole();
  const text = (await s.api.get(`/v1/trade_history/${w.trade}/story`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
  for (const line of [/^# BTC long, .*, net 20 USD after 0 USD of fees\n/, / order [0-9a-f-]{36} buy long 1\.50 "break"\n/, / entry [0-9a-f-]{36} 100 USD at 100 "breakout"\n/,
    / exit [0-9a-f-]{36} at 120, realized 20 USD "target"\n/, / observation [0-9a-f-]{36} long 1 at 100, value 100 USD, unrealized 0 USD\n/,
    /- Learned: lesson [0-9a-f-]{36} proposed "Wait for the retest"\n/])
    assert.match(text, line);
  assert.ok(!text.includes('{'), text);
});

test('more than 200 entries of a kind are counted, the newest are shown', async () => {
  const t = await traded();
  await s.query(
    `insert into daybook.memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id, symbol)
     select 'local', gen_random_uuid(), 'memories', $2::timestamptz + n * interval '1 second', json_build_object('text', 'search ' || n)::jsonb, '{}', '[]', '{}', $1, 'BTC' from generate_series(1, 250) n`,
    [t.d, at(11)],
  );
  const got = await story(t.trade);
  const texts = got.entries.filter((e) => e.kind === 'retrieval').map((e) => e.text);
  assert.equal(texts.length, 200);
  assert.equal(texts.at(-1), 'search 250');
  assert.equal(got.omitted.retrievals, 50);
  const text = (await s.api.get(`/v1/trade_history/${t.trade}/story`, { headers: { accept: 'text/markdown' }, status: 200 })).text;
  assert.match(text, /\(50 older retrievals are not shown\)/);
});

test('of more than 200 lessons that name the trade the newest are shown', async () => {
  const t = await traded();
  await exit(t);
  await s.query(
    `insert into daybook.lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence, status, status_at, similar_keys)
     select 'local', gen_random_uuid(), 1, $2::timestamptz + n * interval '1 second', $2::timestamptz + n * interval '1 second', 'c', 'o', 'lesson ' || n, '{all}', array['trade ' || $1], 'proposed', $2, '{}'
     from generate_series(1, 250) n order by md5(n::text)`,
    [t.trade, at(70)],
  );
  const got = await story(t.trade);
  assert.deepEqual(got.entries.filter((e) => e.kind === 'lesson').map((e) => e.text), Array.from({ length: 200 }, (_, i) => `lesson ${51 + i}`));
  assert.equal(got.omitted.lessons, 50);
});

test('an unknown trade is 404 and named', async () => {
  const { json } = await s.api.get(`/v1/trade_history/${UNKNOWN_ID}/story`, { status: 404 });
  assert.match(json.detail, new RegExp(`there is no trade ${UNKNOWN_ID}`));
});
