-- Episodic memory: what was researched. An entry is known from its created_at on; `away` says when it was in the archive, and what is in
-- episodic_reads when it was reused.

-- An entry as it was known at as_of. The count of its reads is the row's own, unless there are later ones.
-- part: columns
m.id, m.ticker, m.task_type, m.created_at, m.question, m.answer, m.probability, m.confidence, m.source, m.source_citations, m.regime_tag,
m.ttl_seconds, m.expires_at,
case when m.last_read_at > :as_of::timestamptz
    then (select count(*)::int from episodic_reads r where r.owner = :owner and r.episode_id = m.id and r.read_at <= :as_of::timestamptz)
    else m.read_count end as read_count,
case when m.last_read_at > :as_of::timestamptz
    then (select max(r.read_at) from episodic_reads r where r.owner = :owner and r.episode_id = m.id and r.read_at <= :as_of::timestamptz)
    else m.last_read_at end as last_read_at,
m.embedding_status, m.embedding_model, m.embedding_dim,
case when m.away @> :as_of::timestamptz
    then (select lower(span) from unnest(m.away) as span where span @> :as_of::timestamptz) end as evicted_at
-- In sight at as_of. What has expired is there to be read, but is not found by what looks for something to use.
-- part: visible
m.owner = :owner and m.created_at <= :as_of::timestamptz and not m.away @> :as_of::timestamptz
-- part: usable
m.owner = :owner and m.created_at <= :as_of::timestamptz and not m.away @> :as_of::timestamptz
and (m.expires_at is null or m.expires_at > :as_of::timestamptz)

-- part: given_vector
case g.width when 384 then g.vector end::halfvec(384), case g.width when 768 then g.vector end::halfvec(768),
case g.width when 1024 then g.vector end::halfvec(1024), case g.width when 1536 then g.vector end::halfvec(1536),
case g.width when 3072 then g.vector end::halfvec(3072), case g.width when 4000 then g.vector end::halfvec(4000)

-- The model of an entry's vector, not as a key: before the tables are counted for the first time, the vector would else be looked for among
-- all of its model's.
-- part: its_model
v.model || ''

-- The rows that are new; what is missing was there before. In one order, so that two requests with the same entries cannot wait for each
-- other.
-- name: episode_store :write :list
with given as materialized (
    select *
    from json_to_recordset(:entries::json) as g (id uuid, ticker text, task_type text, created_at timestamptz, question text, answer text,
        probability numeric, confidence numeric, source text, source_citations text[], regime_tag jsonb, ttl_seconds bigint,
        embedding_status text, embedding_model text, embedding_dim int, content_hash text, width int, vector text)
), m as (
    insert into episodic_memory (owner, id, ticker, task_type, created_at, question, answer, probability, confidence, source,
        source_citations, regime_tag, ttl_seconds, expires_at, embedding_status, embedding_model, embedding_dim, content_hash)
    select :owner, id, ticker, task_type, created_at, question, answer, probability, confidence, source, source_citations, regime_tag,
        ttl_seconds, case when ttl_seconds is not null then least(created_at + ttl_seconds * interval '1 second', '9999-12-31T23:59:59.999999Z') end,
        embedding_status, embedding_model, embedding_dim, content_hash
    from given order by content_hash
    on conflict (owner, content_hash) do nothing
    returning *
), vectors as (
    insert into episodic_vectors (owner, episode_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
    select :owner, m.id, m.embedding_model, m.embedding_dim, {given_vector}
    from m join given g on g.id = m.id
    where g.vector is not null
)
select {columns}, m.content_hash as _hash,
    exists (select from episodic_memory p where p.owner = :owner and p.embedding_status = 'pending') as _pending
from m

-- name: episode_known :read :list
select {columns}, m.content_hash as _hash, false as _pending
from episodic_memory m
where m.owner = :owner and m.content_hash = any (:hashes::text[])

-- name: episode_get :read :one
select {columns}
from episodic_memory m
where m.owner = :owner and m.id = :id::uuid and m.created_at <= :as_of::timestamptz

-- name: episode_delete :write :one
delete from episodic_memory where owner = :owner and id = :id::uuid
returning id

-- name: episode_pending :read :list
select id, question, answer
from episodic_memory
where owner = :owner and embedding_status = 'pending'
order by created_at, id
limit :limit::int

-- What the caller supplied stays. An entry that has this vector by now is left alone.
-- name: episode_fill :write :list
with given as materialized (
    select * from json_to_recordset(:vectors::json) as g (id uuid, width int, vector text)
), filled as (
    update episodic_memory m
    set embedding_status = 'embedded', embedding_model = :model, embedding_dim = :dim::int
    from given g
    where m.owner = :owner and m.id = g.id and m.embedding_status <> 'supplied'
      and (m.embedding_model, m.embedding_dim) is distinct from (:model, :dim::int)
    returning m.id
), vectors as (
    insert into episodic_vectors (owner, episode_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
    select :owner, g.id, :model, :dim::int, {given_vector}
    from filled f join given g on g.id = f.id
    on conflict (owner, episode_id, model) do update
    set dim = excluded.dim, v384 = excluded.v384, v768 = excluded.v768, v1024 = excluded.v1024, v1536 = excluded.v1536,
        v3072 = excluded.v3072, v4000 = excluded.v4000
)
select id from filled

-- The newest that can be used again, and how old it is; one row without values when there is none.
-- name: episode_prior :read :one
select prior.*
from (select 1) as always
left join lateral (
    select {columns}, round(extract(epoch from :as_of::timestamptz - m.created_at) / 86400, 6) as _age_days
    from episodic_memory m
    where {usable} and m.ticker = :ticker and m.task_type = :task_type
      and m.created_at >= :as_of::timestamptz - make_interval(days => :days_threshold::int)
    order by m.created_at desc, m.id desc
    limit 1) as prior on true

-- name: episode_reuse :write :none
with reused as (
    update episodic_memory
    set read_count = read_count + 1, last_read_at = greatest(last_read_at, :as_of::timestamptz)
    where owner = :owner and id = :prior_id::uuid
    returning id, task_type
)
insert into episodic_reads (owner, id, episode_id, task_type, read_at, cost_usd)
select :owner, :new_id::uuid, id, task_type, :as_of::timestamptz, :cost_usd::numeric
from reused

-- Lists are of the slow lane: what is out of sight has to be passed, and the filters are the caller's.
-- part: filter
and (m.created_at, m.id) < (
    coalesce(:cursor_1::timestamptz, least(:until::timestamptz, :as_of::timestamptz + interval '1 microsecond')),
    coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
and m.created_at >= coalesce(:since::timestamptz, '-infinity')
and (:ticker::text is null or m.ticker = :ticker::text)
and (:task_type::text is null or m.task_type = :task_type::text)
and (:source::text is null or m.source = :source::text)
and (:embedding_status::text is null or m.embedding_status = :embedding_status::text)
and (:min_confidence::numeric is null or m.confidence >= :min_confidence::numeric)
order by m.created_at desc, m.id desc
limit :limit::int + 1
-- name: episode_list :slow :list
select {columns}, m.created_at as _cursor_1, m.id as _cursor_2
from episodic_memory m
where {visible} {filter}

-- name: episode_list_archived :slow :list
select {columns}, m.created_at as _cursor_1, m.id as _cursor_2
from episodic_memory m
where m.owner = :owner and m.away <> '{}' and m.away @> :as_of::timestamptz {filter}

-- What each policy finds among the entries that are in sight at that instant, oldest first; then, unless it is a trial, the first of them
-- go. An entry that is known to have gone or come back later on keeps that: it is away until then.
-- part: next_away
(select min(lower(span)) from unnest(m.away) as span where lower(span) > :at::timestamptz)
-- name: episode_evict :slow :list
with considered as (
    select m.id, m.ticker, m.task_type, m.created_at,
        'time' = any (:policies::text[]) and m.created_at < :at::timestamptz - make_interval(days => :max_age_days::int) as by_time,
        'size' = any (:policies::text[])
            and row_number() over (partition by m.ticker, m.task_type order by m.created_at desc, m.id desc) > :keep_per_pair::int as by_size,
        'relevance' = any (:policies::text[]) and m.created_at < :at::timestamptz - make_interval(days => :unread_days::int)
            and case when m.last_read_at > :at::timestamptz
                then not exists (select from episodic_reads r
                                 where r.owner = :owner and r.episode_id = m.id and r.read_at <= :at::timestamptz)
                else m.read_count = 0 end as by_relevance
    from episodic_memory m
    where m.owner = :owner and m.created_at <= :at::timestamptz and not m.away @> :at::timestamptz
      and (:ticker::text is null or m.ticker = :ticker::text) and (:task_type::text is null or m.task_type = :task_type::text)
), matched as materialized (
    select * from considered where by_time or by_size or by_relevance
), chosen as materialized (
    select * from matched order by created_at, id limit :limit::int
), gone as (
    update episodic_memory m
    set away = m.away + tstzmultirange(tstzrange(:at::timestamptz, {next_away})),
        evicted_at = case when {next_away} is not distinct from m.evicted_at then :at::timestamptz else m.evicted_at end,
        eviction_id = case when {next_away} is not distinct from m.evicted_at then :new_id::uuid else m.eviction_id end
    from chosen c
    where not :dry_run::boolean and m.owner = :owner and m.id = c.id and not m.away @> :at::timestamptz
    returning m.id
), run as (
    insert into episodic_evictions (owner, id, at, policies, parameters, evicted)
    select :owner, :new_id::uuid, :at::timestamptz, :policies::text[],
        jsonb_build_object('max_age_days', :max_age_days::int, 'keep_per_pair', :keep_per_pair::int, 'unread_days', :unread_days::int,
            'ticker', :ticker::text, 'task_type', :task_type::text, 'limit', :limit::int), count
    from (select count(*)::int as count from gone) as g
    where count > 0
    returning id
)
select s.id, s.ticker, s.task_type, s.created_at,
    array_remove(array[case when by_time then 'time' end, case when by_size then 'size' end, case when by_relevance then 'relevance' end],
        null) as policies,
    t.*, :at::timestamptz as _at, (select count(*) from gone) as _evicted, (select id from run) as _eviction_id
from (select count(*) as _matched, count(*) filter (where by_time) as _time, count(*) filter (where by_size) as _size,
          count(*) filter (where by_relevance) as _relevance
      from matched) as t
left join (select * from chosen order by created_at, id limit :samples::int) as s on true
order by s.created_at, s.id

-- What is in the archive at that instant comes back. `asked` is null when there was no such run.
-- name: episode_restore :slow :one
with found as materialized (
    select id from episodic_memory
    where owner = :owner and (id = any (:ids::uuid[]) or eviction_id = :eviction_id::uuid) and evicted_at <= :at::timestamptz
), back as (
    update episodic_memory m
    set away = m.away - tstzmultirange(tstzrange(:at::timestamptz, null)), evicted_at = null, eviction_id = null
    from (select id from found order by id limit :limit::int) as f
    where m.owner = :owner and m.id = f.id and m.evicted_at <= :at::timestamptz
    returning m.id
)
select (select count(*) from found) as found, (select count(*) from back) as restored,
    coalesce(cardinality(:ids::uuid[]), (select evicted from episodic_evictions where owner = :owner and id = :eviction_id::uuid)) as asked
