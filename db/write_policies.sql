-- The write policy of an owner: which observations are stored, and for how long.

-- part: listed
select coalesce(json_agg(json_build_object('observation_type', t.key, 'store', t.value -> 'store', 'ttl_seconds', t.value -> 'ttl_seconds')
    order by t.key collate "C"), '[]') as types
from jsonb_each(w.types) t

-- Always one row; without a policy of the owner's own, all but the first column are null.
-- name: write_policy_get :read :one
select w.version, l.types, w.known_from, w.created_at
from (select) always
left join lateral (
    select * from write_policies p
    where p.owner = :owner and p.known_from <= :as_of::timestamptz
    order by p.version desc
    limit 1
) w on true
left join lateral ({listed}) l on w.version is not null

-- A policy that says what the current one says adds no version. Of two requests at the same time, one stores nothing.
-- name: write_policy_put :write :one
with current as materialized (
    select * from write_policies where owner = :owner order by version desc limit 1
), next as materialized (
    select c.version as old_version, a.at, t.types, coalesce(a.at < c.known_from, false) as too_early, coalesce(c.types = t.types, false) as same
    from (select) always
    left join current c on true
    cross join lateral (select coalesce(:at::timestamptz, greatest(:now::timestamptz, c.known_from)) as at) a
    cross join lateral (
        select coalesce(jsonb_object_agg(g.observation_type, jsonb_build_object('store', g.store, 'ttl_seconds', g.ttl_seconds)), '{}') as types
        from json_to_recordset(:types::json) as g (observation_type text, store boolean, ttl_seconds bigint)) t
), replaced as (
    update write_policies w set known_until = n.at
    from next n
    where w.owner = :owner and w.version = n.old_version and w.known_until = 'infinity' and not n.too_early and not n.same
    returning w.version
), written as (
    insert into write_policies (owner, version, known_from, types)
    select :owner, coalesce(n.old_version, 0) + 1, n.at, n.types
    from next n
    where not n.too_early and not n.same and (n.old_version is null or exists (select from replaced))
    on conflict do nothing
    returning *
)
select w.version, l.types, w.known_from, w.created_at, n.too_early as _too_early, n.same as _same, n.at as _at
from next n
left join (select * from written union all select c.* from current c cross join next x where x.same) w on true
left join lateral ({listed}) l on w.version is not null

-- name: write_policy_check :read :one
select p.listed, p.allowed, p.ttl_seconds
from write_allowed(:owner, :observation_type, :default_types::jsonb) p
