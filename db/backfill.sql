-- Vectors that are pending: what server/backfill finds, reads and stores. :skipped are ids that the embedder refused a while ago.

-- The next owner after :after who has something pending. Situations count only where they are embedded in the background.
-- name: backfill_owner :slow :list :unowned
select least(
    (select min(m.owner) from episodic_memory m where m.embedding_status = 'pending' and m.owner > :after::text),
    (select min(m.owner) from memories m where m.embedding_status = 'pending' and m.owner > :after::text),
    (select min(l.owner) from lessons l where l.version = 1 and l.embedding_status = 'pending' and l.owner > :after::text),
    (select min(s.owner) from situations s where s.vector is null and s.owner > :after::text and :situations::boolean)) as owner

-- How many there are, up to :most of each kind.
-- name: backfill_count :slow :list :unowned
select (select count(*) from (select from episodic_memory m where m.embedding_status = 'pending' limit :most::int) e)
    + (select count(*) from (select from memory_texts t where t.embedding_status = 'pending' limit :most::int) t)
    + (select count(*) from (select from situations s where s.vector is null and :situations::boolean limit :most::int) s) as pending

-- What is embedded of an entry is what episode_embed_text makes of it.
-- name: backfill_episodes :slow :list
select m.id, m.question || E'\n' || m.answer as text
from episodic_memory m
where m.owner = :owner and m.embedding_status = 'pending' and m.id <> all (:skipped::uuid[])
order by m.created_at, m.id
limit :limit::int

-- A vector that the caller supplied stays, and so does one of this model that was stored in the meantime. Rows are locked in the order of
-- their ids, so that two of these cannot deadlock.
-- name: backfill_episodes_store :slow :list
with given as materialized (
    select * from json_to_recordset(:vectors::json) as g (id uuid, width int, vector text)
), old as materialized (
    select m.id
    from episodic_memory m
    where m.owner = :owner and m.id in (select id from given) and m.embedding_status = 'pending'
    order by m.id
    for no key update
), filled as (
    update episodic_memory m
    set embedding_status = 'embedded', embedding_model = :model, embedding_dim = :dim::int
    from old
    where m.owner = :owner and m.id = old.id
    returning m.id
), vectors as (
    insert into episodic_vectors (owner, episode_id, model, dim, v384, v768, v1024, v1536, v3072, v4000)
    select :owner, g.id, :model, :dim::int, c.*
    from filled f join given g on g.id = f.id cross join lateral vector_columns(g.width, g.vector) c
    on conflict (owner, episode_id, model) do update
    set dim = excluded.dim, v384 = excluded.v384, v768 = excluded.v768, v1024 = excluded.v1024, v1536 = excluded.v1536,
        v3072 = excluded.v3072, v4000 = excluded.v4000
)
select id from filled

-- The oldest first: ids are UUIDv7. Their vectors are stored by memory_vectors_store.
-- name: backfill_memories :slow :list
select t.text_id as id, t.text
from memory_texts t
where t.owner = :owner and t.embedding_status = 'pending' and t.text_id <> all (:skipped::uuid[])
order by t.text_id
limit :limit::int

-- name: backfill_situations :slow :list
select s.trade_id as id, s.summary as text
from situations s
where s.owner = :owner and s.vector is null and s.trade_id <> all (:skipped::uuid[])
order by s.skill_id, s.version, s.deployment_id, s.entry_tick_at desc
limit :limit::int

-- Those that a recall asked for: of a deployment, or of all deployments of its skill version. Newest first.
-- name: backfill_situations_asked :slow :list
select s.trade_id as id, s.summary as text
from situations s
where s.owner = :owner and s.vector is null and s.trade_id <> all (:skipped::uuid[])
  and s.skill_id = :skill_id and s.version = :version and (:id::uuid is null or s.deployment_id = :id::uuid)
order by s.entry_tick_at desc, s.trade_id desc
limit :limit::int
