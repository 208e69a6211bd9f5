-- Ticks. The changes of a tick are computed from the state that tick_state read. tick_write stores them only
-- if no other tick was stored since: `ticks`, the number of ticks so far, must still be the same.

-- The open trades come from the ledger, not from the last snapshot. lessons_hash names the lessons in force
-- at :tick_at, or is null with memory off; lessons_until is when the next note takes over.
-- name: tick_state :read :one
select d.skill_id, d.version, v.memory_enabled, d.reflection_cadence, d.every_n_trades, a.ticks,
    a.last_tick_at, a.last_tick_n, a.day_start_equity_usd, a.executed_today, a.realized_today_usd,
    a.losing_closes, a.closed_since_reflection,
    (select x.generated_at from reflection_notes x
     where x.owner = :owner and x.deployment_id = d.id and x.status = 'active') as reflected_at,
    case when v.memory_enabled then note.content_hash end as lessons_hash,
    least(
        (select x.generated_at from reflection_notes x
         where x.owner = :owner and x.deployment_id = d.id and x.generated_at > :tick_at::timestamptz
         order by x.generated_at, x.id limit 1),
        (select x.generated_at from reflection_notes x
         where x.owner = :owner and x.skill_id = d.skill_id and x.version = d.version
           and x.deployment_id is null and x.generated_at > :tick_at::timestamptz
         order by x.generated_at, x.id limit 1)) as lessons_until,
    (select json_agg(t) from (
        select id as trade_id, symbol, side, entry_tick_at, entry_price, entry_size_usd, entry_leverage,
            entry_reason, entry_snapshot_id, entry_regime_tag, entry_lessons_hash, size_base,
            average_entry_price, realized_so_far_usd, mark_price, mfe_usd, mae_usd, fees_usd
        from trade_history
        where owner = :owner and deployment_id = d.id and status = 'open'
        order by owner, deployment_id, symbol) t) as open
from deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select x.memory_enabled from skill_versions x
    where x.owner = :owner and x.skill_id = d.skill_id and x.version = d.version
    limit 1
) v
cross join lateral note_in_force(
    :owner, d.id, d.skill_id, d.version, :tick_at::timestamptz, 'infinity', :tick_at::timestamptz) note
where d.owner = :owner and d.id = :id::uuid

-- The stored response to a tick, for a retry. The events of its actions have its warnings.
-- name: tick_stored :read :one
select id, content_hash, ops, open, unmatched_fees, reflection_due,
    (select coalesce(jsonb_agg(w.warning order by e.n, w.place), '[]')
     from memory_events e
     cross join lateral jsonb_array_elements(e.data -> 'warnings') with ordinality w (warning, place)
     where e.owner = :owner and e.subject_id = s.id and e.kind = 'action.executed') as warnings
from decision_snapshots s
where owner = :owner and deployment_id = :id::uuid and tick_at = :tick_at::timestamptz

-- No row when another tick came first. Otherwise the ticks were stored, and there is a row for each tick that left
-- events in the journal, or one if none did. Without actions and theses the journal costs one look into an index.
-- Rows come as JSON whose members are named like the columns of their table; new_snapshot and new_trade supply
-- the columns that all rows share. Existing trades are updated before new ones are inserted: a flip closes a
-- trade and opens another of the same symbol, and only one of them may be open. `status = 'open'` is there for
-- the plan, which may date from an empty table: it must not read closed trades.
-- name: tick_write :write :list
with guard as (
    update agent_state
    set ticks = ticks + :count::bigint, last_tick_at = :tick_at::timestamptz,
        last_tick_n = nextval('memory_order'),
        last_snapshot_id = :snapshot_id::uuid, day_start_equity_usd = :day_start_equity_usd::numeric,
        executed_today = :executed_today::int, realized_today_usd = :realized_today_usd::numeric,
        losing_closes = :losing_closes::int, closed_trades = closed_trades + :closed::bigint,
        closed_since_reflection = closed_since_reflection + :closed::bigint, updated_at = now()
    where owner = :owner and deployment_id = :id::uuid and ticks = :expected::bigint
    returning last_tick_n
), snapshots as (
    insert into decision_snapshots
    select s.*
    from guard, json_populate_recordset(new_snapshot(:owner, :id::uuid), :snapshots::json) s
), updated as (
    update trade_history t
    set status = r.status, exit_tick_at = r.exit_tick_at, exit_price = r.exit_price,
        exit_reason = r.exit_reason, exit_snapshot_id = r.exit_snapshot_id,
        holding_minutes = r.holding_minutes, realized_pnl_usd = r.realized_pnl_usd, fees_usd = r.fees_usd,
        mfe_usd = r.mfe_usd, mae_usd = r.mae_usd, size_base = r.size_base,
        average_entry_price = r.average_entry_price, realized_so_far_usd = r.realized_so_far_usd,
        mark_price = r.mark_price, last_tick_at = r.last_tick_at, updated_at = now()
    from guard, json_populate_recordset(null::trade_history, :changed::json) r
    where t.owner = :owner and t.deployment_id = :id::uuid and t.status = 'open' and t.id = r.id
    returning t.id
), opened as (
    insert into trade_history
    select r.*
    from guard, (select count(*) from updated) first,
        json_populate_recordset(
            new_trade(:owner, :id::uuid, :skill_id::text, :version::text), :opened::json) r
), described as (
    insert into situations (owner, trade_id, deployment_id, skill_id, version, entry_tick_at, summary)
    select :owner, r.id, :id::uuid, :skill_id::text, :version::text, r.entry_tick_at, r.situation
    from guard, json_to_recordset(:opened::json) as r (id uuid, entry_tick_at timestamptz, situation text)
), journal as (
    select j.*
    from (
        select g.last_tick_n from guard g
        where :actions::bigint > 0 or exists (
            select from memories m
            where m.owner = :owner and m.deployment_id = :id::uuid and m.kind = 'thesis' and m.status = 'open')
        offset 0
    ) g
    cross join lateral journal_ticks(:owner, :id::uuid, :before_at::timestamptz, :before_n::bigint,
        g.last_tick_n, :snapshots::json) j
)
select j.snapshot_id, j.warnings
from guard
left join journal j on true
