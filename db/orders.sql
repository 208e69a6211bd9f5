-- Orders. An order is known from `at`, and its outcome from outcome_at. Only an unknown outcome can be
-- replaced; unknown_at keeps its time for reads of the past.

-- part: columns
id, deployment_id, client_order_id, at, symbol, action, side, size, reason, thesis_id, decision_id, warnings,
outcome, outcome_at, outcome_data, agent_name, model_call_id, created_at
-- part: known
(select id, deployment_id, client_order_id, at, symbol, action, side, size, reason, thesis_id, decision_id,
    warnings, agent_name, model_call_id, created_at,
    case when outcome_at <= :as_of::timestamptz then outcome
        when unknown_at <= :as_of::timestamptz then 'unknown' end as outcome,
    case when outcome_at <= :as_of::timestamptz then outcome_at
        when unknown_at <= :as_of::timestamptz then unknown_at end as outcome_at,
    case when outcome_at <= :as_of::timestamptz then outcome_data
        when unknown_at <= :as_of::timestamptz then unknown_data end as outcome_data
from orders
where owner = :owner and at <= :as_of::timestamptz)

-- Without a fault the order is stored with its events, the warnings after the order. No row is stored if the
-- deployment has an order with that client_order_id. The thesis and the decision must be known by the time of
-- the order.
-- name: order_create :write :one
with deployment as (
    select d.id, journal_now(:at::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as at
    from deployments d
    join agent_state a on a.owner = :owner and a.deployment_id = d.id
    where d.owner = :owner and d.id = :deployment_id::uuid
), thesis as (
    select symbol, deployment_id, known_from from memories
    where owner = :owner and id = :thesis_id::uuid and version = 1 and kind = 'thesis'
), decision as (
    select symbol, deployment_id, known_from from memories
    where owner = :owner and id = :decision_id::uuid and version = 1 and kind = 'decision'
), entry as (
    select d.id as deployment_id, d.at, d.id is not null as _deployment_known,
        :thesis_id::uuid is null or coalesce(t.known_from <= d.at, false) as _thesis_known,
        case when t.symbol <> :symbol::text then t.symbol end as _thesis_symbol,
        case when t.deployment_id <> d.id then t.deployment_id end as _thesis_deployment,
        :decision_id::uuid is null or coalesce(x.known_from <= d.at, false) as _decision_known,
        case when x.symbol <> :symbol::text then x.symbol end as _decision_symbol,
        case when x.deployment_id <> d.id then x.deployment_id end as _decision_deployment
    from (select) always
    left join deployment d on true
    left join thesis t on true
    left join decision x on true
), valid as (
    select deployment_id, at from entry
    where _deployment_known and _thesis_known and _decision_known
      and num_nonnulls(_thesis_symbol, _thesis_deployment, _decision_symbol, _decision_deployment) = 0
), unread as (
    select u.thesis_id
    from valid v
    cross join lateral theses_not_retrieved(:owner, v.deployment_id, :symbol::text, v.at) u
    where :action::text not in ('buy', 'sell')
       or not entry_reported(:owner, v.deployment_id, :symbol::text, v.at)
), created as (
    insert into orders (owner, id, deployment_id, client_order_id, at, symbol, action, side, size, reason,
        thesis_id, decision_id, warnings, agent_name, model_call_id)
    select :owner, :new_id::uuid, deployment_id, :client_order_id, at, :symbol, :action, :side, :size::numeric,
        :reason, :thesis_id::uuid, :decision_id::uuid,
        coalesce((select jsonb_agg(thesis_warning(u.thesis_id, :symbol::text)) from unread u), '[]'),
        :agent_name, :model_call_id
    from valid
    on conflict (owner, deployment_id, client_order_id) where client_order_id is not null do nothing
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select o.owner, o.deployment_id, e.kind, o.at, o.symbol, e.subject_id, o.agent_name, o.model_call_id, e.data
    from created o
    cross join lateral (
        select 1 as place, 'order.submitted' as kind, o.id as subject_id,
            jsonb_build_object('client_order_id', o.client_order_id, 'action', o.action, 'side', o.side, 'size',
                o.size, 'reason', o.reason, 'thesis_id', o.thesis_id, 'decision_id', o.decision_id) as data
        union all
        select 2, 'thesis.not_retrieved', u.thesis_id,
            jsonb_build_object('order_id', o.id, 'action', o.action)
        from unread u
    ) e
    order by e.place
)
select c.*, _deployment_known, _thesis_known, _thesis_symbol, _thesis_deployment, _decision_known,
    _decision_symbol, _decision_deployment
from entry
left join (select {columns} from created) c on true

-- _same: the order has the content of the request.
-- name: order_repeat :write :one
select {columns},
    (symbol, action, side, size, reason, thesis_id, decision_id) is not distinct from
        (:symbol::text, :action::text, :side::text, :size::numeric, :reason::text, :thesis_id::uuid,
         :decision_id::uuid)
    and (:at::timestamptz is null or at = :at::timestamptz) as _same
from orders
where owner = :owner and deployment_id = :deployment_id::uuid and client_order_id = :client_order_id

-- name: order_get :read :one
select {columns}
from {known} o
where id = :id::uuid

-- part: listed
select {columns}, at as _cursor_1, id as _cursor_2
from {known} o
where (at, id) < (
      coalesce(:cursor_1::timestamptz, 'infinity'),
      coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and (:since::timestamptz is null or at >= :since::timestamptz)
  and (:until::timestamptz is null or at < :until::timestamptz)
  and (:deployment_id::uuid is null or deployment_id = :deployment_id::uuid)
  and (:symbol::text is null or symbol = :symbol::text)
  and (:action::text is null or action = :action::text)
  and (:client_order_id::text is null or client_order_id = :client_order_id::text)
  and (:outcome::text is null or coalesce(outcome, 'none') = :outcome::text)
order by at desc, id desc
limit :limit::int + 1

-- name: order_list :read :list
{listed}

-- name: order_export :slow :list
{listed}

-- same_details: no figure and no broker_order_id of the request differs from what was stored with the outcome.
-- name: order_lock :write :one
select o.outcome, c.at, c.at < greatest(o.at, o.outcome_at) as too_early,
    coalesce(:filled_size::numeric = (o.outcome_data ->> 'filled_size')::numeric, :filled_size::numeric is null)
    and coalesce(:average_price::numeric = (o.outcome_data ->> 'average_price')::numeric,
        :average_price::numeric is null)
    and coalesce(:fees_usd::numeric = (o.outcome_data ->> 'fees_usd')::numeric, :fees_usd::numeric is null)
    and coalesce(:broker_order_id::text = o.outcome_data ->> 'broker_order_id', :broker_order_id::text is null)
        as same_details
from orders o
join deployments d on d.owner = :owner and d.id = o.deployment_id
left join agent_state a on a.owner = :owner and a.deployment_id = o.deployment_id
cross join lateral (
    select coalesce(:at::timestamptz, greatest(o.at, o.outcome_at,
        journal_now(null, d.mode, d.created_at, a.last_tick_at, :now::timestamptz))) as at) c
where o.owner = :owner and o.id = :id::uuid
for update of o

-- name: order_current :write :one
select {columns} from orders where owner = :owner and id = :id::uuid

-- name: order_resolve :write :one
with resolved as (
    update orders
    set unknown_at = case when outcome = 'unknown' then outcome_at end,
        unknown_data = case when outcome = 'unknown' then outcome_data end,
        outcome = :outcome, outcome_at = :at::timestamptz,
        outcome_data = jsonb_build_object('filled_size', :filled_size::numeric, 'average_price',
            :average_price::numeric, 'fees_usd', :fees_usd::numeric, 'broker_order_id', :broker_order_id::text,
            'reason', :reason::text)
    where owner = :owner and id = :id::uuid
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, deployment_id, 'order.outcome', outcome_at, symbol, id, :agent_name, :model_call_id,
        jsonb_build_object('outcome', outcome, 'action', action) || outcome_data
    from resolved
)
select {columns} from resolved
