// Ticks: retries, late and missed ticks, daily figures, and the stamps of a trade.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { UNKNOWN_ID } from '../lib/lessons.mjs';
import { addNote, bytesOf, checkTable, deploy, exact, hashOf, ledgerOf, ledgerSuite, minute, parseExact, post, rowsOf, tickOf, ticksPath } from '../lib/ticks.mjs';
import { createKey } from '../lib/service.mjs';

const s = ledgerSuite();
const refused = (answer) => [answer.status, answer.json.code];
const last = async (deployment) => (await rowsOf(s.query, 'agent_state', deployment))[0];
const number = (raw) => JSON.stringify(raw);

/** Posts the ticks in order and returns the response bodies as text. */
async function postAll(deployment, ticks) {
  const answers = [];
  for (const tick of ticks) answers.push((await post(s.api, deployment, tick)).text);
  return answers;
}

const BUY = { proposed_action: { kind: 'propose_order', symbol: 'BTC', reason: 'breakout' }, engine: { kind: 'executed' } };
const SELL = { proposed_action: { kind: 'close_position', symbol: 'BTC', reason: 'target hit' }, engine: { kind: 'executed' } };

// ---- retries, late ticks, missed ticks ----

test('a retried tick changes nothing and gets the same response, marked as replayed', async () => {
  const deployment = await deploy(s.query);
  const ticks = [
    tickOf(0, [['BTC', 'long', '0.5', '65200.10']], { ...BUY, fees: [{ symbol: 'BTC', fees_usd: 0.1 }, { symbol: 'DOGE', fees_usd: exact('0.20') }] }),
    tickOf(1, [['BTC', 'short', '0.25', '65100'], ['ETH', 'long', '2', '3400.5']]),
    tickOf(2, [['ETH', 'long', '2', '3410']], { marks: { BTC: 65000 } }),
  ];
  const answers = await postAll(deployment, ticks);
  for (const text of answers) assert.ok(text.endsWith('"replayed":false}'), text);
  const before = await bytesOf(s.query, deployment);
  for (let round = 0; round < 2; round++)
    for (const [i, tick] of ticks.entries()) {
      const again = await post(s.api, deployment, tick);
      assert.equal(again.text, answers[i].replace(/"replayed":false}$/, '"replayed":true}'));
      assert.equal(again.headers['idempotency-replayed'], undefined);
    }
  assert.equal(await bytesOf(s.query, deployment), before);
  await checkTable(s.query, deployment, answers);
});

test('the same content in a different notation is the same tick', async () => {
  const deployment = await deploy(s.query);
  const tick = tickOf(0, [['BTC', 'long', '1', '100']], { ...BUY, marks: { ETH: 3 }, bars: { BTC: [1, 2] } });
  const first = await post(s.api, deployment, tick);
  const { bars, ...rest } = tick;
  const reordered = Object.fromEntries(Object.entries(rest).reverse());
  const spellings = [
    rest, // bars are not stored
    { ...rest, bars: { BTC: [7, 8, 9] } },
    reordered,
    { ...rest, tick_at: '2026-06-04T12:00:00.000+02:00' },
    { ...rest, fees: null },
    JSON.stringify(rest, null, 3).replace('breakout', 'break\\u006fut'),
  ];
  for (const again of spellings) assert.equal((await post(s.api, deployment, again)).json.replayed, true, JSON.stringify(again));
  assert.equal((await rowsOf(s.query, 'decision_snapshots', deployment)).length, 1);
  assert.equal((await last(deployment)).last_snapshot_id, first.json.snapshot_id);
});

test('different content at the same instant is 409 tick_conflict and changes nothing', async () => {
  const deployment = await deploy(s.query);
  const tick = tickOf(0, [['BTC', 'long', '1', '100']], { ...BUY, marks: { ETH: 3 }, fees: [{ symbol: 'BTC', fees_usd: 1 }] });
  const { json } = await post(s.api, deployment, tick);
  const before = await bytesOf(s.query, deployment);
  const others = [
    tickOf(0, [['BTC', 'long', '1', '101']], { ...BUY, marks: { ETH: 3 }, fees: tick.fees }),
    { ...tick, portfolio: { ...tick.portfolio, equity_usd: 10001 } },
    { ...tick, portfolio: { ...tick.portfolio, positions: [] } },
    { ...tick, proposed_action: null },
    { ...tick, proposed_action: { ...BUY.proposed_action, reason: 'Breakout' } },
    { ...tick, engine: { kind: 'rejected', rule: 'R3' } },
    { ...tick, marks: { ETH: 4 } },
    { ...tick, marks: undefined },
    { ...tick, fees: [] },
  ];
  for (const other of others) {
    const answer = await post(s.api, deployment, other, { status: 409 });
    assert.equal(answer.json.code, 'tick_conflict');
    assert.ok(answer.json.detail.includes(json.snapshot_id), answer.text);
  }
  assert.equal(await bytesOf(s.query, deployment), before);
  assert.equal((await post(s.api, deployment, tick)).json.replayed, true);
});

test('a tick older than the last one is 409 tick_out_of_order and changes nothing', async () => {
  const deployment = await deploy(s.query);
  await post(s.api, deployment, tickOf(10, [['BTC', 'long', '1', '100']]));
  await post(s.api, deployment, tickOf(20, [['BTC', 'long', '1', '101']]));
  const before = await bytesOf(s.query, deployment);
  for (const at of [9, 11, 19, '2026-06-04T10:19:59.999999Z', '1969-12-31T23:59:59Z', '0001-01-01T00:00:00Z'])
    assert.equal((await post(s.api, deployment, tickOf(at, [['BTC', 'long', '1', '99']]), { status: 409 })).json.code, 'tick_out_of_order', String(at));
  const { json } = await post(s.api, deployment, tickOf('2026-06-04T12:19:00.5+02:00'), { status: 409 });
  assert.equal(json.detail, 'the last tick of this deployment is 2026-06-04T10:20:00Z; this one is 2026-06-04T10:19:00.500000Z');
  assert.equal(await bytesOf(s.query, deployment), before);
  assert.equal((await post(s.api, deployment, tickOf('2026-06-04T10:20:00.000001Z', [['BTC', 'long', '1', '102']]))).json.ops[0].op, 'update_trade');
});

test('after missed ticks the next one catches up with the changes in between', async () => {
  const whole = Array.from({ length: 12 }, (_, i) => tickOf(i, [[['BTC', 'long', '1', '100'], ['BTC', 'short', '2', '90'], ['ETH', 'long', '1', '50']][i % 3]]));
  const deployment = await deploy(s.query);
  const answers = await postAll(deployment, whole.filter((_, i) => i % 5 === 0));
  await checkTable(s.query, deployment, answers);
  const open = parseExact(answers.at(-1)).open;
  assert.deepEqual(open.map((o) => [o.symbol, o.side, number(o.size_base)]), [['BTC', 'short', '2']]); // the positions of the tick at minute 10
  await post(s.api, deployment, tickOf(11, []));
  const rows = await rowsOf(s.query, 'trade_history', deployment);
  assert.deepEqual(rows.map((r) => `${r.symbol} ${r.side} ${r.status}`), ['BTC long closed', 'ETH long closed', 'BTC short closed']);
});

// ---- digits ----

test('decimals keep every digit in the response and in the table', async () => {
  const asWritten = ['0.0000964', '65200.12345678', '1.10', '100', '0.10000000000000000000', '12345678901234567890.123456789012345678', '0.000000000000000001', '1.000000000000000000000000000000000000001', '3.141592653589793238462643383279502884197'];
  const written = {
    '9.64e-5': '0.0000964',
    '6.520012345678E4': '65200.12345678',
    '1E2': '100',
    '1.5e+3': '1500',
    '1.2345678901234567890123e-5': '0.000012345678901234567890123', // more digits than the arithmetic uses
    '12345678901234567890123e-22': '1.2345678901234567890123',
    '1.2345678901234567890123e1': '12.345678901234567890123',
  };
  for (const [sent, price] of [...asWritten.map((p) => [p, p]), ...Object.entries(written)]) {
    const deployment = await deploy(s.query);
    const more = { leverage: exact(sent), realized_pnl_usd: exact(`-${sent}`) };
    const texts = [(await post(s.api, deployment, tickOf(0, [['BTC', 'long', '1', sent, more]]))).text];
    const [open] = parseExact(texts[0]).open;
    for (const member of ['entry_price', 'average_entry_price', 'mark_price', 'entry_leverage']) assert.equal(number(open[member]), price, `${sent} as ${member}`);
    assert.equal(number(open.realized_so_far_usd), `-${price}`, sent);
    await checkTable(s.query, deployment, texts);
    texts.push((await post(s.api, deployment, tickOf(1, [['BTC', 'long', '1', sent]]))).text);
    assert.equal(number(parseExact(texts[1]).open[0].entry_leverage), price);
    await checkTable(s.query, deployment, texts);
    texts.push((await post(s.api, deployment, tickOf(2, [], { marks: { BTC: exact(sent) } }))).text);
    const [row] = await checkTable(s.query, deployment, texts);
    for (const column of ['entry_price', 'exit_price', 'mark_price', 'average_entry_price']) assert.equal(number(row[column]), price, `${sent} in ${column}`);
  }
});

test('equity and fees keep every digit too', async () => {
  const deployment = await deploy(s.query);
  const tick = tickOf(0, [['BTC', 'long', '1', '1']], { fees: [{ symbol: 'BTC', fees_usd: exact('0.000000000000000001') }, { symbol: 'ETH', fees_usd: exact('0.1000') }] });
  tick.portfolio.equity_usd = exact('12345678901234567890.100');
  const answer = await post(s.api, deployment, tick);
  assert.ok(answer.text.includes('"unmatched_fees":[{"symbol":"ETH","fees_usd":0.1000}]'), answer.text);
  assert.equal(number(parseExact(answer.text).open[0].fees_usd), '0.000000000000000001');
  const [snapshot] = await rowsOf(s.query, 'decision_snapshots', deployment);
  assert.equal(number(snapshot.equity_usd), '12345678901234567890.100');
  assert.equal(number(snapshot.input.portfolio.equity_usd), '12345678901234567890.100');
  assert.deepEqual(JSON.stringify(snapshot.unmatched_fees), '[{"symbol":"ETH","fees_usd":0.1000}]');
});

test('text is preserved: quotes, line ends, other scripts', async () => {
  const reasons = ['say "no" \\ to it', 'two\nlines\tand a tab', 'Ausbruch über 65 200 €, 突破 🚀', '</script>&<!--', "it's $1 {}", 'x'.repeat(2000), '\u2028 and \u00a0'];
  for (const reason of reasons) {
    const deployment = await deploy(s.query);
    const symbol = 'kPEPE/USDC:"Ü"';
    const answers = await postAll(deployment, [
      tickOf(0, [[symbol, 'long', '1', '2']], { proposed_action: { kind: 'propose_order', symbol, reason }, engine: { kind: 'executed' } }),
      tickOf(1, [[symbol, 'long', '1', '3']]),
      tickOf(2, [], { proposed_action: { kind: 'close_position', reason }, engine: { kind: 'executed' } }),
    ]);
    const [row] = await checkTable(s.query, deployment, answers);
    assert.deepEqual([row.symbol, row.entry_reason, row.exit_reason], [symbol, reason, reason]);
    assert.equal(JSON.parse(answers[1]).open[0].entry_reason, reason);
  }
});

// ---- the day ----

test('the day starts at its first UTC tick: equity, orders and PnL of today', async () => {
  const deployment = await deploy(s.query);
  const step = async (at, equity, positions, more) => {
    const tick = tickOf(at, positions, more);
    tick.portfolio.equity_usd = exact(equity);
    await post(s.api, deployment, tick);
    const state = await last(deployment);
    const snapshot = (await rowsOf(s.query, 'decision_snapshots', deployment)).at(-1);
    const figures = ['day_start_equity_usd', 'executed_today', 'realized_today_usd', 'losing_closes'].map((column) => number(state[column]));
    assert.deepEqual(['day_start_equity_usd', 'executed_today', 'realized_today_usd', 'losing_closes'].map((column) => number(snapshot[column])), figures);
    return figures.join(' ');
  };
  const btc = (mark, size = '1', side = 'long') => [['BTC', side, size, mark]];
  assert.equal(await step('2026-06-04T00:00:00Z', '1000.5', [], {}), '1000.5 0 0 0');
  assert.equal(await step('2026-06-04T00:00:01Z', '1001', btc('100'), BUY), '1000.5 1 0 0');
  assert.equal(await step('2026-06-04T12:00:00Z', '990', btc('90'), { proposed_action: { kind: 'hold' }, engine: { kind: 'executed' } }), '1000.5 1 0 0');
  assert.equal(await step('2026-06-04T12:00:01Z', '990', btc('90'), { ...BUY, engine: { kind: 'rejected', rule: 'R3_POSITION_CAP' } }), '1000.5 1 0 0');
  assert.equal(await step('2026-06-04T12:00:02Z', '990', btc('90'), { ...BUY, engine: undefined }), '1000.5 1 0 0'); // no engine result, so not counted as executed
  assert.equal(await step('2026-06-04T12:00:03Z', '990', [], { ...SELL, marks: { BTC: 90 } }), '1000.5 2 -10 1');
  assert.equal(await step('2026-06-04T13:00:00Z', '990', btc('50'), BUY), '1000.5 3 -10 1');
  assert.equal(await step('2026-06-04T13:00:01Z', '989', btc('49', '2', 'short'), { proposed_action: { kind: 'adjust_position' }, engine: { kind: 'executed' } }), '1000.5 4 -11 2'); // a flip
  assert.equal(await step('2026-06-04T23:59:59.999999Z', '989.25', [], { marks: { BTC: 48.5 } }), '1000.5 4 -10 0'); // a gain ends the losing streak
  assert.equal(await step('2026-06-05T01:59:59+02:00', '1', [], {}).catch((e) => e.message.includes('tick_out_of_order')), true); // still the 4th
  assert.equal(await step('2026-06-05T00:00:00Z', '777.70', btc('10'), BUY), '777.7 1 0 0');
  assert.equal(await step('2026-06-05T10:00:00Z', '776', [], { marks: { BTC: 9 } }), '777.7 1 -1 1');
  assert.equal(await step('2026-06-08T10:00:00Z', '500', [], {}), '500 0 0 1'); // days without ticks; a losing streak continues across days
  assert.equal(await step('2026-06-08T11:00:00Z', '501', [['A', 'long', '1', '5'], ['B', 'long', '1', '5'], ['C', 'long', '1', '5']], {}), '500 0 0 1');
  assert.equal(await step('2026-06-08T12:00:00Z', '501', [], { marks: { A: 4, B: 4, C: 5 } }), '500 0 -2 0'); // by symbol; breaking even is no loss
});

test('a partial close counts on its own day, the remainder on the day of the final close', async () => {
  const deployment = await deploy(s.query);
  const today = async (at, positions, more) => {
    await post(s.api, deployment, tickOf(at, positions, more));
    return number((await last(deployment)).realized_today_usd);
  };
  assert.equal(await today('2026-06-04T10:00:00Z', [['A', 'long', '10', '100']]), '0');
  assert.equal(await today('2026-06-04T11:00:00Z', [['A', 'long', '1', '120']]), '180');
  assert.equal(await today('2026-06-04T12:00:00Z', [['A', 'short', '2', '90']]), '170'); // a flip: one lost 10
  assert.equal(await today('2026-06-05T10:00:00Z', [['A', 'short', '1', '85']]), '5');
  assert.equal(await today('2026-06-06T10:00:00Z', [], { marks: { A: 80 } }), '10');
  assert.deepEqual((await rowsOf(s.query, 'trade_history', deployment)).map((row) => number(row.realized_pnl_usd)).sort(), ['15', '170']);
});

test('days before 1970 start at midnight too', async () => {
  const deployment = await deploy(s.query);
  const starts = [];
  for (const [i, at] of ['1969-12-30T23:59:59Z', '1969-12-31T00:00:00Z', '1969-12-31T23:59:59Z', '1970-01-01T00:00:00Z', '1970-01-01T23:00:00Z'].entries()) {
    const tick = tickOf(at);
    tick.portfolio.equity_usd = i;
    await post(s.api, deployment, tick);
    starts.push(number((await last(deployment)).day_start_equity_usd));
  }
  assert.deepEqual(starts, ['0', '1', '1', '3', '3']);
});

// ---- reflection ----

/** Opens `count` trades in one tick and closes them in the next; returns whether reflection is due after each tick. */
async function round(deployment, n, count) {
  const held = Array.from({ length: count }, (_, i) => [`S${i}`, 'long', '1', '10']);
  const opened = await post(s.api, deployment, tickOf(2 * n, held));
  const closed = await post(s.api, deployment, tickOf(2 * n + 1));
  assert.equal(closed.json.ops.filter((op) => op.op === 'close_trade').length, count);
  return [opened.json.reflection_due, closed.json.reflection_due];
}

test('with cadence off reflection is never due', async () => {
  const deployment = await deploy(s.query, { cadence: 'off', everyN: 1 });
  for (let n = 0; n < 4; n++) assert.deepEqual(await round(deployment, n, 3), [false, false]);
});

test('per_n_trades: reflection is due after every n closed trades, even when several close at once', async () => {
  const deployment = await deploy(s.query, { cadence: 'per_n_trades', everyN: 3 });
  const due = [];
  for (const [n, count] of [1, 1, 1, 2, 2, 7, 1, 1].entries()) {
    const [opened, closed] = await round(deployment, n, count);
    assert.equal(opened, false, 'only a close makes it due');
    due.push(closed); // closed so far: 1 2 3 5 7 14 15 16
  }
  assert.deepEqual(due, [false, false, true, false, true, true, true, false]);
  const state = await last(deployment);
  assert.deepEqual([state.closed_trades, state.closed_since_reflection].map(number), ['16', '16']);
});

test('daily: reflection is due after a closed trade until a note of that day exists', async () => {
  const deployment = await deploy(s.query, { cadence: 'daily' });
  const day = (d, hour) => `2026-06-${String(d).padStart(2, '0')}T${String(hour).padStart(2, '0')}:00:00Z`;
  const due = async (at, positions = []) => (await post(s.api, deployment, tickOf(at, positions))).json.reflection_due;
  assert.equal(await due(day(1, 1)), false, 'nothing was closed yet');
  assert.equal(await due(day(1, 2), [['BTC', 'long', '1', '10']]), false);
  assert.equal(await due(day(1, 3)), true);
  assert.equal(await due(day(1, 4)), true, 'nobody has reflected yet');
  await addNote(s.query, deployment, { at: day(1, 5) });
  assert.equal(await due(day(1, 6)), false);
  assert.equal(await due(day(1, 23)), false);
  assert.equal(await due(day(2, 0)), true);
  await s.query("UPDATE daybook.reflection_notes SET generated_at = '2026-06-02T00:30:00Z' WHERE deployment_id = $1", [deployment]);
  await s.query('UPDATE daybook.agent_state SET closed_since_reflection = 0 WHERE deployment_id = $1', [deployment]);
  assert.equal(await due(day(2, 1)), false);
  assert.equal(await due(day(3, 1)), false, 'nothing was closed since');
  assert.equal(await due(day(3, 2), [['BTC', 'long', '1', '10']]), false);
  assert.equal(await due(day(3, 3)), true);
});

test('a replayed response repeats whether reflection was due', async () => {
  const deployment = await deploy(s.query, { cadence: 'per_n_trades', everyN: 1 });
  await post(s.api, deployment, tickOf(0, [['BTC', 'long', '1', '10']]));
  assert.equal((await post(s.api, deployment, tickOf(1))).json.reflection_due, true);
  await s.query('UPDATE daybook.agent_state SET closed_since_reflection = 0 WHERE deployment_id = $1', [deployment]);
  const again = await post(s.api, deployment, tickOf(1));
  assert.deepEqual([again.json.reflection_due, again.json.replayed], [true, true]);
});

// ---- stamps ----

test('a new trade is stamped with the current lessons, an open trade keeps its own', async () => {
  const deployment = await deploy(s.query);
  const hashes = async () => Object.fromEntries((await rowsOf(s.query, 'trade_history', deployment)).map((r) => [r.symbol, r.entry_lessons_hash]));
  const held = ['A', 'B', 'C'].map((symbol) => [symbol, 'long', '1', '10']);
  assert.equal((await post(s.api, deployment, tickOf(0, held.slice(0, 1)))).json.ops[0].entry_lessons_hash, null);
  await addNote(s.query, deployment, { hash: 'aaaaaaaaaaaaaaaa' });
  const second = (await post(s.api, deployment, tickOf(1, held.slice(0, 2)))).json;
  assert.deepEqual(second.open.map((o) => o.entry_lessons_hash), [null, 'aaaaaaaaaaaaaaaa']);
  assert.equal(second.ops.find((op) => op.op === 'open_trade').entry_lessons_hash, 'aaaaaaaaaaaaaaaa');
  await s.query("UPDATE daybook.reflection_notes SET status = 'superseded', superseded_at = $2 WHERE deployment_id = $1", [deployment, minute(2)]);
  await addNote(s.query, deployment, { hash: 'bbbbbbbbbbbbbbbb', at: minute(2) });
  await addNote(s.query, await deploy(s.query), { hash: 'cccccccccccccccc' }); // of another deployment
  await post(s.api, deployment, tickOf(2, held));
  await post(s.api, deployment, tickOf(3));
  assert.deepEqual(await hashes(), { A: null, B: 'aaaaaaaaaaaaaaaa', C: 'bbbbbbbbbbbbbbbb' });
});

const rising = Array.from({ length: 12 }, (_, i) => 100 + i / 10);
const falling = rising.toReversed();

test('only a new trade gets a regime tag: null without bars, unknown with too few', async () => {
  const deployment = await deploy(s.query);
  const held = ['DOWN', 'FEW', 'NONE', 'UP'].map((symbol) => [symbol, 'long', '1', '10']);
  const bars = { UP: rising, DOWN: falling, FEW: rising.slice(1), EMPTY: [], 'NOT HELD': rising };
  const first = (await post(s.api, deployment, tickOf(0, held, { bars }))).json;
  const tags = { DOWN: 'trend_down_lowvol', FEW: 'unknown', NONE: null, UP: 'trend_up_lowvol' };
  assert.deepEqual(Object.fromEntries(first.ops.map((op) => [op.symbol, op.entry_regime_tag])), tags);
  const second = (await post(s.api, deployment, tickOf(1, held, { bars: { UP: falling, NONE: rising, FEW: rising } }))).json;
  assert.deepEqual(Object.fromEntries(second.open.map((o) => [o.symbol, o.entry_regime_tag])), tags);
  const flipped = (await post(s.api, deployment, tickOf(2, [['UP', 'short', '1', '10'], ['FEW', 'long', '1', '10']], { bars: { UP: falling, FEW: rising } }))).json;
  assert.deepEqual(Object.fromEntries(flipped.open.map((o) => [o.symbol, o.entry_regime_tag])), { FEW: 'unknown', UP: 'trend_down_lowvol' });
  const rows = await rowsOf(s.query, 'trade_history', deployment);
  assert.deepEqual(rows.map((r) => `${r.symbol} ${r.side} ${r.entry_regime_tag}`).sort(), ['DOWN long trend_down_lowvol', 'FEW long unknown', 'NONE long null', 'UP long trend_up_lowvol', 'UP short trend_down_lowvol']);
  assert.equal((await post(s.api, deployment, tickOf(3, [['EMPTY', 'long', '1', '10']], { bars }))).json.open[0].entry_regime_tag, 'unknown');
  assert.ok(!(await rowsOf(s.query, 'decision_snapshots', deployment)).some((row) => JSON.stringify(row.input).includes('bars')), 'bars are not stored');
});

test('fees of a symbol without a trade are reported and charged to no trade', async () => {
  const deployment = await deploy(s.query);
  const fees = [{ symbol: 'BTC', fees_usd: exact('0.10') }, { symbol: 'ETH', fees_usd: exact('0.20') }, { symbol: 'ETH', fees_usd: exact('0.3') }, { symbol: 'FLAT', fees_usd: 1 }];
  const tick = tickOf(0, [['BTC', 'long', '1', '10'], ['FLAT', 'long', '0', '10']], { fees });
  const answer = await post(s.api, deployment, tick);
  assert.deepEqual(parseExact(answer.text).unmatched_fees.map((f) => `${f.symbol} ${number(f.fees_usd)}`), ['ETH 0.20', 'ETH 0.3', 'FLAT 1']);
  const closed = await post(s.api, deployment, tickOf(1, [], { fees: [{ symbol: 'BTC', fees_usd: exact('0.25') }] }));
  assert.deepEqual(closed.json.unmatched_fees, []);
  assert.deepEqual((await post(s.api, deployment, tickOf(2, [], { fees: [{ symbol: 'BTC', fees_usd: 5 }] }))).json.unmatched_fees, [{ symbol: 'BTC', fees_usd: 5 }]);
  const [row] = await rowsOf(s.query, 'trade_history', deployment);
  assert.equal(number(row.fees_usd), '0.35');
});

// ---- two ledgers, other owners, keys ----

test('a simulated and a live deployment with the same ticks have the same ledger, hash for hash', async () => {
  const ticks = Array.from({ length: 60 }, (_, i) => {
    const positions = [['BTC', i % 7 < 4 ? 'long' : 'short', `${1 + (i % 5)}.${i}`, `${65000 + ((i * 37) % 400)}.${i % 10}5`]];
    if (i % 3) positions.push(['ETH', 'long', `0.${1 + (i % 9)}`, `${3400 + i}`]);
    return tickOf(i * 47, i % 11 === 10 ? [] : positions, { ...(i % 2 ? BUY : SELL), marks: { BTC: 65100.5, ETH: 3400 }, fees: [{ symbol: 'BTC', fees_usd: exact('0.017') }], bars: { BTC: rising, ETH: falling } });
  });
  const hashes = [];
  for (const mode of ['sim', 'live', 'paper']) {
    const deployment = await deploy(s.query, { mode });
    await addNote(s.query, deployment);
    await postAll(deployment, ticks);
    const ledger = await ledgerOf(s.query, deployment);
    assert.ok(ledger.split('\n').length > 90 && ledger.includes('"status":"closed"') && ledger.includes('"flip":true'));
    hashes.push(hashOf(ledger));
  }
  assert.equal(new Set(hashes).size, 1, hashes.join(' '));
  const other = await deploy(s.query, { mode: 'sim' });
  await addNote(s.query, other);
  await postAll(other, ticks.with(30, { ...ticks[30], fees: [] }));
  assert.notEqual(hashOf(await ledgerOf(s.query, other)), hashes[0], 'one different fee changes the hash');
});

test('an unknown deployment is 404', async () => {
  for (const id of [UNKNOWN_ID, randomUUID()]) assert.deepEqual(refused(await s.api.post(ticksPath(id), tickOf(0))), [404, 'not_found']);
  assert.deepEqual(refused(await s.api.post(ticksPath('not-a-uuid'), tickOf(0))).slice(0, 1), [422]);
});

test('a deployment deleted between two ticks is 404 and leaves nothing behind', async () => {
  const deployment = await deploy(s.query);
  await post(s.api, deployment, tickOf(0, [['BTC', 'long', '1', '10']]));
  await s.query('DELETE FROM daybook.deployments WHERE id = $1', [deployment]);
  await post(s.api, deployment, tickOf(1), { status: 404 });
  for (const table of ['agent_state', 'decision_snapshots', 'trade_history']) assert.deepEqual(await rowsOf(s.query, table, deployment), []);
});

test('an Idempotency-Key replays the first response byte for byte', async () => {
  const deployment = await deploy(s.query);
  const headers = { 'idempotency-key': randomUUID() };
  const tick = tickOf(0, [['BTC', 'long', '1', '10']]);
  const first = await post(s.api, deployment, tick, { headers });
  assert.equal(first.json.replayed, false);
  await post(s.api, deployment, tickOf(1, [['BTC', 'long', '1', '11']]));
  const before = await bytesOf(s.query, deployment);
  const again = await post(s.api, deployment, tick, { headers });
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await post(s.api, deployment, tickOf(2), { headers, status: 409 })).json.code, 'idempotency_conflict');
  const plain = await post(s.api, deployment, tick); // without the key the ledger recognises the tick
  assert.equal(plain.text, first.text.replace('"replayed":false', '"replayed":true'));
  const late = { 'idempotency-key': randomUUID() };
  assert.equal((await post(s.api, deployment, tickOf(-1), { headers: late, status: 409 })).json.code, 'tick_out_of_order');
  assert.equal(await bytesOf(s.query, deployment), before);
  const unused = { 'idempotency-key': randomUUID() };
  await post(s.api, deployment, tickOf(3, [['BTC', 'long', '-1', '10']]), { headers: unused, status: 422 });
  assert.equal((await post(s.api, deployment, tickOf(3), { headers: unused })).json.replayed, false);
});

test('another owner gets 404; researchers and readers may not post ticks', async () => {
  const mine = await deploy(s.query, { owner: 'ann' });
  const keyOf = async (owner, role) => (await createKey(s.url, owner, role)).key;
  const keys = { agent: await keyOf('ann', 'agent'), admin: await keyOf('ann', 'admin'), researcher: await keyOf('ann', 'researcher'), reader: await keyOf('ann', 'reader'), other: await keyOf('bob', 'agent') };
  const service = await s.another();
  try {
    const api = makeClient(service.base);
    const send = (who, tick, path = ticksPath(mine)) => api.as(keys[who]).post(path, tick);
    const before = await bytesOf(s.query, mine);
    assert.deepEqual(refused(await api.post(ticksPath(mine), tickOf(0))), [401, 'unauthenticated']);
    assert.deepEqual(refused(await send('researcher', tickOf(0))), [403, 'forbidden']);
    assert.deepEqual(refused(await send('reader', tickOf(0))), [403, 'forbidden']);
    assert.deepEqual(refused(await send('other', tickOf(0))), [404, 'not_found']);
    assert.equal(await bytesOf(s.query, mine), before);
    assert.equal((await send('agent', tickOf(0, [['BTC', 'long', '1', '10']]))).status, 200);
    assert.equal((await send('admin', tickOf(1))).status, 200);
    assert.deepEqual(refused(await send('other', tickOf(1))), [404, 'not_found']); // nor does it see a stored tick
    for (const [path, body] of [['/v1/materialize', { next: tickOf(0) }], ['/v1/regime', { bars: rising }]]) {
      for (const who of ['agent', 'researcher', 'reader', 'other']) assert.equal((await send(who, body, path)).status, 200, `${who} ${path}`);
      assert.equal((await api.post(path, body)).status, 401);
    }
    assert.equal((await rowsOf(s.query, 'decision_snapshots', mine)).length, 2);
    api.close();
  } finally {
    await service.stop();
    await s.query('DELETE FROM daybook.api_keys');
  }
});
