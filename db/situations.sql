-- The situations that trades were opened in: search for past ones like a given one, and the vectors that are still missing.
-- :query_vector is a vector of length 1 of the model :query_model with :query_dim numbers. `<#>` is the negative inner product, so the
-- negative cosine.

-- The deployment's skill version, and the instant that the recall is for.
-- name: recall_deployment :read :one
select d.id as deployment_id, d.skill_id, d.version, w.now as as_of, v.memory_enabled
from deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select deployment_now(:as_of::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as now offset 0
) w
cross join lateral (
    select x.memory_enabled from skill_versions x
    where x.owner = :owner and x.skill_id = d.skill_id and x.version = d.version
    limit 1
) v
where d.owner = :owner and d.id = :id::uuid

-- `s`: the situations to look at, of one deployment or of all deployments of its skill version. Each has an index in that order.
-- part: of_deployment
with s as not materialized (
    select * from situations
    where owner = :owner and deployment_id = :id::uuid and entry_tick_at <= :as_of::timestamptz
)
-- part: of_skill
with s as not materialized (
    select * from situations
    where owner = :owner and skill_id = :skill_id and version = :version and entry_tick_at <= :as_of::timestamptz
)

-- Only trades closed by as_of: of these the outcome is known.
-- part: closed
from s
join trade_history t on t.owner = :owner and t.id = s.trade_id
where t.exit_tick_at <= :as_of::timestamptz
  and (:symbol::text is null or t.symbol = :symbol::text)
  and (:side::text is null or t.side = :side::text)
  and (:regime::text is null or t.entry_regime_tag = :regime::text)

-- The best of `near`. The counts of situations that have no vector or one of another model are in every row; without a match there is one
-- row with the counts alone.
-- part: result
newest as materialized (
    select s.model, s.dim
    from s
    order by s.entry_tick_at desc, s.trade_id desc
    limit :max_compared::int
)
select (select count(*) from near) as compared, w.pending, w.outdated, best.*
from (select count(*) filter (where n.model is null) as pending,
          count(*) filter (where (n.model, n.dim) <> (:query_model, :query_dim::int)) as outdated
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

-- part: by_vector
near as materialized (
    select c.trade_id, c.entry_tick_at, round(-(c.vector <#> :query_vector::real[]::halfvec)::numeric, 6) as similarity
    from (select s.trade_id, s.entry_tick_at, s.vector
          {closed} and s.model = :query_model and s.dim = :query_dim::int
          order by s.entry_tick_at desc, s.trade_id desc
          limit :max_compared::int) c
),
-- name: recall_by_vector_deployment :slow :list
{of_deployment}, {by_vector} {result}

-- name: recall_by_vector_skill :slow :list
{of_skill}, {by_vector} {result}

-- Without an embedder: similarity is the share of the query's words that a summary contains.
-- part: by_words
query as materialized (
    select lexeme from unnest(to_tsvector('english', :query_text))
), near as materialized (
    select c.trade_id, c.entry_tick_at, round(h.hits::numeric / nullif((select count(*) from query), 0), 6) as similarity
    from (select s.trade_id, s.entry_tick_at, s.summary
          {closed}
          order by s.entry_tick_at desc, s.trade_id desc
          limit :max_word_matches::int) c
    cross join lateral (select count(*) as hits from unnest(to_tsvector('english', c.summary)) w join query using (lexeme)) h
    where h.hits > 0
),
-- name: recall_by_words_deployment :slow :list
{of_deployment}, {by_words} {result}

-- name: recall_by_words_skill :slow :list
{of_skill}, {by_words} {result}

-- name: situations_missing_count :slow :one
select count(*) as missing from situations s where s.owner = :owner and (s.model, s.dim) is distinct from (:model, :dim::int)

-- Pages by primary key, so that a request does not retry a situation that failed.
-- name: situations_missing :slow :list
select s.trade_id as id, s.summary, s.trade_id as _cursor_1
from situations s
where s.owner = :owner and (s.model, s.dim) is distinct from (:model, :dim::int)
  and s.trade_id < coalesce(:cursor_1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by s.trade_id desc
limit :limit::int

-- Rows are locked in the order of their ids, so that two of these cannot deadlock. A situation that got a vector of this model in the
-- meantime keeps it. Vectors may come padded with zeros, which are cut off.
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
