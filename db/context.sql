-- What a deployment is shown before a decision, as it was known at an instant. The number of rows read does
-- not grow with the ledger. w.now is the instant of the view, w.last the latest tick it may include.

-- `rejections`: engine_rule of the rejections of the last :window_us, newest first, joined by a character that
-- no stored text contains. 'rejected' is a literal because the index for it is partial.
-- part: risk_columns
d.id as deployment_id, w.now as as_of, v.memory_enabled, s.tick_at, s.executed_today, s.realized_today_usd,
s.day_start_equity_usd, s.losing_closes,
(select string_agg(coalesce(h.engine_rule, 'unspecified'), E'\x1f')
 from (select x.engine_rule from decision_snapshots x
       where x.owner = :owner and x.deployment_id = d.id and x.engine_kind = 'rejected'
         and x.tick_at > w.now - :window_us::bigint * interval '1 microsecond' and x.tick_at <= w.last
       order by x.tick_at desc
       limit :max_rejections::int) h) as rejections
-- part: trade_columns
s.open,
(select json_agg(t)
 from (select x.symbol, x.side, x.entry_tick_at, x.entry_price, x.entry_size_usd, x.entry_reason,
           x.entry_regime_tag, x.exit_tick_at, x.exit_price, x.exit_reason, x.holding_minutes,
           x.realized_pnl_usd, x.fees_usd
       from trade_history x
       where x.owner = :owner and x.deployment_id = d.id and x.entry_tick_at <= w.last
         and x.exit_tick_at <= w.last
       order by x.entry_tick_at desc, x.id desc
       limit coalesce(:k::int, v.recent_trades_k)) t) as closed
-- part: lesson_columns
note.id as note_id, note.scope as note_scope, note.lessons_text, note.content_hash as lessons_hash

-- part: journal_columns
j.journal_positions, j.journal_theses, j.journal_lessons
-- part: no_journal_columns
null::json as journal_positions, null::json as journal_theses, null::json as journal_lessons

-- These statements are planned once, perhaps while tables are empty. `limit 1` keeps such a plan from reading
-- a whole table to join it, and `offset 0` computes the instant once instead of wherever it is used.
-- part: deployment_at_instant
deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select n.now, n.now as last
    from (select deployment_now(
              :as_of::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as now
          offset 0) n
) w
-- part: skill_version
cross join lateral (
    select x.memory_enabled, x.recent_trades_k from skill_versions x
    where x.owner = :owner and x.skill_id = d.skill_id and x.version = d.version
    limit 1
) v
-- part: last_snapshot
left join lateral (
    select x.tick_at, x.open, x.executed_today, x.realized_today_usd, x.day_start_equity_usd, x.losing_closes
    from decision_snapshots x
    where x.owner = :owner and x.deployment_id = d.id and x.tick_at <= w.last
    order by x.tick_at desc
    limit 1
) s on true

-- name: risk_state_get :read :one
select {risk_columns}
from {deployment_at_instant}
{skill_version}
{last_snapshot}
where d.owner = :owner and d.id = :id::uuid

-- name: context_get :read :one
select {risk_columns}, {trade_columns}, {lesson_columns}, {no_journal_columns}
from {deployment_at_instant}
{skill_version}
{last_snapshot}
cross join lateral note_in_force(:owner, d.id, d.skill_id, d.version, w.now, 'infinity', w.now) note
where d.owner = :owner and d.id = :id::uuid

-- name: context_journal_get :read :one
select {risk_columns}, {trade_columns}, {lesson_columns}, {journal_columns}
from {deployment_at_instant}
{skill_version}
{last_snapshot}
cross join lateral note_in_force(:owner, d.id, d.skill_id, d.version, w.now, 'infinity', w.now) note
cross join lateral journal_state(:owner, d.id, w.now, s.open) j
where d.owner = :owner and d.id = :id::uuid

-- name: lessons_segment_get :read :one
select d.id as deployment_id, w.now as as_of, v.memory_enabled, {lesson_columns},
    array_to_string(note.suppressed, ',') as suppressed
from {deployment_at_instant}
{skill_version}
cross join lateral note_in_force(:owner, d.id, d.skill_id, d.version, w.now, 'infinity', w.now) note
where d.owner = :owner and d.id = :id::uuid

-- What the agent saw when it made the decision. Its own tick was not in the ledger yet. Notes count by when
-- they were stored: the one in force was the newest stored before the tick, even if a note that was stored
-- later is dated before it.
-- part: snapshot_at_its_tick
decision_snapshots own
join deployments d on d.owner = :owner and d.id = own.deployment_id
cross join lateral (select own.tick_at as now, own.tick_at - interval '1 microsecond' as last) w
-- part: note_at_its_tick
cross join lateral note_in_force(:owner, d.id, d.skill_id, d.version, w.now, own.created_at, '-infinity') note

-- name: decision_snapshot_context :read :one
select {risk_columns}, {trade_columns}, {lesson_columns}, {no_journal_columns}
from {snapshot_at_its_tick}
{skill_version}
{last_snapshot}
{note_at_its_tick}
where own.owner = :owner and own.id = :id::uuid and own.tick_at <= :as_of::timestamptz

-- The journal before the tick, on the caller's clock: a thesis that is dated like the tick came with it.
-- name: decision_snapshot_context_journal :read :one
select {risk_columns}, {trade_columns}, {lesson_columns}, {journal_columns}
from {snapshot_at_its_tick}
{skill_version}
{last_snapshot}
{note_at_its_tick}
cross join lateral journal_state(:owner, d.id, w.last, s.open) j
where own.owner = :owner and own.id = :id::uuid and own.tick_at <= :as_of::timestamptz
