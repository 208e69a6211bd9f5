-- Deployments. A deployment is known from created_at on. Its state at an instant is in the last snapshot up
-- to then.

-- part: columns
d.id, d.skill_id, d.version, d.mode, d.name,
(select row_to_json(r)
 from (select d.reflection_cadence as cadence, d.every_n_trades,
           d.reflection_model as model) r) as reflection,
d.created_at,
(select row_to_json(t)
 from (select replace(to_json(s.tick_at)::text, '+00:00', 'Z')::json as last_tick_at,
           s.id as last_snapshot_id, s.day_start_equity_usd) t) as state
-- part: from_known
from deployments d
left join lateral (select id, tick_at, day_start_equity_usd
                   from decision_snapshots
                   where owner = :owner and deployment_id = d.id and tick_at <= :as_of::timestamptz
                   order by tick_at desc
                   limit 1) s on true
where d.owner = :owner and (d.created_at <= :as_of::timestamptz or s.id is not null)
  and exists (select from agent_state where owner = :owner and deployment_id = d.id)

-- The lock keeps the version from being replaced before the deployment that took its cadence from it is
-- stored. If there is no such version, the row has nulls, and _skill_known says whether the skill exists.
-- name: deployment_create :write :one
with v as (
    select * from skill_versions
    where owner = :owner and skill_id = :skill_id and version = :version
    for share
), made as (
    insert into deployments (owner, id, skill_id, version, mode, name, reflection_cadence, every_n_trades,
        reflection_model, created_at)
    select owner, :new_id::uuid, skill_id, version, :mode, :name,
        coalesce(:reflection::json ->> 'cadence',
                 case :mode when 'sim' then 'off' else reflection_cadence end),
        coalesce((:reflection::json ->> 'every_n_trades')::int, every_n_trades),
        :reflection::json ->> 'model', :at::timestamptz
    from v
    returning *
), state as (
    insert into agent_state (owner, deployment_id) select owner, id from made
)
select {columns}, _skill_known
from (select exists (select from skills where owner = :owner and skill_id = :skill_id) as _skill_known) k
left join made d on true
cross join (select null::uuid as id, null::timestamptz as tick_at, null::numeric as day_start_equity_usd) s

-- name: deployment_get :read :one
select {columns}
{from_known} and d.id = :id::uuid

-- name: deployment_list :read :list
select {columns}, d.created_at as _cursor_1, d.id as _cursor_2
{from_known}
  and (d.created_at, d.id) < (
      coalesce(:cursor_1::timestamptz, 'infinity'),
      coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and (:skill_id::text is null or d.skill_id = :skill_id::text)
  and (:version::text is null or d.version = :version::text)
  and (:mode::text is null or d.mode = :mode::text)
order by d.created_at desc, d.id desc
limit :limit::int + 1

-- The first step of a deletion: without its agent_state, ticks and reads no longer find the deployment. Its
-- journal gets a row for the next steps to lock.
-- name: deployment_hide :write :none
with journal as (
    insert into memory_journals (owner, journal_id)
    select d.owner, d.id from deployments d where d.owner = :owner and d.id = :id::uuid
    on conflict do nothing
)
delete from agent_state where owner = :owner and deployment_id = :id::uuid

-- Locks what the next batch deletes and a background job may change: the journal, as the sealer does before its
-- events, and memories in the order in which memory_vectors_store locks them. The batch is a statement of its
-- own, so that it sees what those jobs stored until then.
-- name: deployment_lock_some :write :one
with journal as materialized (
    select from memory_journals where owner = :owner and journal_id = :id::uuid for update
), noted as materialized (
    select from memories
    where owner = :owner and (id, version) in (
        select id, version from memories
        where owner = :owner and deployment_id = :id::uuid
        order by at desc, id desc
        limit 2000)
    order by text_id
    for update
)
select (select count(*) from journal) + (select count(*) from noted) as locked

-- Deletes history in batches, because a statement has a time limit. Vectors have no foreign key.
-- name: deployment_delete_some :write :list
with trades as (
    delete from trade_history
    where owner = :owner and ctid = any (array(
        select ctid from trade_history
        where owner = :owner and deployment_id = :id::uuid
        order by entry_tick_at desc, id desc
        limit 5000))
    returning 1
), snapshots as (
    delete from decision_snapshots
    where owner = :owner and ctid = any (array(
        select ctid from decision_snapshots
        where owner = :owner and deployment_id = :id::uuid
        order by tick_at
        limit 5000))
    returning 1
), noted as (
    delete from memories
    where owner = :owner and ctid = any (array(
        select ctid from memories
        where owner = :owner and deployment_id = :id::uuid
        order by at desc, id desc
        limit 2000))
    returning text_id
), vectors as (
    delete from memory_vectors
    where owner = :owner and text_id in (select text_id from noted)
), ordered as (
    delete from orders
    where owner = :owner and ctid = any (array(
        select ctid from orders
        where owner = :owner and deployment_id = :id::uuid
        order by at desc, id desc
        limit 5000))
    returning 1
), retrieved as (
    delete from memory_retrievals
    where owner = :owner and ctid = any (array(
        select ctid from memory_retrievals
        where owner = :owner and deployment_id = :id::uuid
        order by at desc, id desc
        limit 2000))
    returning 1
), events as (
    delete from memory_events
    where owner = :owner and ctid = any (array(
        select ctid from memory_events
        where owner = :owner and journal_id = :id::uuid
        limit 5000))
    returning 1
)
select (select count(*) from trades) + (select count(*) from snapshots) + (select count(*) from noted)
    + (select count(*) from ordered) + (select count(*) from retrieved) + (select count(*) from events) as gone

-- name: deployment_delete :write :one
delete from deployments where owner = :owner and id = :id::uuid
returning id

-- No foreign key leads from events and journals to the deployment. Without its row nobody adds events, and this
-- statement sees those that were added before.
-- name: deployment_delete_journal :write :none
with events as (
    delete from memory_events where owner = :owner and journal_id = :id::uuid
)
delete from memory_journals where owner = :owner and journal_id = :id::uuid
