-- Episodic memory: past research. An entry is known from created_at on. `away` has the times it was in the archive, episodic_reads the times
-- it was reused.

-- An entry as it was known at as_of. The row counts all reads; if there are reads after as_of, those before it are counted again.
-- part: columns
m.id, m.ticker, m.task_type, m.created_at, m.question, m.answer, m.probability, m.confidence, m.source, m.source_citations, m.regime_tag,
m.ttl_seconds, m.expires_at, m.observation_type,
case when m.last_read_at > :as_of::timestamptz
    then (select count(*)::int from episodic_reads r where r.owner = :owner and r.episode_id = m.id and r.read_at <= :as_of::timestamptz)
    else m.read_count end as read_count,
case when m.last_read_at > :as_of::timestamptz
    then (select max(r.read_at) from episodic_reads r where r.owner = :owner and r.episode_id = m.id and r.read_at <= :as_of::timestamptz)
    else m.last_read_at end as last_read_at,
m.embedding_status, m.embedding_model, m.embedding_dim,
case when m.away @> :as_of::timestamptz
    then (select lower(span) from unnest(m.away) as span where span @> :as_of::timestamptz) end as evicted_at

-- Returns the entries that are new; the others existed already. Inserted in the order of content_hash, so that two requests with the same
-- entries cannot deadlock.
-- name: episode_store :write :list
with given as materialized (
    select *
    from json_to_recordset(:entries::json) as g (id uuid, ticker text, task_type text, created_at timestamptz, question text, answer text,
        probability numeric, confidence numeric, source text, source_citations text[], regime_tag jsonb, ttl_seconds bigint,
        observation_type text, embedding_status text, embedding_model text, embedding_dim int, content_hash text, width int, vector text)
), m as (
    insert into episodic_memory (owner, id, ticker, task_type, created_at, question, answer, probability, confidence, source,
        source_citations, regime_tag, ttl_seconds, expires_at, observation_type, embedding_status, embedding_model, embedding_dim, content_hash)
    select :owner, id, ticker, task_type, created_at, question, answer, probability, confidence, source, source_citations, regime_tag,
        ttl_seconds, expiry_of(created_at, ttl_seconds), observation_type, embedding_status, embedding_model, embedding_dim, content_hash
    from given order by content_hash
    on conflict (owner, content_hash) do nothing
    returning *
), vectors as (
    insert into episodic_vectors (owner, episode_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
    select :owner, m.id, m.embedding_model, m.embedding_dim, c.*
    from m join given g on g.id = m.id cross join lateral vector_columns(g.width, g.vector) c
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

-- The entries that a search found.
-- name: episodic_found :read :list
select {columns}
from episodic_memory m
where m.owner = :owner and m.id = any (:ids::uuid[])

-- The entry that research compares its answer with, if it was usable at as_of.
-- name: research_prior :read :list
select {columns}, round(extract(epoch from :as_of::timestamptz - m.created_at) / 86400, 6) as _age_days
from episodic_memory m
where m.owner = :owner and m.id = :prior_id::uuid and m.ticker = :ticker and m.task_type = :task_type
  and episode_is_usable(m.created_at, m.away, m.expires_at, :as_of::timestamptz)

-- name: episode_delete :write :one
delete from episodic_memory where owner = :owner and id = :id::uuid
returning id

-- The newest usable entry, and its age in days. Without one, a row of nulls.
-- name: episode_prior :read :one
select prior.*
from (select 1) as always
left join lateral (
    select {columns}, round(extract(epoch from :as_of::timestamptz - m.created_at) / 86400, 6) as _age_days
    from episodic_memory m
    where m.owner = :owner and m.ticker = :ticker and m.task_type = :task_type
      and episode_is_usable(m.created_at, m.away, m.expires_at, :as_of::timestamptz)
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

-- Lists run in the slow lane: they may pass many archived entries, or entries that do not match the filters.
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
where m.owner = :owner and episode_is_visible(m.created_at, m.away, :as_of::timestamptz)
  and not is_expired(m.expires_at, read_instant(:as_of::timestamptz, :now::timestamptz))
  {filter}

-- name: episode_list_archived :slow :list
select {columns}, m.created_at as _cursor_1, m.id as _cursor_2
from episodic_memory m
where m.owner = :owner and m.away <> '{}' and m.away @> :as_of::timestamptz
  {filter}

-- Applies each policy to the entries visible at :at, then archives the oldest matches, unless it is a dry run. An entry that was archived
-- again at a later time already keeps that: the new span of `away` ends there.
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
    where m.owner = :owner and episode_is_visible(m.created_at, m.away, :at::timestamptz)
      and (:ticker::text is null or m.ticker = :ticker::text) and (:task_type::text is null or m.task_type = :task_type::text)
), matched as materialized (
    select * from considered where by_time or by_size or by_relevance
), chosen as materialized (
    select * from matched order by created_at, id limit :limit::int
), archived as (
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
    from (select count(*)::int as count from archived) as g
    where count > 0
    returning id
)
select s.id, s.ticker, s.task_type, s.created_at,
    array_remove(array[case when by_time then 'time' end, case when by_size then 'size' end, case when by_relevance then 'relevance' end],
        null) as policies,
    t.*, :at::timestamptz as _at, (select count(*) from archived) as _evicted, (select id from run) as _eviction_id
from (select count(*) as _matched, count(*) filter (where by_time) as _time, count(*) filter (where by_size) as _size,
          count(*) filter (where by_relevance) as _relevance
      from matched) as t
left join (select * from chosen order by created_at, id limit :samples::int) as s on true
order by s.created_at, s.id

-- Takes entries out of the archive as of :at. `asked` is null if there is no such eviction.
-- name: episode_restore :slow :one
with found as materialized (
    select id from episodic_memory
    where owner = :owner and (id = any (:ids::uuid[]) or eviction_id = :eviction_id::uuid) and evicted_at <= :at::timestamptz
), restored as (
    update episodic_memory m
    set away = m.away - tstzmultirange(tstzrange(:at::timestamptz, null)), evicted_at = null, eviction_id = null
    from (select id from found order by id limit :limit::int) as f
    where m.owner = :owner and m.id = f.id and m.evicted_at <= :at::timestamptz
    returning m.id
)
select (select count(*) from found) as found, (select count(*) from restored) as restored,
    coalesce(cardinality(:ids::uuid[]), (select evicted from episodic_evictions where owner = :owner and id = :eviction_id::uuid)) as asked
