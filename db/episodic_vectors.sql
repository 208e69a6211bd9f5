-- Entries and memories that lack a vector of the service's own model, and storing these vectors.

-- Pending entries, entries with a vector of an earlier model of the service, and, on request, entries that came with a vector.
-- part: missing
m.owner = :owner and (m.embedding_status = 'pending' or m.embedding_status = 'embedded' or :include_supplied::boolean)
and (m.embedding_model, m.embedding_dim) is distinct from (:model, :dim::int)

-- name: embeddings_state :slow :one
select (select count(*) from episodic_memory m where m.owner = :owner and m.embedding_status = 'pending') as pending,
    (select count(*) from episodic_memory m
     where m.owner = :owner and m.embedding_status = 'embedded' and (m.embedding_model, m.embedding_dim) is distinct from (:model, :dim::int))
        as outdated,
    (select coalesce(json_agg(json_build_object('model', s.model, 'dim', s.dim, 'entries', s.entries)), '[]')
     from (select model, dim, count(*) as entries from episodic_vectors where owner = :owner group by model, dim order by model, dim) s)
        as spaces,
    (select json_build_object('embedded', count(*) filter (where (s.model, s.dim) = (:model, :dim::int)),
         'pending', count(*) filter (where s.model is null), 'outdated', count(*) filter (where (s.model, s.dim) <> (:model, :dim::int)))
     from situations s where s.owner = :owner) as situations,
    (select json_build_object('embedded', count(*) filter (where (v.model, v.dim) = (:model, :dim::int)),
         'pending', (select count(*) from memory_texts t where t.owner = :owner and t.embedding_status = 'pending'),
         'outdated', count(*) filter (where (v.model, v.dim) <> (:model, :dim::int)))
     from memory_vectors v where v.owner = :owner) as memories

-- name: embeddings_missing_count :slow :one
select count(*) as missing from episodic_memory m where {missing}

-- Pages newest first, so that a request does not retry an entry that failed.
-- name: embeddings_missing :slow :list
select m.id, m.question, m.answer, m.created_at as _cursor_1, m.id as _cursor_2
from episodic_memory m
where {missing}
  and (m.created_at, m.id) < (coalesce(:cursor_1::timestamptz, 'infinity'), coalesce(:cursor_2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
order by m.created_at desc, m.id desc
limit :limit::int

-- Replaces the vector that the service had made before; a vector that the caller supplied stays as well. Rows are locked in the order of
-- their ids, so that two of these cannot deadlock. `v.model || ''` keeps the planner from looking the vector up by model: before the table is
-- analyzed for the first time, it would read all vectors of the model.
-- name: embeddings_store :write :list
with given as materialized (
    select * from json_to_recordset(:vectors::json) as g (id uuid, width int, vector text)
), old as materialized (
    select m.id, m.embedding_status as status, m.embedding_model as model
    from episodic_memory m
    where {missing} and m.id in (select id from given)
    order by m.id
    for no key update
), replaced as (
    delete from episodic_vectors v using old
    where v.owner = :owner and v.episode_id = old.id and v.model || '' = old.model and old.status = 'embedded' and v.model <> :model
), stored as (
    insert into episodic_vectors (owner, episode_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
    select :owner, g.id, :model, :dim::int, c.*
    from old join given g on g.id = old.id cross join lateral vector_columns(g.width, g.vector) c
    on conflict (owner, episode_id, model) do update
    set dim = excluded.dim, v384 = excluded.v384, v768 = excluded.v768, v1024 = excluded.v1024, v1536 = excluded.v1536,
        v3072 = excluded.v3072, v4000 = excluded.v4000
)
update episodic_memory m
set embedding_status = 'embedded', embedding_model = :model, embedding_dim = :dim::int
from old
where m.owner = :owner and m.id = old.id
returning m.id

-- Texts of memories, theses and lessons: pending ones, and those with a vector of an earlier model of the service.
-- name: memory_vectors_missing_count :slow :one
select (select count(*) from memory_texts t where t.owner = :owner and t.embedding_status = 'pending')
    + (select count(*) from memory_vectors v where v.owner = :owner and (v.model, v.dim) is distinct from (:model, :dim::int)) as missing

-- Pages newest first, so that a request does not retry a text that failed.
-- name: memory_vectors_missing :slow :list
with newest as (
    (select t.memory_id, t.text_id
     from memory_texts t
     where t.owner = :owner and t.embedding_status = 'pending'
       and t.text_id < coalesce(:cursor_1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     order by t.text_id desc
     limit :limit::int)
    union all
    (select v.memory_id, v.text_id
     from memory_vectors v
     where v.owner = :owner and (v.model, v.dim) is distinct from (:model, :dim::int)
       and v.text_id < coalesce(:cursor_1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     order by v.text_id desc
     limit :limit::int)
)
select n.text_id as id, t.text, n.text_id as _cursor_1
from newest n
join lateral (select t.text from memory_texts t where t.owner = :owner and t.memory_id = n.memory_id and t.text_id = n.text_id offset 0) t on true
order by n.text_id desc
limit :limit::int

-- Stores the vectors of texts that are pending or have one of an earlier model, which it replaces. Rows are locked in the order of their ids,
-- so that two of these cannot deadlock.
-- name: memory_vectors_store :slow :list
with given as materialized (
    select * from json_to_recordset(:vectors::json) as g (id uuid, width int, vector text)
), pending_memories as materialized (
    select m.id, m.version, m.text_id
    from memories m
    where m.owner = :owner and m.text_id in (select id from given) and m.embedding_status = 'pending'
    order by m.text_id
    for no key update
), pending_lessons as materialized (
    select l.id
    from lessons l
    where l.owner = :owner and l.id in (select id from given) and l.version = 1 and l.embedding_status = 'pending'
    order by l.id
    for no key update
), outdated as materialized (
    select v.memory_id, v.text_id, v.model
    from memory_vectors v
    where v.owner = :owner and v.text_id in (select id from given) and (v.model, v.dim) is distinct from (:model, :dim::int)
    order by v.text_id
    for update
), embedded_memories as (
    update memories m set embedding_status = 'embedded'
    from pending_memories p
    where m.owner = :owner and m.id = p.id and m.version = p.version
), embedded_lessons as (
    update lessons l set embedding_status = 'embedded'
    from pending_lessons p
    where l.owner = :owner and l.id = p.id and l.version = 1
), replaced as (
    delete from memory_vectors v using outdated o
    where v.owner = :owner and v.text_id = o.text_id and v.model || '' = o.model and v.model <> :model
)
insert into memory_vectors (owner, text_id, memory_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
select :owner, g.id, old.memory_id, :model, :dim::int, c.*
from (select id as memory_id, text_id from pending_memories
      union select id, id from pending_lessons
      union select memory_id, text_id from outdated) old
join given g on g.id = old.text_id
cross join lateral vector_columns(g.width, g.vector) c
on conflict (owner, text_id, model) do update
set dim = excluded.dim, v384 = excluded.v384, v768 = excluded.v768, v1024 = excluded.v1024, v1536 = excluded.v1536,
    v3072 = excluded.v3072, v4000 = excluded.v4000
returning text_id as id
