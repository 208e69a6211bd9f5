-- compatible-from: 9
-- The journal: memories, theses, orders, what was retrieved, and one append-only sequence of events for all of it.
-- Older binaries can live beside it. What they change about lessons and notes leaves no event.

-- ---- shared ----

-- Orders what has the same time on the caller's clock, such as the calls of one tick of a backtest. Never shown:
-- its numbers count the writes of all owners.
create sequence memory_order;
comment on sequence memory_order is 'Order of writes to the journal';

create function uuid7() returns uuid
    language sql volatile
    return encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1),
        'hex')::uuid;
comment on function uuid7() is 'A new UUIDv7';

create function no_uuid() returns uuid language sql immutable return '00000000-0000-0000-0000-000000000000'::uuid;
comment on function no_uuid() is 'The journal of what belongs to no deployment';

create function journal_now(at timestamptz, mode text, created_at timestamptz, last_tick_at timestamptz, server_now timestamptz)
    returns timestamptz
    language sql immutable
    return coalesce(at, case mode when 'sim' then coalesce(last_tick_at, created_at) else greatest(server_now, last_tick_at) end);
comment on function journal_now(timestamptz, text, timestamptz, timestamptz, timestamptz) is
    'The time of a journal entry: the caller''s if given, else a simulation''s last tick, else the server''s clock. A null mode, for an entry
without deployment, means the server''s clock';

-- ---- memories ----

-- The parser takes time in the square of what has no space in it, and normalize() in the square of the marks that follow each other.
create function parted_text(said text) returns text
    language sql immutable
    return regexp_replace(said, '([^[:space:]]{200})', chr(92) || '1 ', 'g');
comment on function parted_text(text) is 'A text with a space after 200 characters without one';

-- Chinese, Japanese and Korean have no spaces that the parser could use, so each of their characters is a word. Accents and final sigma
-- are folded, which people leave out when they search.
create function folded_text(said text) returns text
    language sql immutable
    return case when octet_length(said) = char_length(said) then said
        else regexp_replace(
            normalize(regexp_replace(translate(normalize(parted_text(said), NFKD), 'ς', 'σ'), '[' || chr(768) || '-' || chr(879) || ']', '',
                'g'), NFKC),
            '([々-〇ぁ-ヿ㐀-鿿가-힣豈-龎𠀀-𳑿])', ' ' || chr(92) || '1 ', 'g')
        end;
comment on function folded_text(text) is 'A text as the search by words sees it: compatible forms and accents folded, characters of scripts
without spaces apart';

-- Folding makes a text longer, so it is parted again.
create function journal_words(said text) returns tsvector
    language sql immutable
    return to_tsvector('english', parted_text(folded_text(said)));
comment on function journal_words(text) is 'The words of a memory, a lesson or a search of them';

-- A row is one version. Theses are memories too, so that one search finds all of them.
create table memories (
    owner            text        collate "C" not null,
    id               uuid        not null,
    version          integer     not null,
    known_from       timestamptz not null,
    known_until      timestamptz not null default 'infinity',
    n                bigint      not null default nextval('memory_order'),
    kind             text        collate "C" not null check (kind in ('note', 'proposal', 'risk_note', 'decision', 'thesis')),
    status           text        collate "C" not null check (status in ('active', 'retracted', 'open', 'closed')),
    status_reason    text        check (char_length(status_reason) between 1 and 2000),
    at               timestamptz not null,
    text_id          uuid        not null,
    text             text        not null check (char_length(text) between 1 and 20000),
    symbol           text        collate "C" check (char_length(symbol) between 1 and 64),
    action           text        collate "C" check (action in ('buy', 'sell', 'add', 'reduce', 'close', 'hold', 'skip')),
    side             text        collate "C" check (side in ('long', 'short')),
    invalidation     text        check (char_length(invalidation) between 1 and 2000),
    target           text        check (char_length(target) between 1 and 2000),
    horizon          text        check (char_length(horizon) between 1 and 200),
    evidence         text[]      not null default '{}',
    tags             text[]      not null default '{}',
    deployment_id    uuid,
    thesis_id        uuid,
    parallel         boolean     not null default false,
    outcome          jsonb,
    validates        uuid[]      not null default '{}',
    agent_name       text        check (char_length(agent_name) between 1 and 200),
    model_call_id    text        check (char_length(model_call_id) between 1 and 200),
    embedding_status text        collate "C" not null default 'pending' check (embedding_status in ('pending', 'embedded', 'none')),
    created_at       timestamptz not null default now(),
    words            tsvector    not null generated always as (journal_words(
        text || ' ' || coalesce(invalidation, '') || ' ' || coalesce(target, '') || ' ' || coalesce(horizon, ''))) stored,
    primary key (owner, id, version),
    foreign key (owner, deployment_id) references deployments on delete cascade,
    check (known_from <= known_until),
    check ((kind = 'decision') = (action is not null)),
    check ((kind = 'thesis') = (status in ('open', 'closed'))),
    check (kind <> 'thesis' or (symbol is not null and thesis_id is null))
) with (fillfactor = 90);
create unique index memories_current on memories (owner, id) where known_until = 'infinity';
create unique index memories_one_thesis on memories (owner, coalesce(deployment_id, '00000000-0000-0000-0000-000000000000'), symbol)
    where kind = 'thesis' and status = 'open' and known_until = 'infinity' and not parallel;
create index memories_newest on memories (owner, at desc, id desc);
create index memories_deployment on memories (owner, deployment_id, at desc, id desc) where deployment_id is not null;
create index memories_symbol on memories (owner, symbol, at desc, id desc) where symbol is not null;
create index memories_thesis on memories (owner, thesis_id, at, id) where thesis_id is not null;
create index memories_words on memories using gin (words);
create index memories_pending on memories (owner, text_id) where embedding_status = 'pending';
alter table memories alter column owner set (n_distinct = 100);
alter table memories alter column deployment_id set (n_distinct = 1000);
alter table memories alter column symbol set (n_distinct = 2000);
comment on table memories is 'Versions of notes, proposals, risk notes, decisions and theses; the current one has known_until = infinity';
comment on column memories.owner is 'Owner of the memory';
comment on column memories.id is 'UUIDv7, the same in all versions';
comment on column memories.version is 'Number of the version; 1 is the memory as it was first written';
comment on column memories.known_from is 'Time from which this version is known, on the caller''s clock';
comment on column memories.known_until is 'Time at which a later version replaced it; infinity for the current one';
comment on column memories.n is 'Order of writes, for what has the same time';
comment on column memories.kind is 'note, proposal, risk_note, decision or thesis';
comment on column memories.status is 'active or retracted; of a thesis open or closed';
comment on column memories.status_reason is 'Reason of the retraction, or of the close of a thesis';
comment on column memories.at is 'Time of the memory, on the caller''s clock; the same in all versions';
comment on column memories.text_id is 'Identity of the text: a version that changes the words gets a new one. Key of memory_vectors';
comment on column memories.text is 'Text of the memory';
comment on column memories.symbol is 'Symbol that it is about';
comment on column memories.action is 'Action of a decision: buy, sell, add, reduce, close, hold or skip';
comment on column memories.side is 'Side of a thesis: long or short';
comment on column memories.invalidation is 'Condition under which a thesis no longer holds';
comment on column memories.target is 'Target of a thesis';
comment on column memories.horizon is 'Time that a thesis is for';
comment on column memories.evidence is 'Evidence: figures, ids of episodes, links';
comment on column memories.tags is 'Tags';
comment on column memories.deployment_id is 'Deployment that it belongs to; null: the owner as a whole';
comment on column memories.thesis_id is 'Thesis that a memory is about';
comment on column memories.parallel is 'Permission for a thesis to be open beside another one of its symbol';
comment on column memories.outcome is 'Outcome of a closed thesis';
comment on column memories.validates is 'Lessons that were validated when the thesis was closed';
comment on column memories.agent_name is 'Agent that wrote this version';
comment on column memories.model_call_id is 'Model call that wrote this version, for joining with traces';
comment on column memories.embedding_status is 'pending: no vector yet; embedded; none: an earlier version has the same words';
comment on column memories.created_at is 'Time of the row on the server''s clock';
comment on column memories.words is 'Full text of the memory';
select protect_owned('memories');

-- ---- vectors ----

create table memory_vectors (
    owner     text    collate "C" not null,
    text_id   uuid    not null,
    memory_id uuid    not null,
    model     text    collate "C" not null check (char_length(model) between 1 and 100),
    dim       integer not null check (dim between 1 and 4000),
    v384      halfvec(384),
    v768      halfvec(768),
    v1024     halfvec(1024),
    v1536     halfvec(1536),
    v3072     halfvec(3072),
    v4000     halfvec(4000),
    primary key (owner, text_id, model),
    check (num_nonnulls(v384, v768, v1024, v1536, v3072, v4000) = 1)
);
alter table memory_vectors
    alter column v384 set storage plain, alter column v768 set storage plain, alter column v1024 set storage plain,
    alter column v1536 set storage plain, alter column v3072 set storage plain, alter column v4000 set storage external;
alter table memory_vectors alter column owner set (n_distinct = 100);
alter table memory_vectors alter column model set (n_distinct = 4);
create index memory_vectors_space on memory_vectors (owner, model, dim);
create index memory_vectors_v384 on memory_vectors using hnsw (v384 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_vectors_v768 on memory_vectors using hnsw (v768 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_vectors_v1024 on memory_vectors using hnsw (v1024 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_vectors_v1536 on memory_vectors using hnsw (v1536 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_vectors_v3072 on memory_vectors using hnsw (v3072 halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_vectors_v4000 on memory_vectors using hnsw (v4000 halfvec_ip_ops) with (m = 16, ef_construction = 128);
alter table memory_vectors alter column owner set statistics 0;
comment on table memory_vectors is 'Vectors of memories and lessons, for search by meaning';
comment on column memory_vectors.owner is 'Owner of the memory';
comment on column memory_vectors.text_id is 'Text: memories.text_id, or lessons.id';
comment on column memory_vectors.memory_id is 'Memory or lesson that has the text';
comment on column memory_vectors.model is 'Model that made the vector';
comment on column memory_vectors.dim is 'Dimension, without the zeros behind it';
comment on column memory_vectors.v384 is 'Vector of up to 384 dimensions';
comment on column memory_vectors.v768 is 'Vector of up to 768 dimensions';
comment on column memory_vectors.v1024 is 'Vector of up to 1,024 dimensions';
comment on column memory_vectors.v1536 is 'Vector of up to 1,536 dimensions';
comment on column memory_vectors.v3072 is 'Vector of up to 3,072 dimensions';
comment on column memory_vectors.v4000 is 'Vector of up to 4,000 dimensions';
select protect_owned('memory_vectors');

-- The text of a lesson never changes, so its first version has the vector.
alter table lessons add column embedding_status text collate "C" not null default 'pending'
    check (embedding_status in ('pending', 'embedded'));
comment on column lessons.embedding_status is 'State of the vector, in the first version: pending or embedded';
create index lessons_pending on lessons (owner, id) where version = 1 and embedding_status = 'pending';
alter table lessons add column words tsvector not null
    generated always as (journal_words(takeaway || ' ' || context || ' ' || outcome)) stored;
comment on column lessons.words is 'Full text of the lesson, for POST /v1/memories/search';
create index lessons_words on lessons using gin (words);

create view lesson_items as
    select owner, id, version, known_from, known_until, id as text_id, 'lesson' collate "C" as kind, status collate "C" as status, at,
        takeaway as text, null::text collate "C" as symbol, null::text collate "C" as action, tags, evidence, null::uuid as deployment_id,
        words, case when version = 1 then embedding_status else 'none' end collate "C" as embedding_status
    from lessons;
comment on view lesson_items is 'Versions of lessons with the columns of memories, for POST /v1/memories/search';

create view memory_items as
    select owner, id, version, known_from, known_until, text_id, kind, status, at, text, symbol, action, tags, evidence, deployment_id,
        words, embedding_status
    from memories
    union all
    select * from lesson_items;
comment on view memory_items is 'Versions of memories, theses and lessons, for POST /v1/memories/search';

create view memory_texts as
    select owner, text_id, id as memory_id, embedding_status, concat_ws(E'\n', text, invalidation, target, horizon) as text
    from memories
    where embedding_status <> 'none'
    union all
    select owner, id, id, embedding_status, takeaway || E'\n' || context || E'\n' || outcome
    from lessons
    where version = 1;
comment on view memory_texts is 'Texts of memories, theses and lessons that have a vector or will get one, each once';

-- `|| ''` unpacks the words once, not for each lexeme.
create function word_score(words tsvector, lexemes tsquery[], idfs double precision[])
    returns table (weight double precision, coverage double precision)
    language sql immutable
begin atomic
    select sum(l.idf * l.rank), sum(l.idf) filter (where l.rank > 0) / sum(l.idf)
    from (select q.idf, ts_rank(u.unpacked, q.lexeme, 1) as rank
          from (select words || '' as unpacked offset 0) u
          cross join unnest(lexemes, idfs) as q (lexeme, idf) offset 0) l;
end;
comment on function word_score(tsvector, tsquery[], double precision[]) is
    'Score of a text by the words of a query: their weight in it, and the share of the query that it contains';

create function query_lexemes(asked tsvector) returns table (lexeme text, query text)
    language sql immutable
begin atomic
    select l.lexeme, '''' || replace(replace(l.lexeme, chr(92), repeat(chr(92), 2)), '''', '''''') || ''''
    from unnest(asked) l
    order by l.positions[1]
    limit 256;
end;
comment on function query_lexemes(tsvector) is 'The first 256 different words of a query, each also as a tsquery';

-- ---- orders ----

create table orders (
    owner           text        collate "C" not null,
    id              uuid        not null,
    n               bigint      not null default nextval('memory_order'),
    deployment_id   uuid        not null,
    client_order_id text        collate "C" check (char_length(client_order_id) between 1 and 200),
    at              timestamptz not null,
    symbol          text        collate "C" not null check (char_length(symbol) between 1 and 64),
    action          text        collate "C" not null check (action in ('buy', 'sell', 'add', 'reduce', 'close')),
    side            text        collate "C" not null check (side in ('long', 'short')),
    size            numeric     check (size > 0),
    reason          text        check (char_length(reason) between 1 and 2000),
    thesis_id       uuid,
    decision_id     uuid,
    warnings        jsonb       not null default '[]',
    outcome         text        collate "C" check (outcome in ('filled', 'rejected', 'cancelled', 'unknown')),
    outcome_at      timestamptz,
    outcome_data    jsonb,
    unknown_at      timestamptz,
    unknown_data    jsonb,
    agent_name      text        check (char_length(agent_name) between 1 and 200),
    model_call_id   text        check (char_length(model_call_id) between 1 and 200),
    created_at      timestamptz not null default now(),
    primary key (owner, id),
    foreign key (owner, deployment_id) references deployments on delete cascade,
    check ((outcome is null) = (outcome_at is null)),
    check (outcome_at >= at),
    check (outcome_at >= unknown_at)
) with (fillfactor = 85);
create unique index orders_client on orders (owner, deployment_id, client_order_id) where client_order_id is not null;
create index orders_deployment on orders (owner, deployment_id, at desc, id desc);
create index orders_symbol on orders (owner, deployment_id, symbol, at desc, n desc);
create index orders_newest on orders (owner, at desc, id desc);
alter table orders alter column deployment_id set (n_distinct = 1000);
comment on table orders is 'Orders: the intent before the broker was asked, and the outcome';
comment on column orders.owner is 'Owner of the deployment';
comment on column orders.id is 'UUIDv7';
comment on column orders.n is 'Order of writes, for what has the same time';
comment on column orders.deployment_id is 'Deployment that ordered';
comment on column orders.client_order_id is 'The client''s own id of the order, unique per deployment';
comment on column orders.at is 'Time of the intent, on the caller''s clock';
comment on column orders.symbol is 'Symbol';
comment on column orders.action is 'buy, sell, add, reduce or close';
comment on column orders.side is 'Side of the position: long or short';
comment on column orders.size is 'Size in units of the base; null: unknown, or all of it';
comment on column orders.reason is 'Reason as the agent gave it';
comment on column orders.thesis_id is 'Thesis that it follows';
comment on column orders.decision_id is 'Decision that it carries out';
comment on column orders.warnings is 'Warnings that were given with the answer';
comment on column orders.outcome is 'filled, rejected, cancelled or unknown; null: none reported yet';
comment on column orders.outcome_at is 'Time of the outcome, on the caller''s clock';
comment on column orders.outcome_data is 'Details of the outcome as they were sent';
comment on column orders.unknown_at is 'Time from which the outcome was unknown, if it was resolved later';
comment on column orders.unknown_data is 'Details of that unknown outcome';
comment on column orders.agent_name is 'Agent that ordered';
comment on column orders.model_call_id is 'Model call that ordered, for joining with traces';
comment on column orders.created_at is 'Time of the row on the server''s clock';
select protect_owned('orders');

-- ---- retrievals ----

alter table memory_retrievals drop constraint memory_retrievals_kind_check;
alter table memory_retrievals
    add constraint memory_retrievals_kind_check check (kind in ('episodic', 'memories')),
    add column n             bigint not null default nextval('memory_order'),
    add column deployment_id uuid,
    add column symbol        text   collate "C",
    add column rendered      text,
    add column tokens        integer,
    add column agent_name    text   check (char_length(agent_name) between 1 and 200),
    add column model_call_id text   check (char_length(model_call_id) between 1 and 200),
    add column created_at    timestamptz not null default now(),
    add foreign key (owner, deployment_id) references deployments on delete cascade;
create index memory_retrievals_deployment on memory_retrievals (owner, deployment_id, at desc, id desc) where deployment_id is not null;
create index memory_retrievals_selection on memory_retrievals using gin (selection);
comment on column memory_retrievals.n is 'Order of writes, for what has the same time';
comment on column memory_retrievals.deployment_id is 'Deployment that searched; null: none was named';
comment on column memory_retrievals.symbol is 'Symbol that the search was limited to';
comment on column memory_retrievals.rendered is 'Rendered text, byte for byte as it was given; null: none was rendered';
comment on column memory_retrievals.tokens is 'Estimated tokens of the rendered text';
comment on column memory_retrievals.agent_name is 'Agent that searched';
comment on column memory_retrievals.model_call_id is 'Model call that searched, for joining with traces';
comment on column memory_retrievals.created_at is 'Time of the row on the server''s clock';

-- ---- events ----

-- An event is inserted without seq and hash, so that writers never wait for each other. seal_journal numbers and chains what was committed,
-- in the order of n, one caller at a time per journal.
create table memory_events (
    owner         text        collate "C" not null,
    n             bigint      not null default nextval('memory_order'),
    id            uuid        not null default uuid7(),
    journal_id    uuid        not null default no_uuid(),
    seq           bigint      check (seq > 0),
    hash          text        collate "C" check (hash ~ '^[0-9a-f]{64}$'),
    kind          text        collate "C" not null check (char_length(kind) between 1 and 64),
    at            timestamptz not null,
    recorded_at   timestamptz not null default now(),
    symbol        text        collate "C",
    subject_id    uuid,
    agent_name    text,
    model_call_id text,
    data          jsonb       not null,
    primary key (owner, n),
    check ((seq is null) = (hash is null))
) with (fillfactor = 80);
create unique index memory_events_seq on memory_events (owner, journal_id, seq);
create index memory_events_unsealed on memory_events (owner, journal_id, n) where seq is null;
create index memory_events_subject on memory_events (owner, subject_id, at, n);
create index memory_events_actions on memory_events (owner, journal_id, symbol, at desc, n desc)
    where kind in ('order.submitted', 'action.executed');
alter table memory_events alter column owner set (n_distinct = 100);
alter table memory_events alter column journal_id set (n_distinct = 1000);
comment on table memory_events is 'Events of the journals: append-only, numbered without gaps and chained by hash per journal';
comment on column memory_events.owner is 'Owner of the journal';
comment on column memory_events.n is 'Order of writes';
comment on column memory_events.id is 'UUIDv7';
comment on column memory_events.journal_id is 'Journal: the id of its deployment, or zeros for what belongs to none';
comment on column memory_events.seq is 'Number in its journal, from 1; null until it is sealed, shortly after its commit';
comment on column memory_events.hash is 'SHA-256 of the hash before it and of memory_event_text, in hex';
comment on column memory_events.kind is 'Kind of the event, such as thesis.opened';
comment on column memory_events.at is 'Time of the event, on the caller''s clock';
comment on column memory_events.recorded_at is 'Time of the row on the server''s clock';
comment on column memory_events.symbol is 'Symbol that it is about';
comment on column memory_events.subject_id is 'Memory, thesis, order, lesson, note, retrieval or snapshot that it is about';
comment on column memory_events.agent_name is 'Agent that caused it';
comment on column memory_events.model_call_id is 'Model call that caused it';
comment on column memory_events.data is 'Content of the event';
select protect_owned('memory_events');

create table memory_journals (
    owner      text        collate "C" not null,
    journal_id uuid        not null,
    seq        bigint      not null default 0,
    hash       text        collate "C" not null default repeat('0', 64),
    primary key (owner, journal_id)
) with (fillfactor = 50);
comment on table memory_journals is 'End of the chain of each journal';
comment on column memory_journals.owner is 'Owner of the journal';
comment on column memory_journals.journal_id is 'Journal: the id of its deployment, or zeros for what belongs to none';
comment on column memory_journals.seq is 'Number of the last sealed event';
comment on column memory_journals.hash is 'Hash of the last sealed event; zeros if there is none';
select protect_owned('memory_journals');

create function memory_event_line(member text) returns text
    language sql immutable
    return case member when '' then chr(1) else coalesce(member, '') end;
comment on function memory_event_line(text) is 'A text in the hash of an event. Null is an empty line; the service writes no empty text';

-- What the hash covers, a line for each member. Only data can hold a line break, and JSON escapes it. It is never null, although to_char
-- makes null of an infinite time.
create function memory_event_text(journal_id uuid, seq bigint, id uuid, kind text, at timestamptz, recorded_at timestamptz, symbol text,
        subject_id uuid, agent_name text, model_call_id text, data jsonb)
    returns text
    language sql stable
    return case when journal_id = no_uuid() then '' else journal_id::text end || E'\n' || seq || E'\n' || id || E'\n' || kind || E'\n'
        || coalesce(to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), at::text) || E'\n'
        || coalesce(to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), recorded_at::text) || E'\n'
        || memory_event_line(symbol) || E'\n' || coalesce(subject_id::text, '') || E'\n' || memory_event_line(agent_name) || E'\n'
        || memory_event_line(model_call_id) || E'\n' || data;
comment on function memory_event_text(uuid, bigint, uuid, text, timestamptz, timestamptz, text, uuid, text, text, jsonb) is
    'The text of an event that its hash covers';

create function memory_event_hash(before text, event text) returns text
    language sql immutable
    return encode(sha256(convert_to(before || E'\n' || event, 'UTF8')), 'hex');
comment on function memory_event_hash(text, text) is 'The hash of an event: SHA-256 of the hash before it, a line break and its text';

-- The lock is taken in a statement of its own: the next one then sees all that the holder before it has sealed. All rows change in one
-- statement, by their key whatever the statistics say. A journal that someone has tampered with may have no room for the next number: it
-- then stays as it is, for GET /v1/memory_events/verify to name, and must not hold up others. A caller that seals several journals in one
-- statement does not wait: it holds the locks of the journals before this one, whose readers would wait with it. The lock of the deployment
-- keeps it from being deleted meanwhile: no foreign key leads to it from here.
create function seal_journal(for_owner text, for_journal uuid, most integer, waits boolean) returns integer
    language plpgsql volatile
    set enable_seqscan = off
    set enable_hashjoin = off
    set enable_mergejoin = off
as $$
declare
    last record;
    event record;
    ns bigint[] := '{}';
    hashes text[] := '{}';
    sealed integer := 0;
begin
    if not exists (select from memory_events e where e.owner = for_owner and e.journal_id = for_journal and e.seq is null) then
        return 0;
    end if;
    if waits then
        perform from deployments d where d.owner = for_owner and d.id = for_journal for key share;
    else
        perform from deployments d where d.owner = for_owner and d.id = for_journal for key share skip locked;
    end if;
    if not found and exists (select from deployments d where d.owner = for_owner and d.id = for_journal)
        or not exists (select from memory_events e where e.owner = for_owner and e.journal_id = for_journal and e.seq is null) then
        return 0;
    end if;
    insert into memory_journals (owner, journal_id) values (for_owner, for_journal) on conflict do nothing;
    if waits then
        select j.seq, j.hash into last from memory_journals j where j.owner = for_owner and j.journal_id = for_journal for update;
    else
        select j.seq, j.hash into last from memory_journals j where j.owner = for_owner and j.journal_id = for_journal for update skip locked;
    end if;
    if not found then
        return 0;
    end if;
    for event in
        select e.n, memory_event_text(e.journal_id, last.seq + row_number() over (order by e.n), e.id, e.kind, e.at, e.recorded_at, e.symbol,
            e.subject_id, e.agent_name, e.model_call_id, e.data) as text
        from (
            select * from memory_events u
            where u.owner = for_owner and u.journal_id = for_journal and u.seq is null
            order by u.owner, u.journal_id, u.n
            limit most
        ) e
        order by e.n
    loop
        sealed := sealed + 1;
        ns[sealed] := event.n;
        hashes[sealed] := memory_event_hash(case sealed when 1 then last.hash else hashes[sealed - 1] end, event.text);
    end loop;
    if sealed > 0 then
        update memory_events e set seq = last.seq + s.number, hash = s.hash
        from unnest(ns, hashes) with ordinality s (n, hash, number)
        where e.owner = for_owner and e.n = s.n;
        update memory_journals set seq = last.seq + sealed, hash = hashes[sealed] where owner = for_owner and journal_id = for_journal;
    elsif last.seq = 0 then -- its deployment was deleted in the meantime
        delete from memory_journals where owner = for_owner and journal_id = for_journal;
    end if;
    return sealed;
exception
    when unique_violation or check_violation or numeric_value_out_of_range then
        raise warning 'journal % is not what was sealed: it has no room after number %', for_journal, last.seq;
        return 0;
end
$$;
comment on function seal_journal(text, uuid, integer, boolean) is
    'Numbers and chains up to `most` events of a journal. Returns how many it sealed. Unless it waits, it leaves a journal that another
one seals';

-- Seals journals in one statement each for the locks, the events and the ends, because a call for each journal costs more than the few
-- events that it seals. It does not wait. If one of the journals was tampered with, each is sealed on its own.
create function seal_journals(for_owner text, for_journals uuid[], most integer) returns integer
    language plpgsql volatile
    set enable_seqscan = off
    set enable_hashjoin = off
    set enable_mergejoin = off
as $$
declare
    event record;
    locked uuid[];
    seqs bigint[];
    ends text[];
    place integer;
    ns bigint[] := '{}';
    numbers bigint[] := '{}';
    hashes text[] := '{}';
    sealed integer := 0;
begin
    insert into memory_journals (owner, journal_id)
    select for_owner, g.id from unnest(for_journals) g (id)
    where not exists (select from memory_journals j where j.owner = for_owner and j.journal_id = g.id)
    order by g.id
    on conflict do nothing;
    select array_agg(j.journal_id), array_agg(j.seq), array_agg(j.hash) into locked, seqs, ends
    from (select j.* from memory_journals j
          where j.owner = for_owner and j.journal_id = any (for_journals)
          order by j.journal_id
          for update skip locked) j;
    for event in
        select j.place, e.n, j.seq + row_number() over (partition by j.place order by e.n) as number,
            e.id, e.journal_id, e.kind, e.at, e.recorded_at, e.symbol,
            e.subject_id, e.agent_name, e.model_call_id, e.data
        from unnest(locked, seqs) with ordinality as j (id, seq, place)
        cross join lateral (
            select * from memory_events u
            where u.owner = for_owner and u.journal_id = j.id and u.seq is null
            order by u.owner, u.journal_id, u.n
            limit most
        ) e
        order by j.place, e.n
    loop
        place := event.place;
        ends[place] := memory_event_hash(ends[place], memory_event_text(event.journal_id, event.number, event.id, event.kind, event.at,
            event.recorded_at, event.symbol, event.subject_id, event.agent_name, event.model_call_id, event.data));
        sealed := sealed + 1;
        ns[sealed] := event.n;
        numbers[sealed] := event.number;
        hashes[sealed] := ends[place];
        seqs[place] := event.number;
    end loop;
    update memory_events e set seq = s.number, hash = s.hash
    from unnest(ns, numbers, hashes) s (n, number, hash)
    where e.owner = for_owner and e.n = s.n;
    update memory_journals j set seq = s.seq, hash = s.hash
    from unnest(locked, seqs, ends) s (id, seq, hash)
    where j.owner = for_owner and j.journal_id = s.id and j.seq <> s.seq;
    return sealed;
exception
    when unique_violation then
        return (select coalesce(sum(seal_journal(for_owner, g.id, most, false)), 0) from unnest(for_journals) g (id));
end
$$;
comment on function seal_journals(text, uuid[], integer) is
    'Numbers and chains up to `most` events of each journal, except of those that others seal. Returns how many it sealed';

-- ---- thesis check ----

create function theses_unread(for_owner text, for_deployment uuid, for_symbol text, at timestamptz) returns table (thesis_id uuid)
    language sql stable
begin atomic
    select m.id
    from memories m
    left join lateral (
        select e.at, e.n
        from memory_events e
        where e.owner = for_owner and e.journal_id = for_deployment and e.symbol = for_symbol
          and e.kind in ('order.submitted', 'action.executed') and e.at <= theses_unread.at
        order by e.at desc, e.n desc
        limit 1
    ) last on true
    where m.owner = for_owner and m.deployment_id = for_deployment and m.symbol = for_symbol
      and m.kind = 'thesis' and m.status = 'open'
      and m.known_from <= theses_unread.at and m.known_until > theses_unread.at
      and not exists (
          select from memory_retrievals r
          where r.owner = for_owner and r.selection @> array[m.id] and r.kind = 'memories' and r.at <= theses_unread.at
            and (r.at, r.n) > (m.known_from, m.n) and (last.n is null or (r.at, r.n) > (last.at, last.n)))
    order by m.known_from, m.n;
end;
comment on function theses_unread(text, uuid, text, timestamptz) is
    'Open theses of a deployment on a symbol that no search returned since their last change and since the last order or action on the
symbol, as of `at`. Call it before the event of the new order or action is stored';

-- An order may arrive after the tick that executed it, dated no later than that tick. Each such tick counts for one order.
create function action_reported(for_owner text, for_deployment uuid, for_symbol text, at timestamptz) returns boolean
    language sql stable
begin atomic
    select exists (
        select from (
            select x.id, x.tick_at,
                (select p.tick_at from decision_snapshots p
                 where p.owner = for_owner and p.deployment_id = for_deployment and p.tick_at < action_reported.at
                 order by p.tick_at desc
                 limit 1) as before_at
            from decision_snapshots x
            where x.owner = for_owner and x.deployment_id = for_deployment and x.tick_at >= action_reported.at
            order by x.tick_at
            limit 1
        ) tick
        join memory_events e on e.owner = for_owner and e.subject_id = tick.id and e.kind = 'action.executed' and e.symbol = for_symbol
        where not exists (
            select from memory_events o
            where o.owner = for_owner and o.journal_id = for_deployment and o.symbol = for_symbol and o.kind = 'order.submitted'
              and o.at > coalesce(tick.before_at, '-infinity') and o.at <= tick.tick_at and o.n > e.n));
end;
comment on function action_reported(text, uuid, text, timestamptz) is
    'True if the first tick from `at` on executed an action on the symbol, and no order has been posted for it yet';

-- The order of an entry may arrive after the tick that opened the position, dated as that tick. It changes no held position.
create function entry_reported(for_owner text, for_deployment uuid, for_symbol text, at timestamptz) returns boolean
    language sql stable
begin atomic
    select exists (
        select from trade_history t
        cross join lateral (
            select coalesce((select p.tick_at from decision_snapshots p
                where p.owner = for_owner and p.deployment_id = for_deployment and p.tick_at < entry_reported.at
                order by p.tick_at desc
                limit 1), '-infinity') as at
            offset 0
        ) before
        where t.owner = for_owner and t.deployment_id = for_deployment and t.symbol = for_symbol
          and t.entry_tick_at = entry_reported.at
          and not exists (
              select from memory_events o
              where o.owner = for_owner and o.journal_id = for_deployment and o.symbol = for_symbol and o.kind = 'order.submitted'
                and o.at > before.at and o.at <= entry_reported.at));
end;
comment on function entry_reported(text, uuid, text, timestamptz) is
    'True if the tick at `at` opened a position in the symbol, and no order has been posted for it yet';

-- A trade that is closed at `at` is not held at `at`.
create function theses_not_retrieved(for_owner text, for_deployment uuid, for_symbol text, at timestamptz) returns table (thesis_id uuid)
    language sql stable
begin atomic
    select u.thesis_id
    from theses_unread(for_owner, for_deployment, for_symbol, theses_not_retrieved.at) u
    where (exists (
            select from trade_history t
            where t.owner = for_owner and t.deployment_id = for_deployment and t.symbol = for_symbol and t.status = 'open'
              and t.entry_tick_at <= theses_not_retrieved.at)
        or exists (
            select from trade_history t
            where t.owner = for_owner and t.deployment_id = for_deployment and t.symbol = for_symbol and t.status = 'closed'
              and t.exit_tick_at > theses_not_retrieved.at and t.entry_tick_at <= theses_not_retrieved.at))
      and not action_reported(for_owner, for_deployment, for_symbol, theses_not_retrieved.at);
end;
comment on function theses_not_retrieved(text, uuid, text, timestamptz) is
    'The same theses for an order, if the deployment holds the symbol at that time and no tick has executed the order already; empty otherwise';

create function thesis_warning(thesis_id uuid, symbol text) returns jsonb
    language sql stable
    return jsonb_build_object('code', 'thesis_not_retrieved', 'thesis_id', thesis_id,
        'detail', 'no search returned the open thesis on ' || symbol || ' since it changed and since the last order on it; a search with '
            || 'kind ["thesis"], status ["open"], this symbol and deployment_id returns it');
comment on function thesis_warning(uuid, text) is 'Warning about a thesis that was not retrieved, in the answer to an order or a tick';

-- ---- ticks ----

alter table agent_state add column last_tick_n bigint not null default 0;
comment on column agent_state.last_tick_n is 'Order of writes of the last tick: what has a later number was posted after it';

-- `ticks` are rows of decision_snapshots as JSON, in the order of time; `actions` of a tick are changes of held positions that it executed.
-- before_at and before_n are the time and the write order (last_tick_n) of the tick before them, and ticks_n is the write order of `ticks`.
-- An order announces the next tick that is posted, or the first tick that is not earlier than the order. Orders with the time of the tick
-- before are first counted as late orders for the actions of that tick; only what is left of them announces this one.
create function journal_ticks(for_owner text, for_deployment uuid, before_at timestamptz, before_n bigint, ticks_n bigint, ticks json)
    returns table (snapshot_id uuid, warnings jsonb)
    language plpgsql volatile
    set enable_seqscan = off
as $$
declare
    tick record;
    action record;
    announced boolean;
    unread uuid[];
    warned jsonb;
    stored boolean;
begin
    for tick in
        select t.id, t.tick_at, t.ops, t.open, t.actions
        from json_to_recordset(ticks) as t (id uuid, tick_at timestamptz, ops json, open json, actions json)
    loop
        snapshot_id := tick.id;
        warnings := '[]';
        stored := false;
        for action in select a.symbol, a.data from json_to_recordset(tick.actions) as a (symbol text, data jsonb)
        loop
            select bool_or(e.kind = 'order.submitted' and e.at > before_at)
                or count(*) filter (where e.kind = 'order.submitted') > count(*) filter (where e.kind = 'action.executed') into announced
            from memory_events e
            where e.owner = for_owner and e.journal_id = for_deployment and e.symbol = action.symbol
              and e.kind in ('order.submitted', 'action.executed') and e.at >= before_at
              and (e.n > before_n or e.at > before_at and e.at <= tick.tick_at);
            continue when announced;
            unread := array(select u.thesis_id from theses_unread(for_owner, for_deployment, action.symbol, tick.tick_at) u);
            warned := coalesce((select jsonb_agg(thesis_warning(u.id, action.symbol) order by u.place)
                                from unnest(unread) with ordinality u (id, place)), '[]');
            insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, data)
            values (for_owner, for_deployment, 'action.executed', tick.tick_at, action.symbol, tick.id,
                action.data || jsonb_build_object('warnings', warned));
            insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, data)
            select for_owner, for_deployment, 'thesis.not_retrieved', tick.tick_at, action.symbol, u.id,
                jsonb_build_object('snapshot_id', tick.id, 'trade_id', action.data -> 'trade_id', 'action', action.data -> 'action')
            from unnest(unread) with ordinality u (id, place)
            order by u.place;
            warnings := warnings || warned;
            stored := true;
        end loop;
        insert into memory_events (owner, journal_id, kind, at, symbol, subject_id, data)
        select for_owner, for_deployment, 'thesis.outcome_observed', tick.tick_at, m.symbol, m.id,
            jsonb_build_object('snapshot_id', tick.id, 'trade_id', o.trade_id, 'side', o.side, 'quantity', o.size_base,
                'mark_price', k.mark_price, 'market_value_usd', o.size_base * k.mark_price, 'unrealized_pnl_usd',
                o.size_base * (k.mark_price - o.average_entry_price) * case o.side when 'long' then 1 else -1 end)
        from json_to_recordset(tick.open) as o (trade_id uuid, symbol text, side text, size_base numeric, average_entry_price numeric,
            mark_price numeric)
        join memories m on m.owner = for_owner and m.deployment_id = for_deployment and m.symbol = o.symbol
            and m.kind = 'thesis' and m.status = 'open' and m.known_from <= tick.tick_at and m.known_until > tick.tick_at
        cross join lateral (
            select case when exists (
                select from json_to_recordset(tick.ops) as p (op text, symbol text, mark_source text)
                where p.symbol = o.symbol and p.op <> 'close_trade' and p.mark_source <> 'last_known') then o.mark_price end as mark_price
        ) k
        where not exists (
            select from memory_events e
            where e.owner = for_owner and e.subject_id = m.id and e.kind = 'thesis.outcome_observed'
              and e.at >= date_trunc('day', tick.tick_at, 'UTC') and e.at <= tick.tick_at)
        order by m.known_from, m.n;
        if stored or found then
            return next;
        end if;
        before_at := tick.tick_at;
        before_n := ticks_n;
    end loop;
end
$$;
comment on function journal_ticks(text, uuid, timestamptz, bigint, bigint, json) is
    'Stores the events of ticks: executed actions that no order announced, with the thesis check as for orders, and for each open thesis of a
held symbol one observation per UTC day. Returns the ticks that left events, with their warnings';

-- ---- the state of the journal, and the story of a trade ----

-- The story of a trade looks through the last 200 theses of a symbol for those that were open: in the index alone.
create index memories_theses_held on memories (owner, deployment_id, symbol, parallel, known_from desc, n desc)
    include (known_until, id)
    where kind = 'thesis' and status = 'open';
-- One that is open now is found behind any number of parallel ones that ended.
create index memories_theses_beside on memories (owner, deployment_id, symbol, known_from desc, n desc)
    where kind = 'thesis' and status = 'open' and parallel and known_until = 'infinity';
create index memories_theses_changed
    on memories (owner, coalesce(deployment_id, '00000000-0000-0000-0000-000000000000'), known_from desc, n desc)
    where kind = 'thesis' and status = 'open';
create index memories_kinds on memories (owner, deployment_id, symbol, kind, at desc, n desc)
    where status = 'active' and symbol is not null;
alter table memory_retrievals alter column owner set (n_distinct = 100);
alter table memory_retrievals alter column deployment_id set (n_distinct = 1000);
create index memory_retrievals_symbol on memory_retrievals (owner, deployment_id, symbol, at desc, n desc) where symbol is not null;
create index memory_retrievals_shared on memory_retrievals (owner, at desc, n desc) where deployment_id is null;
create index lessons_validated on lessons (owner, known_from desc, id desc) where status = 'validated';
create index trade_history_symbol_exit on trade_history (owner, deployment_id, symbol, exit_tick_at desc) where status = 'closed';

create function named_ids(texts text[]) returns uuid[]
    language sql immutable
    return array(select m[1]::uuid from unnest(texts) as t (text)
        cross join regexp_matches(t.text, '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', 'g') as m);
comment on function named_ids(text[]) is 'The ids that the texts contain';
create index lessons_evidence on lessons using gin (named_ids(evidence)) with (fastupdate = off) where version = 1;

-- Reads a bounded number of rows, however long the journal is. Of theses and lessons it reads the last 200 changes up to the instant;
-- `more` is 1 if there may be older ones. A thesis of a held symbol is found apart from them, whatever number of changes there are. All
-- orders are those of indexes.
create function journal_state(for_owner text, for_deployment uuid, known_at timestamptz, held json)
    returns table (journal_positions json, journal_theses json, journal_lessons json)
    language sql stable
begin atomic
    select
        (select json_agg(json_build_object('trade_id', o.trade ->> 'trade_id', 'symbol', o.trade ->> 'symbol', 'side', o.trade ->> 'side',
                'entry_tick_at', o.trade ->> 'entry_tick_at', 'entry_reason', left(o.trade ->> 'entry_reason', 1200),
                'theses', t.theses, 'closed', c.closed, 'decision', d.decision) order by o.place)
         from json_array_elements(held) with ordinality as o (trade, place)
         left join lateral (
             select json_agg(json_build_object('id', q.id, 'symbol', q.symbol, 'side', q.side, 'at', q.at, 'changed_at', q.known_from,
                     'text', left(q.text, 1200), 'invalidation', left(q.invalidation, 400), 'target', left(q.target, 400),
                     'horizon', q.horizon) order by coalesce(q.side <> o.trade ->> 'side', false), q.parallel, q.known_from desc, q.n desc) as theses
             from (
                 (select * from (
                     select x.id, x.symbol, x.side, x.at, x.known_from, x.known_until, x.n, x.parallel, x.text, x.invalidation, x.target,
                         x.horizon
                     from memories x
                     where x.owner = for_owner and x.deployment_id = for_deployment and x.symbol = o.trade ->> 'symbol'
                       and x.kind = 'thesis' and x.status = 'open' and not x.parallel and x.known_from <= known_at
                     order by x.known_from desc, x.n desc
                     limit 20) own
                  where own.known_until > known_at
                  limit 1)
                 union all
                 (select * from (
                     select x.id, x.symbol, x.side, x.at, x.known_from, x.known_until, x.n, x.parallel, x.text, x.invalidation, x.target,
                         x.horizon
                     from memories x
                     where x.owner = for_owner and x.deployment_id = for_deployment and x.symbol = o.trade ->> 'symbol'
                       and x.kind = 'thesis' and x.status = 'open' and x.parallel and x.known_from <= known_at
                     order by x.known_from desc, x.n desc
                     limit 50) beside
                  where beside.known_until > known_at
                  limit 8)
                 union
                 (select x.id, x.symbol, x.side, x.at, x.known_from, x.known_until, x.n, x.parallel, x.text, x.invalidation, x.target,
                      x.horizon
                  from memories x
                  where x.owner = for_owner and x.deployment_id = for_deployment and x.symbol = o.trade ->> 'symbol'
                    and x.kind = 'thesis' and x.status = 'open' and x.parallel and x.known_until = 'infinity' and x.known_from <= known_at
                  order by x.known_from desc, x.n desc
                  limit 8)
             ) q
         ) t on true
         left join lateral (
             select json_build_object('id', x.id, 'at', x.at, 'action', x.action, 'text', left(x.text, 1200)) as decision
             from memories x
             where t.theses is null and x.owner = for_owner and x.deployment_id = for_deployment and x.symbol = o.trade ->> 'symbol'
               and x.kind = 'decision' and x.status = 'active' and x.at <= known_at
               and x.known_from <= known_at and x.known_until > known_at
             order by x.at desc, x.n desc
             limit 1
         ) d on true
         left join lateral (
             select json_build_object('id', x.id, 'at', x.known_from, 'text', left(x.status_reason, 1200)) as closed
             from (
                 select m.id, m.known_until
                 from memories m
                 where t.theses is null and m.owner = for_owner and m.deployment_id = for_deployment and m.symbol = o.trade ->> 'symbol'
                   and m.kind = 'thesis' and m.status = 'open' and not m.parallel and m.known_from <= known_at
                 order by m.known_from desc, m.n desc
                 limit 20
             ) own
             join memories x on x.owner = for_owner and x.id = own.id and x.known_from = own.known_until and x.status = 'closed'
             where own.known_until <= known_at and own.known_until >= (o.trade ->> 'entry_tick_at')::timestamptz
             order by x.known_from desc, x.n desc
             limit 1
         ) c on true),
        (select json_build_object('more', (count(*) = 200)::int, 'items', json_agg(json_build_object('id', q.id, 'symbol', q.symbol, 'side', q.side,
                'at', q.at, 'changed_at', q.known_from, 'text', case when q.place <= 40 then left(q.text, 1200) end,
                'invalidation', left(q.invalidation, 400), 'target', left(q.target, 400), 'horizon', q.horizon) order by q.place)
                filter (where q.open))
         from (
             select x.*, x.known_until > known_at as open,
                 sum((x.known_until > known_at)::int) over (order by x.known_from desc, x.n desc rows unbounded preceding) as place
             from (
                 select m.id, m.symbol, m.side, m.at, m.known_from, m.known_until, m.n, m.text, m.invalidation, m.target, m.horizon
                 from memories m
                 where m.owner = for_owner
                   and coalesce(m.deployment_id, '00000000-0000-0000-0000-000000000000')
                       = coalesce(for_deployment, '00000000-0000-0000-0000-000000000000')
                   and m.kind = 'thesis' and m.status = 'open' and m.known_from <= known_at
                 order by m.known_from desc, m.n desc
                 limit 200
             ) x
         ) q),
        (select json_build_object('more', (count(*) = 200)::int, 'items', json_agg(json_build_object('id', x.id, 'at', x.at, 'validated_at',
                x.known_from, 'takeaway', x.takeaway) order by x.known_from desc, x.id desc) filter (where x.known_until > known_at))
         from (
             select l.id, l.at, l.known_from, l.known_until, l.takeaway
             from lessons l
             where l.owner = for_owner and l.status = 'validated' and l.known_from <= known_at
             order by l.known_from desc, l.id desc
             limit 200
         ) x);
end;
comment on function journal_state(text, uuid, timestamptz, json) is
    'The state of the journal at an instant: the rationale of each held position, the open theses, and the validated lessons';
