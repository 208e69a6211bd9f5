-- The story of a trade: what the agent searched, noted, ordered and learned about it, as it was known at an
-- instant. Each kind of entry is read from an index, at most 1,000 rows of it, of which 200 are returned.

-- The trade, and its window: from the exit of the symbol's trade before it until its own exit, or as_of. What led
-- to a flip came before that exit: its window begins with the tick before.
-- part: trade
trade_history t
cross join lateral (
    select coalesce(t.exit_tick_at <= :as_of::timestamptz, false) as exited,
        case when t.exit_tick_at <= :as_of::timestamptz then t.exit_tick_at else :as_of::timestamptz end as until
    offset 0
) w
left join lateral (
    select case when x.exit_tick_at < t.entry_tick_at then x.exit_tick_at else coalesce(
            (select p.tick_at from decision_snapshots p
             where p.owner = :owner and p.deployment_id = t.deployment_id and p.tick_at < t.entry_tick_at
             order by p.tick_at desc
             limit 1), x.exit_tick_at) end as since
    from trade_history x
    where x.owner = :owner and x.deployment_id = t.deployment_id and x.symbol = t.symbol and x.status = 'closed'
      and x.exit_tick_at <= t.entry_tick_at and x.id <> t.id
    order by x.exit_tick_at desc
    limit 1
) before on true
cross join lateral (select coalesce(before.since, '-infinity') as since offset 0) s

-- The theses of the symbol that were open while the trade was. A thesis that is opened at the exit belongs to the
-- next trade.
-- part: theses
cross join lateral (
    select array(
        (select x.id
         from (select m.id, m.known_until from memories m
               where m.owner = :owner and m.deployment_id = t.deployment_id and m.symbol = t.symbol
                 and m.kind = 'thesis' and m.status = 'open' and not m.parallel and m.known_from <= w.until
               order by m.known_from desc, m.n desc
               limit 200) x
         where x.known_until > t.entry_tick_at)
        union
        (select x.id
         from (select m.id, m.known_until from memories m
               where m.owner = :owner and m.deployment_id = t.deployment_id and m.symbol = t.symbol
                 and m.kind = 'thesis' and m.status = 'open' and m.parallel and m.known_from <= w.until
               order by m.known_from desc, m.n desc
               limit 200) x
         where x.known_until > t.entry_tick_at)
    ) as ids
    offset 0
) found
cross join lateral (
    select array(
        select f.id from unnest(found.ids) f (id)
        cross join lateral (
            select m.known_from from memories m where m.owner = :owner and m.id = f.id order by m.version limit 1) m
        where m.known_from <= t.entry_tick_at or not w.exited or m.known_from < w.until
    ) as ids
    offset 0
) theses

-- Of the rows `x` with the columns kind, at, n, id, text, ref, evidence, data and place, which numbers them
-- from the newest on: the newest 200, and how many of up to 1,000 were left out.
-- part: bounded
json_build_object('omitted', greatest(least(count(*), 1000) - 200, 0), 'items', json_agg(json_build_object(
    'kind', x.kind, 'at', x.at, 'n', x.n, 'id', x.id, 'text', left(x.text, 4000), 'ref', x.ref,
    'evidence', array_to_string(x.evidence, E'\x1f'), 'data', x.data::text)) filter (where x.place <= 200))

-- Searches for the symbol, and those that selected one of the theses, among the last 1,000 of the deployment and
-- the last 1,000 of no deployment.
-- part: retrievals
(select {bounded}
 from (select r.*, row_number() over () as place
       from ((select 'retrieval' as kind, r.at, r.n, r.id, r.query ->> 'text' as text, null::uuid as ref,
                  null::text[] as evidence,
                  json_build_object('symbol', r.symbol, 'selected', cardinality(r.selection),
                      'found_thesis', r.selection && theses.ids, 'tokens', r.tokens, 'agent_name', r.agent_name,
                      'model_call_id', r.model_call_id) as data
              from memory_retrievals r
              where r.owner = :owner and r.deployment_id = t.deployment_id and r.symbol = t.symbol
                and r.at >= s.since and r.at <= w.until
              order by r.at desc, r.n desc
              limit 1000)
             union all
             (select 'retrieval', r.at, r.n, r.id, r.query ->> 'text', null, null,
                  json_build_object('symbol', r.symbol, 'selected', cardinality(r.selection),
                      'found_thesis', true, 'tokens', r.tokens, 'agent_name', r.agent_name,
                      'model_call_id', r.model_call_id)
              from ((select * from memory_retrievals r
                     where r.owner = :owner and r.deployment_id = t.deployment_id
                       and r.at >= s.since and r.at <= w.until
                     order by r.at desc, r.id desc
                     limit 1000)
                    union all
                    (select * from memory_retrievals r
                     where r.owner = :owner and r.deployment_id is null
                       and r.at >= s.since and r.at <= w.until
                     order by r.at desc, r.n desc
                     limit 1000)) r
              where (r.deployment_id is null or r.symbol is distinct from t.symbol) and r.selection && theses.ids)
             order by at desc, n desc) r) x)

-- "return 0.133 against 0"
-- part: outcome
nullif(concat_ws(' ', m.outcome ->> 'metric', m.outcome ->> 'value', 'against ' || (m.outcome ->> 'baseline')), '')

-- The openings and changes of the theses until the window ends, and their closes.
-- part: thesis_changes
(select {bounded}
 from (select case when m.version = 1 then 'thesis.opened' when m.status = 'closed' then 'thesis.closed'
                  else 'thesis.changed' end as kind,
           m.known_from as at, m.n, m.id,
           case when m.status = 'open' then m.text
               else coalesce(nullif(concat_ws(': ', m.status_reason, {outcome}), ''), m.text) end as text,
           null::uuid as ref, m.evidence,
           json_build_object('version', m.version, 'side', m.side, 'thesis', left(m.text, 4000),
               'invalidation', m.invalidation, 'target', m.target, 'horizon', m.horizon, 'outcome', m.outcome,
               'validates', m.validates, 'agent_name', m.agent_name, 'model_call_id', m.model_call_id) as data,
           row_number() over () as place
       from (select m.* from unnest(theses.ids) f (id)
             cross join lateral (
                 select m.* from memories m
                 where m.owner = :owner and m.id = f.id and m.known_from <= :as_of::timestamptz
                   and (m.known_from <= w.until or m.status = 'closed')
                 order by m.version desc
                 limit 1000) m
             order by m.known_from desc, m.n desc
             limit 1000) m) x)

-- Decisions, proposals and risk notes on the symbol, and what refers to the theses, also later. What closes or
-- reduces at the instant in which the window begins is about the trade before. The first
-- version has the text; a retracted one stays part of the story.
-- part: memories
(select {bounded}
 from (select m.kind, m.at, m.n, m.id, m.text, m.thesis_id as ref, m.evidence,
           json_build_object('symbol', m.symbol, 'action', m.action, 'retracted',
               m.known_until <= :as_of::timestamptz, 'agent_name', m.agent_name, 'model_call_id', m.model_call_id)
               as data,
           row_number() over () as place
       from ((select m.* from (values ('decision'), ('proposal'), ('risk_note')) k (kind)
              cross join lateral (
                  select m.* from memories m
                  where m.owner = :owner and m.deployment_id = t.deployment_id and m.symbol = t.symbol
                    and m.kind = k.kind and m.status = 'active' and m.at >= s.since and m.at <= w.until
                    and not (m.at = s.since and coalesce(m.action, '') in ('close', 'reduce'))
                  order by m.at desc, m.n desc
                  limit 1000) m)
             union all
             (select m.* from unnest(theses.ids) f (id)
              cross join lateral (
                  select m.* from memories m
                  where m.owner = :owner and m.thesis_id = f.id and m.at >= s.since
                    and m.at <= :as_of::timestamptz and m.status = 'active'
                    and not (m.deployment_id is not distinct from t.deployment_id
                             and m.symbol is not distinct from t.symbol and m.kind <> 'note' and m.at <= w.until)
                  order by m.at desc, m.id desc
                  limit 1000) m)
             order by at desc, n desc
             limit 1000) m) x)

-- Orders with their outcomes, and what ticks executed without an order.
-- part: orders
(select {bounded}
 from (select x.*, row_number() over (order by x.at desc, x.n desc) as place
       from ((select e.kind, e.at, o.n, o.id, e.text, o.thesis_id as ref, null::text[] as evidence, e.data
       from (select * from orders o
             where o.owner = :owner and o.deployment_id = t.deployment_id and o.symbol = t.symbol
               and o.at >= s.since and o.at <= w.until
               and not (o.at = s.since and o.action in ('close', 'reduce'))
             order by o.at desc, o.n desc
             limit 500) o
       cross join lateral (
           select 'order' as kind, o.at, o.reason as text,
               json_build_object('action', o.action, 'side', o.side, 'size', o.size, 'client_order_id',
                   o.client_order_id, 'decision_id', o.decision_id, 'warnings', o.warnings, 'agent_name',
                   o.agent_name, 'model_call_id', o.model_call_id) as data
           union all
           select 'order.outcome', o.outcome_at, o.outcome,
               json_build_object('outcome', o.outcome, 'details', o.outcome_data)
           where o.outcome_at <= :as_of::timestamptz
           union all
           select 'order.outcome', o.unknown_at, 'unknown',
               json_build_object('outcome', 'unknown', 'details', o.unknown_data)
           where o.unknown_at <= :as_of::timestamptz
       ) e)
       union all
       (select 'action', e.at, e.n, e.subject_id, e.data ->> 'reason', null, null, e.data::json
        from (select * from memory_events e
              where e.owner = :owner and e.journal_id = t.deployment_id and e.symbol = t.symbol
                and e.kind in ('order.submitted', 'action.executed') and e.at >= s.since and e.at <= w.until
              order by e.at desc, e.n desc
              limit 1000) e
        where e.kind = 'action.executed' and e.data ->> 'trade_id' = t.id::text)) x) x)

-- What ticks and orders observed about the theses.
-- part: observations
(select {bounded}
 from (select case e.kind when 'thesis.not_retrieved' then 'warning' else 'observation' end as kind, e.at, e.n, e.id,
           null::text as text, e.subject_id as ref, null::text[] as evidence, e.data, row_number() over () as place
       from (select e.* from unnest(theses.ids) f (id)
             cross join lateral (
                 select e.* from memory_events e
                 where e.owner = :owner and e.subject_id = f.id and e.at >= s.since and e.at <= w.until
                   and e.kind in ('thesis.outcome_observed', 'thesis.not_retrieved')
                   and coalesce(e.data ->> 'trade_id', t.id::text) = t.id::text
                 order by e.at desc, e.n desc
                 limit 1000) e
             order by e.at desc, e.n desc
             limit 1000) e) x)

-- Lessons whose evidence names the trade or one of its theses, or that the close of a thesis validated.
-- part: learned
(select {bounded}
 from (select 'lesson' as kind, coalesce(f.close, l.at) as at, 0 as n, l.id,
           l.takeaway as text, f.thesis as ref, l.evidence,
           json_build_object('status', l.status, 'validation', l.validation, 'validated_by_close',
               f.close is not null) as data,
           row_number() over (order by coalesce(f.close, l.at) desc, l.id desc) as place
       from (select distinct on (f.id) f.* from (
                 select l.id, null::uuid as thesis, null::timestamptz as close, 1 as rank
                 from (select l.id from lessons l
                       where l.version = 1 and named_ids(l.evidence) && (theses.ids || t.id) and l.owner = :owner
                       limit 1000) l
                 union all
                 select v.id, m.id, m.known_from, 2
                 from unnest(theses.ids) f (id)
                 cross join lateral (
                     select m.* from memories m
                     where m.owner = :owner and m.id = f.id and m.status = 'closed'
                       and m.known_from <= :as_of::timestamptz
                     order by m.version desc
                     limit 1) m
                 cross join unnest(m.validates) v (id)
             ) f order by f.id, f.rank desc) f
       cross join lateral (
           select l.* from lessons l
           where l.owner = :owner and l.id = f.id and l.known_from <= :as_of::timestamptz
             and l.known_until > :as_of::timestamptz
           order by l.version desc
           limit 1) l
       where l.at <= :as_of::timestamptz) x)

-- The first note after the exit that considers the trade.
-- part: note_after
(select {bounded}
 from (select 'reflection_note' as kind, r.generated_at as at, 0 as n, r.id, r.lessons_text as text,
           null::uuid as ref, null::text[] as evidence,
           json_build_object('lessons_hash', r.content_hash, 'trades_considered', r.trades_considered) as data,
           1 as place
       from (select * from reflection_notes r
             where w.exited and r.owner = :owner and r.deployment_id = t.deployment_id
               and r.generated_at >= t.exit_tick_at and r.generated_at <= :as_of::timestamptz
             order by r.generated_at, r.id
             limit 50) r
       where r.window_start <= t.exit_tick_at and r.window_end >= t.exit_tick_at
       order by r.generated_at, r.id
       limit 1) x)

-- name: trade_story :read :one
select t.id, t.deployment_id, t.skill_id, t.version, t.symbol, t.side,
    case when w.exited then 'closed' else 'open' end as status,
    t.entry_tick_at, t.entry_price, t.entry_size_usd, t.entry_reason, t.entry_snapshot_id, t.entry_lessons_hash,
    t.entry_regime_tag,
    case when w.exited then t.exit_tick_at end as exit_tick_at,
    case when w.exited then t.exit_price end as exit_price,
    case when w.exited then t.exit_reason end as exit_reason,
    case when w.exited then t.exit_snapshot_id end as exit_snapshot_id,
    case when w.exited then t.holding_minutes end as holding_minutes,
    case when w.exited then t.realized_pnl_usd end as realized_pnl_usd,
    case when w.exited then t.fees_usd end as fees_usd,
    case when w.exited then t.realized_pnl_usd - t.fees_usd end as net_pnl_usd,
    before.since as _since,
    entry.input -> 'proposed_action' as _entry_action, entry.input -> 'engine' as _entry_engine,
    exit.input -> 'proposed_action' as _exit_action, exit.input -> 'engine' as _exit_engine,
    note.id as _note_id, note.scope as _note_scope, note.lessons_text as _note_text,
    {retrievals} as _retrievals,
    {thesis_changes} as _theses,
    {memories} as _memories,
    {orders} as _orders,
    {observations} as _observations,
    {learned} as _lessons,
    {note_after} as _notes
from {trade}
{theses}
left join lateral (
    select x.input, x.created_at from decision_snapshots x where x.owner = :owner and x.id = t.entry_snapshot_id
    limit 1
) entry on true
left join lateral (
    select x.input from decision_snapshots x where w.exited and x.owner = :owner and x.id = t.exit_snapshot_id
    limit 1
) exit on true
left join lateral (
    select f.id, f.scope, f.lessons_text
    from note_in_force(:owner, t.deployment_id, t.skill_id, t.version, t.entry_tick_at,
        coalesce(entry.created_at, 'infinity'), '-infinity') f
    where f.content_hash = t.entry_lessons_hash
) note on true
where t.owner = :owner and t.id = :id::uuid and t.entry_tick_at <= :as_of::timestamptz
