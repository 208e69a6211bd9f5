-- Reflection notes as they were known at an instant. A note is known from generated_at on and active until
-- superseded_at. The previous note is the last earlier one of the same deployment or, for a promoted note,
-- the last earlier promoted one of the same skill and version.

-- part: columns
n.id, n.skill_id, n.version, n.deployment_id,
case when n.deployment_id is null then 'skill' else 'deployment' end as scope,
case when n.superseded_at <= :as_of::timestamptz then 'superseded' else 'active' end as status,
n.generated_at, case when n.superseded_at <= :as_of::timestamptz then n.superseded_at end as superseded_at,
n.window_start, n.window_end, n.trades_considered, n.lessons_text, n.content_hash, n.model_used,
n.input_tokens, n.output_tokens, n.cost_usd, n.suppressed, n.promoted_from,
coalesce(own.id, promoted.id) as previous_id,
coalesce(own.lessons_text, promoted.lessons_text) as _previous_text
-- part: last_before
(x.generated_at, x.id) < (n.generated_at, n.id)
order by x.generated_at desc, x.id desc
limit 1
-- part: previous
left join lateral (
    select x.id, x.lessons_text from reflection_notes x
    where x.owner = :owner and x.deployment_id = n.deployment_id and {last_before}
) own on true
left join lateral (
    select x.id, x.lessons_text from reflection_notes x
    where x.owner = :owner and x.skill_id = n.skill_id and x.version = n.version
      and x.deployment_id is null and n.deployment_id is null and {last_before}
) promoted on true
-- part: page
and (:skill_id::text is null or n.skill_id = :skill_id::text)
and (:version::text is null or n.version = :version::text)
and (:scope::text is null or (n.deployment_id is null) = (:scope::text = 'skill'))
and (:status::text is null
     or coalesce(n.superseded_at <= :as_of::timestamptz, false) = (:status::text = 'superseded'))
and n.generated_at >= coalesce(:since::timestamptz, '-infinity')
and (n.generated_at, n.id) < (
    coalesce(:cursor_1::timestamptz,
             least(:until::timestamptz, :as_of::timestamptz + interval '1 microsecond')),
    coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
order by n.generated_at desc, n.id desc
limit :limit::int + 1

-- name: reflection_note_get :read :one
select {columns}
from reflection_notes n
{previous}
where n.owner = :owner and n.id = :id::uuid and n.generated_at <= :as_of::timestamptz

-- Finds the page first, then the previous note of each row on it. For one deployment or one version an index
-- has the order. All notes of an owner are sorted: with an index for them, the plans of context_get could use
-- it instead of the one by deployment.
-- name: reflection_note_list :slow :list
select {columns}, n.generated_at as _cursor_1, n.id as _cursor_2
from (select * from reflection_notes n where n.owner = :owner {page}) n
{previous}
order by n.generated_at desc, n.id desc

-- name: reflection_note_list_of_deployment :slow :list
select {columns}, n.generated_at as _cursor_1, n.id as _cursor_2
from (select * from reflection_notes n
      where n.owner = :owner and n.deployment_id = :deployment_id::uuid {page}) n
{previous}
order by n.generated_at desc, n.id desc

-- name: reflection_note_list_of_version :slow :list
select {columns}, n.generated_at as _cursor_1, n.id as _cursor_2
from (select * from reflection_notes n
      where n.owner = :owner and n.skill_id = :skill_id::text and n.version = :version::text {page}) n
{previous}
order by n.generated_at desc, n.id desc

-- Serializes promotions to a version: the next one sees the note that this one made.
-- name: reflection_note_lock :write :one
select n.id
from reflection_notes n
join skill_versions v on v.owner = :owner and v.skill_id = n.skill_id and v.version = n.version
where n.owner = :owner and n.id = :id::uuid
for no key update of v

-- Without :at, a promotion happens at the deployment's current time, as in reads without as_of, but not
-- before the two notes.
-- name: reflection_note_promotion :write :one
select n.id, n.deployment_id, a.id as active_id, n.generated_at, a.generated_at as active_generated_at,
    a.promoted_from = n.id or a.content_hash = n.content_hash as same,
    coalesce(:at::timestamptz, greatest(n.generated_at, a.generated_at, (
        select deployment_now(:as_of::timestamptz, d.mode, d.created_at, s.last_tick_at, :now::timestamptz)
        from deployments d join agent_state s on s.owner = :owner and s.deployment_id = d.id
        where d.owner = :owner and d.id = n.deployment_id))) as promoted_at,
    :at::timestamptz < n.generated_at as before_note, :at::timestamptz < a.generated_at as before_active
from reflection_notes n
left join reflection_notes a on a.owner = :owner and a.skill_id = n.skill_id and a.version = n.version
    and a.deployment_id is null and a.status = 'active'
where n.owner = :owner and n.id = :id::uuid

-- The active note is superseded before the new one is inserted: there may be only one.
-- name: reflection_note_promote :write :one
with n as (
    select * from reflection_notes where owner = :owner and id = :id::uuid
), prior as (
    update reflection_notes x
    set status = 'superseded', superseded_at = :promoted_at::timestamptz
    from n
    where x.owner = :owner and x.skill_id = n.skill_id and x.version = n.version
      and x.deployment_id is null and x.status = 'active'
    returning x.id
), made as (
    insert into reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at,
        window_start, window_end, trades_considered, lessons_text, content_hash, model_used, input_tokens,
        output_tokens, cost_usd, suppressed, promoted_from)
    select n.owner, :new_id::uuid, n.skill_id, n.version, null, 'active', :promoted_at::timestamptz,
        n.window_start, n.window_end, n.trades_considered, n.lessons_text, n.content_hash, n.model_used,
        n.input_tokens, n.output_tokens, n.cost_usd, n.suppressed, n.id
    from n, (select count(*) from prior) first
    returning *
), events as (
    insert into memory_events (owner, kind, at, subject_id, data)
    select :owner, e.kind, :promoted_at::timestamptz, e.id, e.data
    from (
        select 1 as place, 'reflection_note.superseded' as kind, p.id,
            jsonb_build_object('superseded_by', m.id) as data
        from prior p, made m
        union all
        select 2, 'reflection_note.promoted', m.id, jsonb_build_object('promoted_from', m.promoted_from,
            'from_deployment_id', n.deployment_id, 'skill_id', m.skill_id, 'version', m.version,
            'lessons_text', m.lessons_text, 'content_hash', m.content_hash)
        from made m, n
    ) e
    order by e.place
)
select id from made
