-- The view before a decision: what was known at an instant, from a fixed number of rows whatever the ledger grows to.
-- w.now is the instant that the view is for, w.upto the last one whose ticks are in it, s the last of those ticks. A note is in it that was
-- stored before w.stored, whatever it is dated, and not superseded until w.in_force.

-- The rules of the hour's rejections come as one text, the last one first, between them a character that no stored text holds.
-- part: figures
d.id as deployment_id, w.now as as_of, v.memory_enabled, s.tick_at, s.executed_today, s.realized_today_usd, s.day_start_equity_usd,
s.losing_closes,
(select string_agg(coalesce(h.engine_rule, 'unspecified'), E'\x1f')
 from (select x.engine_rule from decision_snapshots x
       where x.owner = d.owner and x.deployment_id = d.id and x.engine_kind = 'rejected'
         and x.tick_at > w.now - interval '1 hour' and x.tick_at <= w.upto
       order by x.tick_at desc
       limit 5000) h) as rejections
-- part: trades
s.open,
(select json_agg(t)
 from (select x.symbol, x.side, x.entry_tick_at, x.entry_price, x.entry_size_usd, x.entry_reason, x.entry_regime_tag, x.exit_tick_at,
           x.exit_price, x.exit_reason, x.holding_minutes, x.realized_pnl_usd, x.fees_usd
       from trade_history x
       where x.owner = d.owner and x.deployment_id = d.id and x.entry_tick_at <= w.upto and x.exit_tick_at <= w.upto
       order by x.entry_tick_at desc, x.id desc
       limit coalesce(:k::int, v.recent_trades_k)) t) as closed
-- part: lessons
coalesce(own_note.id, skill_note.id) as note_id,
case when own_note.id is not null then 'deployment' when skill_note.id is not null then 'skill' end as note_scope,
coalesce(own_note.lessons_text, skill_note.lessons_text) as lessons_text,
coalesce(own_note.content_hash, skill_note.content_hash) as lessons_hash
-- part: version
cross join lateral (
    select x.memory_enabled, x.recent_trades_k from skill_versions x
    where x.owner = d.owner and x.skill_id = d.skill_id and x.version = d.version
    limit 1
) v
-- part: known
{version}
left join lateral (
    select x.tick_at, x.open, x.executed_today, x.realized_today_usd, x.day_start_equity_usd, x.losing_closes
    from decision_snapshots x
    where x.owner = d.owner and x.deployment_id = d.id and x.tick_at <= w.upto
    order by x.tick_at desc
    limit 1
) s on true
-- The newest that there was is nearly always the one that was active, so one row is read, and of the skill's notes only where the
-- deployment has none of its own.
-- part: note_then
x.generated_at <= w.now and x.created_at < w.stored and (x.superseded_at is null or x.superseded_at > w.in_force)
order by x.generated_at desc, x.id desc
limit 1
-- part: notes
left join lateral (
    select x.id, x.lessons_text, x.content_hash, x.suppressed from reflection_notes x
    where x.owner = d.owner and x.deployment_id = d.id and {note_then}
) own_note on true
left join lateral (
    select x.id, x.lessons_text, x.content_hash, x.suppressed from reflection_notes x
    where x.owner = d.owner and x.skill_id = d.skill_id and x.version = d.version and x.deployment_id is null and own_note.id is null
      and {note_then}
) skill_note on true
-- A simulation's clock is its ticks, and before the first one it stands where the simulation began. Otherwise it is the server's, in
-- whole minutes, so that a reader who asks again gets the same bytes; but never before the last tick, whose clock may be ahead. `offset 0`: it is computed once, not
-- wherever it is used.
-- part: at_instant
deployments d
join agent_state a on a.owner = d.owner and a.deployment_id = d.id
cross join lateral (
    select n.now, n.now as upto, 'infinity'::timestamptz as stored, n.now as in_force
    from (select coalesce(:as_of::timestamptz,
        case d.mode when 'sim' then coalesce(a.last_tick_at, d.created_at)
        else greatest(date_trunc('minute', :now::timestamptz), a.last_tick_at) end) as now
          offset 0) n
) w

-- name: risk_state_get :read :one
select {figures}
from {at_instant}
{known}
where d.owner = :owner and d.id = :id::uuid

-- name: context_get :read :one
select {figures}, {trades}, {lessons}
from {at_instant}
{known}
{notes}
where d.owner = :owner and d.id = :id::uuid

-- name: lessons_segment_get :read :one
select d.id as deployment_id, w.now as as_of, v.memory_enabled, {lessons},
    array_to_string(coalesce(own_note.suppressed, skill_note.suppressed), ',') as suppressed
from {at_instant}
{version}
{notes}
where d.owner = :owner and d.id = :id::uuid

-- What the agent saw: its own tick was not in the ledger yet, and the newest note that was stored before it was in force, also where one
-- that was made since is dated before it.
-- name: decision_snapshot_context :read :one
select {figures}, {trades}, {lessons}
from decision_snapshots own
join deployments d on d.owner = own.owner and d.id = own.deployment_id
cross join lateral (select own.tick_at as now, own.tick_at - interval '1 microsecond' as upto, own.created_at as stored,
                    '-infinity'::timestamptz as in_force) w
{known}
{notes}
where own.owner = :owner and own.id = :id::uuid and own.tick_at <= :as_of::timestamptz
