-- Lessons of the research process. Every version of a lesson is a row, with the time during which it was what was known, so that a
-- read at any instant is one condition and the history is never rewritten.

create table lessons (
    owner         text        collate "C" not null,
    id            uuid        not null,
    version       integer     not null,
    known_from    timestamptz not null,
    known_until   timestamptz not null default 'infinity',
    at            timestamptz not null,
    context       text        not null,
    outcome       text        not null,
    takeaway      text        not null check (char_length(takeaway) between 1 and 300 and takeaway !~ '[\n\r]'),
    tags          text[]      not null check (cardinality(tags) > 0),
    evidence      text[]      not null check (cardinality(evidence) > 0),
    status        text        not null check (status in ('proposed', 'validated', 'retired', 'superseded')),
    status_at     timestamptz not null,
    status_reason text,
    validation    json,
    superseded_by uuid,
    similar_keys  integer[]   not null,
    search        tsvector    generated always as (to_tsvector('english', takeaway || ' ' || context || ' ' || outcome)) stored,
    primary key (owner, id, version),
    check (known_from <= known_until),
    check (status <> 'validated' or validation is not null),
    check ((status = 'superseded') = (superseded_by is not null))
);

create unique index lessons_current on lessons (owner, id) where known_until = 'infinity';
create index lessons_newest on lessons (owner, at desc, id desc);
-- The pending list makes an insert cheap; it is short, because every create reads it.
create index lessons_similar on lessons using gin (similar_keys) with (fastupdate = on, gin_pending_list_limit = 64) where version = 1;

comment on table lessons is 'Every version of every lesson; the current one has known_until = infinity';
comment on column lessons.owner is 'Whose lesson it is';
comment on column lessons.id is 'The lesson, the same in all its versions';
comment on column lessons.version is '1 is the lesson as it was proposed';
comment on column lessons.known_from is 'When this version became known, on the caller''s clock';
comment on column lessons.known_until is 'When a later version replaced it; infinity for the current one';
comment on column lessons.at is 'When the lesson was learned, on the caller''s clock';
comment on column lessons.context is 'The situation that it comes from';
comment on column lessons.outcome is 'What came of it';
comment on column lessons.takeaway is 'The claim itself, one line: what is rendered into prompts';
comment on column lessons.tags is 'What it is recalled by';
comment on column lessons.evidence is 'What shows it: decision or episode ids, calibration ranges, counted failures';
comment on column lessons.status is 'proposed, validated (outcome data confirmed it), retired or superseded';
comment on column lessons.status_at is 'Since when it has this status';
comment on column lessons.status_reason is 'Why it has this status';
comment on column lessons.validation is 'The outcome data of its last validation';
comment on column lessons.superseded_by is 'The lesson that replaced it';
comment on column lessons.similar_keys is 'Takeaways that read nearly the same share one of these; they never change';
comment on column lessons.search is 'Full text of takeaway, context and outcome';

select protect_owned('lessons');
