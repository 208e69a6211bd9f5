-- The state of the journal at an instant: of a deployment, or of what belongs to none. The function
-- journal_state reads a bounded number of rows.

-- The positions are those of the last tick, as in context.sql.
-- name: memory_state_get :read :one
select d.id as deployment_id, w.now as as_of, j.journal_positions, j.journal_theses, j.journal_lessons
from deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select deployment_now(
        :as_of::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as now
    offset 0
) w
left join lateral (
    select x.open from decision_snapshots x
    where x.owner = :owner and x.deployment_id = d.id and x.tick_at <= w.now
    order by x.tick_at desc
    limit 1
) s on true
cross join lateral journal_state(:owner, d.id, w.now, s.open) j
where d.owner = :owner and d.id = :deployment_id::uuid

-- Whole minutes, as deployment_now has them, so that repeated reads have the same bytes.
-- name: memory_state_shared :read :one
select null::uuid as deployment_id, w.now as as_of, j.journal_positions, j.journal_theses, j.journal_lessons
from (select coalesce(:as_of::timestamptz, date_trunc('minute', :now::timestamptz)) as now offset 0) w
cross join lateral journal_state(:owner, null, w.now, null) j
