-- Idempotency keys: the stored response to a request, for 24 hours. The first three statements run in the request's transaction; the next ones
-- are for requests that wait for a model and hold no transaction meanwhile.

-- name: idempotency_lock :write :one
select pg_try_advisory_xact_lock(hashtextextended(:owner || '/' || :key, 0)) as locked

-- Separate from idempotency_lock, so that its snapshot is taken after the lock.
-- name: idempotency_find :write :one
select request_hash, status, content_type, location, convert_from(body, 'UTF8') as body
from idempotency_keys
where owner = :owner and key = :key and expires_at > now()

-- Every write removes a few expired keys of any owner.
-- part: delete_expired
with expired as (
    delete from idempotency_keys
    where ctid = any (array(select ctid from idempotency_keys where expires_at <= now() and (owner, key) <> (:owner, :key)
                            limit 16 for update skip locked))
)
-- name: idempotency_store :write :none
{delete_expired}
insert into idempotency_keys (owner, key, request_hash, status, content_type, location, body, created_at, expires_at)
values (:owner, :key, :request_hash, :status::int, :content_type, :location, convert_to(:body, 'UTF8'), now(), now() + interval '24 hours')
on conflict (owner, key) do update
set request_hash = excluded.request_hash, status = excluded.status, content_type = excluded.content_type,
    location = excluded.location, body = excluded.body, created_at = excluded.created_at, expires_at = excluded.expires_at

-- No row: another request holds the key, or its response is stored. A claim ends with the connection that made it.
-- name: idempotency_claim :write :one
{delete_expired}
insert into idempotency_keys as k
    (owner, key, request_hash, status, content_type, body, created_at, expires_at, claim, claim_pid, claim_started)
select :owner, :key, :request_hash, 0, '', '', now(), now() + :claim_ms::bigint * interval '1 millisecond', :claim::uuid, a.pid, a.backend_start
from pg_stat_activity a
where a.pid = pg_backend_pid()
on conflict (owner, key) do update
set request_hash = excluded.request_hash, status = 0, content_type = '', location = null, body = '', created_at = excluded.created_at,
    expires_at = excluded.expires_at, claim = excluded.claim, claim_pid = excluded.claim_pid, claim_started = excluded.claim_started
where k.expires_at <= now()
   or (k.status = 0 and not exists (select from pg_stat_activity b where b.pid = k.claim_pid and b.backend_start = k.claim_started))
returning k.status

-- No row: the claim expired before the request finished.
-- name: idempotency_settle :write :one
update idempotency_keys
set status = :status::int, content_type = :content_type, location = :location, body = convert_to(:body, 'UTF8'), created_at = now(),
    expires_at = now() + interval '24 hours', claim = null, claim_pid = null, claim_started = null
where owner = :owner and key = :key and claim = :claim::uuid
returning status

-- name: idempotency_release :write :none
delete from idempotency_keys where owner = :owner and key = :key and claim = :claim::uuid

-- PostgreSQL waits for nothing when a transaction that wrote nothing commits. So a transaction that repeats a stored response writes this
-- record to the log, and its commit waits for the disk and the synchronous standbys, past the commit of the first.
-- name: replay_durable :write :none :unowned
select pg_logical_emit_message(true, 'daybook', '')
