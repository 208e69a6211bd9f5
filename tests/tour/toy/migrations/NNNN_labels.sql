-- Labels: a short text under a name that the caller chooses.

create table labels (
    owner       text        collate "C" not null,
    label       text        collate "C" not null check (char_length(label) between 1 and 64),
    known_from  timestamptz not null,
    known_until timestamptz not null default 'infinity',
    caption     text        not null check (char_length(caption) between 1 and 200),
    primary key (owner, label, known_from),
    check (known_from <= known_until)
);
create unique index labels_current on labels (owner, label) where known_until = 'infinity';
comment on table labels is 'Every version of every label; the current one has known_until = infinity';
comment on column labels.owner is 'Owner of the label';
comment on column labels.label is 'Name of the label';
comment on column labels.known_from is 'Start of this version, on the caller''s clock';
comment on column labels.known_until is 'End of this version; infinity for the current one';
comment on column labels.caption is 'Text of the label';
select protect_owned('labels');
