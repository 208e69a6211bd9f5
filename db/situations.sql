-- The situations that trades were opened in: their vectors, as far as they are missing, and the past ones that are like a given one.
-- `direction` is a vector of length 1 of the model `space` with `dim` numbers; `<#>` is the negative of the inner product, so of the cosine.

-- Whose situations: those of the deployment, or of all deployments of its version of the skill.
-- part: of_deployment
s.deployment_id = :id::uuid
-- part: of_skill
s.skill_id = :skill_id and s.version = :version

-- Trades that had ended by then, newest entry first: only of these it is known what came of them.
-- part: ended
from situations s
join trade_history t on t.owner = s.owner and t.id = s.trade_id
where s.owner = :owner and s.entry_tick_at <= :as_of::timestamptz and t.exit_tick_at <= :as_of::timestamptz
  and (:symbol::text is null or t.symbol = :symbol::text)
  and (:side::text is null or t.side = :side::text)
  and (:regime::text is null or t.entry_regime_tag = :regime::text)

-- What of the newest situations has no vector yet, or one of another model. In a row of their own, so that they are told when nothing is found.
-- part: newest
newest as materialized (
    select s.model, s.dim
    from situations s
    where s.owner = :owner and s.entry_tick_at <= :as_of::timestamptz and {of_{scope}}
    order by s.entry_tick_at desc, s.trade_id desc
    limit :most_compared::int
)
-- part: told
select (select count(*) from near) as compared, w.pending, w.outdated, best.*
from (select count(*) filter (where n.model is null) as pending,
          count(*) filter (where (n.model, n.dim) <> (:space, :dim::int)) as outdated
      from newest n) w
left join (
    select t.id as trade_id, near.similarity, t.symbol, t.side, t.entry_tick_at, t.exit_tick_at, s.summary, t.realized_pnl_usd, t.fees_usd,
        t.entry_size_usd, t.holding_minutes, t.exit_reason, t.entry_regime_tag as regime
    from (select * from near where similarity >= :min_similarity::numeric
          order by similarity desc, entry_tick_at desc, trade_id desc limit :k::int) near
    join situations s on s.owner = :owner and s.trade_id = near.trade_id
    join trade_history t on t.owner = :owner and t.id = near.trade_id
) best on true
order by best.similarity desc, best.entry_tick_at desc, best.trade_id desc

-- The version of the skill, and the instant that is asked about.
-- name: recall_deployment :read :one
select d.id as deployment_id, d.skill_id, d.version, w.now as as_of, v.memory_enabled
from {context.at_instant}
{context.version}
where d.owner = :owner and d.id = :id::uuid

-- for: scope in deployment skill
-- name: recall_near_{scope} :slow :list
with near as materialized (
    select c.trade_id, c.entry_tick_at, round(-(c.vector <#> :direction::real[]::halfvec)::numeric, 6) as similarity
    from (select s.trade_id, s.entry_tick_at, s.vector
          {ended} and {of_{scope}} and s.model = :space and s.dim = :dim::int
          order by s.entry_tick_at desc, s.trade_id desc
          limit :most_compared::int) c
), {newest}
{told}

-- Without an embedder: the share of the words of the query that a summary holds, in the place of the cosine.
-- for: scope in deployment skill
-- name: recall_worded_{scope} :slow :list
with asked as materialized (
    select lexeme from unnest(to_tsvector('english', :words))
), near as materialized (
    select c.trade_id, c.entry_tick_at, round(h.held::numeric / nullif((select count(*) from asked), 0), 6) as similarity
    from (select s.trade_id, s.entry_tick_at, s.summary
          {ended} and {of_{scope}}
          order by s.entry_tick_at desc, s.trade_id desc
          limit :most_worded::int) c
    cross join lateral (select count(*) as held from unnest(to_tsvector('english', c.summary)) w join asked using (lexeme)) h
    where h.held > 0
), {newest}
{told}

-- Those that wait for a vector, newest first. The version is named for the index, whose first columns it is in.
-- for: scope in deployment skill
-- name: situations_pending_{scope} :slow :list
select s.trade_id as id, s.summary
from situations s
where s.owner = :owner and s.vector is null and s.skill_id = :skill_id and s.version = :version and {of_{scope}}
  and s.entry_tick_at <= :as_of::timestamptz
order by s.entry_tick_at desc, s.trade_id desc
limit :limit::int

-- name: situations_missing_count :slow :one
select count(*) as missing from situations s where s.owner = :owner and (s.model, s.dim) is distinct from (:model, :dim::int)

-- In the order of the key, which every step goes on in: what fails is not tried again by the same request.
-- name: situations_missing :slow :list
select s.trade_id as id, s.summary, s.trade_id as _cursor_1, s.trade_id as _cursor_2
from situations s
where s.owner = :owner and (s.model, s.dim) is distinct from (:model, :dim::int)
  and s.trade_id < coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by s.trade_id desc
limit :limit::int

-- In the order of the ids, so that two of these cannot wait for each other. One that was given a vector of this model meanwhile keeps it. A
-- vector may come with zeros behind it, as columns of one width want them.
-- name: situations_store :write :list
with given as materialized (
    select * from json_to_recordset(:vectors::json) as g (id uuid, vector text)
), old as materialized (
    select s.trade_id
    from situations s
    where s.owner = :owner and s.trade_id in (select id from given) and (s.model, s.dim) is distinct from (:model, :dim::int)
    order by s.owner, s.trade_id
    for no key update
)
update situations s
set model = :model, dim = :dim::int, vector = subvector(g.vector::halfvec, 1, :dim::int)
from old join given g on g.id = old.trade_id
where s.owner = :owner and s.trade_id = old.trade_id
returning s.trade_id as id
