-- Trades as they were known at an instant (as_of). A row has the state after the tick that closed the trade
-- or, while it is open, after the last tick. If that tick is after as_of, the trade was open at as_of, and
-- its state then is in the last snapshot up to as_of.

-- part: columns
t.id, t.deployment_id, t.skill_id, t.version, t.symbol, t.side,
case when l.later then 'open' else t.status end as status,
t.entry_tick_at, t.entry_price, t.entry_size_usd, t.entry_leverage, t.entry_reason, t.entry_snapshot_id,
t.entry_lessons_hash, t.entry_regime_tag,
case when not l.later then t.exit_tick_at end as exit_tick_at,
case when not l.later then t.exit_price end as exit_price,
case when not l.later then t.exit_reason end as exit_reason,
case when not l.later then t.exit_snapshot_id end as exit_snapshot_id,
case when not l.later then t.holding_minutes end as holding_minutes,
case when not l.later then t.realized_pnl_usd end as realized_pnl_usd,
case when l.later then (s.trade ->> 'fees_usd')::numeric else t.fees_usd end as fees_usd,
case when not l.later then t.realized_pnl_usd - t.fees_usd end as net_pnl_usd,
case when l.later then (s.trade ->> 'mfe_usd')::numeric else t.mfe_usd end as mfe_usd,
case when l.later then (s.trade ->> 'mae_usd')::numeric else t.mae_usd end as mae_usd,
case when l.later then (s.trade ->> 'size_base')::numeric else t.size_base end as size_base,
case when l.later then (s.trade ->> 'average_entry_price')::numeric else t.average_entry_price end
    as average_entry_price,
case when l.later then (s.trade ->> 'realized_so_far_usd')::numeric else t.realized_so_far_usd end
    as realized_so_far_usd,
case when l.later then (s.trade ->> 'mark_price')::numeric else t.mark_price end as mark_price,
case when l.later then s.tick_at else t.last_tick_at end as last_tick_at,
t.created_at, case when l.later then s.created_at else t.updated_at end as updated_at

-- part: state_at_as_of
cross join lateral (select coalesce(t.exit_tick_at, t.last_tick_at) > :as_of::timestamptz as later) l
left join lateral (
    select d.tick_at, d.created_at, o.trade
    from (select tick_at, created_at, open from decision_snapshots
          where l.later and owner = :owner and deployment_id = t.deployment_id
            and tick_at <= :as_of::timestamptz
          order by tick_at desc limit 1) d
    cross join json_array_elements(d.open) as o (trade)
    where o.trade ->> 'trade_id' = t.id::text
    limit 1) s on true

-- A page continues after its cursor, which is always inside the bounds of the filters. So each end of the
-- range is one condition, and the index scan starts where the page does.
-- part: entry_desc
and (t.entry_tick_at, t.id) < (
    coalesce(:cursor_1::timestamptz,
             least(:entry_until::timestamptz, :as_of::timestamptz + interval '1 microsecond')),
    coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
and t.entry_tick_at >= coalesce(:entry_since::timestamptz, '-infinity')
order by t.entry_tick_at desc, t.id desc
limit :limit::int + 1
-- part: entry_asc
and (t.entry_tick_at, t.id) > (
    coalesce(:cursor_1::timestamptz, :entry_since::timestamptz - interval '1 microsecond', '-infinity'),
    coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
and t.entry_tick_at < least(:entry_until::timestamptz, :as_of::timestamptz + interval '1 microsecond')
order by t.entry_tick_at, t.id
limit :limit::int + 1
-- part: exit_desc
and t.status = 'closed'
and (t.exit_tick_at, t.id) < (
    coalesce(:cursor_1::timestamptz,
             least(:exit_until::timestamptz, :as_of::timestamptz + interval '1 microsecond')),
    coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
and t.exit_tick_at >= coalesce(:exit_since::timestamptz, '-infinity')
order by t.exit_tick_at desc, t.id desc
limit :limit::int + 1
-- part: exit_asc
and t.status = 'closed'
and (t.exit_tick_at, t.id) > (
    coalesce(:cursor_1::timestamptz, :exit_since::timestamptz - interval '1 microsecond', '-infinity'),
    coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
and t.exit_tick_at < least(:exit_until::timestamptz, :as_of::timestamptz + interval '1 microsecond')
order by t.exit_tick_at, t.id
limit :limit::int + 1

-- The trades of a deployment, of a version, or all: each has an index in the order of the sort.
-- part: of_deployment
t.owner = :owner and t.deployment_id = :deployment_id::uuid
-- part: of_version
t.owner = :owner and t.skill_id = :skill_id::text and t.version = :version::text
-- part: by_entry
select {columns}, t.entry_tick_at as _cursor_1, t.id as _cursor_2 from trade_history t {state_at_as_of}
-- part: by_exit
select {columns}, t.exit_tick_at as _cursor_1, t.id as _cursor_2 from trade_history t {state_at_as_of}

-- The filters without an index. The second condition on status lets a query for the trades that are open now
-- use the index of open trades.
-- part: filter
and (:deployment_id::uuid is null or t.deployment_id = :deployment_id::uuid)
and (:skill_id::text is null or t.skill_id = :skill_id::text)
and (:version::text is null or t.version = :version::text)
and (:symbol::text is null or t.symbol = :symbol::text)
and (:side::text is null or t.side = :side::text)
and (:status::text is null
     or (:status::text = 'closed') = coalesce(t.exit_tick_at <= :as_of::timestamptz, false))
and (:status::text is distinct from 'open' or :as_of::timestamptz < '9999-12-31 23:59:59.999999Z'
     or t.status = 'open')
and (:regime::text is null or t.entry_regime_tag is not distinct from nullif(:regime::text, 'none'))
and (:lessons_hash::text is null
     or t.entry_lessons_hash is not distinct from nullif(:lessons_hash::text, 'none'))
and (:exit_reason::text is null
     or t.exit_reason = :exit_reason::text and t.exit_tick_at <= :as_of::timestamptz)
-- part: entered
and (:entry_since::timestamptz is null or t.entry_tick_at >= :entry_since::timestamptz)
and (:entry_until::timestamptz is null or t.entry_tick_at < :entry_until::timestamptz)
-- part: exited
and (:exit_since::timestamptz is null
     or t.exit_tick_at >= :exit_since::timestamptz and t.exit_tick_at <= :as_of::timestamptz)
and (:exit_until::timestamptz is null
     or t.exit_tick_at < :exit_until::timestamptz and t.exit_tick_at <= :as_of::timestamptz)

-- name: trade_get :read :one
select {columns} from trade_history t {state_at_as_of}
where t.owner = :owner and t.id = :id::uuid and t.entry_tick_at <= :as_of::timestamptz

-- name: trade_entry_desc :read :list
{by_entry} where t.owner = :owner {entry_desc}

-- name: trade_entry_desc_deployment :read :list
{by_entry} where {of_deployment} {entry_desc}

-- name: trade_entry_desc_version :read :list
{by_entry} where {of_version} {entry_desc}

-- name: trade_entry_desc_filtered :slow :list
{by_entry} where t.owner = :owner {filter} {exited} {entry_desc}

-- name: trade_entry_asc :read :list
{by_entry} where t.owner = :owner {entry_asc}

-- name: trade_entry_asc_deployment :read :list
{by_entry} where {of_deployment} {entry_asc}

-- name: trade_entry_asc_version :read :list
{by_entry} where {of_version} {entry_asc}

-- name: trade_entry_asc_filtered :slow :list
{by_entry} where t.owner = :owner {filter} {exited} {entry_asc}

-- name: trade_exit_desc :read :list
{by_exit} where t.owner = :owner {exit_desc}

-- name: trade_exit_desc_deployment :read :list
{by_exit} where {of_deployment} {exit_desc}

-- name: trade_exit_desc_version :read :list
{by_exit} where {of_version} {exit_desc}

-- name: trade_exit_desc_filtered :slow :list
{by_exit} where t.owner = :owner {filter} {entered} {exit_desc}

-- name: trade_exit_asc :read :list
{by_exit} where t.owner = :owner {exit_asc}

-- name: trade_exit_asc_deployment :read :list
{by_exit} where {of_deployment} {exit_asc}

-- name: trade_exit_asc_version :read :list
{by_exit} where {of_version} {exit_asc}

-- name: trade_exit_asc_filtered :slow :list
{by_exit} where t.owner = :owner {filter} {entered} {exit_asc}

-- No index has the order by PnL: the page is found first, then the state of its rows.
-- part: by_pnl
select {columns}, t.pnl as _cursor_1, t.id as _cursor_2
from (select t.*, t.realized_pnl_usd - t.fees_usd as pnl from trade_history t
      where t.owner = :owner and t.status = 'closed' and t.exit_tick_at <= :as_of::timestamptz
        {filter} {entered} {exited}

-- name: trade_pnl_desc :slow :list
{by_pnl} and (t.realized_pnl_usd - t.fees_usd, t.id) < (coalesce(:cursor_1::numeric, 'infinity'),
          coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
      order by pnl desc, t.id desc limit :limit::int + 1) t {state_at_as_of}
order by t.pnl desc, t.id desc

-- name: trade_pnl_asc :slow :list
{by_pnl} and (t.realized_pnl_usd - t.fees_usd, t.id) > (coalesce(:cursor_1::numeric, '-infinity'),
          coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
      order by pnl, t.id limit :limit::int + 1) t {state_at_as_of}
order by t.pnl, t.id

-- Closed trades in the order of their exits, each with the key of its group.
-- name: trade_stats :slow :list
select case :group_by::text
        when 'symbol' then t.symbol
        when 'side' then t.side
        when 'regime' then t.entry_regime_tag
        when 'lessons' then t.entry_lessons_hash
        when 'exit_reason' then t.exit_reason
        when 'day' then to_char(t.exit_tick_at at time zone 'UTC', 'YYYY-MM-DD')
        when 'week' then to_char(t.exit_tick_at at time zone 'UTC', 'IYYY-"W"IW')
        when 'month' then to_char(t.exit_tick_at at time zone 'UTC', 'YYYY-MM')
    end as key,
    t.realized_pnl_usd, t.fees_usd, t.holding_minutes, t.mfe_usd, t.exit_tick_at as _cursor_1,
    t.id as _cursor_2
from trade_history t
where t.owner = :owner {filter} {entered} {exit_asc}
