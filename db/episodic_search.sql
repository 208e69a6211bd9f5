-- Search in the episodic memory. Vectors have length 1, so that the inner product is the cosine; `<#>` is its negative. A search compares its
-- vector, :query_vector, only with vectors of its model, :query_model, and its dimension.

-- What a search may find. A search for entries like :id does not find that entry.
-- part: filter
m.owner = :owner and episode_is_usable(m.created_at, m.away, m.expires_at, :as_of::timestamptz)
and (:ticker::text is null or m.ticker = :ticker::text)
and (:task_type::text is null or m.task_type = :task_type::text)
and (:source::text is null or m.source = :source::text)
and (:min_confidence::numeric is null or m.confidence >= :min_confidence::numeric)
and (:since::timestamptz is null or m.created_at >= :since::timestamptz)
and (:until::timestamptz is null or m.created_at < :until::timestamptz)
and (:regime_only::boolean is not true or m.regime_tag @> :regime::jsonb)
and (:id::uuid is null or m.id <> :id::uuid)

-- The query's vector in the width of its column. Each row has a vector in one column: the operator is strict, so it skips the others. For
-- `v.model || ''` see embeddings_store.
-- part: query
padded_vector(:query_vector::real[], :width::int)
-- part: cosine
select -coalesce(v.v384 <#> {query}, v.v768 <#> {query}, v.v1024 <#> {query}, v.v1536 <#> {query}, v.v3072 <#> {query}, v.v4000 <#> {query})
    as cosine
from episodic_vectors v
where v.owner = :owner and v.episode_id = m.id and v.model || '' = :query_model and v.dim = :query_dim::int
  and :query_vector::real[] is not null
offset 0

-- The keys that both regimes have, and those whose values differ. Numbers are compared by value: 1 equals 1.0.
-- part: compare_regimes
select count(*) as shared, count(*) filter (where theirs.value <> ours.value) as differing,
    coalesce(json_agg(key order by key collate "C") filter (where theirs.value <> ours.value), '[]') as mismatch
from jsonb_each(:regime::jsonb) ours join jsonb_each(m.regime_tag) theirs using (key)

-- The best by words among the newest entries that contain one of the query's rarer words; their number is limited to what can be ranked
-- in a few milliseconds.
-- part: by_words
select m.id
from (select m.id, m.words
      from episodic_memory m
      where {filter} and m.words @@ :word_query::tsquery
      order by m.created_at desc, m.id desc
      limit :max_word_matches::int) m
cross join lateral word_score(m.words, :lexemes::tsquery[], :idfs::double precision[]) h
order by h.weight * h.coverage desc, m.id
limit :max_candidates::int

-- The candidates with the components of their scores.
-- part: scored
select m.id, (extract(epoch from m.created_at) * 1000000)::bigint as created_us, c.cosine, h.weight, h.coverage, r.shared, r.differing,
    r.mismatch
from (select id from near union select id from by_word) found
join episodic_memory m on m.owner = :owner and m.id = found.id
left join lateral ({cosine}) c on true
cross join lateral word_score(m.words, :lexemes::tsquery[], :idfs::double precision[]) h
cross join lateral ({compare_regimes}) r

-- How many of the owner's newest entries contain each word of a text. Each entry is unpacked once and tested for all words. Testing word by
-- word would read all entries again for each, and long entries exceed work_mem.
-- part: newest
from episodic_memory m
where m.owner = :owner and episode_is_usable(m.created_at, m.away, m.expires_at, :as_of::timestamptz)
order by m.created_at desc, m.id desc
limit :max_sampled::int

-- name: episodic_lexemes :slow :list
with lexemes as materialized (
    select l.lexeme, l.query, l.query::tsquery as asked from query_lexemes(to_tsvector('english', :query_text::text)) l
), counts as materialized (
    select h.lexeme, count(*) as frequency
    from (select m.words || '' as words {newest}) s
    cross join lateral (select l.lexeme from lexemes l where s.words @@ l.asked offset 0) h
    group by h.lexeme
)
select l.lexeme, l.query, (select count(*) from (select {newest}) s) as sampled, coalesce(h.frequency, 0) as frequency
from lexemes l
left join counts h on h.lexeme = l.lexeme

-- The vector and the question of the entry that others are compared with.
-- name: episodic_similar_to :slow :list
select m.question, v.model, v.dim,
    (coalesce(v.v384::real[], v.v768::real[], v.v1024::real[], v.v1536::real[], v.v3072::real[], v.v4000::real[]))[1 : v.dim]::text as vector
from episodic_memory m
left join episodic_vectors v on v.owner = :owner and v.episode_id = m.id and v.model = m.embedding_model
where m.owner = :owner and m.id = :id::uuid and m.created_at <= :as_of::timestamptz

-- How many vectors a search without filters would compare, up to one more than :max_compared.
-- name: episodic_vector_count :read :list
select count(*) as n
from (select from episodic_vectors v where v.owner = :owner and v.model = :query_model and v.dim = :query_dim::int
      limit :max_compared::int + 1) v

-- The entries that pass the filter and have no vector yet, up to :max_pending.
-- part: pending
(select count(*) from (select from episodic_memory m where {filter} and m.embedding_status = 'pending' limit :max_pending::int) p) as pending

-- Compares the vectors of all entries that pass the filter, and ranks them by cosine and regime. If more than :max_compared pass, the one
-- row has nothing but `matching`, their number.
-- name: episodic_exact :slow :list
with matching as materialized (
    select m.id, m.regime_tag
    from episodic_memory m
    where :query_vector::real[] is not null and {filter}
      and (select true from episodic_vectors v where v.owner = :owner and v.episode_id = m.id and v.model || '' = :query_model)
    limit :max_compared::int + 1
), counted as materialized (
    select count(*) as n from matching
), near as materialized (
    select m.id
    from matching m
    cross join lateral ({cosine}) c
    left join lateral ({compare_regimes}) r on :regime::jsonb is not null and :regime_only::boolean is not true
    where (select n from counted) <= :max_compared::int
    order by c.cosine - coalesce(:regime_penalty::double precision * r.differing / nullif(r.shared, 0), 0) desc, m.id
    limit :max_candidates::int
), by_word as materialized (
    select w.id from ({by_words}) w where (select n from counted) <= :max_compared::int
)
select counted.n as matching, {pending}, scored.*
from counted left join ({scored}) scored on true

-- The nearest vectors by the index that pass the filter, up to :max_candidates. The index has the vectors of all owners, so up to :max_visited
-- of any owner are visited. `matching` is how many passed.
-- part: search_nearest
select v.episode_id as id
from nearest v
cross join lateral (select from episodic_memory m where m.id = v.episode_id and {filter} offset 0) m
where v.owner = :owner and v.model = :query_model and v.dim = :query_dim::int
order by v.distance
limit :max_candidates::int
-- part: nearest_result
near as materialized (
    {search_nearest}
), by_word as materialized (
    {by_words}
)
select counted.n as matching, {pending}, scored.*
from (select count(*) as n from near) counted left join ({scored}) scored on true

-- name: episodic_nearest_384 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v384 <#> padded_vector(:query_vector::real[], 384)::halfvec(384) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: episodic_nearest_768 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v768 <#> padded_vector(:query_vector::real[], 768)::halfvec(768) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: episodic_nearest_1024 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v1024 <#> padded_vector(:query_vector::real[], 1024)::halfvec(1024) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: episodic_nearest_1536 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v1536 <#> padded_vector(:query_vector::real[], 1536)::halfvec(1536) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: episodic_nearest_3072 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v3072 <#> padded_vector(:query_vector::real[], 3072)::halfvec(3072) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: episodic_nearest_4000 :slow :list
with nearest as (
    select owner, episode_id, model, dim, v4000 <#> padded_vector(:query_vector::real[], 4000)::halfvec(4000) as distance
    from episodic_vectors
    order by distance
    limit :max_visited::int
), {nearest_result}

-- Another dimension that the owner's vectors of the model have, if none has the given one.
-- part: known_vectors
from episodic_vectors v
join episodic_memory m on m.owner = :owner and m.id = v.episode_id and m.created_at <= :as_of::timestamptz
where v.owner = :owner and v.model = :query_model

-- name: episodic_other_dim :slow :list
select v.dim
{known_vectors} and v.dim <> :query_dim::int and not exists (select {known_vectors} and v.dim = :query_dim::int)
order by v.dim
limit 1

-- name: retrieval_record :write :one
insert into memory_retrievals (owner, id, kind, at, query, filters, candidates, selection)
values (:owner, :new_id::uuid, 'episodic', :as_of::timestamptz, :query::jsonb, :filters::jsonb, :candidates::jsonb, :ids::uuid[])
returning id
