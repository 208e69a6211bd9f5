// Rows of every resource that can be exported: one, and many, with nulls, quotes, formulas, other scripts and long numbers.
import { deploy } from './ledger.mjs';

/** As SQL: text, mostly null where it may be, that each format must escape. */
const TEXT = `(array['plain', '=1+1', '-2', '@x', 'a,"b"', E'two\\nlines', 'ünï 日本', '''', E'tab\\t\\\\ {}', ''])[1 + n % 10] || ' ' || n`;
const MAYBE = (sql) => `case when n % 3 <> 1 then ${sql} end`;
const AT = `timestamptz '2026-01-01Z' + n * interval '61.000001 second'`;
const ID = 'gen_random_uuid()';
const TAGS = `array['a,b', 'say "x"', 'n' || n % 3]`;
const DATA = `jsonb_build_object('n', n, 'text', ${TEXT}, 'list', jsonb_build_array(1.10, null, true), 'null', null)`;
const OUTCOME = `json_build_object('metric', 'brier', 'value', 0.1710, 'baseline', null, 'sample_size', n + 1, 'note', ${TEXT})`;
const FILL = `jsonb_build_object('filled_size', 0.10 + n, 'average_price', 65010.50, 'fees_usd', null, 'broker_order_id', 'b' || n, 'reason', ${TEXT})`;
const WARNING = `jsonb_build_object('code', 'thesis_not_retrieved', 'thesis_id', gen_random_uuid(), 'detail', ${TEXT})`;

const insert = (table, columns, count) =>
  `insert into daybook.${table} (owner, ${Object.keys(columns)}) select 'local', ${Object.values(columns)} from generate_series(0, ${count} - 1) n`;

const memory = (kind, status, d) => ({
  id: ID, version: 1, known_from: AT, kind: `'${kind}'`, status: `'${status}'`, status_reason: MAYBE(TEXT), at: AT, text_id: ID, text: TEXT,
  symbol: kind === 'thesis' ? `'S' || n % 7` : MAYBE(`'=S' || n % 7`), side: kind === 'thesis' ? MAYBE(`'long'`) : 'null', invalidation: MAYBE(TEXT), evidence: TAGS, tags: `case when n % 2 = 0 then ${TAGS} else '{}' end`,
  deployment_id: `'${d.id}'`, parallel: 'true', outcome: kind === 'thesis' ? MAYBE(`${OUTCOME}::jsonb`) : 'null', validates: kind === 'thesis' ? `array[${ID}, ${ID}]` : `'{}'`,
  agent_name: MAYBE(TEXT), embedding_status: `'none'`,
});

/** For each resource: the columns to fill for a deployment, and the filter that finds them. */
export const RESOURCES = {
  trade_history: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['trade_history', {
      id: ID, deployment_id: `'${d.id}'`, skill_id: `'${d.skill_id}'`, version: `'${d.version}'`, symbol: `'S' || n`, side: `'long'`, status: `'closed'`,
      entry_tick_at: AT, entry_price: `0.0000964 * n + 65200.12345678901234567890`, entry_size_usd: '1', entry_reason: MAYBE(TEXT), entry_leverage: MAYBE('3'), exit_tick_at: AT, exit_price: '1',
      exit_reason: TEXT, holding_minutes: '0', realized_pnl_usd: '-0.10 * n', size_base: '0', average_entry_price: '1', mark_price: '1', last_tick_at: AT,
    }],
  },
  lessons: {
    filter: (d) => `tags=${d.id}`,
    rows: (d) => ['lessons', {
      id: ID, version: 1, known_from: AT, at: AT, context: TEXT, outcome: TEXT, takeaway: `'=take ' || n`, tags: `array['${d.id}'] || ${TAGS}`, evidence: TAGS,
      status: `'proposed'`, status_at: AT, status_reason: MAYBE(TEXT), validation: MAYBE(OUTCOME), similar_keys: `'{}'::int[]`, embedding_status: `'embedded'`,
    }],
  },
  episodic: {
    filter: (d) => `ticker=${d.id}`,
    rows: (d) => ['episodic_memory', {
      id: ID, ticker: `'${d.id}'`, task_type: `'tone'`, created_at: AT, question: TEXT, answer: TEXT, probability: MAYBE('0.12345678901234567890'), confidence: '0.7', source: `'external'`,
      source_citations: TAGS, regime_tag: `jsonb_build_object('rates', ${TEXT})`, ttl_seconds: MAYBE('86400'), expires_at: MAYBE(`${AT} + interval '1000 years'`), embedding_status: `'embedded'`,
      embedding_model: `'none'`, embedding_dim: '3', content_hash: `'${d.id}' || n`,
    }],
  },
  decision_snapshots: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['decision_snapshots', {
      id: ID, deployment_id: `'${d.id}'`, tick_at: AT, equity_usd: '10000.50 + n', action_kind: MAYBE(TEXT), engine_kind: MAYBE(`'rejected'`), engine_rule: MAYBE(TEXT), input: `'{}'`, ops: `'[]'`,
      open: `'[]'`, reflection_due: 'n % 2 = 0', day_start_equity_usd: '10000', executed_today: 'n', realized_today_usd: '-0.10', losing_closes: '0',
    }],
  },
  reflection_notes: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['reflection_notes', {
      id: ID, skill_id: `'${d.skill_id}'`, version: `'${d.version}'`, deployment_id: `'${d.id}'`, status: `'superseded'`, generated_at: AT, superseded_at: `${AT} + interval '30 second'`, window_start: AT,
      window_end: AT, trades_considered: 'n', lessons_text: TEXT, content_hash: `'0123456789abcdef'`, model_used: `'builtin'`,
    }],
  },
  memories: { filter: (d) => `deployment_id=${d.id}`, rows: (d) => ['memories', memory('note', 'active', d)] },
  theses: { filter: (d) => `deployment_id=${d.id}`, rows: (d) => ['memories', memory('thesis', 'open', d)] },
  orders: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['orders', {
      id: ID, deployment_id: `'${d.id}'`, client_order_id: MAYBE(`'=' || ${ID}`), at: AT, symbol: `'S'`, action: `'buy'`, side: `'long'`, size: MAYBE('0.10 + n'), reason: MAYBE(TEXT), thesis_id: MAYBE(ID),
      warnings: MAYBE(`jsonb_build_array(${WARNING})`).replace(' end', ` else '[]' end`), outcome: MAYBE(`'filled'`), outcome_at: MAYBE(AT), outcome_data: MAYBE(FILL), agent_name: MAYBE(TEXT),
    }],
  },
  memory_retrievals: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['memory_retrievals', {
      id: ID, kind: `'memories'`, at: AT, query: DATA, filters: `'{}'`, candidates: `'[]'`, selection: `array[${ID}, ${ID}]`, deployment_id: `'${d.id}'`, symbol: MAYBE(`'S'`), rendered: TEXT, tokens: MAYBE('n'),
    }],
  },
  facts: {
    filter: (d) => `scope=${d.id}`,
    rows: (d) => ['facts', {
      scope: `'${d.id}'`, key: `'k' || n`, version: 1, known_from: AT, status: `'active'`, change: `'put'`, value: `${DATA}::json`, observation_type: `'user_stated_preference'`,
      source: `'recalled'`, confidence: '0.12345678901234567890', written_at: AT, verified_at: MAYBE(AT), verified_source: MAYBE(`'user_stated'`), decayed_at: AT,
    }],
  },
  memory_events: {
    filter: (d) => `deployment_id=${d.id}`,
    rows: (d) => ['memory_events', {
      journal_id: `'${d.id}'`, kind: `'memory.created'`, at: AT, symbol: MAYBE(`'S'`), subject_id: MAYBE(ID), agent_name: MAYBE(TEXT), data: DATA,
    }],
  },
};

/** Adds rows of a resource for a deployment, all with the time `at` if it is given. */
export async function addRows(query, d, name, count, at) {
  const sql = insert(...RESOURCES[name].rows(d), count);
  await query(at ? sql.replaceAll(AT, `timestamptz '${at}'`) : sql);
}

/** Adds `count` rows to each of the resources, all for one new deployment; returns it. */
export async function fill(s, count, names = Object.keys(RESOURCES)) {
  const d = await deploy(s.api, { mode: 'sim' });
  for (const name of names) await addRows(s.query, d, name, count);
  return d;
}
