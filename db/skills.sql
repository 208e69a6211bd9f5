-- Skills and their versions. A version is known from created_at on. When it is replaced, its earlier text
-- stays known for the time before.

-- part: columns
skill_id, version, strategy, avoid,
(select row_to_json(m)
 from (select memory_enabled as enabled, recent_trades_k,
           (select row_to_json(r)
            from (select reflection_cadence as cadence, every_n_trades) r) as reflection) m) as memory,
created_at
-- part: stored_columns
owner, skill_id, version, strategy, avoid, memory_enabled, recent_trades_k, reflection_cadence,
every_n_trades, created_at
-- part: all_versions
(select {stored_columns}, 'infinity'::timestamptz as replaced_at from skill_versions
 union all
 select {stored_columns}, replaced_at from skill_versions_replaced)
-- part: at_as_of
created_at <= :as_of::timestamptz and replaced_at > :as_of::timestamptz
-- part: input
select :strategy::text as strategy, coalesce(:avoid::text[], '{}') as avoid,
    coalesce((:memory::json ->> 'enabled')::boolean, true) as memory_enabled,
    coalesce((:memory::json ->> 'recent_trades_k')::int, 10) as recent_trades_k,
    coalesce(:memory::json -> 'reflection' ->> 'cadence', 'off') as reflection_cadence,
    coalesce((:memory::json -> 'reflection' ->> 'every_n_trades')::int, 10) as every_n_trades

-- Returns no row if the version exists. If another request is creating it, this one waits for that request.
-- name: skill_version_create :write :list
with skill as (
    insert into skills (owner, skill_id, created_at) values (:owner, :skill_id, :at::timestamptz)
    on conflict do nothing
), made as (
    insert into skill_versions (owner, skill_id, version, strategy, avoid, memory_enabled, recent_trades_k,
        reflection_cadence, every_n_trades, created_at)
    select :owner, :skill_id, :version, g.*, :at::timestamptz from ({input}) g
    on conflict do nothing
    returning *
)
select {columns} from made

-- The lock blocks new deployments of the version, so that skill_version_user sees all of them.
-- name: skill_version_lock :write :one
select {columns},
    (strategy, avoid, memory_enabled, recent_trades_k, reflection_cadence, every_n_trades) = ({input})
        as _same
from skill_versions
where owner = :owner and skill_id = :skill_id and version = :version
for update

-- name: skill_version_user :write :list
select id from deployments where owner = :owner and skill_id = :skill_id and version = :version limit 1

-- name: skill_version_replace :write :one
with past as (
    insert into skill_versions_replaced ({stored_columns}, replaced_at)
    select {stored_columns}, :at::timestamptz from skill_versions
    where owner = :owner and skill_id = :skill_id and version = :version and created_at < :at::timestamptz
)
update skill_versions
set (strategy, avoid, memory_enabled, recent_trades_k, reflection_cadence, every_n_trades) = ({input}),
    created_at = greatest(created_at, :at::timestamptz)
where owner = :owner and skill_id = :skill_id and version = :version
returning {columns}

-- name: skill_version_get :read :one
select {columns}
from {all_versions} v
where owner = :owner and skill_id = :skill_id and version = :version and {at_as_of}

-- name: skill_version_list :read :list
select {columns}, created_at as _cursor_1, version as _cursor_2
from {all_versions} v
where owner = :owner and skill_id = :skill_id and {at_as_of}
  and (created_at, version) < (coalesce(:cursor_1::timestamptz, 'infinity'), coalesce(:cursor_2::text, ''))
order by created_at desc, version desc
limit :limit::int + 1

-- created_at is that of the oldest known version.
-- name: skill_list :read :list
select s.skill_id, v.versions, n.version as latest_version, v.created_at, s.skill_id as _cursor_1
from skills s
cross join lateral (select version
                    from {all_versions} x
                    where owner = :owner and skill_id = s.skill_id and {at_as_of}
                    order by created_at desc, version desc
                    limit 1) n
cross join lateral (select count(*) as versions, min(created_at) as created_at
                    from {all_versions} x
                    where owner = :owner and skill_id = s.skill_id and {at_as_of}) v
where s.owner = :owner and s.skill_id > coalesce(:cursor_1::text, '')
order by s.skill_id
limit :limit::int + 1
