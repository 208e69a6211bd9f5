// POST /v1/materialize computes what a tick would change and stores nothing. ticks_golden.test.mjs runs the golden files.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { faults } from '../lib/lessons.mjs';
import { countRows, deploy, exact, ledgerSuite, minute, parseExact, post, tickOf } from '../lib/ticks.mjs';

const s = ledgerSuite();
const materialize = (body, status = 200) => s.api.post('/v1/materialize', body, { status });
const refused = async (body) => faults(await materialize(body, 422));
const HELD = [['BTC', 'long', '1.50', '100.10']];
const rising = Array.from({ length: 12 }, (_, i) => 100 + i / 10);

/** An open trade as a response shows it. */
const row = async (changes = {}) => ({ ...parseExact((await materialize({ next: tickOf(0, HELD) })).text).open[0], ...changes });

test('nothing is stored', async () => {
  const before = await countRows(s.query);
  for (let i = 0; i < 3; i++) await materialize({ next: tickOf(i, HELD) });
  assert.deepEqual(await countRows(s.query), before);
});

test('the first tick needs no prev: absent, null, empty and without rows mean the same', async () => {
  const next = tickOf(1, HELD, { bars: { BTC: rising } });
  const { text, json } = await materialize({ next });
  assert.equal(json.ops[0].op, 'open_trade');
  assert.equal(json.ops[0].trade_id, undefined);
  assert.deepEqual([json.open[0].trade_id, json.open[0].entry_snapshot_id, json.open[0].entry_regime_tag], [null, null, 'trend_up_lowvol']);
  for (const prev of [null, {}, { open: [] }, { open: null, tick_at: null, portfolio: null }, { tick_at: minute(0) }, { tick_at: minute(0), portfolio: { equity_usd: 1, positions: [] } }])
    assert.equal((await materialize({ prev, next })).text, text, JSON.stringify(prev));
});

test('the same request yields the same bytes', async () => {
  const body = { prev: { tick_at: minute(0), open: [await row()] }, next: tickOf(1, [['ETH', 'short', '2', '7'], ['BTC', 'short', '1', '99']]), lessons_hash: '0123456789abcdef' };
  const { text } = await materialize(body);
  for (let i = 0; i < 5; i++) assert.equal((await materialize(body)).text, text);
});

test('existing rows keep their ids and stamps, new trades get their own', async () => {
  const [trade, snapshot] = [randomUUID(), randomUUID()];
  const open = [await row({ trade_id: trade, entry_snapshot_id: snapshot, entry_regime_tag: 'chop_hivol', entry_lessons_hash: 'aaaaaaaaaaaaaaaa', entry_reason: 'a "reason"\nof two lines' })];
  const { json } = await materialize({ prev: { open }, next: tickOf(1, [...HELD, ['ETH', 'long', '1', '5']], { bars: { BTC: rising, ETH: [] } }), lessons_hash: 'bbbbbbbbbbbbbbbb' });
  assert.deepEqual(json.ops.map((op) => [op.op, op.trade_id]), [['update_trade', trade], ['open_trade', undefined]]);
  assert.deepEqual(json.open.map((o) => [o.symbol, o.trade_id, o.entry_snapshot_id, o.entry_regime_tag, o.entry_lessons_hash, o.entry_reason]), [
    ['BTC', trade, snapshot, 'chop_hivol', 'aaaaaaaaaaaaaaaa', 'a "reason"\nof two lines'],
    ['ETH', null, null, 'unknown', 'bbbbbbbbbbbbbbbb', null],
  ]);
});

test('a new trade gets the lessons hash of the tick, else the active one', async () => {
  const stamped = async (more, own) => (await materialize({ next: tickOf(1, HELD, own), ...more })).json.open[0].entry_lessons_hash;
  const [force, own] = [{ lessons_hash: 'aaaaaaaaaaaaaaaa' }, { lessons_hash: 'bbbbbbbbbbbbbbbb' }];
  assert.deepEqual(await Promise.all([stamped({}, {}), stamped(force, {}), stamped({}, own), stamped(force, own), stamped(force, { lessons_hash: 'none' })]), [
    null, force.lessons_hash, own.lessons_hash, own.lessons_hash, null,
  ]);
});

test('positions of prev.portfolio count as opened at its instant', async () => {
  const portfolio = tickOf(0, [...HELD, ['ETH', 'short', '2', '50']]).portfolio;
  const prev = { tick_at: minute(0), portfolio };
  const next = tickOf(30, [['BTC', 'long', '1.50', '101.10']], { marks: { ETH: 40 } });
  const { json } = await materialize({ prev, next });
  assert.deepEqual(json.ops.map((op) => [op.op, op.symbol, op.holding_minutes, op.realized_pnl_usd]), [['update_trade', 'BTC', undefined, undefined], ['close_trade', 'ETH', 30, 20]]);
  assert.deepEqual([json.open[0].entry_tick_at, json.open[0].mfe_usd], [minute(0), 1.5]);
  const open = parseExact((await materialize({ next: { tick_at: minute(0), portfolio } })).text).open;
  assert.equal((await materialize({ prev: { tick_at: minute(0), open }, next })).text, (await materialize({ prev, next })).text);
});

test('a row that is fed back keeps every digit', async () => {
  const digits = { entry_price: '65200.12345678', entry_size_usd: '0.0000964', entry_leverage: '3.00', size_base: '1.50', average_entry_price: '65200.123456789012345678901234', realized_so_far_usd: '-0.10', mark_price: '100.1000', mfe_usd: '0.000000000001', mae_usd: '-7', fees_usd: '0.3' };
  const raw = Object.fromEntries(Object.entries(digits).map(([member, text]) => [member, exact(text)]));
  const { text } = await materialize({ prev: { open: [await row(raw)] }, next: tickOf(1, [['BTC', 'long', '1.50', '65200.12345678']]) });
  const [after] = parseExact(text).open;
  for (const member of ['entry_price', 'entry_size_usd', 'entry_leverage', 'size_base', 'average_entry_price', 'realized_so_far_usd', 'mfe_usd', 'fees_usd']) assert.equal(JSON.stringify(after[member]), digits[member], member);
  assert.equal(JSON.stringify(after.mae_usd), '-7');
});

test('it returns what the tick endpoint returns for the same sequence', async () => {
  const deployment = await deploy(s.query);
  const ticks = [tickOf(0, HELD), tickOf(1, [['BTC', 'long', '3', '101']]), tickOf(2, [['BTC', 'short', '0.1', '99.9'], ['ETH', 'long', '1', '5']]), tickOf(3, [], { marks: { BTC: 98 }, fees: [{ symbol: 'SOL', fees_usd: 1 }] })];
  let prev;
  for (const tick of ticks) {
    const said = parseExact((await post(s.api, deployment, tick)).text);
    const would = parseExact((await materialize({ prev, next: tick })).text);
    const bare = ({ trade_id, entry_snapshot_id, exit_snapshot_id, ...rest }) => JSON.stringify(rest);
    assert.deepEqual(would.ops.map(bare), said.ops.map(bare));
    assert.deepEqual(would.open.map(bare), said.open.map(bare));
    assert.equal(JSON.stringify(would.unmatched_fees), JSON.stringify(said.unmatched_fees));
    // Ledger rows work as `prev` just like the response of this endpoint.
    assert.deepEqual(parseExact((await materialize({ prev: { tick_at: tick.tick_at, open: said.open }, next: tickOf(9) })).text).ops.map(bare), parseExact((await materialize({ prev: { tick_at: tick.tick_at, open: would.open }, next: tickOf(9) })).text).ops.map(bare));
    prev = { tick_at: tick.tick_at, open: would.open };
  }
});

test('a tick that is not after prev is 409', async () => {
  const open = [await row()];
  for (const [prev, next] of [[{ tick_at: minute(5), open }, tickOf(5, HELD)], [{ tick_at: minute(5), open }, tickOf(4, HELD)], [{ open }, tickOf(-1, HELD)]])
    assert.equal((await materialize({ prev, next }, 409)).json.code, 'tick_out_of_order');
  const older = await materialize({ prev: { tick_at: minute(5), open }, next: tickOf(4, HELD) }, 409);
  assert.equal(older.json.detail, 'prev.tick_at is 2026-06-04T10:05:00Z; this one is 2026-06-04T10:04:00Z');
  const entry = await materialize({ prev: { open }, next: tickOf(-1, HELD) }, 409);
  assert.equal(entry.json.detail, 'the tick is before the entry of the open trade of BTC');
  assert.equal((await materialize({ prev: { open }, next: tickOf(0, HELD) })).json.ops[0].op, 'update_trade'); // at the instant of the entry: without prev.tick_at nothing says that a tick was already there
});

test('an error names the path of the invalid field', async () => {
  const next = tickOf(1, HELD);
  const open = (changes) => row(changes).then((r) => ({ prev: { open: [r] }, next }));
  assert.deepEqual(await refused({}), ['next: required']);
  assert.deepEqual(await refused({ next, ledger: [] }), ['ledger: unknown_field']);
  assert.deepEqual(await refused({ next: tickOf(0, [['BTC', 'up', '-1', '1']]) }), ['next.portfolio.positions[0].side: not_a_choice', 'next.portfolio.positions[0].size_base: out_of_range']);
  assert.deepEqual(await refused({ next: tickOf(0, [...HELD, ...HELD]) }), ['next.portfolio.positions: duplicate_item']);
  assert.deepEqual(await refused({ next: tickOf(0, [['BTC', 'long', '1e20', '1']]) }), ['next.portfolio.positions[0].size_base: out_of_range']);
  assert.deepEqual(await refused({ next: tickOf('2999-01-01T00:00:00Z') }), ['next.tick_at: in_the_future']);
  assert.deepEqual(await refused({ next: { ...next, bars: { BTC: [0] } } }), ['next.bars.BTC[0]: out_of_range']);
  assert.deepEqual(await refused({ next, lessons_hash: 'short' }), ['lessons_hash: too_short']);
  assert.deepEqual(await refused({ next, lessons_hash: 'zzzzzzzzzzzzzzzz' }), ['lessons_hash: invalid_character']);
  assert.deepEqual(await refused({ next: { ...next, lessons_hash: 'zz' } }), ['next.lessons_hash: invalid_character']);
  assert.deepEqual(await refused({ prev: { portfolio: next.portfolio }, next }), ['prev.tick_at: required']);
  assert.deepEqual(await refused({ prev: { tick_at: minute(0), portfolio: next.portfolio, open: [await row()] }, next }), ['prev.portfolio: repeated']);
  assert.deepEqual(await refused({ prev: { tick_at: minute(0), portfolio: { equity_usd: 1, positions: [{ symbol: 'X', side: 'long', size_base: 1 }] } }, next }), ['prev.portfolio.positions: out_of_range']);
  assert.deepEqual(await refused(await open({ side: 'up', size_base: 0, mark_price: 0, entry_price: -1, mfe_usd: -1, entry_tick_at: 'x' })), ['prev.open[0].entry_price: out_of_range', 'prev.open[0].entry_tick_at: invalid_time', 'prev.open[0].mark_price: out_of_range', 'prev.open[0].mfe_usd: out_of_range', 'prev.open[0].side: not_a_choice', 'prev.open[0].size_base: out_of_range']);
  assert.deepEqual(await refused(await open({ mae_usd: 1 })), ['prev.open[0].mae_usd: out_of_range']);
  assert.deepEqual(await refused(await open({ entry_regime_tag: 'sideways', trade_id: 'x', entry_lessons_hash: 'x', pnl: 1 })), ['prev.open[0].entry_lessons_hash: too_short', 'prev.open[0].entry_regime_tag: not_a_choice', 'prev.open[0].pnl: unknown_field', 'prev.open[0].trade_id: invalid_uuid']);
  assert.deepEqual(await refused(await open({ average_entry_price: exact('1e20') })), ['prev.open[0]: out_of_range']);
  assert.deepEqual(await refused({ prev: { open: Array(201).fill(await row()) }, next }), ['prev.open: too_many']);
  const twice = await row();
  const answer = await materialize({ prev: { open: [twice, twice] }, next }, 422);
  assert.deepEqual(faults(answer), ['prev.open: duplicate_item']);
});

test('the smallest and largest accepted values can be fed back', async () => {
  for (const [size, mark] of [['0.000000000000000001', '0.000000000000000001'], ['0.000000000000000001', '99999999999999999999'], ['99999999999999999999', '1']]) {
    const { open } = parseExact((await materialize({ next: tickOf(0, [['BTC', 'short', size, mark]]) })).text);
    const { json } = await materialize({ prev: { open }, next: tickOf(1) });
    assert.deepEqual([json.ops[0].op, json.ops[0].mark_source, json.ops[0].realized_pnl_usd], ['close_trade', 'last_known', 0]);
  }
});

test('a row may omit null fields', async () => {
  const { trade_id, entry_leverage, entry_reason, entry_snapshot_id, entry_regime_tag, entry_lessons_hash, ...bare } = await row();
  assert.equal((await materialize({ prev: { open: [bare] }, next: tickOf(1, HELD) })).json.ops[0].op, 'update_trade');
});
