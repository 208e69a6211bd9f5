-- API keys: read by every loop once a second, so that a revoked key stops working.

-- name: key_list :read :list :unowned
select token_hash, owner, role, revoked_at is not null as revoked from api_keys
