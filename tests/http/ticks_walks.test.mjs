// Random portfolio walks against a simple model of a broker and its ledger: exact fractions, one symbol at a time, no code shared with the service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, deploy, exact, ledgerOf, ledgerSuite, minute, parseExact, postBulk, randomOf, rowsOf, ticksPath } from '../lib/ticks.mjs';

const WALKS = 150; // tests/core/test_materialize_walk.c runs 100,000 walks without the service
const TICKS = 40;
const AT_ONCE = 8;
const SYMBOLS = ['BTC', 'ETH', 'SOL'];
const s = ledgerSuite();

// ---- fractions ----

const gcd = (a, b) => (b === 0n ? a : gcd(b, a % b));
function fraction(n, d = 1n) {
  const by = gcd(n < 0n ? -n : n, d) || 1n;
  return { n: n / by, d: d / by };
}
const plus = (a, b) => fraction(a.n * b.d + b.n * a.d, a.d * b.d);
const minus = (a, b) => fraction(a.n * b.d - b.n * a.d, a.d * b.d);
const times = (a, b) => fraction(a.n * b.n, a.d * b.d);
const above = (a, b) => a.n * b.d > b.n * a.d;
const whole = (n) => fraction(BigInt(n));
const ZERO = whole(0);
/** Reads a JSON number exactly. */
function read(raw) {
  const [, sign, int, part = ''] = JSON.stringify(raw).match(/^(-?)(\d+)(?:\.(\d+))?$/);
  return fraction(BigInt(`${sign}${int}${part}`), 10n ** BigInt(part.length));
}
/** The decimal text of `units` in the last of `places` decimal places. */
function lexeme(units, places) {
  const digits = String(Math.abs(units)).padStart(places + 1, '0');
  return `${units < 0 ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}
const TOLERANCE = fraction(1n, 1_000_000_000n); // the ledger rounds money to twelve decimals at every fill
const near = (raw, expected, what) => {
  const apart = minus(read(raw), expected);
  assert.ok(!above(apart.n < 0n ? minus(ZERO, apart) : apart, TOLERANCE), `${what}: ${JSON.stringify(raw)} instead of ${Number(expected.n) / Number(expected.d)}`);
};

// ---- the walk: a broker's statements, in cents and thousandths ----

/** Ticks with the equity after each. Fills happen at the mark, fees are paid from equity, `size` is signed. */
function makeWalk(seed) {
  const random = randomOf(seed);
  const pick = (n) => Math.floor(random() * n);
  const symbols = SYMBOLS.slice(0, 1 + pick(3));
  const state = Object.fromEntries(symbols.map((symbol) => [symbol, { size: 0, mark: 1000 + pick(9_000_000) }]));
  const start = 1_000_000_000; // 10,000 dollars; money is in units of 0.00001, which is a thousandth times a cent
  let cash = start;
  let at = 0;
  const ticks = [];
  for (let i = 0; i < TICKS; i++) {
    at += 1 + pick(400);
    const fees = [];
    for (const symbol of symbols) {
      const p = state[symbol];
      p.mark = Math.max(1, p.mark + pick(2001) - 1000);
      if (random() < 0.5) continue;
      const target = [0, -p.size, p.size + 1 + pick(5000), p.size - 1 - pick(5000), Math.trunc(p.size / 2), pick(10_001) - 5000][pick(6)];
      if (target === p.size) continue;
      cash -= (target - p.size) * p.mark;
      if (random() < 0.5) {
        const fee = pick(30_000) - 2000; // occasionally a rebate
        cash -= fee;
        fees.push([symbol, fee]);
      }
      p.size = target;
    }
    const equity = symbols.reduce((sum, symbol) => sum + state[symbol].size * state[symbol].mark, cash);
    ticks.push({ at, equity, fees, marks: Object.fromEntries(symbols.map((x) => [x, state[x].mark])), sizes: Object.fromEntries(symbols.map((x) => [x, state[x].size])), flat: random() < 0.3, seconds: pick(60) });
  }
  return { start, ticks, random };
}

/** The request body. A symbol without a position is either omitted, with its mark in `marks`, or listed with size 0. */
function bodyOf(t) {
  const positions = [];
  const marks = {};
  for (const [symbol, size] of Object.entries(t.sizes)) {
    const mark = exact(lexeme(t.marks[symbol], 2));
    if (size === 0 && !t.flat) marks[symbol] = mark;
    else positions.push({ symbol, side: size < 0 ? 'short' : 'long', size_base: exact(lexeme(Math.abs(size), 3)), mark_price: mark });
  }
  return {
    tick_at: minute(t.at).replace(':00Z', `:${String(t.seconds).padStart(2, '0')}Z`),
    portfolio: { equity_usd: exact(lexeme(t.equity, 5)), positions },
    marks,
    fees: t.fees.map(([symbol, fee]) => ({ symbol, fees_usd: exact(lexeme(fee, 5)) })),
    proposed_action: { kind: 'adjust_position', reason: `at ${t.at}` },
    engine: { kind: 'executed' },
  };
}

// ---- the model ----

/** The rows a bookkeeper would derive from these ticks alone, by entry and symbol. */
function bookkeep(ticks) {
  const rows = [];
  for (const symbol of SYMBOLS) {
    let row = null;
    const meet = (mark) => {
      const gain = times(whole(row.sign), minus(whole(row.size * mark), row.cost));
      if (above(gain, row.mfe)) row.mfe = gain;
      if (above(row.mae, gain)) row.mae = gain;
      return gain;
    };
    for (const t of ticks.filter((x) => symbol in x.sizes)) {
      const mark = t.marks[symbol];
      const size = Math.abs(t.sizes[symbol]);
      const sign = Math.sign(t.sizes[symbol]);
      let fees = t.fees.filter(([of]) => of === symbol).reduce((sum, [, fee]) => plus(sum, whole(fee)), ZERO);
      const time = t.at * 60 + t.seconds;
      if (row && sign !== row.sign) {
        row.realized = plus(row.realized, meet(mark));
        const share = sign === 0 ? fees : times(fees, fraction(BigInt(row.size), BigInt(row.size + size)));
        Object.assign(row, { fees: plus(row.fees, share), exit: mark, exitTime: time, exitReason: `at ${t.at}` });
        fees = minus(fees, share);
        row = null;
      }
      if (!row && sign !== 0) {
        row = { symbol, sign, size, cost: whole(size * mark), entry: mark, entrySize: size, entryTime: time, entryReason: `at ${t.at}`, realized: ZERO, mfe: ZERO, mae: ZERO, fees };
        rows.push(row);
      } else if (row) {
        if (size !== row.size) meet(mark);
        if (size > row.size) row.cost = plus(row.cost, whole((size - row.size) * mark));
        if (size < row.size) {
          const kept = times(row.cost, fraction(BigInt(size), BigInt(row.size)));
          row.realized = plus(row.realized, times(whole(row.sign), minus(whole((row.size - size) * mark), minus(row.cost, kept))));
          row.cost = kept;
        }
        row.size = size;
        meet(mark);
        row.fees = plus(row.fees, fees);
      }
      if (row) row.mark = mark;
    }
  }
  return rows.sort((a, b) => a.entryTime - b.entryTime || (a.symbol < b.symbol ? -1 : 1));
}

const MONEY = fraction(1n, 100_000n);
const money = (f) => times(f, MONEY);

function checkRows(rows, model, what) {
  assert.equal(rows.length, model.length, `${what}: rows`);
  for (const [i, row] of rows.entries()) {
    const m = model[i];
    const at = `${what}, row ${i} (${m.symbol})`;
    assert.deepEqual([row.symbol, row.side, row.status], [m.symbol, m.sign < 0 ? 'short' : 'long', m.exitTime === undefined ? 'open' : 'closed'], at);
    assert.equal(JSON.stringify(row.entry_price), lexeme(m.entry, 2), at);
    assert.equal(row.entry_reason, m.entryReason, at);
    near(row.entry_size_usd, money(whole(m.entrySize * m.entry)), `${at}: entry_size_usd`);
    near(row.fees_usd, money(m.fees), `${at}: fees_usd`);
    near(row.mfe_usd, money(m.mfe), `${at}: mfe_usd`);
    near(row.mae_usd, money(m.mae), `${at}: mae_usd`);
    if (row.status === 'open') {
      assert.deepEqual([row.exit_tick_at, row.exit_price, row.exit_reason, row.realized_pnl_usd, row.holding_minutes], [null, null, null, null, null], at);
      assert.equal(JSON.stringify(row.size_base), lexeme(m.size, 3), at);
      assert.equal(JSON.stringify(row.mark_price), lexeme(m.mark, 2), at);
      near(row.realized_so_far_usd, money(m.realized), `${at}: realized_so_far_usd`);
      near(row.average_entry_price, times(m.cost, fraction(1n, 100n * BigInt(m.size))), `${at}: average_entry_price`);
    } else {
      assert.equal(JSON.stringify(row.exit_price), lexeme(m.exit, 2), at);
      assert.equal(row.exit_reason, m.exitReason, at);
      assert.equal(JSON.stringify(row.size_base), '0', at);
      near(row.realized_pnl_usd, money(m.realized), `${at}: realized_pnl_usd`);
      const held = fraction(BigInt(m.exitTime - m.entryTime), 60n);
      const apart = minus(read(row.holding_minutes), held);
      assert.ok(!above(times(apart, apart), fraction(1n, 10n ** 12n)), `${at}: holding_minutes`);
    }
  }
  const open = rows.filter((row) => row.status === 'open').map((row) => row.symbol);
  assert.equal(new Set(open).size, open.length, `${what}: one open row a symbol`);
}

/** The change in equity equals the PnL of the rows, to the cent. */
function reconcile(rows, walk, what) {
  let pnl = ZERO;
  for (const row of rows) {
    pnl = minus(pnl, read(row.fees_usd));
    if (row.status === 'closed') pnl = plus(pnl, read(row.realized_pnl_usd));
    else {
      const gain = times(read(row.size_base), minus(read(row.mark_price), read(row.average_entry_price)));
      pnl = plus(pnl, plus(read(row.realized_so_far_usd), row.side === 'long' ? gain : minus(ZERO, gain)));
    }
  }
  const apart = minus(pnl, money(whole(walk.ticks.at(-1).equity - walk.start)));
  assert.ok(!above(times(apart, apart), fraction(1n, 40_000n)), `${what}: PnL and equity are apart by ${Number(apart.n) / Number(apart.d)}`);
}

// ---- playing ----

const bare = ({ trade_id, entry_snapshot_id, exit_snapshot_id, ...rest }) => rest;
const bareAnswer = ({ ops, open, unmatched_fees }) => JSON.stringify([ops.map(bare), open.map(bare), unmatched_fees]);

async function play(seed, counts) {
  const what = `walk ${seed}`;
  const walk = makeWalk(seed);
  const options = { status: 200, check: seed % 10 === 0 }; // checking every response against the contract would take most of the time
  const posted = seed % 4 === 0 ? walk.ticks.filter(() => walk.random() < 0.7) : walk.ticks; // some walks lose ticks
  const bodies = posted.map(bodyOf);
  const deployment = await deploy(s.query, { mode: ['live', 'paper', 'sim'][seed % 3] });
  const answers = [];
  for (const body of bodies) {
    const answer = await s.api.post(ticksPath(deployment), body, options);
    answers.push(answer.text);
    if (walk.random() < 0.05) assert.equal((await s.api.post(ticksPath(deployment), body, options)).json.replayed, true, what); // a retry
  }
  const rows = await rowsOf(s.query, 'trade_history', deployment);
  checkRows(rows, bookkeep(posted), what);
  if (posted === walk.ticks) reconcile(rows, walk, what);
  counts.ticks += bodies.length;
  counts.trades += rows.length;
  counts.closed += rows.filter((row) => row.status === 'closed').length;
  counts.flips += answers.reduce((sum, text) => sum + text.split('"op":"open_trade"').slice(1).filter((op) => op.includes('"flip":true')).length, 0);

  const before = await bytesOf(s.query, deployment);
  const from = seed % 10 === 0 ? 0 : bodies.length - Math.floor(walk.random() * 8);
  for (let i = from; i < bodies.length; i++) {
    const again = await s.api.post(ticksPath(deployment), bodies[i], options);
    assert.equal(again.text, answers[i].replace(/"replayed":false}$/, '"replayed":true}'), what);
  }
  assert.equal(await bytesOf(s.query, deployment), before, `${what}: a suffix that comes again changes nothing`);

  if (seed % 3 === 1) {
    const other = await deploy(s.query);
    const { lines, last } = await postBulk(s.api, other, bodies, options);
    assert.deepEqual(last, { done: true, applied: bodies.length, replayed: 0, resume_at: null }, what);
    assert.deepEqual(lines.map(bareAnswer), answers.map((text) => bareAnswer(parseExact(text))), `${what}: bulk`);
    assert.equal(await ledgerOf(s.query, other), await ledgerOf(s.query, deployment), `${what}: bulk`);
  }
  if (seed % 3 !== 0) return;
  let prev;
  for (const [i, body] of bodies.entries()) {
    const would = parseExact((await s.api.post('/v1/materialize', { prev, next: body }, options)).text);
    assert.equal(bareAnswer(would), bareAnswer(parseExact(answers[i])), `${what}: materialize, tick ${i}`);
    prev = { tick_at: body.tick_at, open: would.open };
  }
}

test(`${WALKS} walks of ${TICKS} ticks: the ledger matches the model and reconciles`, async (t) => {
  const counts = { ticks: 0, trades: 0, closed: 0, flips: 0 };
  let next = 1;
  const begun = Date.now();
  const worker = async () => {
    while (next <= WALKS) await play(next++, counts);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  t.diagnostic(`${counts.ticks} ticks, ${counts.trades} trades, ${counts.closed} closed, ${counts.flips} flips in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  assert.ok(counts.ticks > WALKS * TICKS * 0.85 && counts.closed > WALKS * 5 && counts.flips > WALKS, JSON.stringify(counts));
});

test('the model detects a row off by one cent, an extra row and a wrong side', async () => {
  const walk = makeWalk(1);
  const deployment = await deploy(s.query);
  for (const body of walk.ticks.map(bodyOf)) await s.api.post(ticksPath(deployment), body, { status: 200 });
  const model = bookkeep(walk.ticks);
  const rows = await rowsOf(s.query, 'trade_history', deployment);
  checkRows(rows, model, 'as it is');
  reconcile(rows, walk, 'as it is');
  const closed = rows.findIndex((row) => row.status === 'closed');
  const cent = (raw) => exact(lexeme(Math.round(Number(JSON.stringify(raw)) * 100) + 1, 2));
  for (const column of ['realized_pnl_usd', 'mfe_usd', 'fees_usd', 'entry_price', 'exit_price'])
    assert.throws(() => checkRows(rows.with(closed, { ...rows[closed], [column]: cent(rows[closed][column]) }), model, 'changed'), column);
  assert.throws(() => checkRows([...rows, rows[closed]], model, 'changed'));
  assert.throws(() => checkRows(rows.with(closed, { ...rows[closed], side: rows[closed].side === 'long' ? 'short' : 'long' }), model, 'changed'));
  assert.throws(() => reconcile(rows.with(closed, { ...rows[closed], realized_pnl_usd: cent(rows[closed].realized_pnl_usd) }), walk, 'changed'), /apart/);
});
