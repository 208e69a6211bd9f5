-- A version of a skill may be replaced until it is deployed: what it was before stays known for the time before.

create table skill_versions_replaced (
    owner                text        collate "C" not null,
    skill_id             text        collate "C" not null,
    version              text        collate "C" not null,
    strategy             text        not null,
    avoid                text[]      not null,
    memory_enabled       boolean     not null,
    recent_trades_k      integer     not null,
    reflection_cadence   text        not null,
    every_n_trades       integer     not null,
    created_at           timestamptz not null,
    replaced_at          timestamptz not null check (replaced_at > created_at),
    primary key (owner, skill_id, version, created_at),
    foreign key (owner, skill_id, version) references skill_versions on delete cascade
);
comment on table skill_versions_replaced is 'What versions of skills were before they were replaced';
comment on column skill_versions_replaced.owner is 'Whose skill it is';
comment on column skill_versions_replaced.skill_id is 'The skill';
comment on column skill_versions_replaced.version is 'The name of the version';
comment on column skill_versions_replaced.strategy is 'As in skill_versions';
comment on column skill_versions_replaced.avoid is 'As in skill_versions';
comment on column skill_versions_replaced.memory_enabled is 'As in skill_versions';
comment on column skill_versions_replaced.recent_trades_k is 'As in skill_versions';
comment on column skill_versions_replaced.reflection_cadence is 'As in skill_versions';
comment on column skill_versions_replaced.every_n_trades is 'As in skill_versions';
comment on column skill_versions_replaced.created_at is 'Since when it was what it is here, on the caller''s clock';
comment on column skill_versions_replaced.replaced_at is 'Until when';
select protect_owned('skill_versions_replaced');
