-- Decision snapshots: every tick as it was posted, and the ledger after it.

-- part: columns
id, deployment_id, tick_at, equity_usd, action_kind, engine_kind, engine_rule, reflection_due,
day_start_equity_usd, executed_today, realized_today_usd, losing_closes
-- part: filter
tick_at <= :as_of::timestamptz
and (:since::timestamptz is null or tick_at >= :since::timestamptz)
and (:until::timestamptz is null or tick_at < :until::timestamptz)
and (:engine_kind::text is null or engine_kind = :engine_kind::text)
and (:engine_rule::text is null or engine_rule = :engine_rule::text)
and (:action_kind::text is null or action_kind = :action_kind::text)

-- name: decision_snapshot_get :read :one
select {columns}, input, ops, open, created_at
from decision_snapshots
where owner = :owner and id = :id::uuid and tick_at <= :as_of::timestamptz

-- name: decision_snapshot_list :slow :list
select {columns}, tick_at as _cursor_1, id as _cursor_2
from decision_snapshots
where owner = :owner and {filter}
  and (tick_at, id) < (
      coalesce(:cursor_1::timestamptz, 'infinity'),
      coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
order by tick_at desc, id desc
limit :limit::int + 1

-- A deployment has at most one tick at an instant, so the instant alone is the cursor.
-- name: decision_snapshot_list_of_deployment :slow :list
select {columns}, tick_at as _cursor_1
from decision_snapshots
where owner = :owner and deployment_id = :deployment_id::uuid and {filter}
  and tick_at < coalesce(:cursor_1::timestamptz, 'infinity')
order by tick_at desc
limit :limit::int + 1
