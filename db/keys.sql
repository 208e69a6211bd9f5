-- API keys. A service holds all of them in memory, per loop, and asks for changes all the time.

-- part: key
id, token_hash, owner, role, revoked_at is not null as revoked,
(extract(epoch from expires_at) * 1000000)::bigint as expires_us, rate, burst

-- The keys that changed within the last :seconds, and the next page of a walk over all keys. The walk finds what
-- has no time of change: rows that were changed or deleted by hand.
-- name: key_refresh :read :list :unowned
(select false as paged, {key} from api_keys
    where greatest(created_at, revoked_at, rotated_at) > now() - make_interval(secs => :seconds::float8))
union all
(select true, {key} from api_keys where token_hash > :after::text order by token_hash limit :page::int)

-- Always one row: whether any key exists, and the key with this hash or nulls.
-- name: key_find :read :one :unowned
select exists (select from api_keys) as has_keys, k.*
from (values (:token_hash::text)) as asked (hash)
left join (select {key} from api_keys) as k on k.token_hash = asked.hash
