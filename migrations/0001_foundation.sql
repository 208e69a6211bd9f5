-- What every resource stands on: extensions, keys of the API, kept answers, and who may read rows directly.
-- Runs in the schema daybook, which is first in the search path.

create extension if not exists vector;
create extension if not exists pg_trgm;

-- ---- keys of the API ----

create table api_keys (
    id uuid primary key,
    owner text collate "C" not null check (owner ~ '^[a-z0-9_.-]{1,64}$'),
    role text not null check (role in ('agent', 'researcher', 'reader', 'admin')),
    name text check (char_length(name) between 1 and 100),
    token_hash text not null unique check (token_hash ~ '^[0-9a-f]{64}$'),
    created_at timestamptz not null default now(),
    revoked_at timestamptz
);
comment on table api_keys is 'Keys of the API. A row is never deleted: with none the service is open to loopback.';
comment on column api_keys.id is 'Names the key in lists and logs; UUIDv7';
comment on column api_keys.owner is 'Whose rows the key reads and writes';
comment on column api_keys.role is 'What the key may do';
comment on column api_keys.name is 'A label for people';
comment on column api_keys.token_hash is 'SHA-256 of the token, in hex; the token itself is not kept';
comment on column api_keys.created_at is 'When the key was made';
comment on column api_keys.revoked_at is 'From when on it is refused; null while it is good';

-- ---- kept answers ----

create table idempotency_keys (
    owner text collate "C" not null,
    key text collate "C" not null,
    request_hash text not null,
    status int not null,
    content_type text not null,
    location text,
    body bytea not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    primary key (owner, key)
);
create index idempotency_keys_expires_at on idempotency_keys (expires_at);
comment on table idempotency_keys is 'The first answer to each request with an Idempotency-Key, given again to its repetitions';
comment on column idempotency_keys.owner is 'Who sent the request';
comment on column idempotency_keys.key is 'The Idempotency-Key';
comment on column idempotency_keys.request_hash is 'SHA-256 of method, path and body: the key is good for this request alone';
comment on column idempotency_keys.status is 'HTTP status of the answer';
comment on column idempotency_keys.content_type is 'Content-Type of the answer';
comment on column idempotency_keys.location is 'Location of the answer, null when it had none';
comment on column idempotency_keys.body is 'Body of the answer, byte for byte';
comment on column idempotency_keys.created_at is 'When the request was first answered';
comment on column idempotency_keys.expires_at is 'From when on the key may be used anew';

-- ---- direct readers ----
-- The service connects as the owner of the tables, which row-level security lets pass. A person who reads with SQL gets a role
-- of their own that is a member of daybook_reader, and a row here that says whose rows it sees:
--   create role ann login in role daybook_reader;
--   insert into daybook.reader_owners values ('ann', 'desk-7');

create table reader_owners (
    role_name text primary key,
    owner text not null
);
comment on table reader_owners is 'Whose rows a role sees that reads with SQL instead of through the service';
comment on column reader_owners.role_name is 'The role that logs in, a member of daybook_reader';
comment on column reader_owners.owner is 'The one owner whose rows it sees';

create function reader_owner() returns text
    language sql stable security definer set search_path = daybook, pg_temp
    return (select r.owner from daybook.reader_owners as r where r.role_name = session_user);
comment on function reader_owner() is 'The owner whose rows the logged-in role may see; null, and so none, without a row in reader_owners';

-- Roles belong to the whole server: another database may have made it already, or this role may not make any.
do $$
begin
    if not exists (select from pg_roles where rolname = 'daybook_reader') then
        create role daybook_reader nologin;
    end if;
exception
    when duplicate_object or unique_violation then
        null;
    when insufficient_privilege then
        raise notice 'the role daybook_reader was not created: the right CREATEROLE is missing';
end
$$;

-- Called by every migration that makes an owned table. Can be called again when daybook_reader was created later.
create function protect_owned(owned regclass) returns void
    language plpgsql set search_path = daybook, pg_temp
as $$
begin
    execute format('alter table %s enable row level security', owned);
    execute format('drop policy if exists reader on %s', owned);
    execute format('create policy reader on %s for select using (owner = (select daybook.reader_owner()))', owned);
    if exists (select from pg_roles where rolname = 'daybook_reader') then
        execute format('grant usage on schema daybook to daybook_reader');
        execute format('grant select on %s to daybook_reader', owned);
    end if;
end
$$;
comment on function protect_owned(regclass) is 'Lets direct readers see their owner''s rows of the table, and no others';
revoke execute on function protect_owned(regclass) from public;
