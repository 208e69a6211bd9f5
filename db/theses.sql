-- Theses: rows of memories with kind = 'thesis'. A row is one version, as in memories.sql.

-- part: columns
id, version, status, status_reason, at, symbol, side, text, invalidation, target, horizon, evidence, tags,
deployment_id, parallel, outcome, validates, agent_name, model_call_id, known_from, created_at

-- Stored if no thesis of that deployment and symbol is open at that time or later, or if :parallel. The unique index
-- memories_one_thesis decides between two requests at the same time; the one that loses gets no row and no
-- _open_id.
-- name: thesis_open :write :one
with deployment as (
    select d.id, d.mode, d.created_at, a.last_tick_at
    from deployments d
    join agent_state a on a.owner = :owner and a.deployment_id = d.id
    where d.owner = :owner and d.id = :deployment_id::uuid
), entry as (
    select d.id as deployment_id, c.at, (
            select id from (
                select id, known_until from memories
                where owner = :owner and deployment_id = :deployment_id::uuid and symbol = :symbol::text
                  and kind = 'thesis' and status = 'open' and known_until > c.at
                union all
                select id, known_until from memories
                where :deployment_id::uuid is null and owner = :owner and deployment_id is null
                  and symbol = :symbol::text and kind = 'thesis' and status = 'open' and known_until > c.at
            ) open
            order by known_until desc, id
            limit 1) as _open_id,
        :deployment_id::uuid is null or d.id is not null as _deployment_known
    from (select) always
    left join deployment d on true
    cross join lateral (
        select journal_now(:at::timestamptz, d.mode, d.created_at, d.last_tick_at, :now::timestamptz) as at) c
), created as (
    insert into memories (owner, id, version, known_from, kind, status, at, text_id, text, symbol, side,
        invalidation, target, horizon, evidence, tags, deployment_id, parallel, agent_name, model_call_id)
    select :owner, :new_id::uuid, 1, at, 'thesis', 'open', at, :new_id::uuid, :text, :symbol, :side,
        :invalidation, :target, :horizon, coalesce(:evidence::text[], '{}'), coalesce(:tags::text[], '{}'),
        deployment_id, :parallel::boolean, :agent_name, :model_call_id
    from entry
    where _deployment_known and (_open_id is null or :parallel::boolean)
    on conflict do nothing
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'thesis.opened', at, symbol, id, agent_name,
        model_call_id, jsonb_build_object('version', version, 'side', side, 'text', text, 'invalidation',
            invalidation, 'target', target, 'horizon', horizon, 'evidence', evidence, 'tags', tags, 'parallel',
            parallel)
    from created
)
select c.*, _deployment_known, _open_id
from entry
left join (select {columns} from created) c on true

-- name: thesis_get :read :one
select {columns}
from memories
where owner = :owner and id = :id::uuid and kind = 'thesis'
  and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz

-- part: listed
select {columns}, at as _cursor_1, id as _cursor_2
from memories
where owner = :owner and kind = 'thesis'
  and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
  and (at, id) < (
      coalesce(:cursor_1::timestamptz, 'infinity'),
      coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and (:since::timestamptz is null or at >= :since::timestamptz)
  and (:until::timestamptz is null or at < :until::timestamptz)
  and (:status::text is null or status = :status::text)
  and (:symbol::text is null or symbol = :symbol::text)
  and (:tags::text[] is null or tags && :tags::text[])
  and (:tags_all::text[] is null or tags @> :tags_all::text[])
  and (:deployment_id::uuid is null or deployment_id = :deployment_id::uuid)
  and (:agent_name::text is null or agent_name = :agent_name::text)
  and (:model_call_id::text is null or model_call_id = :model_call_id::text)
order by at desc, id desc
limit :limit::int + 1

-- name: thesis_list :read :list
{listed}

-- name: thesis_export :slow :list
{listed}

-- name: thesis_history :read :list
select {columns}, version as _cursor_1
from memories
where owner = :owner and id = :id::uuid and kind = 'thesis' and known_from <= :as_of::timestamptz
  and version > coalesce(:cursor_1::int, 0)
order by version
limit :limit::int + 1

-- name: thesis_lock :write :one
select id from memories
where owner = :owner and id = :id::uuid and version = 1 and kind = 'thesis'
for update

-- name: thesis_current :write :one
select m.status, c.at, c.at < m.known_from as too_early
from memories m
left join deployments d on d.owner = :owner and d.id = m.deployment_id
left join agent_state a on a.owner = :owner and a.deployment_id = m.deployment_id
cross join lateral (
    select coalesce(:at::timestamptz, greatest(m.known_from,
        journal_now(null, d.mode, d.created_at, a.last_tick_at, :now::timestamptz))) as at) c
where m.owner = :owner and m.id = :id::uuid and m.known_until = 'infinity'

-- What is not named stays; what is named in :cleared becomes empty. Without a difference there is no new
-- version and no row. _words: the text to embed has changed.
-- name: thesis_change :write :list
with next as (
    select m.id, m.version, coalesce(:text::text, text) as text,
        case when 'side' = any (:cleared::text[]) then null else coalesce(:side::text, side) end as side,
        case when 'invalidation' = any (:cleared::text[]) then null
            else coalesce(:invalidation::text, invalidation) end as invalidation,
        case when 'target' = any (:cleared::text[]) then null else coalesce(:target::text, target) end as target,
        case when 'horizon' = any (:cleared::text[]) then null
            else coalesce(:horizon::text, horizon) end as horizon,
        case when 'evidence' = any (:cleared::text[]) then '{}'
            else coalesce(:evidence::text[], evidence) end as evidence,
        case when 'tags' = any (:cleared::text[]) then '{}' else coalesce(:tags::text[], tags) end as tags
    from memories m
    where owner = :owner and id = :id::uuid and known_until = 'infinity' and kind = 'thesis'
), old as (
    update memories m set known_until = :at::timestamptz
    from next x
    where m.owner = :owner and m.id = x.id and m.version = x.version
      and (m.text, m.side, m.invalidation, m.target, m.horizon, m.evidence, m.tags)
          is distinct from (x.text, x.side, x.invalidation, x.target, x.horizon, x.evidence, x.tags)
    returning m.*, (m.text, m.invalidation, m.target, m.horizon)
        is distinct from (x.text, x.invalidation, x.target, x.horizon) as reworded
), changed as (
    insert into memories (owner, id, version, known_from, kind, status, at, text_id, text, symbol, side,
        invalidation, target, horizon, evidence, tags, deployment_id, parallel, agent_name, model_call_id,
        embedding_status)
    select o.owner, o.id, o.version + 1, :at::timestamptz, o.kind, o.status, o.at,
        case when reworded then uuid7() else o.text_id end, x.text, o.symbol, x.side, x.invalidation, x.target,
        x.horizon, x.evidence, x.tags, o.deployment_id, o.parallel, :agent_name, :model_call_id,
        case when reworded then 'pending' else 'none' end
    from old o
    cross join next x
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'thesis.changed', known_from, symbol, id, agent_name,
        model_call_id, jsonb_build_object('version', version, 'side', side, 'text', text, 'invalidation',
            invalidation, 'target', target, 'horizon', horizon, 'evidence', evidence, 'tags', tags)
    from changed
)
select {columns}, embedding_status = 'pending' as _words from changed

-- name: thesis_close :write :one
with old as (
    update memories set known_until = :at::timestamptz
    where owner = :owner and id = :id::uuid and known_until = 'infinity' and kind = 'thesis'
    returning *
), closed as (
    insert into memories (owner, id, version, known_from, kind, status, status_reason, at, text_id, text,
        symbol, side, invalidation, target, horizon, evidence, tags, deployment_id, parallel, outcome,
        validates, agent_name, model_call_id, embedding_status)
    select owner, id, version + 1, :at::timestamptz, kind, 'closed', :reason, at, text_id, text, symbol, side,
        invalidation, target, horizon, evidence, tags, deployment_id, parallel, :outcome::jsonb,
        coalesce(:validates::uuid[], '{}'), :agent_name, :model_call_id, 'none'
    from old
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'thesis.closed', known_from, symbol, id, agent_name,
        model_call_id, jsonb_build_object('version', version, 'reason', status_reason, 'outcome', outcome,
            'validates', validates)
    from closed
)
select {columns} from closed
