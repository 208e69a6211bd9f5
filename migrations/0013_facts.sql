-- compatible-from: 9
-- Facts with their provenance, the policy that decides what may be stored, and memories and entries that expire.
-- Older binaries can live beside it. What they store names no observation type and does not expire.

-- ---- the write policy ----

create table write_policies (
    owner       text        collate "C" not null,
    version     integer     not null,
    known_from  timestamptz not null,
    known_until timestamptz not null default 'infinity',
    types       jsonb       not null check (jsonb_typeof(types) = 'object'),
    created_at  timestamptz not null default now(),
    primary key (owner, version),
    check (known_from <= known_until)
);
comment on table write_policies is 'Versions of the write policy of an owner; without a row, the built-in policy applies';
comment on column write_policies.owner is 'Owner of the policy';
comment on column write_policies.version is 'Number of the version, from 1';
comment on column write_policies.known_from is 'Time from which this version applies, on the caller''s clock';
comment on column write_policies.known_until is 'Time at which a later version replaced it; infinity for the current one';
comment on column write_policies.types is 'Observation types by name, each with store (true or false) and ttl_seconds (null: no expiry)';
comment on column write_policies.created_at is 'Time of the row on the server''s clock';
select protect_owned('write_policies');

-- Looked up once per call (`offset 0`). The policy in force is the last one, whatever time a write is dated: a backtest writes by the rules of today.
create function write_allowed(for_owner text, observation_type text, default_types jsonb)
    returns table (listed boolean, allowed boolean, ttl_seconds bigint)
    language sql stable
begin atomic
    select t.type is not null, coalesce((t.type ->> 'store')::boolean, false), (t.type ->> 'ttl_seconds')::bigint
    from (select coalesce((select w.types from write_policies w where w.owner = for_owner order by w.version desc limit 1), default_types)
            -> write_allowed.observation_type as type offset 0) t;
end;
comment on function write_allowed(text, text, jsonb) is
    'The rule of the owner''s write policy for an observation type. A type that is not listed is not allowed. Always one row';

-- ---- expiry ----

create function expiry_of(at timestamptz, ttl_seconds bigint) returns timestamptz
    language sql immutable
    return case when ttl_seconds is not null then least(at + ttl_seconds * interval '1 second', '9999-12-31T23:59:59.999999Z') end;
comment on function expiry_of(timestamptz, bigint) is 'The time at which something expires; null: never';

create function read_instant(as_of timestamptz, server_now timestamptz) returns timestamptz
    language sql immutable
    return case when as_of = '9999-12-31T23:59:59.999999Z' then server_now else as_of end;
comment on function read_instant(timestamptz, timestamptz) is
    'The instant for which age and expiry count: as_of, or the server''s clock for a read without as_of';

create function is_expired(expires_at timestamptz, at timestamptz) returns boolean
    language sql immutable
    return coalesce(expires_at <= at, false);
comment on function is_expired(timestamptz, timestamptz) is 'True if something was no longer found at that instant';

-- ---- facts ----

-- A row is one version, and no time of a key is without one: a fact that was deleted or archived has a version that says so. The last
-- version that is known from an instant on is therefore the one of that instant: one entry of the index facts_known. The primary key starts
-- with the version, so that no plan prefers it and reads all versions of a key. No index contains known_until, so that replacing a version
-- changes no index.
create table facts (
    owner            text        collate "C" not null,
    scope            text        collate "C" not null check (char_length(scope) between 1 and 100),
    key              text        collate "C" not null check (char_length(key) between 1 and 200),
    version          integer     not null,
    known_from       timestamptz not null,
    known_until      timestamptz not null default 'infinity',
    status           text        collate "C" not null check (status in ('active', 'archived', 'deleted')),
    change           text        collate "C" not null check (change in ('put', 'correct', 'verify', 'decay', 'archive', 'restore', 'delete')),
    value            json        not null check (octet_length(value::text) <= 8192),
    observation_type text        collate "C" not null check (char_length(observation_type) between 1 and 64),
    source           text        collate "C" not null check
        (source in ('user_stated', 'user_correction', 'tool_verified', 'agent_inferred', 'recalled', 'external')),
    confidence       numeric     not null check (confidence between 0 and 1),
    written_at       timestamptz not null,
    verified_at      timestamptz,
    verified_source  text        collate "C" check (verified_source in ('user_stated', 'tool_verified')),
    decayed_at       timestamptz not null,
    ttl_seconds      bigint      check (ttl_seconds > 0),
    expires_at       timestamptz,
    created_at       timestamptz not null default now(),
    primary key (owner, version, scope, key),
    check (known_from <= known_until),
    check ((verified_at is null) = (verified_source is null)),
    check ((ttl_seconds is null) = (expires_at is null))
) with (fillfactor = 85);
create index facts_known on facts (owner, scope, key, known_from desc, version desc);
alter table facts alter column owner set (n_distinct = 100);
alter table facts alter column key set (n_distinct = -0.3);
comment on table facts is 'Versions of facts: named values with their provenance; the current one has known_until = infinity';
comment on column facts.owner is 'Owner of the fact';
comment on column facts.scope is 'Scope of the key, such as a user or a desk; global for all';
comment on column facts.key is 'Name of the fact, unique in its scope';
comment on column facts.version is 'Number of the version, from 1';
comment on column facts.known_from is 'Time from which this version is known, on the caller''s clock';
comment on column facts.known_until is 'Time at which a later version replaced it; infinity for the current one';
comment on column facts.status is 'active, archived (its confidence fell below the floor of a decay) or deleted';
comment on column facts.change is 'Change that made this version: put, correct, verify, decay, archive, restore or delete';
comment on column facts.value is 'Value as JSON, with the digits of numbers as sent';
comment on column facts.observation_type is 'Kind of observation, by which the write policy decides';
comment on column facts.source is 'Source of the value: user_stated, user_correction, tool_verified, agent_inferred, recalled or external';
comment on column facts.confidence is 'Confidence from 0 to 1: the caller''s, or that of the source; decay lowers it';
comment on column facts.written_at is 'Time of the value, on the caller''s clock; decay and verification do not change it';
comment on column facts.verified_at is 'Time at which somebody confirmed the value; null: nobody did';
comment on column facts.verified_source is 'Source of the confirmation: user_stated or tool_verified';
comment on column facts.decayed_at is 'Time up to which decay has been applied: whole periods since the value was written, confirmed or restored';
comment on column facts.ttl_seconds is 'Time that the value is good for; null: no limit';
comment on column facts.expires_at is 'Time from which the fact is no longer found; null: never';
comment on column facts.created_at is 'Time of the row on the server''s clock';
select protect_owned('facts');

create function fact_needs_verification(confidence numeric) returns boolean
    language sql immutable
    return confidence < 0.7;
comment on function fact_needs_verification(numeric) is 'True for a hypothesis that nobody should act on unchecked';

create function fact_is_stale(confidence numeric, since timestamptz, at timestamptz) returns boolean
    language sql immutable
    return confidence < 0.8 and at - since > interval '168 hours';
comment on function fact_is_stale(numeric, timestamptz, timestamptz) is
    'True if a fact of that confidence, written or last confirmed at `since`, is older than seven days and not certain enough for its age';

-- ---- memories and entries that expire ----

alter table memories add column observation_type text collate "C" check (char_length(observation_type) between 1 and 64);
alter table memories add column expires_at timestamptz;
comment on column memories.observation_type is 'Kind of observation, by which the write policy decided; null: none was named';
comment on column memories.expires_at is 'Time from which no list, search or state has it; null: never';

alter table episodic_memory add column observation_type text collate "C" check (observation_type ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$');
comment on column episodic_memory.observation_type is 'Kind of observation, by which the write policy decided; null: none was named';

create or replace view lesson_items as
    select owner, id, version, known_from, known_until, id as text_id, 'lesson' collate "C" as kind, status collate "C" as status, at,
        takeaway as text, null::text collate "C" as symbol, null::text collate "C" as action, tags, evidence, null::uuid as deployment_id,
        words, case when version = 1 then embedding_status else 'none' end collate "C" as embedding_status,
        null::timestamptz as expires_at
    from lessons;
create or replace view memory_items as
    select owner, id, version, known_from, known_until, text_id, kind, status, at, text, symbol, action, tags, evidence, deployment_id,
        words, embedding_status, expires_at
    from memories
    union all
    select * from lesson_items;

-- The same function as before, without decisions that have expired.
create or replace function journal_state(for_owner text, for_deployment uuid, known_at timestamptz, held json)
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
               and x.known_from <= known_at and x.known_until > known_at and not is_expired(x.expires_at, known_at)
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
