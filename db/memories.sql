-- Notes, proposals, risk notes and decisions. A row is one version. The version known at an instant has
-- known_from <= instant < known_until. Theses are rows of the same table: see theses.sql.

-- part: columns
id, version, kind, status, status_reason, at, text, symbol, action, evidence, tags, deployment_id, thesis_id,
observation_type, expires_at, agent_name, model_call_id, known_from, created_at

-- A memory about a thesis belongs to the symbol and the deployment of the thesis unless it names its own,
-- which must be the same. Without a fault it is stored together with its event. The thesis must have been
-- open by the time of the memory, so that no past shows a thesis of its future. The write policy must allow its
-- observation type, if it names one.
-- name: memory_create :write :one :together
with given as (
    select :owner::text as owner, :new_id::uuid as new_id, :at::timestamptz as at, :now::timestamptz as now,
        :kind::text as kind, :text::text as text, :symbol::text as symbol, :action::text as action,
        coalesce(:evidence::text[], '{}') as evidence, coalesce(:tags::text[], '{}') as tags,
        :deployment_id::uuid as deployment_id, :thesis_id::uuid as thesis_id, :agent_name::text as agent_name,
        :model_call_id::text as model_call_id, :observation_type::text as observation_type,
        :ttl_days::bigint as ttl_days, :default_types::jsonb as default_types
), entry as (
    select g.*, c.at as known_from, d.id as known_deployment, coalesce(g.symbol, t.symbol) as known_symbol,
        g.deployment_id is null or d.id is not null as _deployment_known,
        g.thesis_id is null or coalesce(t.known_from <= c.at, false) as _thesis_known,
        case when t.symbol <> g.symbol then t.symbol end as _thesis_symbol,
        case when t.deployment_id <> d.id then t.deployment_id end as _thesis_deployment,
        p.listed as _listed, g.observation_type is null or p.allowed as _allowed,
        expiry_of(c.at, coalesce(g.ttl_days * 86400, p.ttl_seconds)) as expires_at
    from given g
    left join lateral (
        select symbol, deployment_id, known_from
        from memories
        where owner = g.owner and id = g.thesis_id and version = 1 and kind = 'thesis'
        offset 0) t on true
    left join lateral (
        select d.id, d.mode, d.created_at, a.last_tick_at
        from deployments d
        join agent_state a on a.owner = g.owner and a.deployment_id = d.id
        where d.owner = g.owner and d.id = coalesce(g.deployment_id, t.deployment_id)
        offset 0) d on true
    cross join lateral (
        select journal_now(g.at, d.mode, d.created_at, d.last_tick_at, g.now) as at) c
    cross join lateral write_allowed(g.owner, g.observation_type, g.default_types) p
), created as (
    insert into memories (owner, id, version, known_from, kind, status, at, text_id, text, symbol, action,
        evidence, tags, deployment_id, thesis_id, observation_type, expires_at, agent_name, model_call_id)
    select owner, new_id, 1, known_from, kind, 'active', known_from, new_id, text, known_symbol, action,
        evidence, tags, known_deployment, thesis_id, observation_type, expires_at, agent_name, model_call_id
    from entry
    where _allowed and _deployment_known and _thesis_known and _thesis_symbol is null and _thesis_deployment is null
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'memory.created', at, symbol, id, agent_name,
        model_call_id, jsonb_build_object('version', version, 'kind', kind, 'text', text, 'action', action,
            'evidence', evidence, 'tags', tags, 'thesis_id', thesis_id, 'observation_type', observation_type,
            'expires_at', expires_at)
    from created
)
select c.*, _deployment_known, _thesis_known, _thesis_symbol, _thesis_deployment, _listed, _allowed
from entry e
left join lateral (select {columns} from created where owner = e.owner and id = e.new_id) c on true

-- name: memory_get :read :one
select {columns}
from memories
where owner = :owner and id = :id::uuid and kind <> 'thesis'
  and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz

-- part: listed
select {columns}, at as _cursor_1, id as _cursor_2
from memories
where owner = :owner and kind <> 'thesis'
  and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
  and not is_expired(expires_at, read_instant(:as_of::timestamptz, :now::timestamptz))
  and (at, id) < (
      coalesce(:cursor_1::timestamptz, 'infinity'),
      coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and (:since::timestamptz is null or at >= :since::timestamptz)
  and (:until::timestamptz is null or at < :until::timestamptz)
  and (:kind::text is null or kind = :kind::text)
  and (:status::text is null or :status::text in ('any', status))
  and (:symbol::text is null or symbol = :symbol::text)
  and (:tags::text[] is null or tags && :tags::text[])
  and (:tags_all::text[] is null or tags @> :tags_all::text[])
  and (:deployment_id::uuid is null or deployment_id = :deployment_id::uuid)
  and (:thesis_id::uuid is null or thesis_id = :thesis_id::uuid)
  and (:agent_name::text is null or agent_name = :agent_name::text)
  and (:model_call_id::text is null or model_call_id = :model_call_id::text)
order by at desc, id desc
limit :limit::int + 1

-- name: memory_list :read :list
{listed}

-- name: memory_export :slow :list
{listed}

-- name: memory_history :read :list
select {columns}, version as _cursor_1
from memories
where owner = :owner and id = :id::uuid and kind <> 'thesis' and known_from <= :as_of::timestamptz
  and version > coalesce(:cursor_1::int, 0)
order by version
limit :limit::int + 1

-- Locks version 1, which is never replaced. memory_current then reads the current version in a statement of
-- its own, so that a transaction that waited for the lock sees the changes of the one before it.
-- name: memory_lock :write :one
select id from memories
where owner = :owner and id = :id::uuid and version = 1 and kind <> 'thesis'
for update

-- The time of a change without `at` is the clock of the journal, but not before the current version.
-- name: memory_current :write :one
select m.kind, m.status, c.at, c.at < m.known_from as too_early
from memories m
left join deployments d on d.owner = :owner and d.id = m.deployment_id
left join agent_state a on a.owner = :owner and a.deployment_id = m.deployment_id
cross join lateral (
    select coalesce(:at::timestamptz, greatest(m.known_from,
        journal_now(null, d.mode, d.created_at, a.last_tick_at, :now::timestamptz))) as at) c
where m.owner = :owner and m.id = :id::uuid and m.known_until = 'infinity'

-- name: memory_retract :write :one
with old as (
    update memories set known_until = :at::timestamptz
    where owner = :owner and id = :id::uuid and known_until = 'infinity' and kind <> 'thesis'
    returning *
), retracted as (
    insert into memories (owner, id, version, known_from, kind, status, status_reason, at, text_id, text,
        symbol, action, evidence, tags, deployment_id, thesis_id, observation_type, expires_at, agent_name,
        model_call_id, embedding_status)
    select owner, id, version + 1, :at::timestamptz, kind, 'retracted', :reason, at, text_id, text, symbol,
        action, evidence, tags, deployment_id, thesis_id, observation_type, expires_at, :agent_name,
        :model_call_id, 'none'
    from old
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'memory.retracted', known_from, symbol, id, agent_name,
        model_call_id, jsonb_build_object('version', version, 'kind', kind, 'reason', status_reason)
    from retracted
)
select {columns} from retracted
