// Vectors to search: clusters of random directions, like embeddings of real texts, created by SQL so that tens of thousands take seconds.

/** The number of clusters, and the noise around a cluster's centre in multiples of its length. */
export const SHAPE = { clusters: 200, spread: 1 };

/** The column for vectors of that dimension. */
export const columnOf = (dim) => `v${[384, 768, 1024, 1536, 3072, 4000].find((width) => dim <= width)}`;

const STEP = 1000;
const NEW_ID = "overlay(overlay(gen_random_uuid()::text placing '0190' from 1) placing '7' from 15)::uuid";

/**
 * Fills the episodic memory of `owner` with `count` entries of `dim` dimensions through `client` (one connection of pg), then builds the
 * index of their column. Entry n belongs to cluster n % clusters. For filters:
 *   ticker      T0 … T19: 1 in 20, independent of the cluster;       task_type  U0 … U199: 1 in 200, independent of the cluster;
 *   regime_tag  sector 0 … 19: 1 in 20, the same for a cluster; industry 0 … 199: the cluster itself, 1 in 200.
 */
export async function fillVectors(client, { owner = 'local', model = 'bench', count, dim, clusters = SHAPE.clusters, spread = SHAPE.spread }) {
  const column = columnOf(dim);
  const index = `daybook.episodic_vectors_${column}`;
  const query = (sql, values) => client.query(sql, values);
  await query('set search_path = daybook, public');
  const [{ definition }] = (await query('select pg_get_indexdef($1::regclass) as definition', [index])).rows;
  await query(`drop index ${index}`);
  await query('create temp table centres (cluster int primary key, v real[])');
  await query('select setseed(0.25)');
  await query(
    'insert into centres select c, (select array_agg(random() - 0.5) from generate_series(1, $2::int) where c >= 0) from generate_series(0, $1::int - 1) c',
    [clusters, dim],
  );
  for (let from = 0; from < count; from += STEP)
    await query(
      `with made as materialized (
         select n, ${NEW_ID} as id, c.v, c.cluster from generate_series($3::int, $4::int) n join centres c on c.cluster = n % $5::int
       ), entries as (
         insert into daybook.episodic_memory (owner, id, ticker, task_type, created_at, question, answer, confidence, source, regime_tag,
           embedding_status, embedding_model, embedding_dim, content_hash)
         select $1, id, 'T' || (n / $5::int) % 20, 'U' || (n / $5::int) % 200, timestamptz '2026-01-01' + n * interval '1 second',
           'Question ' || n, 'Answer of cluster ' || cluster, 0.6, 'agent_inferred',
           jsonb_build_object('sector', cluster % 20, 'industry', cluster), 'supplied', $6, $2::int, 'bench ' || $6 || ' ' || n from made
       )
       insert into daybook.episodic_vectors (owner, episode_id, model, dim, ${column})
       select $1, id, $6, $2::int, l2_normalize((
         (select array_agg(x + $7::float8 * (random() - 0.5) order by i) from unnest(v) with ordinality as u (x, i))
         || array_fill(0::float8, array[${column.slice(1)} - $2::int]))::halfvec) from made`,
      [owner, dim, from, Math.min(count, from + STEP) - 1, clusters, model, spread],
    );
  await query('drop table centres');
  await query("set maintenance_work_mem = '2GB'");
  await query('set max_parallel_maintenance_workers = 0'); // containers have little /dev/shm
  await query(definition);
  await query('vacuum analyze daybook.episodic_memory, daybook.episodic_vectors');
}

/** `count` queries {cluster, vector}: vectors of entries with noise, so that each is near its cluster but equals no entry. */
export async function queryVectors(client, { owner = 'local', model = 'bench', count, noise = 0.5 }) {
  await client.query('set search_path = daybook, public');
  const { rows } = await client.query(
    `select (m.regime_tag ->> 'industry')::int as cluster, (coalesce(v384::real[], v768::real[], v1024::real[], v1536::real[], v3072::real[], v4000::real[]))[1:dim] as vector
     from daybook.episodic_vectors v join daybook.episodic_memory m on m.owner = v.owner and m.id = v.episode_id
     where v.owner = $1 and v.model = $2 order by md5(m.question) limit $3`,
    [owner, model, count],
  );
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647; // the same in every run
  return rows.map(({ cluster, vector }) => {
    const size = (noise * Math.sqrt(12)) / Math.sqrt(vector.length);
    return { cluster, vector: vector.map((x) => x + size * (random() - 0.5)) };
  });
}
