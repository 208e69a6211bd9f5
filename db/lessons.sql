-- Lessons. A row is one version. The version known at an instant has known_from <= instant < known_until.

-- part: columns
id, at, context, outcome, takeaway, tags, evidence, status, status in ('proposed', 'validated') as active,
status_at, status_reason, validation, superseded_by
-- part: filter
owner = :owner
and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
and (at, id) < (
    coalesce(:cursor_1::timestamptz, 'infinity'),
    coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
and (:since::timestamptz is null or at >= :since::timestamptz)
and (:until::timestamptz is null or at < :until::timestamptz)
and (:tags::text[] is null or tags && :tags::text[])
and (:tags_all::text[] is null or tags @> :tags_all::text[])
and (:status::text is null or status = :status::text)
and (:active::boolean is null or (status in ('proposed', 'validated')) = :active::boolean)
and (:text::text is null or search @@ websearch_to_tsquery('english', :text::text))

-- `similar` lists lessons that were known when this one was learned. A takeaway never changes, so the first
-- version has it. similar_keys include the owner, so the inner select needs no condition on owner; with one,
-- the planner might not use the index of the keys. The lookup of the version is ordered by the primary key so
-- that the planner has no other index to choose: a plan made while the table was empty could otherwise read
-- all lessons of the owner for each match.
-- name: lesson_create :write :one
with created as (
    insert into lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence,
        status, status_at, similar_keys)
    values (:owner, :new_id::uuid, 1, :at::timestamptz, :at::timestamptz, :context, :outcome, :takeaway,
        :tags::text[], :evidence::text[], 'proposed', :at::timestamptz, :similar_keys::int[])
    returning *
), event as (
    insert into memory_events (owner, kind, at, subject_id, data)
    select owner, 'lesson.proposed', at, id, jsonb_build_object('takeaway', takeaway, 'context', context,
        'outcome', outcome, 'tags', tags, 'evidence', evidence)
    from created
)
select {columns},
    (select coalesce(array_to_json(array_agg(row_to_json(s))), '[]')
     from (select k.id, round(f.score::numeric, 3) as score
           from (select id, similarity(takeaway, :takeaway) as score from lessons
                 where version = 1 and similar_keys && :similar_keys::int[] limit 400) f
           cross join lateral
               (select id from lessons
                where owner = :owner and id = f.id and known_from <= :at::timestamptz
                  and known_until > :at::timestamptz
                  and status in ('proposed', 'validated')
                order by version desc limit 1) k
           where f.score >= 0.6
           order by score desc, k.id limit 5) s) as similar
from created

-- name: lesson_get :read :one
select {columns}
from lessons
where owner = :owner and id = :id::uuid and known_from <= :as_of::timestamptz
  and known_until > :as_of::timestamptz

-- name: lesson_list :read :list
select {columns}, at as _cursor_1, id as _cursor_2
from lessons
where {filter}
order by at desc, id desc
limit :limit::int + 1

-- name: lesson_export :slow :list
select {columns}, at as _cursor_1, id as _cursor_2, array_to_string(tags, ', ') as _tags,
    array_to_string(evidence, E'\n') as _evidence, validation ->> 'metric' as _metric,
    validation ->> 'value' as _value, validation ->> 'baseline' as _baseline,
    validation ->> 'sample_size' as _sample_size, validation ->> 'note' as _note
from lessons
where {filter}
order by at desc, id desc
limit :limit::int + 1

-- name: lesson_history :read :list
select status, known_from as at, status_reason as reason, validation, superseded_by, version as _cursor_1
from lessons
where owner = :owner and id = :id::uuid and known_from <= :as_of::timestamptz
  and version > coalesce(:cursor_1::int, 0)
order by version
limit :limit::int + 1

-- name: lesson_block :read :list
select id, takeaway, count(*) over () as total
from lessons
where owner = :owner and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
  and status in ('proposed', 'validated')
  and (:status::text is null or status = :status::text)
  and (:tags::text[] is null or tags && :tags::text[])
order by at desc, id desc
limit :limit::int

-- Locks version 1, which is never replaced. lesson_current then reads the current version in a statement of
-- its own, so that a transaction that waited for the lock sees the changes of the one before it.
-- name: lesson_lock :write :list
select id from lessons where owner = :owner and id = any (:ids::uuid[]) and version = 1 order by id for update

-- name: lesson_current :write :list
select id, status, known_from, known_from > :at::timestamptz as too_early
from lessons
where owner = :owner and id = any (:ids::uuid[]) and known_until = 'infinity'
order by id

-- name: lesson_change :write :list
with old as (
    update lessons set known_until = :at::timestamptz
    where owner = :owner and id = any (:ids::uuid[]) and known_until = 'infinity'
    returning *
), changed as (
    insert into lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence,
        status, status_at, status_reason, validation, superseded_by, similar_keys)
    select owner, id, version + 1, :at::timestamptz, at, context, outcome, takeaway, tags, evidence,
        :to_status, :at::timestamptz, :reason, coalesce(:validation::json, validation), :superseded_by::uuid,
        similar_keys
    from old
    returning *
), event as (
    insert into memory_events (owner, kind, at, subject_id, agent_name, model_call_id, data)
    select owner, 'lesson.' || status, known_from, id, :agent_name, :model_call_id, jsonb_build_object('takeaway', takeaway,
        'reason', status_reason, 'validation', validation, 'superseded_by', superseded_by)
    from changed
    order by id
)
select {columns} from changed

-- Appends the tags and evidence of the merged lessons, without duplicates, in the order of :ids.
-- name: lesson_merge_into :write :one
with old as (
    update lessons set known_until = :at::timestamptz
    where owner = :owner and id = :into::uuid and known_until = 'infinity'
    returning *
), parts as (
    select 0 as rank, tags, evidence from old
    union all
    select array_position(:ids::uuid[], id), tags, evidence from lessons
    where owner = :owner and id = any (:ids::uuid[]) and known_until = 'infinity'
), merged as (
    insert into lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, evidence,
        status, status_at, status_reason, validation, superseded_by, similar_keys)
    select owner, id, version + 1, :at::timestamptz, at, context, outcome, takeaway,
        array(select t from parts p, unnest(p.tags) with ordinality u (t, n)
              group by t order by min(rank * 1000000 + n)),
        array(select t from parts p, unnest(p.evidence) with ordinality u (t, n)
              group by t order by min(rank * 1000000 + n)),
        status, status_at, status_reason, validation, superseded_by, similar_keys
    from old
    returning *
), event as (
    insert into memory_events (owner, kind, at, subject_id, data)
    select owner, 'lesson.merged', known_from, id, jsonb_build_object('takeaway', takeaway, 'tags', tags,
        'evidence', evidence, 'reason', :reason::text, 'merged', :ids::uuid[])
    from merged
)
select {columns} from merged

-- A key shared by n lessons makes n * n pairs. So only 16 lessons of each key are paired, and of the pairs
-- only those that share the most keys, which are the most similar, are compared.
-- name: lesson_pairs :slow :list
with known as (
    select id, takeaway, similar_keys
    from lessons
    where owner = :owner and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
      and status in ('proposed', 'validated')
), keyed as materialized (
    select id, key
    from (select id, key, row_number() over (partition by key order by id) as n
          from known, unnest(similar_keys) as key) k
    where n <= 16
), pairs as (
    select x.id as a, y.id as b from keyed x join keyed y on x.key = y.key and x.id < y.id
    group by x.id, y.id order by count(*) desc, x.id, y.id limit 5000
)
select a, b, round(score::numeric, 3) as score, takeaway_a, takeaway_b
from (select a, b, similarity(p.takeaway, q.takeaway) as score, p.takeaway as takeaway_a,
          q.takeaway as takeaway_b
      from pairs join known p on p.id = a join known q on q.id = b offset 0) s
where score >= 0.45
order by score desc, a, b
limit :max_pairs::int

-- name: lesson_stale :slow :list
select id, at, status, floor(extract(epoch from :as_of::timestamptz - status_at) / 86400)::int as age_days
from lessons
where owner = :owner and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz
  and status in ('proposed', 'validated')
  and status_at < :as_of::timestamptz - make_interval(days => :stale_days::int)
order by status_at, id
limit :limit::int + 1
