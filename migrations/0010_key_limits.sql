-- compatible-from: 9
-- Keys that expire, have a rate, and are replaced by rotation. Every column is null for existing keys, and a
-- service of an older version can still read, create and revoke keys.

alter table api_keys
    add column expires_at timestamptz check (isfinite(expires_at)),
    add column rotated_at timestamptz,
    add column rate       integer     check (rate between 1 and 100000),
    add column burst      integer     check (burst between 1 and 100000),
    add constraint api_keys_rate_and_burst check ((rate is null) = (burst is null));
comment on column api_keys.expires_at is 'The key is rejected from this time on; null: it does not expire';
comment on column api_keys.rotated_at is 'Time at which another key replaced it; null: it was not rotated';
comment on column api_keys.rate is 'Largest number of requests a second; null: no limit';
comment on column api_keys.burst is 'Largest number of requests at once, after a pause; null: no limit';

-- The service reads what changed twice a second. A row changes when it is created, revoked or rotated.
create index api_keys_changed_at on api_keys (greatest(created_at, revoked_at, rotated_at));
