-- Search over memories, theses and lessons, and the record of each search. It works as the search of db/episodic_search.sql does: vectors
-- have length 1, `<#>` is the negative cosine, and only vectors of :query_model and :query_dim are compared.

-- The instant of a search that names a deployment, and the open theses of its symbol, which are always among the hits.
-- name: memory_search_instant :read :one
select i.as_of, nullif(array_to_string(array(
    select m.id from memories m
    where m.owner = :owner and m.deployment_id = d.id and m.symbol = :symbol::text and m.kind = 'thesis' and m.status = 'open'
      and m.known_from <= i.as_of and m.known_until > i.as_of
    order by m.parallel, m.known_from desc, m.n desc
    limit :k::int), E'\x1f'), '') as pinned
from deployments d
join agent_state a on a.owner = :owner and a.deployment_id = d.id
cross join lateral (
    select journal_now(:as_of::timestamptz, d.mode, d.created_at, a.last_tick_at, :now::timestamptz) as as_of) i
where d.owner = :owner and d.id = :deployment_id::uuid

-- One version of each memory: the one that was current at the instant.
-- part: current
m.owner = :owner and m.known_from <= :as_of::timestamptz and m.known_until > :as_of::timestamptz

-- What a search may find. A deployment finds its own memories and those of none.
-- part: filter
{current} and m.status <> 'retracted' and not is_expired(m.expires_at, :as_of::timestamptz)
and case when :status::text[] is null then m.status not in ('retired', 'superseded') else m.status = any (:status::text[]) end
and (:kind::text[] is null or m.kind = any (:kind::text[]))
and (:symbol::text is null or m.symbol = :symbol::text)
and (:tags::text[] is null or m.tags && :tags::text[])
and (:deployment_id::uuid is null or m.deployment_id = :deployment_id::uuid or m.deployment_id is null)
and (:since::timestamptz is null or m.at >= :since::timestamptz)
and (:until::timestamptz is null or m.at < :until::timestamptz)

-- For `v.model || ''` see embeddings_store.
-- part: query
padded_vector(:query_vector::real[], :width::int)
-- part: cosine
select -coalesce(v.v384 <#> {query}, v.v768 <#> {query}, v.v1024 <#> {query}, v.v1536 <#> {query}, v.v3072 <#> {query}, v.v4000 <#> {query})
    as cosine
from memory_vectors v
where v.owner = :owner and v.text_id = m.text_id and v.model || '' = :query_model and v.dim = :query_dim::int
  and :query_vector::real[] is not null
offset 0
-- part: score_words
word_score(m.words, :lexemes::tsquery[], :idfs::double precision[])

-- part: by_words
select m.id
from (select m.id, m.words
      from memory_items m
      where {filter} and m.words @@ :word_query::tsquery
      order by m.at desc, m.id desc
      limit :max_word_matches::int) m
cross join lateral {score_words} h
order by h.weight * h.coverage desc, m.id
limit :max_candidates::int

-- Those that have no vector yet, and would have one of this model. :max_pending is 0 for other models. They are candidates too, so that a
-- memory that was just written is not missed; without a word of the query they rank behind what resembles it.
-- part: waiting
select m.id, m.at
from memory_texts t
cross join lateral (select m.id, m.at from memory_items m where m.id = t.memory_id and m.text_id = t.text_id and {filter} offset 0) m
where t.owner = :owner and t.embedding_status = 'pending' and :query_vector::real[] is not null
limit :max_pending::int
-- part: found
select id from near union select id from by_word
union (select id from waiting order by at desc, id desc limit :max_candidates::int)
union (select m.id from memories m where m.id = any (:pinned::uuid[]) and {filter})

-- The candidates are read by their keys: as a join, the planner would read all memories.
-- part: regimes
0 as shared, 0 as differing, null::json as mismatch
-- part: scored
select m.id, (extract(epoch from m.at) * 1000000)::bigint as created_us, c.cosine, h.weight, h.coverage, {regimes}
from ({found}) found
cross join lateral (select m.id, m.at, m.text_id, m.words from memory_items m where m.id = found.id and {current} offset 0) m
left join lateral ({cosine}) c on true
cross join lateral {score_words} h

-- Each table has an index in this order; their union has none.
-- part: newest
from (
    (select m.at, m.id, m.words from memories m where {current} order by m.at desc, m.id desc limit :max_sampled::int)
    union all
    (select m.at, m.id, m.words from lessons m where {current} order by m.at desc, m.id desc limit :max_sampled::int)
) m
order by m.at desc, m.id desc
limit :max_sampled::int

-- name: memory_lexemes :slow :list
with lexemes as materialized (
    select l.lexeme, l.query, l.query::tsquery as asked from query_lexemes(journal_words(:query_text::text)) l
), counts as materialized (
    select h.lexeme, count(*) as frequency
    from (select m.words || '' as words {newest}) s
    cross join lateral (select l.lexeme from lexemes l where s.words @@ l.asked offset 0) h
    group by h.lexeme
)
select l.lexeme, l.query, (select count(*) from (select {newest}) s) as sampled, coalesce(h.frequency, 0) as frequency
from lexemes l
left join counts h on h.lexeme = l.lexeme

-- name: memory_vector_count :read :list
select count(*) as n
from (select from memory_vectors v where v.owner = :owner and v.model = :query_model and v.dim = :query_dim::int
      limit :max_compared::int + 1) v

-- Without text and vector: the newest.
-- name: memory_newest :slow :list
select 0 as matching, 0 as pending, m.id, (extract(epoch from m.at) * 1000000)::bigint as created_us, null::double precision as cosine,
    null::double precision as weight, null::double precision as coverage, {regimes}
from (
    (select m.at, m.id from memories m where {filter} order by m.at desc, m.id desc limit :k::int)
    union
    (select m.at, m.id from lesson_items m where {filter} order by m.at desc, m.id desc limit :k::int)
    union
    (select m.at, m.id from memories m where m.id = any (:pinned::uuid[]) and {filter})
) m
order by m.at desc, m.id desc
limit 2 * :k::int

-- name: memory_exact :slow :list
with matching as materialized (
    select m.id, m.text_id
    from memory_items m
    where :query_vector::real[] is not null and {filter}
      and (select true from memory_vectors v where v.owner = :owner and v.text_id = m.text_id and v.model || '' = :query_model)
    limit :max_compared::int + 1
), counted as materialized (
    select count(*) as n from matching
), near as materialized (
    select m.id
    from matching m
    cross join lateral ({cosine}) c
    where (select n from counted) <= :max_compared::int
    order by c.cosine desc, m.id
    limit :max_candidates::int
), by_word as materialized (
    select w.id from ({by_words}) w where (select n from counted) <= :max_compared::int
), waiting as materialized (
    {waiting}
)
select counted.n as matching, (select count(*) from waiting) as pending, scored.*
from counted left join ({scored}) scored on true
order by scored.id

-- part: search_nearest
select v.memory_id as id
from nearest v
cross join lateral (select from memory_items m where m.id = v.memory_id and m.text_id = v.text_id and {filter} offset 0) m
where v.owner = :owner and v.model = :query_model and v.dim = :query_dim::int
order by v.distance
limit :max_candidates::int
-- part: nearest_result
near as materialized (
    {search_nearest}
), by_word as materialized (
    {by_words}
), waiting as materialized (
    {waiting}
)
select counted.n as matching, (select count(*) from waiting) as pending, scored.*
from (select count(*) as n from near) counted left join ({scored}) scored on true
order by scored.id

-- name: memory_nearest_384 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v384 <#> padded_vector(:query_vector::real[], 384)::halfvec(384) as distance
    from memory_vectors
    where v384 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: memory_nearest_768 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v768 <#> padded_vector(:query_vector::real[], 768)::halfvec(768) as distance
    from memory_vectors
    where v768 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: memory_nearest_1024 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v1024 <#> padded_vector(:query_vector::real[], 1024)::halfvec(1024) as distance
    from memory_vectors
    where v1024 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: memory_nearest_1536 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v1536 <#> padded_vector(:query_vector::real[], 1536)::halfvec(1536) as distance
    from memory_vectors
    where v1536 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: memory_nearest_3072 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v3072 <#> padded_vector(:query_vector::real[], 3072)::halfvec(3072) as distance
    from memory_vectors
    where v3072 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- name: memory_nearest_4000 :slow :list
with nearest as (
    select owner, memory_id, text_id, model, dim, v4000 <#> padded_vector(:query_vector::real[], 4000)::halfvec(4000) as distance
    from memory_vectors
    where v4000 is not null
    order by distance
    limit :max_visited::int
), {nearest_result}

-- part: known_vectors
from memory_vectors v
join memory_items m on m.id = v.memory_id and m.text_id = v.text_id and {current}
where v.owner = :owner and v.model = :query_model

-- name: memory_other_dim :slow :list
select v.dim
{known_vectors} and v.dim <> :query_dim::int and not exists (select {known_vectors} and v.dim = :query_dim::int)
order by v.dim
limit 1

-- A memory that was retracted in the meantime is left out.
-- name: memory_found :read :list
select m.id, m.version, m.kind, m.status, m.status_reason, m.at, m.text, m.symbol, m.action, m.side, m.invalidation, m.target, m.horizon,
    m.outcome::json as outcome, m.evidence, m.tags, m.deployment_id, m.thesis_id, m.agent_name, m.model_call_id, m.known_from
from memories m
where {current} and m.status <> 'retracted' and m.id = any (:ids::uuid[])
union all
select m.id, m.version, 'lesson', m.status, m.status_reason, m.at, m.takeaway, null, null, null, null, null, null, null, m.evidence, m.tags,
    null, null, null, null, m.known_from
from lessons m
where {current} and m.id = any (:ids::uuid[])

-- The record, and its event. Nothing is stored if the deployment was deleted in the meantime.
-- name: memory_retrieval_record :write :one
with deployment as materialized (
    select d.id from deployments d where d.owner = :owner and d.id = :deployment_id::uuid for key share
), stored as (
    insert into memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id, symbol, rendered, tokens,
        agent_name, model_call_id)
    select :owner, :new_id::uuid, 'memories', :as_of::timestamptz, :query::jsonb, :filters::jsonb, :candidates::jsonb, :ids::uuid[],
        :deployment_id::uuid, :symbol, :rendered, :tokens::int, :agent_name, :model_call_id
    where :deployment_id::uuid is null or exists (select from deployment)
    returning *
), event as (
    insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, agent_name, model_call_id, data)
    select owner, coalesce(deployment_id, no_uuid()), 'memory.searched', at, symbol, id, agent_name, model_call_id,
        jsonb_build_object('query', query, 'filters', filters, 'selection', to_jsonb(selection),
            'rendered_sha256', encode(sha256(convert_to(rendered, 'UTF8')), 'hex'), 'tokens', tokens)
    from stored
)
select id from stored

-- part: summary
r.id, r.kind, r.at, r.deployment_id, r.symbol, r.agent_name, r.model_call_id, r.query::json as query, r.filters::json as filters,
r.selection, r.tokens, r.created_at

-- name: memory_retrieval_list :slow :list
select {summary}, r.at as _cursor_1, r.id as _cursor_2
from memory_retrievals r
where r.owner = :owner and r.at <= :as_of::timestamptz
  and (r.at, r.id) < (coalesce(:cursor_1::timestamptz, 'infinity'), coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and (:deployment_id::uuid is null or r.deployment_id = :deployment_id::uuid)
  and (:kind::text is null or r.kind = :kind::text)
  and (:symbol::text is null or r.symbol = :symbol::text)
  and (:memory_id::uuid is null or r.selection @> array[:memory_id::uuid])
  and (:agent_name::text is null or r.agent_name = :agent_name::text)
  and (:model_call_id::text is null or r.model_call_id = :model_call_id::text)
  and (:since::timestamptz is null or r.at >= :since::timestamptz)
  and (:until::timestamptz is null or r.at < :until::timestamptz)
order by r.at desc, r.id desc
limit :limit::int + 1

-- name: memory_retrieval_get :read :one
select {summary}, r.candidates::json as candidates, r.rendered
from memory_retrievals r
where r.owner = :owner and r.id = :id::uuid and r.at <= :as_of::timestamptz
