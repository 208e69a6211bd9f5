/* Rows of two owners in every owned table, for the tests that prove that neither can see the other's rows. */
#ifndef DAYBOOK_TESTS_DB_OWNED_ROWS_H
#define DAYBOOK_TESTS_DB_OWNED_ROWS_H

#include <ctype.h>
#include <stdbool.h>

#include "tests/db/database.h"

#define ANN      "ann"
#define BOB      "bob"
#define ANN_MARK "sealedword" /* in every text of ann, and in none of bob */

enum { MOST_TABLES = 64, MOST_ROWS = 64 };

/* How to fill each owned table, in this order, so that referenced rows exist first. $1 is the owner, $2 a
 * word for all its texts, $3 the prefix of its ids. A migration that creates an owned table adds a row here.
 */
static const struct filler {
    const char *table, *sql;
} fillers[] = {
    /* Four lessons: one with three versions, two near-duplicates, one that superseded another. All are old
     * enough to be stale. */
    { "lessons",
      "insert into daybook.lessons (owner, id, version, known_from, known_until, at, context, outcome, "
      "takeaway, tags, "
      "evidence, status, status_at, status_reason, validation, superseded_by, similar_keys) "
      "select $1, ($3 || n)::uuid, v, f::timestamptz, u::timestamptz, '2026-01-01', $2 || ' context', $2 || "
      "' outcome', "
      "'Shrink the odds of macro calls by a tenth ' || $2 || ' ' || n, array['macro', $2], array['log ' || "
      "$2], s, "
      "f::timestamptz, r || ' ' || $2, d::json, ($3 || b)::uuid, array[n, 7, 8] "
      "from (values "
      "(1, 1, '2026-01-01', '2026-01-02', 'proposed', 'new', null, null), "
      "(1, 2, '2026-01-02', '2026-01-03', 'validated', 'seen', "
      "'{\"metric\":\"brier\",\"value\":0.1,\"sample_size\":4}', "
      "null), "
      "(1, 3, '2026-01-03', 'infinity', 'validated', 'seen again', "
      "'{\"metric\":\"brier\",\"value\":0.2,\"sample_size\":9}', null), "
      "(2, 1, '2026-01-01', 'infinity', 'proposed', 'new', null, null), "
      "(3, 1, '2026-01-01', '2026-01-05', 'proposed', 'new', null, null), "
      "(3, 2, '2026-01-05', 'infinity', 'superseded', 'better', null, '2'), "
      "(4, 1, '2026-01-01', 'infinity', 'proposed', 'new', null, null)) as x (n, v, f, u, s, r, d, b)" },
    { "idempotency_keys",
      "insert into daybook.idempotency_keys (owner, key, request_hash, status, content_type, location, body, "
      "expires_at, claim) "
      "select $1, 'key-' || n, 'hash ' || $2, 201, 'application/json', '/v1/lessons/' || $3 || n, "
      "convert_to('{\"takeaway\":\"' || $2 || '\"}', 'UTF8'), 'infinity', ($3 || n)::uuid from "
      "generate_series(1, 2) n" },
    { "api_keys", "insert into daybook.api_keys (id, owner, role, name, token_hash) "
                  "select ($3 || n)::uuid, $1, 'agent', $2, encode(sha256(convert_to($1 || n, 'UTF8')), "
                  "'hex') from generate_series(1, "
                  "2) n" },
    { "reader_owners", "insert into daybook.reader_owners (role_name, owner) values ($2 || $3, $1)" },
    /* Two skills: one with two versions and the same name for both owners, one with a unique name. */
    { "skills", "insert into daybook.skills (owner, skill_id, created_at) "
                "values ($1, 'skill-1', '2026-01-01'), ($1, $2 || '-2', '2026-01-01')" },
    { "skill_versions",
      "insert into daybook.skill_versions (owner, skill_id, version, strategy, avoid, reflection_cadence, "
      "every_n_trades, created_at) "
      "select $1, n, v, $2 || ' strategy', array['never ' || $2], c, 5, '2026-01-01' "
      "from (values ('skill-1', 'v1', 'per_n_trades'), ('skill-1', 'v2', 'daily'), ($2 || '-2', 'v1', "
      "'off')) as x (n, v, c)" },
    { "skill_versions_replaced",
      "insert into daybook.skill_versions_replaced (owner, skill_id, version, strategy, avoid, "
      "memory_enabled, "
      "recent_trades_k, reflection_cadence, every_n_trades, created_at, replaced_at) "
      "select $1, 'skill-1', 'v1', $2 || ' first strategy', '{}', true, 10, 'off', 5, '2025-01-01', "
      "'2026-01-01'" },
    /* The first deployment has all the history, the second one open trade, the third no tick. */
    { "deployments",
      "insert into daybook.deployments (owner, id, skill_id, version, mode, name, reflection_cadence, "
      "every_n_trades, created_at) "
      "select $1, ($3 || n)::uuid, 'skill-1', v, m, $2 || ' desk', c, 5, '2026-01-01' "
      "from (values (1, 'v1', 'live', 'per_n_trades'), (2, 'v1', 'paper', 'per_n_trades'), "
      "(3, 'v2', 'sim', 'off')) as x (n, v, m, c)" },
    { "agent_state",
      "insert into daybook.agent_state (owner, deployment_id, ticks, last_tick_at, last_snapshot_id, "
      "day_start_equity_usd, executed_today, realized_today_usd, losing_closes, closed_trades, "
      "closed_since_reflection) "
      "select $1, ($3 || n)::uuid, t, at::timestamptz, ($3 || s)::uuid, e, x, r, l, c, c "
      "from (values (1, 5, '2026-01-02 12:00Z', '5', 1028.5, 0, 0, 1, 2), "
      "(2, 1, '2026-01-01 10:00Z', '6', 500, 1, 0, 0, 0), "
      "(3, 0, null, null, null, 0, 0, 0, 0)) as x (n, t, at, s, e, x, r, l, c)" },
    /* Five ticks of the first deployment: BTC is opened, an order for more is rejected, BTC is closed with a
     * gain and ETH opened, ETH is closed with a loss and opened again, and it is held. One of the second. */
    { "decision_snapshots",
      "insert into daybook.decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, action_kind, "
      "engine_kind, engine_rule, input, ops, open, reflection_due, day_start_equity_usd, executed_today, "
      "realized_today_usd, losing_closes) "
      "select $1, ($3 || n)::uuid, ($3 || d)::uuid, at::timestamptz, e, a, k, r, "
      "json_build_object('tick_at', (to_json(at::timestamptz at time zone 'utc') #>> '{}') || 'Z', "
      "'portfolio', json_build_object('equity_usd', e, 'positions', case when held is null then '[]'::json "
      "else json_build_array(json_build_object('symbol', held, 'side', 'long', 'size_base', 0.01, "
      "'mark_price', price)) end), "
      "'proposed_action', json_build_object('kind', a, 'symbol', coalesce(held, 'BTC'), 'reason', $2 || "
      "' reason'), "
      "'engine', json_build_object('kind', k, 'rule', r)), "
      "case when op is null then '[]'::json else json_build_array(json_build_object('op', op, 'symbol', "
      "held, 'entry_reason', $2 || ' reason')) end, "
      "case when held is null then '[]'::json else json_build_array(json_build_object('trade_id', $3 || t, "
      "'symbol', held, 'side', 'long', 'entry_tick_at', since, 'entry_price', entry, 'entry_size_usd', "
      "entry * 0.01, 'entry_leverage', null, 'entry_reason', $2 || ' reason', 'entry_snapshot_id', $3 || f, "
      "'entry_regime_tag', 'chop_lowvol', 'entry_lessons_hash', '0123456789abcdef', 'size_base', 0.01, "
      "'average_entry_price', entry, 'realized_so_far_usd', 0, 'mark_price', price, 'mfe_usd', 5, "
      "'mae_usd', -3, 'fees_usd', 0.1)) end, "
      "false, s, x, p, l "
      "from (values "
      "(1, 1, '2026-01-01 10:00Z', 1000, 'propose_order', 'executed', null, 'BTC', '1', '1', "
      "'2026-01-01T10:00:00Z', 65000, 65000, 'open_trade', 1000, 1, 0, 0), "
      "(2, 1, '2026-01-01 10:30Z', 1010, 'propose_order', 'rejected', 'R3_POSITION_CAP', 'BTC', '1', '1', "
      "'2026-01-01T10:00:00Z', 65000, 65500, 'update_trade', 1000, 1, 0, 0), "
      "(3, 1, '2026-01-01 11:00Z', 1030, 'close_position', 'executed', null, 'ETH', '2', '3', "
      "'2026-01-01T11:00:00Z', 3400, 3400, 'open_trade', 1000, 2, 30, 0), "
      "(4, 1, '2026-01-02 11:00Z', 1028.5, 'close_position', 'executed', null, 'ETH', '3', '4', "
      "'2026-01-02T11:00:00Z', 3380, 3380, 'open_trade', 1028.5, 1, -1.5, 1), "
      "(5, 1, '2026-01-02 12:00Z', 1029, 'hold', 'no_action', null, 'ETH', '3', '4', "
      "'2026-01-02T11:00:00Z', 3380, 3390, 'update_trade', 1028.5, 1, -1.5, 1), "
      "(6, 2, '2026-01-01 10:00Z', 500, 'propose_order', 'executed', null, 'SOL', '4', '6', "
      "'2026-01-01T10:00:00Z', 150, 150, 'open_trade', 500, 1, 0, 0)) "
      "as y (n, d, at, e, a, k, r, held, t, f, since, entry, price, op, s, x, p, l)" },
    /* A gain and a loss of the first deployment, closed; an open trade of each of the two that ticked. */
    { "trade_history",
      "insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, "
      "entry_tick_at, entry_price, entry_size_usd, entry_reason, entry_snapshot_id, entry_lessons_hash, "
      "entry_regime_tag, exit_tick_at, exit_price, exit_reason, exit_snapshot_id, holding_minutes, "
      "realized_pnl_usd, fees_usd, mfe_usd, mae_usd, size_base, average_entry_price, mark_price, "
      "last_tick_at) "
      "select $1, ($3 || n)::uuid, ($3 || d)::uuid, 'skill-1', 'v1', y, 'long', s, en::timestamptz, ep, ep "
      "* "
      "0.01, $2 || ' reason', ($3 || es)::uuid, '0123456789abcdef', 'chop_lowvol', ex::timestamptz, xp, "
      "case when ex is not null then $2 || ' exit' end, ($3 || xs)::uuid, h, pnl, 0.1, 5, -3, size, ep, "
      "coalesce(xp, ep), last::timestamptz "
      "from (values "
      "(1, 1, 'BTC', 'closed', '2026-01-01 10:00Z', 65000, '1', '2026-01-01 11:00Z', 68000, '3', 60, 30, 0, "
      "'2026-01-01 11:00Z'), "
      "(2, 1, 'ETH', 'closed', '2026-01-01 11:00Z', 3400, '3', '2026-01-02 11:00Z', 3250, '4', 1440, -1.5, "
      "0, '2026-01-02 11:00Z'), "
      "(3, 1, 'ETH', 'open', '2026-01-02 11:00Z', 3380, '4', null, null, null, null, null, 0.01, "
      "'2026-01-02 12:00Z'), "
      "(4, 2, 'SOL', 'open', '2026-01-01 10:00Z', 150, '6', null, null, null, null, null, 0.01, "
      "'2026-01-01 10:00Z')) "
      "as x (n, d, y, s, en, ep, es, ex, xp, xs, h, pnl, size, last)" },
    /* A note that was superseded by the active one, and one that was promoted to the skill. */
    { "reflection_notes",
      "insert into daybook.reflection_notes (owner, id, skill_id, version, deployment_id, status, "
      "generated_at, superseded_at, window_start, window_end, trades_considered, lessons_text, content_hash, "
      "model_used) "
      "select $1, ($3 || n)::uuid, 'skill-1', 'v1', ($3 || d)::uuid, s, g::timestamptz, u::timestamptz, "
      "'2026-01-01 10:00Z', '2026-01-01 11:00Z', n, '### Sizing ' || $2 || ' ' || n, h, 'builtin' "
      "from (values "
      "(1, '1', 'superseded', '2026-01-01 11:30Z', '2026-01-02 11:30Z', '0123456789abcdef'), "
      "(2, '1', 'active', '2026-01-02 11:30Z', null, 'fedcba9876543210'), "
      "(3, null, 'active', '2026-01-02 12:30Z', null, 'fedcba9876543210')) as x (n, d, s, g, u, h)" },
    /* One attempt that made a note, one that was skipped. */
    { "reflections",
      "insert into daybook.reflections (owner, id, deployment_id, at, outcome, reason, detail, forced, "
      "note_id, "
      "trades_considered, window_start, window_end, model_used) "
      "select $1, ($3 || n)::uuid, ($3 || 1)::uuid, t::timestamptz, o, r, $2 || ' detail', false, ($3 || "
      "m)::uuid, 2, "
      "'2026-01-01 10:00Z', '2026-01-01 11:00Z', 'builtin' "
      "from (values (1, '2026-01-02 11:30Z', 'ran', null, '2'), (2, '2026-01-02 12:30Z', 'skipped', "
      "'not_due', "
      "null)) as x (n, t, o, r, m)" },
    { "reflection_claims",
      "insert into daybook.reflection_claims (owner, deployment_id, claim, claim_pid, claim_started, "
      "expires_at) "
      "select $1, ($3 || 1)::uuid, ($3 || 1)::uuid, 0, '2026-01-01', '2099-01-01' where $2 is not null" },
    /* One with a vector, and one without. */
    { "situations",
      "insert into daybook.situations (owner, trade_id, deployment_id, skill_id, version, entry_tick_at, "
      "summary, model, dim, vector) "
      "select $1, ($3 || n)::uuid, ($3 || 1)::uuid, 'skill-1', 'v1', t::timestamptz, $2 || ' situation in "
      "question', m, "
      "d, v::halfvec "
      "from (values (1, '2026-01-01 10:00Z', 'model-1', 3, '[1,0,0]'), (2, '2026-01-01 11:00Z', null, null, "
      "null)) as x (n, t, m, d, v)" },
    /* Four entries: one reused, one without a vector, one in the archive, one restored from it. */
    { "episodic_memory",
      "insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, "
      "probability, confidence, source, source_citations, regime_tag, ttl_seconds, expires_at, read_count, "
      "last_read_at, embedding_status, embedding_model, embedding_dim, content_hash, evicted_at, "
      "eviction_id, "
      "away) "
      "select $1, ($3 || n)::uuid, 'ACME', 'guidance', c::timestamptz, $2 || ' question ' || n, $2 || ' "
      "answer', "
      "0.6, 0.7, 'tool_verified', array['filing ' || $2], json_build_object('rates', $2)::jsonb, 864000000, "
      "c::timestamptz + interval '10000 days', r, l::timestamptz, e, m, d, 'hash ' || n, v::timestamptz, "
      "($3 || x)::uuid, a::tstzmultirange "
      "from (values "
      "(1, '2026-01-01', 1, '2026-01-02', 'embedded', 'model-1', 3, null, null, '{}'), "
      "(2, '2026-01-01', 0, null, 'pending', null, null, null, null, '{}'), "
      "(3, '2025-12-01', 0, null, 'embedded', 'model-1', 3, '2026-01-02', '1', '{[2026-01-02,)}'), "
      "(4, '2025-12-01', 0, null, 'supplied', 'model-2', 3, null, null, '{[2026-01-02,2026-01-03)}')) "
      "as y (n, c, r, l, e, m, d, v, x, a)" },
    { "episodic_vectors", "insert into daybook.episodic_vectors (owner, episode_id, model, dim, v384) "
                          "select $1, ($3 || n)::uuid, case when n = 4 then 'model-2' else 'model-1' end, 3, "
                          "('[' || n || ',' || length($2) || ',1' || repeat(',0', 381) || ']')::halfvec "
                          "from (values (1), (3), (4)) as y (n)" },
    { "episodic_reads",
      "insert into daybook.episodic_reads (owner, id, episode_id, task_type, read_at, cost_usd) "
      "values ($1, ($3 || '1')::uuid, ($3 || '1')::uuid, $2 || ' guidance', '2026-01-02', 0.45)" },
    { "episodic_evictions",
      "insert into daybook.episodic_evictions (owner, id, at, policies, parameters, evicted) "
      "values ($1, ($3 || '1')::uuid, '2026-01-02', array['size'], json_build_object('ticker', $2)::jsonb, "
      "2)" },
    /* Memories and theses of the first deployment. 1: a decision, and its retraction. 2: a note of no
     * deployment. 5: an open thesis that was reworded. 6: a closed one. */
    { "memories",
      "insert into daybook.memories (owner, id, version, known_from, known_until, kind, status, "
      "status_reason, at, text_id, text, "
      "symbol, action, side, invalidation, target, horizon, evidence, tags, deployment_id, thesis_id, "
      "outcome, agent_name, "
      "model_call_id, embedding_status) "
      "select $1, ($3 || n)::uuid, v, f::timestamptz, u::timestamptz, k, s, $2 || r, '2026-01-01', ($3 || "
      "t)::uuid, $2 || ' text of ' || n, "
      "y, a, case k when 'thesis' then 'long' end, case k when 'thesis' then $2 || ' below' end, case k when "
      "'thesis' then $2 || "
      "' target' end, case k when 'thesis' then $2 || ' weeks' end, array['log ' || $2], array['macro', $2], "
      "($3 || d)::uuid, "
      "($3 || about)::uuid, case s when 'closed' then jsonb_build_object('metric', $2, 'value', 1) end, "
      "'trader', 'call-1', e "
      "from (values "
      "(1, 1, '2026-01-01', '2026-01-02', 'decision', 'active', null, 'BTC', 'add', 1, '1', '5', "
      "'embedded'), "
      "(1, 2, '2026-01-02', 'infinity', 'decision', 'retracted', ' mistake', 'BTC', 'add', 1, '1', '5', "
      "'none'), "
      "(2, 1, '2026-01-01', 'infinity', 'note', 'active', null, null, null, 2, null, null, 'pending'), "
      "(5, 1, '2026-01-01', '2026-01-02', 'thesis', 'open', null, 'BTC', null, 5, '1', null, 'embedded'), "
      "(5, 2, '2026-01-02', 'infinity', 'thesis', 'open', null, 'BTC', null, 7, '1', null, 'pending'), "
      "(6, 1, '2026-01-01', '2026-01-02', 'thesis', 'open', null, 'ETH', null, 6, '1', null, 'embedded'), "
      "(6, 2, '2026-01-02', 'infinity', 'thesis', 'closed', ' reached', 'ETH', null, 6, '1', null, 'none')) "
      "as x (n, v, f, u, k, s, r, y, a, t, d, about, e)" },
    { "memory_vectors", "insert into daybook.memory_vectors (owner, text_id, memory_id, model, dim, v384) "
                        "select $1, ($3 || n)::uuid, ($3 || m)::uuid, 'model-1', 3, "
                        "('[' || n || ',' || length($2) || ',1' || repeat(',0', 381) || ']')::halfvec "
                        "from (values (1, 1), (5, 5), (6, 6)) as y (n, m)" },
    /* One that was unknown for a while and then filled, one without an outcome. */
    { "orders",
      "insert into daybook.orders (owner, id, deployment_id, client_order_id, at, symbol, action, side, "
      "size, reason, thesis_id, "
      "decision_id, warnings, outcome, outcome_at, outcome_data, unknown_at, unknown_data, agent_name, "
      "model_call_id) "
      "select $1, ($3 || n)::uuid, ($3 || 1)::uuid, 'order-' || n, '2026-01-01', 'BTC', 'add', 'long', 0.1, "
      "$2 || ' reason', ($3 || "
      "5)::uuid, ($3 || 1)::uuid, '[]', o, t::timestamptz, jsonb_build_object('reason', $2), u::timestamptz, "
      "jsonb_build_object("
      "'reason', $2), 'trader', 'call-1' "
      "from (values (1, 'filled', '2026-01-03', '2026-01-02'), (2, null, null, null)) as x (n, o, t, u)" },
    /* A search of the episodes, and one of the journal that returned the open thesis. */
    { "memory_retrievals",
      "insert into daybook.memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, "
      "deployment_id, symbol, "
      "rendered, tokens, agent_name, model_call_id) "
      "select $1, ($3 || n)::uuid, k, '2026-01-02', json_build_object('text', $2)::jsonb, '{}', "
      "json_build_array(json_build_object('id', $3 || f))::jsonb, array[($3 || f)::uuid], ($3 || d)::uuid, "
      "y, $2 || r, 12, 'trader', "
      "'call-1' "
      "from (values (1, 'episodic', '1', null, null, null), (2, 'memories', '5', '1', 'BTC', ' rendered')) "
      "as x (n, k, f, d, y, r)" },
    /* Two sealed events and an unsealed one of the first deployment, and one of no deployment. */
    { "memory_events", "insert into daybook.memory_events (owner, id, journal_id, seq, hash, kind, at, "
                       "symbol, subject_id, agent_name, model_call_id, data) "
                       "select $1, ($3 || n)::uuid, coalesce(($3 || d)::uuid, daybook.no_uuid()), q, case "
                       "when q is not null then "
                       "encode(sha256(convert_to($2 || n, 'UTF8')), 'hex') end, k, '2026-01-01', 'BTC', ($3 "
                       "|| of)::uuid, 'trader', 'call-1', "
                       "jsonb_build_object('text', $2) "
                       "from (values (1, '1', 1, 'memory.created', '1'), (2, '1', 2, 'order.submitted', "
                       "'1'), (3, '1', null, 'thesis.changed', '5'), "
                       "(4, null, null, 'memory.created', '2')) as x (n, d, q, k, of)" },
    { "memory_journals",
      "insert into daybook.memory_journals (owner, journal_id, seq, hash) "
      "values ($1, ($3 || 1)::uuid, 2, encode(sha256(convert_to($2 || 2, 'UTF8')), 'hex'))" },
    /* A policy that was replaced once. */
    { "write_policies",
      "insert into daybook.write_policies (owner, version, known_from, known_until, types) "
      "select $1, v, f::timestamptz, u::timestamptz, jsonb_build_object('tool_result_verified', "
      "jsonb_build_object('store', true, 'ttl_seconds', null), $2, jsonb_build_object('store', false, "
      "'ttl_seconds', v)) "
      "from (values (1, '2026-01-01', '2026-01-02'), (2, '2026-01-02', 'infinity')) as x (v, f, u)" },
    /* Facts: an inferred one that has decayed once, one in the archive, and one of another scope. The key of
     * the last is a tag of memories. */
    { "facts",
      "insert into daybook.facts (owner, scope, key, version, known_from, known_until, status, change, "
      "value, "
      "observation_type, source, confidence, written_at, decayed_at) "
      "select $1, c, k, v, f::timestamptz, u::timestamptz, s, x, to_json($2 || ' value'), "
      "'tool_result_verified', o, p, '2026-01-01', f::timestamptz "
      "from (values "
      "('global', 'fact-1', 1, '2026-01-01', '2026-01-02', 'active', 'put', 'agent_inferred', 0.6), "
      "('global', 'fact-1', 2, '2026-01-02', 'infinity', 'active', 'decay', 'agent_inferred', 0.55), "
      "('global', 'fact-2', 1, '2026-01-01', '2026-01-02', 'active', 'put', 'agent_inferred', 0.3), "
      "('global', 'fact-2', 2, '2026-01-02', 'infinity', 'archived', 'archive', 'agent_inferred', 0.25), "
      "('desk', 'macro', 1, '2026-01-01', 'infinity', 'active', 'put', 'user_stated', 1)) "
      "as y (c, k, v, f, u, s, x, o, p)" },
};

enum { FILLERS = sizeof fillers / sizeof *fillers };

/* The ids of an owner's rows start with this and end with a digit. */
static inline const char *owned_ids(const char *owner)
{
    return strcmp(owner, ANN) == 0 ? "0190aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaa"
                                   : "0190bbbb-bbbb-7bbb-8bbb-bbbbbbbbbbb";
}

static inline void owned_ok(PGconn *pg, const PGresult *r, const char *what)
{
    ExecStatusType status = PQresultStatus(r);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", what,
                  PQerrorMessage(pg));
}

static inline void owned_run(PGconn *pg, const char *sql)
{
    PQclear(database_query(pg, sql));
}

/* The names of all owned tables; `count` of them. */
static inline int owned_tables(PGconn *pg, char names[MOST_TABLES][64])
{
    PGresult *r = database_query(
        pg, "select table_name from information_schema.columns join information_schema.tables "
            "using (table_schema, table_name) where table_schema = 'daybook' and column_name = "
            "'owner' and table_type = 'BASE TABLE' order by 1");
    int count = PQntuples(r);
    ck_assert_int_gt(count, 0);
    ck_assert_int_lt(count, MOST_TABLES);
    for (int i = 0; i < count; i++)
        snprintf(names[i], sizeof names[i], "%s", PQgetvalue(r, i, 0));
    PQclear(r);
    return count;
}

/* Fills every owned table with rows of both owners. */
static inline void owned_fill(PGconn *pg)
{
    char names[MOST_TABLES][64];
    int count = owned_tables(pg, names);
    for (int i = 0; i < count; i++) {
        int f = 0;
        while (f < FILLERS && strcmp(fillers[f].table, names[i]) != 0)
            f++;
        ck_assert_msg(f < FILLERS,
                      "the table %s has an owner: give tests/db/owned_rows.h a way to fill it, so that it is "
                      "proved that "
                      "no statement shows its rows to another owner",
                      names[i]);
    }
    for (int f = 0; f < FILLERS; f++)
        for (int bob = 0; bob < 2; bob++) {
            const char *owner = bob ? BOB : ANN;
            const char *const values[] = { owner, bob ? "plainword" : ANN_MARK, owned_ids(owner) };
            static const Oid texts[] = { 25, 25, 25 };
            PGresult *r = PQexecParams(pg, fillers[f].sql, 3, texts, values, NULL, NULL, 0);
            owned_ok(pg, r, fillers[f].table);
            ck_assert_msg(atoi(PQcmdTuples(r)) > 0, "%s was not filled", fillers[f].table);
            PQclear(r);
        }
}

/* Deletes all rows of the owner, referring rows before referenced ones. */
static inline void owned_remove(PGconn *pg, const char *owner)
{
    char sql[FILLERS * 128], *p = sql;
    for (int f = FILLERS - 1; f >= 0; f--)
        p += sprintf(p, "delete from daybook.%s where owner = '%s';", fillers[f].table, owner);
    owned_run(pg, sql);
}

/* A checksum over all rows of the owner in all owned tables, in static storage that two calls share. */
static inline const char *owned_sum(PGconn *pg, const char *owner)
{
    static char sums[2][33];
    static unsigned next;
    char *out = sums[next++ % 2], sql[FILLERS * 128], *p = sql;
    for (int f = 0; f < FILLERS; f++)
        p += sprintf(p, "%s '%s ' || t::text as one from daybook.%s t where owner = '%s'",
                     f ? " union all select" : "select md5(string_agg(one, '|' order by one)) from (select",
                     fillers[f].table, fillers[f].table, owner);
    strcpy(p, ") as rows");
    PGresult *r = database_query(pg, sql);
    strcpy(out, PQgetvalue(r, 0, 0));
    PQclear(r);
    return out;
}

#endif
