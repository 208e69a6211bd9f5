// Search in the episodic memory: latency and recall, filtered and unfiltered, against a simple Python program.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { ended, start } from '../../tests/lib/processes.mjs';
import { openDatabase } from './context.mjs';
import { ready, request, startDaybook } from './stage.mjs';
import { columnOf, fillVectors, queryVectors, SHAPE } from './vectors.mjs';

export const K = 5;
const SECTORS = 20; // of the clusters; see vectors.mjs

/** The filters of the searches, for the API and for the exact result. `n` is the number of the query, `cluster` that of its vector. */
export const FILTERS = {
  none: () => ({ body: {}, where: 'true' }),
  'ticker, 1 in 20': (n) => ({ body: { ticker: `T${n % 20}` }, where: `m.ticker = 'T${n % 20}'` }),
  'task type, 1 in 200': (n) => ({ body: { task_type: `U${n % 200}` }, where: `m.task_type = 'U${n % 200}'` }),
  'sector of the query, 1 in 20': (n, cluster) => regime('sector', cluster % SECTORS),
  'another sector, 1 in 20': (n, cluster) => regime('sector', (cluster + 7) % SECTORS),
  'industry of the query, 1 in 200': (n, cluster) => regime('industry', cluster),
  'another industry, 1 in 200': (n, cluster) => regime('industry', (cluster + 77) % SHAPE.clusters),
};
const regime = (name, value) => ({
  body: { regime: { [name]: value }, regime_only: true },
  where: `m.regime_tag @> '{"${name}": ${value}}'`,
});

/** The exact nearest ids, by comparing all vectors. */
async function exact(query, dim, vector, where) {
  const rows = await query(
    `select m.id from daybook.episodic_memory m join daybook.episodic_vectors v on v.owner = m.owner and v.episode_id = m.id
     where m.owner = 'local' and ${where} order by (v.${columnOf(dim)} <#> $1::halfvec) + 0, m.id limit ${K}`,
    [`[${[...vector, ...Array(Number(columnOf(dim).slice(1)) - dim).fill(0)].join()}]`],
  );
  return rows.map((row) => row.id);
}

async function search(base, vector, filter) {
  const began = performance.now();
  const { status, text } = await request(base, 'POST', '/v1/episodic/search', { vector, model: 'bench', k: K, ...filter });
  const us = (performance.now() - began) * 1000;
  if (status !== 200) throw new Error(`search: ${status} ${text}`);
  const { items, exact } = JSON.parse(text);
  return { us, ids: items.map((item) => item.id), exact };
}

/** {filter: {us: [of each search], recall, exact}} of one memory. */
async function measureMemory({ service, query, dim, queries }, plan) {
  const found = {};
  await query('set search_path = daybook, public');
  await query('set enable_indexscan = off');
  for (const [name, filter] of Object.entries(FILTERS)) {
    const asked = queries.map(({ cluster, vector }, n) => ({ vector, ...filter(n, cluster) }));
    let hits = 0;
    let wanted = 0;
    let all = true;
    for (const { vector, body, where } of asked) {
      const right = await exact(query, dim, vector, where);
      const { ids, exact: complete } = await search(service.base, vector, body);
      hits += right.filter((id) => ids.includes(id)).length;
      wanted += right.length;
      all &&= complete;
    }
    found[name] = { recall: hits / wanted, exact: all, us: [], asked };
  }
  for (let round = 0; round < plan.rounds; round++)
    for (const { asked, us } of Object.values(found))
      for (const { vector, body } of asked) us.push((await search(service.base, vector, body)).us);
  return found;
}

/** µs of `searches` searches by the Python program: unfiltered, and 1 in 20. */
async function measureSeed(stage, { count, dim }, searches) {
  const path = fileURLToPath(new URL('../seed/brute_force.py', import.meta.url));
  const file = stage.file('seed.db');
  const child = start('/usr/bin/python3', [path, file, count, dim].map(String), { stdio: ['pipe', 'pipe', 'inherit'] });
  const end = ended(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => (await lines.next()).value;
  try {
    if ((await next()) !== 'ready') throw new Error('brute_force.py did not start');
    const us = { none: [], 'task type, 1 in 20': [] };
    for (let i = -1; i < searches; i++)
      for (const [name, all] of Object.entries(us)) {
        child.stdin.write(name === 'none' ? '-\n' : 'task_7\n');
        const took = Number(await next());
        if (i >= 0) all.push(took); // the first one is the warm-up
      }
    return us;
  } finally {
    child.stdin.end();
    await end;
    rmSync(file, { force: true });
  }
}

/** The folder of the memory of a million entries, which is built once. */
const millionFolder = () => join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'daybook-bench', 'million');
const MILLION = { count: 1_000_000, dim: 384 };

async function connect(where) {
  const client = new pg.Client(where);
  client.on('error', () => {}); // the failing query reports it
  await client.connect();
  return client;
}

async function openMillion(stage) {
  const folder = millionFolder();
  mkdirSync(folder, { recursive: true });
  const service = await startDaybook(stage.daybookd, ['--data', join(folder, 'data')], 'ignore');
  await ready(service);
  const [, , , port, socket] = readFileSync(join(folder, 'data/cluster/postmaster.pid'), 'utf8').split('\n');
  const client = await connect({ host: socket, port, user: 'daybook', database: 'daybook' });
  return { service, client, query: async (...asked) => (await client.query(...asked)).rows };
}

/** Builds that memory, which takes at least a quarter of an hour. */
export async function buildMillion(stage) {
  const folder = millionFolder();
  if (existsSync(join(folder, 'done'))) return;
  const place = await openMillion(stage);
  await fillVectors(place.client, MILLION);
  await place.client.end();
  await place.service.stop();
  writeFileSync(join(folder, 'done'), '');
}

/** [{count, dim, found, seed?}]: one memory after the other; the last has a million entries, if it has been built. */
export async function measureSearch(stage, plan) {
  const all = [];
  for (const { count, dim, seed } of plan.memories) {
    const place = await openDatabase(stage, `memory_${count}`);
    const { client } = place;
    await fillVectors(client, { count, dim });
    const queries = await queryVectors(client, { count: plan.queries });
    const found = await measureMemory({ ...place, dim, queries }, plan);
    all.push({ count, dim, found, seed: seed && (await measureSeed(stage, { count, dim }, plan.seedSearches)) });
    await place.close();
    await place.service.stop();
    await stage.query(`drop database memory_${count}`);
  }
  if (existsSync(join(millionFolder(), 'done'))) {
    const place = await openMillion(stage);
    const queries = await queryVectors(place.client, { count: plan.queries });
    const { dim, count } = MILLION;
    all.push({ count, dim, found: await measureMemory({ ...place, dim, queries }, plan) });
    await place.client.end();
    await place.service.stop();
  }
  return all;
}
