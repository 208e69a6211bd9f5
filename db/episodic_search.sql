-- Search in the episodic memory. Vectors have length 1, so that the inner product is the cosine; `<#>` is its negative. A search names the
-- model (`space`) and the dimension that its vector (`direction`) is of: no others are compared with it.

-- What may be found. An entry is never found by itself.
-- part: filter
{episodic.usable}
and (:ticker::text is null or m.ticker = :ticker::text)
and (:task_type::text is null or m.task_type = :task_type::text)
and (:source::text is null or m.source = :source::text)
and (:min_confidence::numeric is null or m.confidence >= :min_confidence::numeric)
and (:since::timestamptz is null or m.created_at >= :since::timestamptz)
and (:until::timestamptz is null or m.created_at < :until::timestamptz)
and (:regime_only::boolean is not true or m.regime_tag @> :regime::jsonb)
and (:id::uuid is null or m.id <> :id::uuid)

-- The vector of the query, in the width of its column. Every row has one vector: for the other columns the operator meets null, and is not
-- run.
-- part: query
(case when :direction::real[] is not null then (:direction::real[] || array_fill(0::real, array[:width::int - :dim::int]))::halfvec end)
-- part: cosine
select -coalesce(v.v384 <#> {query}, v.v768 <#> {query}, v.v1024 <#> {query}, v.v1536 <#> {query}, v.v3072 <#> {query}, v.v4000 <#> {query})
    as cosine
from episodic_vectors v
where v.owner = :owner and v.episode_id = m.id and {episodic.its_model} = :space and v.dim = :dim::int and :direction::real[] is not null
offset 0

-- What both regimes name, and what of it differs. Numbers are equal by value: 1 is 1.0.
-- part: regimes
select count(*) as shared, count(*) filter (where theirs.value <> ours.value) as differing,
    coalesce(json_agg(key order by key collate "C") filter (where theirs.value <> ours.value), '[]') as mismatch
from jsonb_each(:regime::jsonb) ours join jsonb_each(m.regime_tag) theirs using (key)

-- What an entry holds of the words of the query. They are unpacked once, not for each lexeme.
-- part: held
select sum(l.idf * l.rank) as weight, sum(l.idf) filter (where l.rank > 0) / sum(l.idf) as covered
from (select q.idf, ts_rank(u.words, q.lexeme, 1) as rank
      from (select m.words || '' as words offset 0) u
      cross join unnest(:lexemes::tsquery[], :idfs::double precision[]) as q (lexeme, idf) offset 0) l

-- Of the newest that hold any of these words, as many as can be weighed in a few milliseconds, those that hold the most.
-- part: worded
select m.id
from (select m.id, m.words
      from episodic_memory m
      where {filter} and m.words @@ :opening::tsquery
      order by m.created_at desc, m.id desc
      limit :most_worded::int) m
cross join lateral ({held}) h
order by h.weight * h.covered desc, m.id
limit :most_near::int

-- The candidates with what their scores are made of.
-- part: weighed
select m.id, (extract(epoch from m.created_at) * 1000000)::bigint as created_us, c.cosine, h.weight, h.covered, r.shared, r.differing,
    r.mismatch
from (select id from near union select id from worded) found
join episodic_memory m on m.owner = :owner and m.id = found.id
left join lateral ({cosine}) c on true
cross join lateral ({held}) h
cross join lateral ({regimes}) r

-- How rare each word of a text is, by the newest entries of the owner. Each of them is unpacked once and asked for all words: for each word
-- all of them would be read again, which of long entries are more than the memory of a statement.
-- part: newest
from episodic_memory m
where {episodic.usable}
order by m.created_at desc, m.id desc
limit :most_sampled::int
-- name: episodic_lexemes :slow :list
with lexemes as materialized (
    select lexeme, query, query::tsquery as asked
    from (select lexeme, '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''' as query
          from unnest(to_tsvector('english', :words))) l
), held as materialized (
    select h.lexeme, count(*) as holding
    from (select m.words || '' as words {newest}) s
    cross join lateral (select l.lexeme from lexemes l where s.words @@ l.asked offset 0) h
    group by h.lexeme
)
select l.lexeme, l.query, (select count(*) from (select {newest}) s) as sampled, coalesce(h.holding, 0) as holding
from lexemes l
left join held h on h.lexeme = l.lexeme

-- Where an entry lies that others are to be like, and its words.
-- name: episodic_like :slow :list
select m.question, v.model, v.dim,
    (coalesce(v.v384::real[], v.v768::real[], v.v1024::real[], v.v1536::real[], v.v3072::real[], v.v4000::real[]))[1 : v.dim]::text as direction
from episodic_memory m
left join episodic_vectors v on v.owner = m.owner and v.episode_id = m.id and v.model = m.embedding_model
where m.owner = :owner and m.id = :id::uuid and m.created_at <= :as_of::timestamptz

-- How many vectors there are to compare where nothing else limits them, up to one more than are compared one by one.
-- name: episodic_many :read :list
select count(*) as n
from (select from episodic_vectors v where v.owner = :owner and v.model = :space and v.dim = :dim::int limit :most_compared::int + 1) v

-- All vectors that fit are compared, unless more than `most_compared` entries do: then `matching` says so, in a row that is nothing else.
-- The nearest are those after the regime has been taken into account.
-- name: episodic_exact :slow :list
with matching as materialized (
    select m.id, m.regime_tag
    from episodic_memory m
    where :direction::real[] is not null and {filter}
      and (select true from episodic_vectors v where v.owner = :owner and v.episode_id = m.id and {episodic.its_model} = :space)
    limit :most_compared::int + 1
), counted as materialized (
    select count(*) as n from matching
), near as materialized (
    select m.id
    from matching m
    cross join lateral ({cosine}) c
    left join lateral ({regimes}) r on :regime::jsonb is not null and :regime_only::boolean is not true
    where (select n from counted) <= :most_compared::int
    order by c.cosine - coalesce(:regime_penalty::double precision * r.differing / nullif(r.shared, 0), 0) desc, m.id
    limit :most_near::int
), worded as materialized (
    select w.id from ({worded}) w where (select n from counted) <= :most_compared::int
)
select counted.n as matching, weighed.*
from counted left join ({weighed}) weighed on true

-- The nearest by the index, those of them that pass the filter, up to `most_near`: all that the index gives up to `most_followed` are looked
-- at, whoever's they are. `matching` says how many passed.
-- for: width in 384 768 1024 1536 3072 4000
-- name: episodic_nearest_{width} :slow :list
with near as materialized (
    select v.episode_id as id
    from (select owner, episode_id, model, dim,
              v{width} <#> (:direction::real[] || array_fill(0::real, array[{width} - :dim::int]))::halfvec({width}) as distance
          from episodic_vectors
          order by v{width} <#> (:direction::real[] || array_fill(0::real, array[{width} - :dim::int]))::halfvec({width})
          limit :most_followed::int) v
    cross join lateral (select from episodic_memory m where m.id = v.episode_id and {filter} offset 0) m
    where v.owner = :owner and v.model = :space and v.dim = :dim::int
    order by v.distance
    limit :most_near::int
), worded as materialized (
    {worded}
)
select counted.n as matching, weighed.*
from (select count(*) as n from near) counted left join ({weighed}) weighed on true

-- A dimension of the owner's vectors of that model, where none of them has the given one.
-- part: known_vectors
from episodic_vectors v
join episodic_memory m on m.owner = v.owner and m.id = v.episode_id and m.created_at <= :as_of::timestamptz
where v.owner = :owner and v.model = :space
-- name: episodic_other_dim :slow :list
select v.dim
{known_vectors} and v.dim <> :dim::int and not exists (select {known_vectors} and v.dim = :dim::int)
order by v.dim
limit 1

-- name: episodic_found :read :list
select {episodic.columns}
from episodic_memory m
where m.owner = :owner and m.id = any (:ids::uuid[])

-- name: retrieval_record :write :one
insert into memory_retrievals (owner, id, kind, at, query, filters, candidates, selection)
values (:owner, :new_id::uuid, 'episodic', :as_of::timestamptz, :query::jsonb, :filters::jsonb, :candidates::jsonb, :ids::uuid[])
returning id
