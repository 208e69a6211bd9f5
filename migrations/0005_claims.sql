-- A request that asks a model holds no transaction while it waits: what says meanwhile that its key is in use is a row without an answer. It
-- ends with the connection that wrote it, so that a service that was killed leaves no key in use.

alter table idempotency_keys
    add column claim         uuid,
    add column claim_pid     integer,
    add column claim_started timestamptz;
comment on column idempotency_keys.claim is 'Of a request that is still running, with the status 0: which one; it ends with expires_at';
comment on column idempotency_keys.claim_pid is 'The process of the connection that wrote the claim';
comment on column idempotency_keys.claim_started is 'When that process began: another may have its number by now';
