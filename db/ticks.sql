-- Ticks. What a tick changes is computed from the state as it was read, and stored only while that is still the state: `ticks` says so.

-- The open trades are the ledger's own, not those of the last snapshot. The lessons are those that were in force at :tick_at, the
-- deployment's or else its skill's, and stay so until :tick_at comes to lessons_until; without memory it has none.
-- name: tick_state :read :one
select d.skill_id, d.version, case when v.memory_enabled then d.reflection_cadence else 'off' end as reflection_cadence, d.every_n_trades,
    a.ticks, a.last_tick_at, a.day_start_equity_usd, a.executed_today, a.realized_today_usd, a.losing_closes, a.closed_since_reflection,
    (select x.generated_at from reflection_notes as x
     where x.owner = d.owner and x.deployment_id = d.id and x.status = 'active') as reflected_at,
    case when v.memory_enabled then coalesce(own_note.content_hash, skill_note.content_hash) end as lessons_hash,
    least(
        (select x.generated_at from reflection_notes as x
         where x.owner = d.owner and x.deployment_id = d.id and x.generated_at > w.now
         order by x.generated_at, x.id limit 1),
        (select x.generated_at from reflection_notes as x
         where x.owner = d.owner and x.skill_id = d.skill_id and x.version = d.version and x.deployment_id is null and x.generated_at > w.now
         order by x.generated_at, x.id limit 1)) as lessons_until,
    (select json_agg(t) from (
        select id as trade_id, symbol, side, entry_tick_at, entry_price, entry_size_usd, entry_leverage, entry_reason, entry_snapshot_id,
            entry_regime_tag, entry_lessons_hash, size_base, average_entry_price, realized_so_far_usd, mark_price, mfe_usd, mae_usd, fees_usd
        from trade_history
        where owner = d.owner and deployment_id = d.id and status = 'open'
        order by owner, deployment_id, symbol) as t) as open
from deployments as d
join agent_state as a on a.owner = d.owner and a.deployment_id = d.id
cross join lateral (select :tick_at::timestamptz as now, 'infinity'::timestamptz as stored, :tick_at::timestamptz as in_force) as w
{context.version}
{context.notes}
where d.owner = :owner and d.id = :id::uuid

-- name: tick_kept :read :one
select id, content_hash, ops, open, unmatched_fees, reflection_due
from decision_snapshots
where owner = :owner and deployment_id = :id::uuid and tick_at = :tick_at::timestamptz

-- One row when it is stored, none when another tick came first. Trades that end are changed before those that begin are added: a flip has
-- one of each with the same symbol, and there may be only one open trade of it. That they are open trades of the deployment is said so that
-- no plan, however young the ledger, reads more than those.
-- name: tick_write :write :list
with guard as (
    update agent_state
    set ticks = ticks + :count::bigint, last_tick_at = :tick_at::timestamptz, last_snapshot_id = :snapshot_id::uuid,
        day_start_equity_usd = :day_start_equity_usd::numeric, executed_today = :executed_today::int,
        realized_today_usd = :realized_today_usd::numeric, losing_closes = :losing_closes::int,
        closed_trades = closed_trades + :closed::bigint, closed_since_reflection = closed_since_reflection + :closed::bigint,
        updated_at = now()
    where owner = :owner and deployment_id = :id::uuid and ticks = :expected::bigint
    returning owner, deployment_id
), kept as (
    insert into decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, action_kind, engine_kind, engine_rule, input, content_hash, ops, open,
        unmatched_fees, reflection_due, day_start_equity_usd, executed_today, realized_today_usd, losing_closes)
    select g.owner, s.id, g.deployment_id, s.tick_at, s.equity_usd, s.action_kind, s.engine_kind, s.engine_rule, s.input, s.content_hash, s.ops, s.open,
        s.unmatched_fees, s.reflection_due, s.day_start_equity_usd, s.executed_today, s.realized_today_usd, s.losing_closes
    from guard as g, json_to_recordset(:snapshots::json) as s (id uuid, tick_at timestamptz, equity_usd numeric, action_kind text,
        engine_kind text, engine_rule text, input json, content_hash text, ops json, open json, unmatched_fees json, reflection_due boolean,
        day_start_equity_usd numeric, executed_today int, realized_today_usd numeric, losing_closes int)
), followed as (
    update trade_history as t
    set status = r.status, exit_tick_at = r.exit_tick_at, exit_price = r.exit_price, exit_reason = r.exit_reason,
        exit_snapshot_id = r.exit_snapshot_id, holding_minutes = r.holding_minutes, realized_pnl_usd = r.realized_pnl_usd,
        fees_usd = r.fees_usd, mfe_usd = r.mfe_usd, mae_usd = r.mae_usd, size_base = r.size_base,
        average_entry_price = r.average_entry_price, realized_so_far_usd = r.realized_so_far_usd, mark_price = r.mark_price,
        last_tick_at = r.last_tick_at, updated_at = now()
    from guard as g, json_to_recordset(:changed::json) as r (id uuid, status text, exit_tick_at timestamptz, exit_price numeric,
        exit_reason text, exit_snapshot_id uuid, holding_minutes numeric, realized_pnl_usd numeric, fees_usd numeric, mfe_usd numeric,
        mae_usd numeric, size_base numeric, average_entry_price numeric, realized_so_far_usd numeric, mark_price numeric,
        last_tick_at timestamptz)
    where t.owner = :owner and t.deployment_id = :id::uuid and t.status = 'open' and t.id = r.id
    returning t.id
), begun as (
    insert into trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
        entry_size_usd, entry_leverage, entry_reason, entry_snapshot_id, entry_lessons_hash, entry_regime_tag, exit_tick_at, exit_price,
        exit_reason, exit_snapshot_id, holding_minutes, realized_pnl_usd, fees_usd, mfe_usd, mae_usd, size_base, average_entry_price,
        realized_so_far_usd, mark_price, last_tick_at)
    select g.owner, r.id, g.deployment_id, :skill_id::text, :version::text, r.symbol, r.side, r.status, r.entry_tick_at, r.entry_price,
        r.entry_size_usd, r.entry_leverage, r.entry_reason, r.entry_snapshot_id, r.entry_lessons_hash, r.entry_regime_tag, r.exit_tick_at,
        r.exit_price, r.exit_reason, r.exit_snapshot_id, r.holding_minutes, r.realized_pnl_usd, r.fees_usd, r.mfe_usd, r.mae_usd,
        r.size_base, r.average_entry_price, r.realized_so_far_usd, r.mark_price, r.last_tick_at
    from guard as g, (select count(*) from followed) as after_those, json_to_recordset(:begun::json) as r (id uuid, symbol text, side text,
        status text, entry_tick_at timestamptz, entry_price numeric, entry_size_usd numeric, entry_leverage numeric, entry_reason text,
        entry_snapshot_id uuid, entry_lessons_hash text, entry_regime_tag text, exit_tick_at timestamptz, exit_price numeric,
        exit_reason text, exit_snapshot_id uuid, holding_minutes numeric, realized_pnl_usd numeric, fees_usd numeric, mfe_usd numeric,
        mae_usd numeric, size_base numeric, average_entry_price numeric, realized_so_far_usd numeric, mark_price numeric,
        last_tick_at timestamptz)
), described as (
    insert into situations (owner, trade_id, deployment_id, skill_id, version, entry_tick_at, summary)
    select g.owner, r.id, g.deployment_id, :skill_id::text, :version::text, r.entry_tick_at, r.situation
    from guard as g, json_to_recordset(:begun::json) as r (id uuid, entry_tick_at timestamptz, situation text)
)
select 1 as stored from guard
