-- Idempotency keys: the first answer to a request, kept for 24 hours. Each of these runs inside the request's transaction.

-- name: idempotency_lock :write :one
select pg_try_advisory_xact_lock(hashtextextended(:owner || '/' || :key, 0)) as locked

-- A statement of its own, so that its snapshot is younger than the lock.
-- name: idempotency_find :write :one
select request_hash, status, content_type, location, convert_from(body, 'UTF8') as body
from idempotency_keys
where owner = :owner and key = :key and expires_at > now()

-- name: idempotency_store :write :none
with expired as (
    delete from idempotency_keys
    where ctid = any (array(select ctid from idempotency_keys where expires_at <= now() and (owner, key) <> (:owner, :key)
                            limit 16 for update skip locked))
)
insert into idempotency_keys (owner, key, request_hash, status, content_type, location, body, created_at, expires_at)
values (:owner, :key, :request_hash, :status::int, :content_type, :location, convert_to(:body, 'UTF8'), now(), now() + interval '24 hours')
on conflict (owner, key) do update
set request_hash = excluded.request_hash, status = excluded.status, content_type = excluded.content_type,
    location = excluded.location, body = excluded.body, created_at = excluded.created_at, expires_at = excluded.expires_at
