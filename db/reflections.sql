-- Reflection on a deployment: its input, the claim that allows one at a time, and the record of every attempt
-- with its outcome.

-- closed_since counts trades closed after the active note's window, or after the note itself if it considered
-- no trades. It stops at every_n_trades. The order by makes the planner use the deployment's index even
-- without statistics. failed_at is that of a failure within the last :retry_us.
-- name: reflection_state :read :one
select d.id as deployment_id, d.reflection_cadence, d.every_n_trades, d.reflection_model, w.now as as_of,
    v.memory_enabled, v.strategy, array_to_string(v.avoid, E'\x1f') as avoid, n.id as note_id,
    n.generated_at, n.lessons_text, n.generated_at > w.now as too_early,
    (select true from trade_history x
     where x.owner = :owner and x.deployment_id = d.id and x.status = 'closed' and x.exit_tick_at <= w.now
     order by x.exit_tick_at desc, x.id desc
     limit 1) as any_closed,
    (select count(*)
     from (select from trade_history x
           where x.owner = :owner and x.deployment_id = d.id and x.status = 'closed'
             and x.exit_tick_at <= w.now
             and x.exit_tick_at > coalesce(n.window_end, n.generated_at, '-infinity')
           order by x.exit_tick_at desc, x.id desc
           limit d.every_n_trades) y) as closed_since,
    (select x.at from reflections x
     where x.owner = :owner and x.deployment_id = d.id and x.at <= w.now
       and x.at > w.now - :retry_us::bigint * interval '1 microsecond'
       and x.outcome in ('rejected', 'model_failed')
     order by x.at desc, x.id desc
     limit 1) as failed_at
from deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select deployment_now(
        :as_of::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as now
    offset 0
) w
cross join lateral (
    select x.strategy, x.avoid, x.memory_enabled from skill_versions x
    where x.owner = :owner and x.skill_id = d.skill_id and x.version = d.version
    limit 1
) v
left join reflection_notes n on n.owner = :owner and n.deployment_id = d.id and n.status = 'active'
where d.owner = :owner and d.id = :id::uuid

-- Reasons are most of the bytes: they come only for the trades that a prompt lists one by one, and only as
-- much as it needs.
-- name: reflection_trades :slow :list
select symbol, side, entry_regime_tag, entry_tick_at, exit_tick_at, entry_size_usd, entry_leverage,
    case when row_number() over newest <= :shown_trades::int
        then left(entry_reason, :reason_chars::int) end as entry_reason,
    case when row_number() over newest <= :shown_trades::int
        then left(exit_reason, :reason_chars::int) end as exit_reason,
    realized_pnl_usd - fees_usd as net_usd, fees_usd, mfe_usd, mae_usd, holding_minutes
from trade_history
where owner = :owner and deployment_id = :id::uuid and status = 'closed'
  and exit_tick_at <= :as_of::timestamptz
window newest as (order by exit_tick_at desc, entry_tick_at desc, id desc)
order by exit_tick_at desc, entry_tick_at desc, id desc
limit :max_trades::int

-- A claim ends with the connection that made it, as in idempotency_claim. seconds_left is that of the claim
-- that was there before.
-- name: reflection_claim :write :one
with claimed as (
    insert into reflection_claims as k (owner, deployment_id, claim, claim_pid, claim_started, expires_at)
    select d.owner, d.deployment_id, :claim::uuid, a.pid, a.backend_start,
        now() + :claim_ms::bigint * interval '1 millisecond'
    from (select owner, deployment_id from agent_state
          where owner = :owner and deployment_id = :id::uuid
          for key share) d,
        pg_stat_activity a
    where a.pid = pg_backend_pid()
    on conflict (owner, deployment_id) do update
    set claim = excluded.claim, claim_pid = excluded.claim_pid, claim_started = excluded.claim_started,
        expires_at = excluded.expires_at
    where k.expires_at <= now()
       or not exists (select from pg_stat_activity b
                      where b.pid = k.claim_pid and b.backend_start = k.claim_started)
    returning k.deployment_id
)
select (select deployment_id from claimed) as claimed,
    (select ceil(extract(epoch from expires_at - now()))::bigint
     from reflection_claims
     where owner = :owner and deployment_id = :id::uuid) as seconds_left

-- name: reflection_release :write :none
delete from reflection_claims where owner = :owner and deployment_id = :id::uuid and claim = :claim::uuid

-- The first step of the transaction that ends a reflection. Locking the state makes the next statements see
-- every trade counted in it. The claim is deleted after that, in the order reflection_claim takes the two:
-- while this waits for a tick, other requests still see the claim.
-- name: reflection_settle :write :one
with state as materialized (
    select owner, deployment_id from agent_state
    where owner = :owner and deployment_id = :id::uuid
    for no key update
), claim as (
    delete from reflection_claims k using state s
    where k.owner = :owner and k.deployment_id = s.deployment_id and k.claim = :claim::uuid
    returning k.claim
)
select (select claim from claim) as claim, (select deployment_id from state) as deployment_id

-- The active note is superseded before the new one is inserted: there may be only one.
-- name: reflection_note_write :write :one
with prior as (
    update reflection_notes
    set status = 'superseded', superseded_at = :as_of::timestamptz
    where owner = :owner and deployment_id = :id::uuid and status = 'active'
    returning id
), made as (
    insert into reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at,
        window_start, window_end, trades_considered, lessons_text, content_hash, model_used, input_tokens,
        output_tokens, cost_usd, suppressed)
    select d.owner, :note_id::uuid, d.skill_id, d.version, d.id, 'active', :as_of::timestamptz,
        :window_start::timestamptz, :window_end::timestamptz, :trades_considered::int, :lessons_text,
        :content_hash, :model_used, :input_tokens::int, :output_tokens::int, :cost_usd::numeric,
        :suppressed::text[]
    from deployments d, (select count(*) from prior) first
    where d.owner = :owner and d.id = :id::uuid
    returning *
), counted as (
    update agent_state
    set closed_since_reflection = (
            select count(*)
            from (select from trade_history
                  where owner = :owner and deployment_id = :id::uuid and status = 'closed'
                    and exit_tick_at > :window_end::timestamptz
                  order by exit_tick_at desc, id desc) x),
        updated_at = now()
    where owner = :owner and deployment_id = :id::uuid
), events as (
    insert into memory_events (owner, journal_id, kind, at, subject_id, data)
    select :owner, :id::uuid, e.kind, :as_of::timestamptz, e.id, e.data
    from (
        select 1 as place, 'reflection_note.superseded' as kind, p.id,
            jsonb_build_object('superseded_by', m.id) as data
        from prior p, made m
        union all
        select 2, 'reflection_note.created', m.id, jsonb_build_object('skill_id', m.skill_id,
            'version', m.version, 'lessons_text', m.lessons_text, 'content_hash', m.content_hash,
            'window_start', m.window_start, 'window_end', m.window_end,
            'trades_considered', m.trades_considered, 'suppressed', m.suppressed, 'model_used', m.model_used)
        from made m
    ) e
    order by e.place
)
select n.id, n.skill_id, n.version, n.deployment_id, 'deployment' as scope, n.status, n.generated_at,
    n.superseded_at, n.window_start, n.window_end, n.trades_considered, n.lessons_text, n.content_hash,
    n.model_used, n.input_tokens, n.output_tokens, n.cost_usd, n.suppressed, n.promoted_from,
    (select id from prior) as previous_id
from made n

-- No row: the deployment was deleted in the meantime.
-- name: reflection_add :write :one
insert into reflections (owner, id, deployment_id, at, outcome, reason, detail, forced, suppressed, note_id,
    trades_considered, window_start, window_end, model_used, input_tokens, output_tokens, cost_usd)
select owner, :reflection_id::uuid, deployment_id, :as_of::timestamptz, :outcome, :reason, :detail,
    :forced::boolean, :suppressed::text[], :note_id::uuid, :trades_considered::int,
    :window_start::timestamptz, :window_end::timestamptz, :model_used, :input_tokens::int,
    :output_tokens::int, :cost_usd::numeric
from agent_state
where owner = :owner and deployment_id = :id::uuid
for key share
returning id

-- part: columns
r.id, r.deployment_id, r.at, r.outcome, r.reason, r.detail, r.forced, r.suppressed, r.note_id,
r.trades_considered, r.window_start, r.window_end, r.model_used, r.input_tokens, r.output_tokens, r.cost_usd,
r.created_at, r.at as _cursor_1, r.id as _cursor_2
-- part: page
and (:outcome::text is null or r.outcome = :outcome::text)
and (r.at, r.id) < (coalesce(:cursor_1::timestamptz, :as_of::timestamptz + interval '1 microsecond'),
                      coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
order by r.at desc, r.id desc
limit :limit::int + 1

-- name: reflection_list :slow :list
select {columns}
from reflections r
where r.owner = :owner {page}

-- name: reflection_list_of_deployment :slow :list
select {columns}
from reflections r
where r.owner = :owner and r.deployment_id = :deployment_id::uuid {page}
