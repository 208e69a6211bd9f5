-- Facts: named values with their provenance. A row is one version. Every time of a key has a version, so the one of an instant is the last
-- that is known from then on or earlier: one entry of the index facts_known.

-- `seen.instant` is the time for which age counts. A version that was replaced is as old as it was then.
-- part: columns
f.key, f.scope, f.version, f.status, f.value, f.observation_type, f.source, f.confidence,
fact_needs_verification(f.confidence) as needs_verification,
fact_is_stale(f.confidence, coalesce(f.verified_at, f.written_at), least(seen.instant, f.known_until)) as stale,
f.written_at, f.verified_at, f.verified_source, f.ttl_seconds, f.expires_at, f.change, f.known_from, f.created_at
-- part: seen
(select read_instant(:as_of::timestamptz, :now::timestamptz) as instant) seen
-- part: members
owner, scope, key, version, known_from, status, change, value, observation_type, source, confidence, written_at, verified_at,
verified_source, decayed_at, ttl_seconds, expires_at

-- name: fact_get :read :one
select {columns}
from (select * from facts
      where owner = :owner and scope = :scope and key = :key and known_from <= :as_of::timestamptz
      order by known_from desc, version desc
      limit 1) f
cross join {seen}
where f.status = 'active' and not is_expired(f.expires_at, seen.instant)

-- name: fact_history :read :list
select {columns}, f.known_from as _cursor_1, f.version as _cursor_2
from facts f
cross join {seen}
where f.owner = :owner and f.scope = :scope and f.key = :key and f.known_from <= :as_of::timestamptz
  and (f.known_from, f.version) > (coalesce(:cursor_1::timestamptz, '-infinity'), coalesce(:cursor_2::int, 0))
order by f.known_from, f.version
limit :limit::int + 1

-- Goes from key to key in the index, whatever number of versions each has, and in their order, which the limit relies on.
-- part: listed
with recursive keys (scope, key) as (
    (select f.scope, f.key
     from facts f
     where f.owner = :owner
       and (f.scope, f.key) >= (
           coalesce(:cursor_1::text, :scope::text, ''),
           coalesce(:cursor_2::text, case when :scope::text is not null then :prefix::text end, ''))
       and (:cursor_1::text is null or (f.scope, f.key) <> (:cursor_1::text, :cursor_2::text))
     order by f.scope, f.key, f.known_from desc, f.version desc
     limit 1)
    union all
    select n.scope, n.key
    from keys k
    cross join lateral (
        select f.scope, f.key
        from facts f
        where f.owner = :owner and (f.scope, f.key) > (k.scope, k.key)
        order by f.scope, f.key, f.known_from desc, f.version desc
        limit 1
    ) n
    where :scope::text is null or k.scope = :scope::text and starts_with(k.key, coalesce(:prefix::text, ''))
)
select {columns}, f.scope as _cursor_1, f.key as _cursor_2
from (
    select f.*
    from keys k
    cross join lateral (
        select * from facts x
        where x.owner = :owner and x.scope = k.scope and x.key = k.key and x.known_from <= :as_of::timestamptz
        order by x.known_from desc, x.version desc
        limit 1
    ) f
    cross join {seen}
    where f.status = case when :archived::boolean then 'archived' else 'active' end
      and (:archived::boolean or not is_expired(f.expires_at, seen.instant))
      and (:scope::text is null or f.scope = :scope::text)
      and (:prefix::text is null or starts_with(f.key, :prefix::text))
      and (:observation_type::text is null or f.observation_type = :observation_type::text)
      and (:source::text is null or f.source = :source::text)
      and (:needs_verification::boolean is null or fact_needs_verification(f.confidence) = :needs_verification::boolean)
      and (:stale::boolean is null
           or fact_is_stale(f.confidence, coalesce(f.verified_at, f.written_at), seen.instant) = :stale::boolean)
    limit :limit::int + 1
) f
cross join {seen}
order by f.scope, f.key

-- name: fact_list :slow :list
{listed}

-- name: fact_export :slow :list
{listed}

-- ---- changes ----

-- part: current
select * from facts
where owner = :owner and scope = :scope and key = :key
order by known_from desc, version desc
limit 1

-- Stores a value, unless the policy, its time or a newer version forbids it. The version number and the update of the current version make
-- sure that of two requests at the same time one stores nothing; it has to try again. A value that says what the current version says is a
-- retry if it has the same time, or no time and comes within ten minutes and half of its time to live: later it is stored, to renew it.
-- A correction keeps the type and the time to live of the fact.
-- name: fact_write :write :one
with current as materialized (
    {current}
), next as materialized (
    select c.version as old_version, a.at, t.observation_type, p.listed, p.allowed, e.ttl_seconds,
        coalesce(a.at < c.known_from, false) as too_early,
        coalesce(l.live and c.change in ('put', 'correct') and c.value::text = (:value::json)::text
            and c.observation_type = t.observation_type and c.source = :source and c.confidence = :confidence::numeric
            and c.ttl_seconds is not distinct from e.ttl_seconds
            and case when :at::timestamptz is null
                then a.at < c.written_at + least(interval '10 minutes', c.ttl_seconds * interval '0.5 second')
                else a.at = c.written_at end, false) as same
    from (select) always
    left join current c on true
    cross join lateral (select coalesce(:at::timestamptz, greatest(:now::timestamptz, c.known_from)) as at) a
    cross join lateral (
        select coalesce(c.status = 'active' and not is_expired(c.expires_at, a.at), false) as live) l
    cross join lateral (
        select coalesce(:observation_type::text, case when l.live then c.observation_type end, 'user_stated_preference')
            as observation_type) t
    cross join lateral write_allowed(:owner, t.observation_type, :default_types::jsonb) p
    cross join lateral (
        select coalesce(:ttl_seconds::bigint, case when l.live and :change::text = 'correct' then c.ttl_seconds end, p.ttl_seconds)
            as ttl_seconds) e
), replaced as (
    update facts f set known_until = (select n.at from next n)
    where f.owner = :owner and f.scope = :scope and f.key = :key and f.known_until = 'infinity'
      and f.version = (select n.old_version from next n where n.allowed and not n.too_early and not n.same)
    returning f.version
), written as (
    insert into facts ({members})
    select :owner, :scope, :key, coalesce(n.old_version, 0) + 1, n.at, 'active', :change::text, :value::json, n.observation_type, :source,
        :confidence::numeric, n.at, null, null, n.at, n.ttl_seconds, expiry_of(n.at, n.ttl_seconds)
    from next n
    where n.allowed and not n.too_early and not n.same and (n.old_version is null or exists (select from replaced))
    on conflict do nothing
    returning *
)
select {columns}, n.listed as _listed, n.allowed as _allowed, n.observation_type as _type, n.too_early as _too_early, n.at as _at,
    n.same as _same
from next n
cross join lateral (select n.at as instant) seen
left join (select * from written union all select c.* from current c cross join next x where x.same) f on true

-- Verifies, deletes or restores a fact. _state is what it was found in: active, expired, archived or deleted. No row: there is no such key.
-- name: fact_change :write :one
with current as materialized (
    {current}
), next as materialized (
    select c.*, a.at, coalesce(a.at < c.known_from, false) as too_early, s.state,
        s.state = case when :change::text = 'restore' then 'archived' else 'active' end as fits
    from current c
    cross join lateral (select coalesce(:at::timestamptz, greatest(:now::timestamptz, c.known_from)) as at) a
    cross join lateral (
        select case when c.status = 'active' and is_expired(c.expires_at, a.at) then 'expired' else c.status end as state) s
), replaced as (
    update facts f set known_until = (select n.at from next n)
    where f.owner = :owner and f.scope = :scope and f.key = :key and f.known_until = 'infinity'
      and f.version = (select n.version from next n where n.fits and not n.too_early)
    returning f.version
), changed as (
    insert into facts ({members})
    select owner, scope, key, version + 1, at, case :change::text when 'delete' then 'deleted' else 'active' end, :change::text, value,
        observation_type, source,
        case when :change::text = 'verify' then greatest(confidence, :confidence::numeric) else confidence end,
        written_at,
        case when :change::text = 'verify' then at else verified_at end,
        case when :change::text = 'verify' then :source::text else verified_source end,
        case when :change::text in ('verify', 'restore') then at else decayed_at end,
        ttl_seconds,
        case when :change::text = 'verify' then expiry_of(at, ttl_seconds) else expires_at end
    from next n
    where exists (select from replaced)
    on conflict do nothing
    returning *
)
select {columns}, n.state as _state, n.fits as _fits, n.too_early as _too_early, n.at as _at
from next n
cross join lateral (select n.at as instant) seen
left join changed f on true

-- ---- decay ----

-- The inferred facts that nobody confirmed, as they are now. Those that are dated after :at are not known yet.
-- name: facts_decaying :slow :list
select f.scope, f.key, f.version, f.confidence, f.decayed_at, f.scope as _cursor_1, f.key as _cursor_2
from facts f
where f.owner = :owner and f.known_until = 'infinity' and f.status = 'active' and f.source = 'agent_inferred'
  and f.verified_at is null and f.known_from <= :at::timestamptz and not is_expired(f.expires_at, :at::timestamptz)
  and (:scope::text is null or f.scope = :scope::text)
  and (:prefix::text is null or starts_with(f.key, :prefix::text))
  and (f.scope, f.key) > (coalesce(:cursor_1::text, ''), coalesce(:cursor_2::text, ''))
order by f.scope, f.key
limit :limit::int + 1

-- Leaves out what somebody else has changed in the meantime.
-- name: facts_decay :slow :list
with given as materialized (
    select *
    from json_to_recordset(:changes::json) as g (scope text, key text, version int, confidence numeric, decayed_at timestamptz,
        archived boolean)
), replaced as (
    update facts f set known_until = :at::timestamptz
    from given g
    where f.owner = :owner and f.scope = g.scope and f.key = g.key and f.version = g.version and f.known_until = 'infinity'
    returning f.*, g.confidence as new_confidence, g.decayed_at as new_decayed_at, g.archived
), changed as (
    insert into facts ({members})
    select owner, scope, key, version + 1, :at::timestamptz, case when archived then 'archived' else 'active' end,
        case when archived then 'archive' else 'decay' end, value, observation_type, source, new_confidence, written_at, verified_at,
        verified_source, new_decayed_at, ttl_seconds, expires_at
    from replaced
    returning status
)
select count(*) filter (where status = 'active') as decayed, count(*) filter (where status = 'archived') as archived
from changed

-- ---- merge ----

-- The facts of these keys in the scope :scope.
-- name: facts_of_keys :slow :list
select f.key, f.scope, f.value, f.source, f.confidence, f.written_at
from unnest(:keys::text[]) k (key)
cross join lateral (
    select * from facts x
    where x.owner = :owner and x.scope = :scope and x.key = k.key and x.known_from <= :as_of::timestamptz
    order by x.known_from desc, x.version desc
    limit 1
) f
where f.status = 'active' and not is_expired(f.expires_at, read_instant(:as_of::timestamptz, :now::timestamptz))
order by f.key

-- Memories and lessons that have one of the keys as a tag, as they were known.
-- name: facts_tagged :slow :list
select m.id, m.kind, m.status, m.at, m.text, t.key
from memory_items m
cross join lateral unnest(m.tags) t (key)
where m.owner = :owner and m.tags && :keys::text[] and t.key = any (:keys::text[])
  and m.known_from <= :as_of::timestamptz and m.known_until > :as_of::timestamptz
  and m.status not in ('retracted', 'retired', 'superseded')
  and not is_expired(m.expires_at, read_instant(:as_of::timestamptz, :now::timestamptz))
order by m.at desc, m.id desc, t.key
limit :most::int
