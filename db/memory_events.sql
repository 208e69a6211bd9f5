-- Events of the journals: what seals them, the list of them, and the check of their chain.
-- A journal is named by its deployment, or by zeros for the owner's own (no_uuid).

-- The next owner after :after who has events to seal.
-- name: unsealed_owner :slow :list :unowned
select min(e.owner) as owner from memory_events e where e.seq is null and e.owner > :after::text

-- part: unsealed
with recursive unsealed (journal_id) as (
    (select e.journal_id from memory_events e
     where e.owner = :owner and e.seq is null
     order by e.owner, e.journal_id limit 1)
    union all
    select (select e.journal_id from memory_events e
            where e.owner = :owner and e.seq is null and e.journal_id > u.journal_id
            order by e.owner, e.journal_id limit 1)
    from unsealed u where u.journal_id is not null
)

-- The journals that have events to seal.
-- name: journals_unsealed :slow :list
{unsealed} select journal_id from unsealed where journal_id is not null

-- Seals up to :most events of each journal, of 100 journals at most, except of those that others seal.
-- name: journals_seal :slow :list
{unsealed}
select seal_journals(:owner, array(select journal_id from unsealed where journal_id is not null limit 100), :most::int) as sealed

-- name: journal_seal :slow :list
select seal_journal(:owner, :journal_id::uuid, :most::int, true) as sealed

-- part: columns
nullif(e.journal_id, no_uuid()) as deployment_id, e.seq, e.id, e.kind, e.at, e.recorded_at, e.symbol,
e.subject_id, e.agent_name, e.model_call_id, e.data,
case when e.seq = 1 then repeat('0', 64) else (
    select p.hash from memory_events p
    where p.owner = :owner and p.journal_id = e.journal_id and p.seq = e.seq - 1) end as prev_hash,
e.hash
-- part: filter
e.at <= :as_of::timestamptz
and (:since::timestamptz is null or e.at >= :since::timestamptz)
and (:until::timestamptz is null or e.at < :until::timestamptz)
and (:kind::text is null or e.kind = :kind::text)
and (:symbol::text is null or e.symbol = :symbol::text)
and (:agent_name::text is null or e.agent_name = :agent_name::text)
and (:model_call_id::text is null or e.model_call_id = :model_call_id::text)
-- part: from_cursor
(e.journal_id, e.seq) > (coalesce(:cursor_1::uuid, no_uuid()), coalesce(:cursor_2::bigint, 0))
and e.seq > coalesce(:after_seq::bigint, 0)

-- name: memory_event_list :slow :list
select {columns}, e.journal_id as _cursor_1, e.seq as _cursor_2
from memory_events e
where e.owner = :owner and {from_cursor} and {filter}
order by e.journal_id, e.seq
limit :limit::int + 1

-- name: memory_event_list_of_journal :slow :list
select {columns}, e.seq as _cursor_1
from memory_events e
where e.owner = :owner and e.journal_id = :journal_id::uuid
  and e.seq > greatest(coalesce(:cursor_1::bigint, 0), coalesce(:after_seq::bigint, 0))
  and (:subject_id::uuid is null or e.subject_id = :subject_id::uuid)
  and {filter}
order by e.journal_id, e.seq
limit :limit::int + 1

-- The events about one thing are few, and have an index.
-- name: memory_event_list_of_subject :slow :list
select {columns}, e.journal_id as _cursor_1, e.seq as _cursor_2
from memory_events e
where e.owner = :owner and e.subject_id = :subject_id::uuid
  and (:journal_id::uuid is null or e.journal_id = :journal_id::uuid)
  and {from_cursor} and {filter}
order by e.journal_id, e.seq
limit :limit::int + 1

-- The owner's journals. One whose end was removed is found by its events.
-- name: journal_list :slow :list
with recursive found (journal_id) as (
    (select e.journal_id from memory_events e
     where e.owner = :owner and e.journal_id > coalesce(:cursor_1::uuid, no_uuid())
     order by e.owner, e.journal_id limit 1)
    union all
    select (select e.journal_id from memory_events e
            where e.owner = :owner and e.journal_id > f.journal_id
            order by e.owner, e.journal_id limit 1)
    from found f where f.journal_id is not null
)
select journal_id, journal_id as _cursor_1
from (
    (select journal_id from found where journal_id is not null limit :limit::int + 1)
    union
    (select no_uuid()
     where :cursor_1::uuid is null
       and exists (select from memory_events e where e.owner = :owner and e.journal_id = no_uuid()))
    union
    (select j.journal_id from memory_journals j
     where j.owner = :owner and (:cursor_1::uuid is null or j.journal_id > :cursor_1::uuid)
     order by j.journal_id limit :limit::int + 1)
) k
order by journal_id
limit :limit::int + 1

-- The end of a journal, and what is not part of its chain, in one snapshot. No row: an unknown
-- deployment, or one that is being deleted. after_hash: of the event at :after_seq.
-- name: journal_head :slow :one
select nullif(:journal_id::uuid, no_uuid()) as deployment_id, greatest(j.seq, 0) as seq,
    coalesce(j.hash, repeat('0', 64)) as hash,
    (select count(*) from memory_events e
     where e.owner = :owner and e.journal_id = :journal_id::uuid and e.seq is null) as pending,
    b.seq as extra_seq, b.id as extra_id, b.hash as extra_hash, b.fits as extra_fits,
    (select a.hash from memory_events a
     where a.owner = :owner and a.journal_id = :journal_id::uuid and a.seq = :after_seq::bigint) as after_hash
from (select) one
left join memory_journals j on j.owner = :owner and j.journal_id = :journal_id::uuid
left join lateral (
    select e.seq, e.id, e.hash, e.hash = memory_event_hash((
            select p.hash from memory_events p
            where p.owner = :owner and p.journal_id = :journal_id::uuid and p.seq = e.seq - 1),
        memory_event_text(e.journal_id, e.seq, e.id, e.kind, e.at, e.recorded_at, e.symbol, e.subject_id,
            e.agent_name, e.model_call_id, e.data)) as fits
    from memory_events e
    where e.owner = :owner and e.journal_id = :journal_id::uuid and e.seq > coalesce(j.seq, 0)
    order by e.journal_id, e.seq limit 1
) b on true
where :journal_id::uuid = no_uuid()
   or (j.seq is not null or b.seq is not null
       or exists (select from deployments d where d.owner = :owner and d.id = :journal_id::uuid))
   and not exists (
       select from deployments d
       where d.owner = :owner and d.id = :journal_id::uuid
         and not exists (select from agent_state a where a.owner = :owner and a.deployment_id = d.id))

-- Walks the chain from the event after :after_seq, whose hash is :before, up to :last_seq: the last event of the
-- page, and the first of it that is not what the chain expects.
-- name: journal_walk :slow :list
with page as materialized (
    select e.seq, e.id, e.hash,
        coalesce(lag(e.seq) over (order by e.seq), :after_seq::bigint) as seq_before,
        coalesce(lag(e.hash) over (order by e.seq), :before::text) as before,
        memory_event_text(e.journal_id, e.seq, e.id, e.kind, e.at, e.recorded_at, e.symbol, e.subject_id,
            e.agent_name, e.model_call_id, e.data) as event
    from (select * from memory_events
          where owner = :owner and journal_id = :journal_id::uuid
            and seq > :after_seq::bigint and seq <= :last_seq::bigint
          order by owner, journal_id, seq
          limit :most::int) e
)
select l.seq, l.id, l.hash, b.seq as broken_seq, b.id as broken_id, b.hash as broken_hash, b.seq_before,
    b.before, b.expected
from (select p.seq, p.id, p.hash from page p order by p.seq desc limit 1) l
left join lateral (
    select p.*, x.expected
    from page p cross join lateral (select memory_event_hash(p.before, p.event) as expected offset 0) x
    where p.seq <> p.seq_before + 1 or p.hash is distinct from x.expected
    order by p.seq limit 1
) b on true

-- Why the event at :seq does not fit behind the event with the hash :before.
--   inserted: a later event fits here, and this one fits nowhere. Or this one fits at the number before, so the
--             event there was inserted
--   reordered: a later event fits here, and this one fits elsewhere
--   missing: the next event fits this one if its number is raised by as many as the journal lacks
--   changed: none of these
-- Other places are looked for among the :around events before and after it: a long journal must get an answer too.
-- name: journal_break :slow :list
with events as materialized (
    select e.* from memory_events e
    where e.owner = :owner and e.journal_id = :journal_id::uuid
      and e.seq between :seq::bigint - :around::bigint and :seq::bigint + :around::bigint
), here as (
    select * from events e where e.seq = :seq::bigint
), belongs_before as materialized (
    select h.seq
    from here h
    where h.hash = memory_event_hash(
        coalesce((select q.hash from events q where q.seq = h.seq - 2), repeat('0', 64)),
        memory_event_text(h.journal_id, h.seq - 1, h.id, h.kind, h.at, h.recorded_at, h.symbol, h.subject_id,
            h.agent_name, h.model_call_id, h.data))
), earlier as (
    select p.id, p.seq, p.hash from belongs_before h join events p on p.seq = h.seq - 1
), later as (
    select e.id from events e
    where e.seq > :seq::bigint
      and e.hash = memory_event_hash(:before::text, memory_event_text(e.journal_id, :seq::bigint, e.id, e.kind,
          e.at, e.recorded_at, e.symbol, e.subject_id, e.agent_name, e.model_call_id, e.data))
    limit 1
), elsewhere as (
    select h.id
    from here h
    cross join lateral (select e.seq, e.hash from events e union all select 0, repeat('0', 64)) e
    cross join generate_series(0, 2) step
    where h.hash = memory_event_hash(e.hash, memory_event_text(h.journal_id, e.seq + step, h.id, h.kind, h.at,
        h.recorded_at, h.symbol, h.subject_id, h.agent_name, h.model_call_id, h.data))
    limit 1
), lacking as (
    select :last_seq::bigint - count(*) as count from memory_events e
    where e.owner = :owner and e.journal_id = :journal_id::uuid and e.seq is not null
), shifted as (
    select n.id
    from here h, events n, lacking l
    where n.seq = h.seq + 1 and l.count > 0
      and n.hash = memory_event_hash(h.hash, memory_event_text(n.journal_id, n.seq + l.count, n.id, n.kind, n.at,
          n.recorded_at, n.symbol, n.subject_id, n.agent_name, n.model_call_id, n.data))
)
select
    case when exists (select from earlier) then 'inserted'
        when exists (select from later) and exists (select from elsewhere) then 'reordered'
        when exists (select from later) then 'inserted'
        when exists (select from shifted) or (select count > 0 from lacking)
            and not exists (select from events e where e.seq > :seq::bigint) then 'missing'
        else 'changed' end as what,
    (select seq from earlier) as inserted_seq, (select id from earlier) as inserted_id,
    (select hash from earlier) as inserted_hash
