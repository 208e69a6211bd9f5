// The risk state of a session: every line, and when it is omitted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, ledgerRows } from '../lib/ledger_rows.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const riskState = async (id, query = '') => (await s.api.get(`/v1/deployments/${id}/risk_state${query}`, { status: 200 })).json;
const HEADING = '## Recent activity (this session)\n';
const NUDGE = ' ← same code in the last 3+ rejections; do not repeat the same proposal shape';

/** A deployment with ticks a minute apart, each rejected by the given rule (null: not rejected, '': rejected without a rule). */
async function rejected(rules) {
  const id = await rows.deployment();
  for (const [i, rule] of rules.entries())
    await rows.tick(id, at(i), rule === null ? { engine_kind: 'executed' } : { engine_kind: 'rejected', engine_rule: rule || null });
  return id;
}

test('a deployment without ticks has an empty section and all facts', async () => {
  const id = await rows.deployment();
  assert.deepEqual(await riskState(id, `?as_of=${at(0)}`), {
    deployment_id: id,
    as_of: at(0),
    markdown: '',
    tokens: 0,
    rejections_last_hour: [],
    recent_rejections: [],
    repeated_rejection: null,
    executed_orders_today: 0,
    realized_pnl_today_pct: null,
    consecutive_losing_closes: 0,
  });
});

test('each line appears when its rounded figure is not zero, and without the others', async () => {
  const lines = [
    [{ engine_kind: 'rejected', engine_rule: 'R3' }, '- engine rejections (last 1h): R3=1\n- recent rejection sequence: R3\n'],
    [{ executed_today: 2 }, '- executed orders today (UTC): 2\n'],
    [{ realized_today_usd: '-123.4' }, '- realized PnL today (UTC, vs day-start equity): -1.23%\n'],
    [{ realized_today_usd: '0.4' }, ''],
    [{ realized_today_usd: 5, day_start_equity_usd: 0 }, ''],
    [{ losing_closes: 2 }, '- consecutive losing closes: 2\n'],
    [{ losing_closes: 3 }, '- consecutive losing closes: 3 (consider whether your read of the regime still holds)\n'],
    [{}, ''],
  ];
  for (const [figures, line] of lines) {
    const id = await rows.deployment();
    await rows.tick(id, at(0), figures);
    const { markdown, tokens, realized_pnl_today_pct } = await riskState(id);
    assert.equal(markdown, line && HEADING + line);
    assert.equal(tokens > 0, line !== '');
    if (figures.day_start_equity_usd === 0) assert.equal(realized_pnl_today_pct, null);
  }
});

test('three consecutive rejections by one rule are reported, two are not', async () => {
  const cases = [
    [['R3', 'R3'], null],
    [['R3', 'R3', 'R3'], 'R3'],
    [['R1', 'R3', 'R3', 'R3'], 'R3'],
    [['R3', 'R3', 'R3', 'R1'], null],
    [['R3', 'R1', 'R3', 'R3'], null],
    [['R3', null, 'R3', null, 'R3'], 'R3'],
    [['', '', ''], 'unspecified'],
    [['', 'R3', 'R3'], null],
  ];
  for (const [rules, repeated] of cases) {
    const { repeated_rejection, markdown } = await riskState(await rejected(rules));
    assert.equal(repeated_rejection, repeated, rules.join(' '));
    assert.equal(markdown.includes(NUDGE), repeated !== null);
  }
});

test('rules are counted, most frequent first, and the tail lists the last five rejections in order', async () => {
  const state = await riskState(await rejected(['B', 'A', 'C', 'C', 'B', 'A', 'C']));
  assert.deepEqual(state.rejections_last_hour, [
    { rule: 'C', count: 3 },
    { rule: 'A', count: 2 },
    { rule: 'B', count: 2 },
  ]);
  assert.deepEqual(state.recent_rejections, ['C', 'C', 'B', 'A', 'C']);
  assert.equal(
    state.markdown,
    `${HEADING}- engine rejections (last 1h): C=3, A=2, B=2\n- recent rejection sequence: C → C → B → A → C\n`,
  );
});

test('the window is the last hour, excluding its start and including its end', async () => {
  const id = await rejected(['R0', 'R1']); // at minutes 0 and 1
  const rules = async (instant) => (await riskState(id, `?as_of=${instant}`)).recent_rejections.join(' ');
  assert.equal(await rules(at(0)), 'R0');
  assert.equal(await rules(at(59, 59)), 'R0 R1');
  assert.equal(await rules('2026-06-04T10:59:59.999999Z'), 'R0 R1');
  assert.equal(await rules(at(60)), 'R1');
  assert.equal(await rules(at(61)), '');
});

test('at most the last 5,000 rejections of the hour are counted', async () => {
  const id = await rejected(['FIRST']);
  await s.query(
    `insert into daybook.decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, engine_kind, engine_rule, input, ops, open, reflection_due,
       day_start_equity_usd, executed_today, realized_today_usd, losing_closes)
     select 'local', gen_random_uuid(), $1, $2::timestamptz + n * interval '1 millisecond', 1, 'rejected', 'R' || n % 2, '{}', '[]', '[]', false, 1, 0, 0, 0
     from generate_series(1, 5000) n`,
    [id, at(1)],
  );
  const { rejections_last_hour, markdown } = await riskState(id, `?as_of=${at(30)}`);
  assert.deepEqual(rejections_last_hour, [
    { rule: 'R0', count: 2500 },
    { rule: 'R1', count: 2500 },
  ]);
  assert.match(markdown, /R0=2500, R1=2500\n- recent rejection sequence: R0 → R1 → R0 → R1 → R0\n$/);
});
