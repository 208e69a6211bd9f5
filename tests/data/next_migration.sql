-- compatible-from: @KNOWN@
-- The migration that build/NAME/daybookd_next has and daybookd does not: it expands the schema and changes nothing that exists.

alter table lessons add column reviewed_by text;
comment on column lessons.reviewed_by is 'Only in tests of upgrades';
create index lessons_reviewed on lessons (owner, reviewed_by) where reviewed_by is not null;
