-- Episodic memory: what was researched, with its vectors, its reads and its evictions, and the searches that were recorded.
-- An entry never changes: what is evicted stays, as an archive, and `away` says when it was out of sight, so that a read at any instant is
-- one condition.

create table episodic_memory (
    owner            text          collate "C" not null,
    id               uuid          not null,
    ticker           text          collate "C" not null check (char_length(ticker) between 1 and 64),
    task_type        text          collate "C" not null check (char_length(task_type) between 1 and 64),
    created_at       timestamptz   not null,
    question         text          not null check (char_length(question) between 1 and 4000),
    answer           text          not null check (char_length(answer) between 1 and 50000),
    probability      numeric       check (probability between 0 and 1),
    confidence       numeric       not null check (confidence between 0 and 1),
    source           text          not null check (source in ('user_stated', 'tool_verified', 'agent_inferred', 'recalled', 'external')),
    source_citations text[]        not null default '{}',
    regime_tag       jsonb         not null default '{}' check (jsonb_typeof(regime_tag) = 'object'),
    ttl_seconds      bigint        check (ttl_seconds > 0),
    expires_at       timestamptz,
    read_count       integer       not null default 0 check (read_count >= 0),
    last_read_at     timestamptz,
    embedding_status text          not null check (embedding_status in ('pending', 'embedded', 'supplied')),
    embedding_model  text          collate "C",
    embedding_dim    integer,
    content_hash     text          collate "C" not null,
    evicted_at       timestamptz,
    eviction_id      uuid,
    away             tstzmultirange not null default '{}',
    -- The parser takes time in the square of what has no space in it.
    words            tsvector      not null generated always as
        (to_tsvector('english', regexp_replace(question || ' ' || answer, '([^[:space:]]{200})', chr(92) || '1 ', 'g'))) stored,
    primary key (owner, id),
    unique (owner, content_hash),
    check ((embedding_status = 'pending') = (embedding_model is null)),
    check ((embedding_model is null) = (embedding_dim is null)),
    check ((ttl_seconds is null) = (expires_at is null)),
    check ((evicted_at is null) = (eviction_id is null))
)
-- A reuse is counted in the row: where the page has room for its next version, no index has to be told.
with (fillfactor = 85);
create index episodic_memory_newest on episodic_memory (owner, created_at desc, id desc);
create index episodic_memory_ticker on episodic_memory (owner, ticker, created_at desc, id desc);
create index episodic_memory_task on episodic_memory (owner, task_type, created_at desc, id desc);
create index episodic_memory_pair on episodic_memory (owner, ticker, task_type, created_at desc, id desc);
create index episodic_memory_regime on episodic_memory using gin (regime_tag jsonb_path_ops);
create index episodic_memory_words on episodic_memory using gin (words);
create index episodic_memory_pending on episodic_memory (owner, created_at, id) where embedding_status = 'pending';
-- The archive at any instant is among those that were ever in it.
create index episodic_memory_archive on episodic_memory (owner, created_at desc, id desc) where away <> '{}';
create index episodic_memory_eviction on episodic_memory (owner, eviction_id) where eviction_id is not null;
-- A plan made while the table is empty must hold when it is full.
alter table episodic_memory alter column owner set (n_distinct = 100);
alter table episodic_memory alter column ticker set (n_distinct = 2000);
alter table episodic_memory alter column task_type set (n_distinct = 50);
comment on table episodic_memory is 'Past research: questions, answers and how sure they were';
comment on column episodic_memory.owner is 'Whose entry it is';
comment on column episodic_memory.id is 'UUIDv7';
comment on column episodic_memory.ticker is 'What was researched';
comment on column episodic_memory.task_type is 'The kind of research';
comment on column episodic_memory.created_at is 'Since when it is known, on the caller''s clock';
comment on column episodic_memory.question is 'What was asked';
comment on column episodic_memory.answer is 'What was found';
comment on column episodic_memory.probability is 'The probability that the answer states, if it does';
comment on column episodic_memory.confidence is 'How sure it is: the caller''s, or what follows from its source';
comment on column episodic_memory.source is 'Where it comes from';
comment on column episodic_memory.source_citations is 'Filings, pages and timestamps that it rests on';
comment on column episodic_memory.regime_tag is 'The market that it was found in, by names of the caller''s';
comment on column episodic_memory.ttl_seconds is 'How long it is good for';
comment on column episodic_memory.expires_at is 'From then on no search finds it';
comment on column episodic_memory.read_count is 'How often it was reused instead of asking again';
comment on column episodic_memory.last_read_at is 'When that was last';
comment on column episodic_memory.embedding_status is 'pending: it has no vector yet; embedded: the service made it; supplied: the caller did';
comment on column episodic_memory.embedding_model is 'Which model made its newest vector';
comment on column episodic_memory.embedding_dim is 'The dimension of that vector';
comment on column episodic_memory.content_hash is 'Of ticker, task, question, answer and time: the same twice is one entry';
comment on column episodic_memory.evicted_at is 'Since when it is in the archive; null: it is not';
comment on column episodic_memory.eviction_id is 'The run that evicted it';
comment on column episodic_memory.away is 'When it was in the archive, all spans, the last one without an end while it is';
comment on column episodic_memory.words is 'Its words, for full-text search';
select protect_owned('episodic_memory');

-- Vectors have length 1, so that the inner product is the cosine. An index has one dimension: a vector is in the narrowest column that
-- holds it, with zeros behind it, which change no inner product. Two models' vectors are never compared: every search names one.
create table episodic_vectors (
    owner      text    collate "C" not null,
    episode_id uuid    not null,
    model      text    collate "C" not null check (char_length(model) between 1 and 100),
    dim        integer not null check (dim between 1 and 4000),
    v384       halfvec(384),
    v768       halfvec(768),
    v1024      halfvec(1024),
    v1536      halfvec(1536),
    v3072      halfvec(3072),
    v4000      halfvec(4000),
    primary key (owner, episode_id, model),
    foreign key (owner, episode_id) references episodic_memory on delete cascade,
    check (num_nonnulls(v384, v768, v1024, v1536, v3072, v4000) = 1)
);
-- In the row where it fits a page: a scan that has to fetch each of them from elsewhere takes three times as long.
alter table episodic_vectors
    alter column v384 set storage plain, alter column v768 set storage plain, alter column v1024 set storage plain,
    alter column v1536 set storage plain, alter column v3072 set storage plain, alter column v4000 set storage external;
alter table episodic_vectors alter column owner set (n_distinct = 100);
alter table episodic_vectors alter column model set (n_distinct = 4);
create index episodic_vectors_space on episodic_vectors (owner, model, dim);
create index episodic_vectors_v384 on episodic_vectors using hnsw (v384 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index episodic_vectors_v768 on episodic_vectors using hnsw (v768 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index episodic_vectors_v1024 on episodic_vectors using hnsw (v1024 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index episodic_vectors_v1536 on episodic_vectors using hnsw (v1536 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index episodic_vectors_v3072 on episodic_vectors using hnsw (v3072 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index episodic_vectors_v4000 on episodic_vectors using hnsw (v4000 halfvec_ip_ops) with (m = 16, ef_construction = 128);
-- An owner that was small when it was last counted would have each entry's vector looked for among all of its vectors.
alter table episodic_vectors alter column owner set statistics 0;
comment on table episodic_vectors is 'Where entries of the episodic memory lie in the space of a model, for search by meaning';
comment on column episodic_vectors.owner is 'Whose entry it is';
comment on column episodic_vectors.episode_id is 'The entry';
comment on column episodic_vectors.model is 'The model that made it';
comment on column episodic_vectors.dim is 'Its dimension, without the zeros behind it';
comment on column episodic_vectors.v384 is 'The vector, up to 384 dimensions';
comment on column episodic_vectors.v768 is 'The vector, up to 768 dimensions';
comment on column episodic_vectors.v1024 is 'The vector, up to 1,024 dimensions';
comment on column episodic_vectors.v1536 is 'The vector, up to 1,536 dimensions';
comment on column episodic_vectors.v3072 is 'The vector, up to 3,072 dimensions';
comment on column episodic_vectors.v4000 is 'The vector, up to 4,000 dimensions';
select protect_owned('episodic_vectors');

-- Without a link to the entry: what a reuse saved stays saved when the entry is deleted.
create table episodic_reads (
    owner      text        collate "C" not null,
    id         uuid        not null,
    episode_id uuid        not null,
    task_type  text        collate "C" not null,
    read_at    timestamptz not null,
    cost_usd   numeric     check (cost_usd >= 0),
    primary key (owner, id)
);
create index episodic_reads_episode on episodic_reads (owner, episode_id, read_at);
create index episodic_reads_time on episodic_reads (owner, read_at);
comment on table episodic_reads is 'Each time an entry was reused instead of asking a model again';
comment on column episodic_reads.owner is 'Whose entry it is';
comment on column episodic_reads.id is 'UUIDv7';
comment on column episodic_reads.episode_id is 'The entry';
comment on column episodic_reads.task_type is 'Its kind of research';
comment on column episodic_reads.read_at is 'When, on the caller''s clock';
comment on column episodic_reads.cost_usd is 'What the call would have cost, if the caller said so';
select protect_owned('episodic_reads');

create table episodic_evictions (
    owner       text        collate "C" not null,
    id          uuid        not null,
    at          timestamptz not null,
    policies    text[]      not null,
    parameters  jsonb       not null,
    evicted     integer     not null check (evicted > 0),
    primary key (owner, id)
);
create index episodic_evictions_newest on episodic_evictions (owner, at desc, id desc);
comment on table episodic_evictions is 'Runs that moved entries to the archive';
comment on column episodic_evictions.owner is 'Whose entries they are';
comment on column episodic_evictions.id is 'UUIDv7';
comment on column episodic_evictions.at is 'When, on the caller''s clock';
comment on column episodic_evictions.policies is 'The policies that were applied';
comment on column episodic_evictions.parameters is 'What was asked for';
comment on column episodic_evictions.evicted is 'How many entries went';
select protect_owned('episodic_evictions');

create table memory_retrievals (
    owner      text        collate "C" not null,
    id         uuid        not null,
    kind       text        not null check (kind in ('episodic')),
    at         timestamptz not null,
    query      jsonb       not null,
    filters    jsonb       not null,
    candidates jsonb       not null,
    selection  uuid[]      not null,
    primary key (owner, id)
);
create index memory_retrievals_newest on memory_retrievals (owner, at desc, id desc);
comment on table memory_retrievals is 'Searches whose caller wanted them on record: what was asked, what was considered, what was given';
comment on column memory_retrievals.owner is 'Whose search it was';
comment on column memory_retrievals.id is 'UUIDv7';
comment on column memory_retrievals.kind is 'Which memory was searched';
comment on column memory_retrievals.at is 'The instant that it was for, on the caller''s clock';
comment on column memory_retrievals.query is 'What was asked';
comment on column memory_retrievals.filters is 'What it was limited to';
comment on column memory_retrievals.candidates is 'What was considered, with scores';
comment on column memory_retrievals.selection is 'What was given, best first';
select protect_owned('memory_retrievals');
