// Statistics over closed trades, checked against a simple calculation of the same figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy, position, postTick } from '../lib/ledger.mjs';
import { faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const COUNT = 400;
const SYMBOLS = ['BTC', 'ETH', '"quoted", =1', 'ünï'];
let trades;
let deployment;
const stats = async (query = '') => (await s.api.get(`/v1/trade_history/stats?${query}`, { status: 200 })).json;

/** Trades across a year boundary, with PnL in cents; some exits share an instant, some have no regime, lessons or MFE. */
async function prepare() {
  deployment = await deploy(s.api, { mode: 'sim' });
  let seed = 7;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  trades = Array.from({ length: COUNT }, (_, i) => {
    const entry = Date.UTC(2025, 11, 1) + random(86_400) * 60_000;
    return {
      id: `0190eeee-eeee-7eee-8eee-${String(i).padStart(12, '0')}`,
      symbol: SYMBOLS[random(4)],
      side: ['long', 'short'][random(2)],
      entry: new Date(entry).toISOString(),
      exit: new Date(entry + random(40) * 3_600_000).toISOString(),
      gross: random(20_000) - 10_000,
      fees: random(100),
      minutes: random(5_000),
      mfe: [null, 0, 1 + random(9_999)][random(3)],
      regime: ['chop_lowvol', 'trend_up_hivol', null][random(3)],
      lessons: ['0123456789abcdef', null][random(2)],
      reason: ['target', 'liquidated'][random(2)],
    };
  });
  await s.query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
       entry_size_usd, entry_lessons_hash, entry_regime_tag, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd,
       fees_usd, mfe_usd, size_base, average_entry_price, mark_price, last_tick_at)
     select 'local', t.id, $2, $3, $4, symbol, side, 'closed', entry, 1, 1, lessons, regime, exit, 1, reason, minutes, gross / 100, fees / 100,
       mfe / 100, 0, 1, 1, exit
     from json_to_recordset($1) as t (id uuid, symbol text, side text, entry timestamptz, exit timestamptz, gross numeric, fees numeric,
       minutes numeric, mfe numeric, regime text, lessons text, reason text)`,
    [JSON.stringify(trades), deployment.id, deployment.skill_id, deployment.version],
  );
}

const SCALE = 10n ** 18n;
/** a / b rounded half to even to that many decimals, as a number. */
function ratio(a, b, decimals = 12) {
  if (b === 0n) return null;
  const unit = 10n ** BigInt(decimals);
  const sign = a < 0n === b < 0n ? 1n : -1n;
  const top = (a < 0n ? -a : a) * unit;
  const under = b < 0n ? -b : b;
  let q = top / under;
  const rest = (top % under) * 2n;
  if (rest > under || (rest === under && q % 2n === 1n)) q++;
  return Number(`${sign * q}e-${decimals}`);
}

/** The figures of a list of trades, in the order of their exits, from cents. */
function figures(list) {
  const sorted = list.toSorted((a, b) => (a.exit < b.exit ? -1 : a.exit > b.exit ? 1 : a.id < b.id ? -1 : 1));
  const sum = (of) => sorted.reduce((x, t) => x + BigInt(of(t)), 0n);
  const net = (t) => t.gross - t.fees;
  const wins = sorted.filter((t) => net(t) > 0);
  const losses = sorted.filter((t) => net(t) < 0);
  let [curve, peak, fall] = [0, 0, 0];
  for (const t of sorted) {
    curve += net(t);
    peak = Math.max(peak, curve);
    fall = Math.max(fall, peak - curve);
  }
  const count = BigInt(sorted.length);
  const captured = sorted.filter((t) => t.mfe > 0);
  const won = wins.reduce((x, t) => x + BigInt(net(t)), 0n);
  const lost = losses.reduce((x, t) => x - BigInt(net(t)), 0n);
  return {
    count: sorted.length,
    wins: wins.length,
    losses: losses.length,
    win_rate: ratio(BigInt(wins.length), count),
    gross_pnl_usd: ratio(sum((t) => t.gross), 100n),
    fees_usd: ratio(sum((t) => t.fees), 100n),
    net_pnl_usd: ratio(sum(net), 100n),
    expectancy_usd: ratio(sum(net), count * 100n),
    profit_factor: ratio(won, lost),
    max_drawdown_usd: fall / 100,
    average_holding_minutes: ratio(sum((t) => t.minutes), count),
    mfe_capture: captured.length
      ? ratio(
          captured.reduce((x, t) => x + (BigInt(t.gross) * SCALE) / BigInt(t.mfe), 0n),
          BigInt(captured.length) * SCALE,
        )
      : null,
  };
}

/** The ISO 8601 week, computed from the Thursday of the week. */
function week(time) {
  const day = new Date(time.slice(0, 10));
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7));
  const year = day.getUTCFullYear();
  return `${year}-W${String(Math.ceil(((day - Date.UTC(year, 0, 1)) / 86_400_000 + 1) / 7)).padStart(2, '0')}`;
}

const KEYS = {
  symbol: (t) => t.symbol,
  side: (t) => t.side,
  regime: (t) => t.regime,
  lessons: (t) => t.lessons,
  exit_reason: (t) => t.reason,
  day: (t) => t.exit.slice(0, 10),
  week: (t) => week(t.exit),
  month: (t) => t.exit.slice(0, 7),
};

for (const [group_by, key] of Object.entries(KEYS))
  test(`by ${group_by}: all groups in order, and the total`, async () => {
    const answer = await stats(`group_by=${group_by}`);
    assert.deepEqual(answer.total, figures(trades));
    const order = (a, b) => (a === null ? 1 : b === null ? -1 : Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const keys = [...new Set(trades.map(key))].sort(order);
    assert.deepEqual(
      answer.groups,
      keys.map((k) => ({ key: k, ...figures(trades.filter((t) => key(t) === k)) })),
    );
    assert.equal(answer.truncated, false);
    assert.equal(answer.group_by, group_by);
  });

test('without group_by there is only the total, with the same bytes each time', async () => {
  const { text, json } = await s.api.get('/v1/trade_history/stats', { status: 200 });
  assert.deepEqual(json, { group_by: 'none', total: figures(trades), groups: [], truncated: false });
  assert.equal((await s.api.get('/v1/trade_history/stats?group_by=none', { status: 200 })).text, text);
});

test('statistics take the filters and as_of of the list', async () => {
  const mid = '2025-12-20T00:00:00.000Z';
  const cases = {
    'symbol=BTC&side=long': (t) => t.symbol === 'BTC' && t.side === 'long',
    'regime=none': (t) => t.regime === null,
    'lessons_hash=0123456789abcdef&exit_reason=target': (t) => t.lessons !== null && t.reason === 'target',
    [`entry_since=${mid}`]: (t) => t.entry >= mid,
    [`exit_until=${mid}`]: (t) => t.exit < mid,
    [`as_of=${mid}`]: (t) => t.exit <= mid,
    [`deployment_id=${deployment.id}&status=closed`]: () => true,
    'status=open': () => false,
    'version=none': () => false,
  };
  for (const [query, wanted] of Object.entries(cases)) assert.deepEqual((await stats(query)).total, figures(trades.filter(wanted)), query);
});

test('open trades do not count, nor do trades that were open at as_of', async () => {
  const other = await deploy(s.api, { mode: 'sim' });
  await postTick(s.api, other.id, '2026-03-01T10:00:00Z', { positions: [position('X', 10)] });
  const of = async (query) => (await stats(`deployment_id=${other.id}&${query}`)).total;
  assert.equal((await of('')).count, 0);
  await postTick(s.api, other.id, '2026-03-01T11:00:00Z', { marks: { X: 12.5 } });
  assert.equal((await of('')).net_pnl_usd, 2.5);
  assert.equal((await of('as_of=2026-03-01T10:59:59Z')).count, 0);
});

test('groups after the first thousand are cut, and the total still includes them', async () => {
  const { id, skill_id, version } = await deploy(s.api, { mode: 'sim' });
  await s.query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
       entry_size_usd, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd, size_base, average_entry_price, mark_price,
       last_tick_at)
     select 'local', gen_random_uuid(), $1, $2, $3, 'X', 'long', 'closed', e, 1, 1, e, 1, 'reason ' || lpad((n % 1500)::text, 5, '0'), 0, 0.01,
       0, 1, 1, e
     from generate_series(1, 12000) n, lateral (select timestamptz '2026-05-01Z' - n * interval '1 second' as e) i`,
    [id, skill_id, version],
  );
  const { total, groups, truncated } = await stats(`deployment_id=${id}&group_by=exit_reason`);
  assert.equal(total.count, 12000);
  assert.equal(total.net_pnl_usd, 120);
  assert.equal(truncated, true);
  assert.deepEqual(
    groups.map((g) => `${g.key} ${g.count}`),
    Array.from({ length: 1000 }, (_, i) => `reason ${String(i).padStart(5, '0')} 8`),
  );
});

test('an unknown group_by is rejected', async () => {
  assert.deepEqual(faults(await s.api.get('/v1/trade_history/stats?group_by=year&limit=1&sort=entry_asc', { status: 422 })), [
    'group_by: not_a_choice',
    'limit: unknown_field',
    'sort: unknown_field',
  ]);
});
