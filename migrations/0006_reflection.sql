-- Reflection: every attempt to distil lessons with what came of it, notes of a whole skill, which model a deployment asks, and the situations
-- that past trades were opened in.

alter table deployments add column reflection_model text check (char_length(reflection_model) between 1 and 100);
comment on column deployments.reflection_model is 'The model that its reflections ask; null: that of the configuration';

alter table reflection_notes
    add column suppressed    text[] not null default '{}',
    add column promoted_from uuid;
comment on column reflection_notes.suppressed is 'The slots that were left out on purpose';
comment on column reflection_notes.promoted_from is 'Of a skill''s note: the note of a deployment that it was taken from';
alter table reflection_notes alter column cost_usd drop not null, alter column cost_usd drop default;
comment on column reflection_notes.cost_usd is 'What that cost; null when the prices are not known';
create unique index reflection_notes_active_skill on reflection_notes (owner, skill_id, version)
    where status = 'active' and deployment_id is null;
create index reflection_notes_of_skill on reflection_notes (owner, skill_id, version, generated_at desc, id desc)
    where deployment_id is null;

create table reflections (
    owner             text        collate "C" not null,
    id                uuid        not null,
    deployment_id     uuid        not null,
    at                timestamptz not null,
    outcome           text        not null check (outcome in ('ran', 'skipped', 'rejected', 'model_failed')),
    reason            text        check (char_length(reason) between 1 and 64),
    detail            text        check (char_length(detail) <= 1000),
    forced            boolean     not null,
    suppressed        text[]      not null default '{}',
    note_id           uuid,
    trades_considered integer     not null default 0,
    window_start      timestamptz,
    window_end        timestamptz,
    model_used        text,
    input_tokens      integer     not null default 0,
    output_tokens     integer     not null default 0,
    cost_usd          numeric,
    created_at        timestamptz not null default now(),
    primary key (owner, id),
    foreign key (owner, deployment_id) references deployments on delete cascade,
    check ((outcome = 'ran') = (note_id is not null)),
    check ((outcome = 'ran') = (reason is null))
);
create index reflections_newest on reflections (owner, at desc, id desc);
create index reflections_failed on reflections (owner, deployment_id, at desc, id desc) where outcome in ('rejected', 'model_failed');
create index reflections_deployment on reflections (owner, deployment_id, at desc, id desc);
comment on table reflections is 'Every attempt to distil lessons, and what came of it';
comment on column reflections.owner is 'Whose deployment it is';
comment on column reflections.id is 'UUIDv7';
comment on column reflections.deployment_id is 'The deployment that was reflected on';
comment on column reflections.at is 'The instant that it was for, on the caller''s clock';
comment on column reflections.outcome is 'ran, skipped, rejected or model_failed';
comment on column reflections.reason is 'Why it did not run: cadence_off, not_due, …; null when it did';
comment on column reflections.detail is 'The same in words';
comment on column reflections.forced is 'Whether the trigger rule was not asked';
comment on column reflections.suppressed is 'The slots that were left out on purpose';
comment on column reflections.note_id is 'The note that it made';
comment on column reflections.trades_considered is 'How many trades it looked at';
comment on column reflections.window_start is 'The first of them';
comment on column reflections.window_end is 'The last of them';
comment on column reflections.model_used is 'The model that was asked, or builtin';
comment on column reflections.input_tokens is 'Tokens that the model read';
comment on column reflections.output_tokens is 'Tokens that it wrote';
comment on column reflections.cost_usd is 'What that cost; null when the prices are not known';
comment on column reflections.created_at is 'When the row was made, on the server''s clock';
select protect_owned('reflections');

-- As with the keys of requests (0005), a claim ends with the connection that wrote it.
create table reflection_claims (
    owner         text        collate "C" not null,
    deployment_id uuid        not null,
    claim         uuid        not null,
    claim_pid     integer     not null,
    claim_started timestamptz not null,
    expires_at    timestamptz not null,
    primary key (owner, deployment_id),
    foreign key (owner, deployment_id) references deployments on delete cascade
);
comment on table reflection_claims is 'The deployments that are being reflected on: one reflection at a time';
comment on column reflection_claims.owner is 'Whose deployment it is';
comment on column reflection_claims.deployment_id is 'The deployment';
comment on column reflection_claims.claim is 'Which request it is';
comment on column reflection_claims.claim_pid is 'The process of the connection that wrote the claim';
comment on column reflection_claims.claim_started is 'When that process began: another may have its number by now';
comment on column reflection_claims.expires_at is 'When it ends at the latest';
select protect_owned('reflection_claims');

-- The outcome of a situation is that of its trade, which has it when it is closed.
create table situations (
    owner         text        collate "C" not null,
    trade_id      uuid        not null,
    deployment_id uuid        not null,
    skill_id      text        collate "C" not null,
    version       text        collate "C" not null,
    entry_tick_at timestamptz not null,
    summary       text        not null check (char_length(summary) between 1 and 1000),
    model         text        collate "C",
    dim           integer,
    vector        halfvec,
    created_at    timestamptz not null default now(),
    primary key (owner, trade_id),
    foreign key (owner, trade_id) references trade_history on delete cascade,
    check ((vector is null) = (model is null) and (vector is null) = (dim is null)),
    check (vector_dims(vector) = dim)
);
create index situations_deployment on situations (owner, deployment_id, entry_tick_at desc, trade_id desc);
create index situations_skill on situations (owner, skill_id, version, entry_tick_at desc, trade_id desc);
create index situations_pending on situations (owner, skill_id, version, deployment_id, entry_tick_at desc) where vector is null;
comment on table situations is 'What it was like when a trade was opened, to be found again by meaning';
comment on column situations.owner is 'Whose trade it is';
comment on column situations.trade_id is 'The trade';
comment on column situations.deployment_id is 'The deployment that traded';
comment on column situations.skill_id is 'Its skill';
comment on column situations.version is 'The version of the skill';
comment on column situations.entry_tick_at is 'The tick that opened it';
comment on column situations.summary is 'The situation in a few words; no number of what came later';
comment on column situations.model is 'The model of the vector; null while it waits for one';
comment on column situations.dim is 'How many numbers the vector has';
comment on column situations.vector is 'The summary in that model''s space, of length 1; compared with all of a deployment, so it has no index';
comment on column situations.created_at is 'When the row was made, on the server''s clock';
select protect_owned('situations');
