// The context at an instant shows nothing later, whatever clock the deployment uses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, ledgerRows, openTrade } from '../lib/ledger_rows.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const context = async (id, query = '') => (await s.api.get(`/v1/deployments/${id}/context${query}`, { status: 200 })).json;
const shape = ({ recent_trades, open_positions, recent_activity: r }) => ({
  closed: recent_trades.map((t) => t.symbol).join(' '),
  open: open_positions.map((p) => `${p.symbol}@${p.mark_price}`).join(' '),
  executed: r.executed_orders_today,
  losing: r.consecutive_losing_closes,
  rejections: r.recent_rejections.join(' '),
});
const NOTHING = { closed: '', open: '', executed: 0, losing: 0, rejections: '' };

test('as_of shows the state after the last tick at or before it, around each event', async () => {
  const id = await rows.deployment();
  const open = (symbol, mark_price) => openTrade({ symbol, mark_price });
  await rows.tick(id, at(10), { open: [open('BTC', 1)], executed_today: 1 });
  await rows.tick(id, at(20), { open: [open('BTC', 2)], executed_today: 1, engine_kind: 'rejected', engine_rule: 'R1' });
  await rows.tick(id, at(30), { open: [open('ETH', 9)], executed_today: 2, losing_closes: 1 });
  await rows.trade(id, { symbol: 'BTC', entry_tick_at: at(10), exit_tick_at: at(30) });
  await rows.trade(id, { symbol: 'ETH', entry_tick_at: at(30), last_tick_at: at(40), mark_price: 10 });
  await rows.tick(id, at(40), { open: [open('ETH', 10)], executed_today: 2, losing_closes: 1 });
  const expected = [
    [at(9, 59), NOTHING],
    [at(10), { ...NOTHING, open: 'BTC@1', executed: 1 }],
    [at(19, 59), { ...NOTHING, open: 'BTC@1', executed: 1 }],
    [at(20), { ...NOTHING, open: 'BTC@2', executed: 1, rejections: 'R1' }],
    [at(29, 59), { ...NOTHING, open: 'BTC@2', executed: 1, rejections: 'R1' }],
    [at(30), { closed: 'BTC', open: 'ETH@9', executed: 2, losing: 1, rejections: 'R1' }],
    [at(40), { closed: 'BTC', open: 'ETH@10', executed: 2, losing: 1, rejections: 'R1' }],
    [at(79, 59), { closed: 'BTC', open: 'ETH@10', executed: 2, losing: 1, rejections: 'R1' }],
    [at(80), { closed: 'BTC', open: 'ETH@10', executed: 2, losing: 1, rejections: '' }],
    ['9999-12-31T23:59:59Z', { closed: 'BTC', open: 'ETH@10', executed: 0, losing: 1, rejections: '' }],
    ['0001-01-01T00:00:00Z', NOTHING],
  ];
  for (const [instant, state] of expected) {
    const seen = await context(id, `?as_of=${instant}`);
    assert.equal(seen.as_of, instant);
    assert.deepEqual(shape(seen), state, instant);
  }
  assert.deepEqual(shape(await context(id)), expected[6][1]);
});

test('a trade that was open at an instant is not listed as closed, however many newer trades exist', async () => {
  const id = await rows.deployment({ k: 2 });
  for (let n = 0; n < 20; n++) await rows.trade(id, { symbol: `LONG${n}`, entry_tick_at: at(50 + n), exit_tick_at: at(500) });
  for (let n = 0; n < 20; n++) await rows.trade(id, { symbol: `OPEN${n}`, entry_tick_at: at(50 + n) });
  for (let n = 0; n < 3; n++) await rows.trade(id, { symbol: `OLD${n}`, entry_tick_at: at(n), exit_tick_at: at(n + 40) });
  await rows.tick(id, at(600));
  assert.equal(shape(await context(id, `?as_of=${at(499)}`)).closed, 'OLD2 OLD1');
  assert.equal(shape(await context(id, `?as_of=${at(41)}`)).closed, 'OLD1 OLD0');
  assert.equal(shape(await context(id, `?as_of=${at(500)}`)).closed, 'LONG19 LONG18');
});

test('the day ends at midnight UTC, to the microsecond; a losing streak continues across it', async () => {
  const id = await rows.deployment();
  await rows.tick(id, '2026-06-04T23:59:59.999999Z', { executed_today: 5, realized_today_usd: 50, losing_closes: 2 });
  const state = async (instant) => {
    const { recent_activity: r } = await context(id, `?as_of=${encodeURIComponent(instant)}`);
    return [r.executed_orders_today, r.realized_pnl_today_pct, r.consecutive_losing_closes];
  };
  assert.deepEqual(await state('2026-06-04T23:59:59.999999Z'), [5, 0.5, 2]);
  assert.deepEqual(await state('2026-06-05T00:00:00Z'), [0, null, 2]);
  assert.deepEqual(await state('2026-06-05T01:59:59+02:00'), [0, null, 0], 'before the tick, in another zone');
  await rows.tick(id, '2026-06-05T00:00:00Z', { executed_today: 0, realized_today_usd: 0, losing_closes: 2 });
  assert.deepEqual(await state('2026-06-05T00:00:00Z'), [0, 0, 2]);
});

test('a simulation takes its clock from its ticks, other deployments from the server', async () => {
  const clocks = {};
  const recently = new Date(Date.now() - 5 * 60_000).toISOString();
  for (const mode of ['sim', 'live', 'paper']) {
    const id = await rows.deployment({ mode });
    await rows.tick(id, recently, { engine_kind: 'rejected', open: [openTrade({ entry_tick_at: recently })] });
    const before = Date.now();
    const { as_of, open_positions, recent_activity } = await context(id);
    clocks[mode] = Date.parse(as_of);
    assert.deepEqual(recent_activity.rejections_last_hour, [{ rule: 'unspecified', count: 1 }]);
    const held = open_positions[0].held_minutes;
    if (mode === 'sim') assert.equal(held, 0);
    else assert.ok(held >= 4 && held <= 6, `${mode}: ${held}`);
    // Whole minutes, so that a repeated read returns the same bytes.
    if (mode !== 'sim') assert.ok(clocks[mode] % 60_000 === 0 && clocks[mode] > before - 61_000 && clocks[mode] <= Date.now() + 1000, mode);
  }
  assert.equal(clocks.sim, Date.parse(recently));
});

test('a live tick dated ahead of the server clock is visible immediately and advances the clock', async () => {
  const id = await rows.deployment({ mode: 'live' });
  const ahead = new Date(Date.now() + 3600_000).toISOString();
  await rows.tick(id, ahead, { executed_today: 1, open: [openTrade()] });
  const { as_of, open_positions } = await context(id);
  assert.deepEqual([Date.parse(as_of), open_positions.length], [Date.parse(ahead), 1]);
});

test('reading a live context again within the minute is 304, for JSON too', async () => {
  const id = await rows.deployment({ mode: 'live' });
  await rows.tick(id, new Date(Date.now() - 90_000).toISOString(), { open: [openTrade()] });
  for (let tries = 0; ; tries++) {
    const { headers } = await s.api.get(`/v1/deployments/${id}/context`, { status: 200 });
    const again = await s.api.get(`/v1/deployments/${id}/context`, { headers: { 'if-none-match': headers.etag } });
    if (again.status === 304) break;
    assert.ok(tries < 2, 'a minute ended twice between two reads');
  }
});
