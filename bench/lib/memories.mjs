// New memories: POST /v1/memories against pgbench on its statement, and on a plain insert of the same row.
import { newDeployments, writeIds } from './ledger.mjs';
import { MEMORIES_AT_ONCE, preparePgbench } from './pgbench.mjs';
import { request, skipVectors } from './stage.mjs';
import { recordStatements } from './statements.mjs';
import { memoryMaker } from './texts.mjs';
import { CLIENTS, CONNECTIONS, daybookContender, pgbenchContender, rounds } from './throughput.mjs';

const DEPLOYMENTS = 64;
const TEXTS = 2000;

const unsealed = async (query) =>
  Number((await query('select count(*) as n from daybook.memory_events where seq is null'))[0].n);

/** Seals all events, so that the service does not seal them while others are measured. */
export async function sealAll(query) {
  while (await unsealed(query))
    await query(
      `select daybook.seal_journal('local', j.journal_id, 1000, false)
       from (select distinct journal_id from daybook.memory_events where seq is null) j`,
    );
}

/** The table of the plain insert: the same columns without the words, a primary key and one index. */
async function createPlain(query) {
  await query('create table bench.plain_memories (like daybook.memories including defaults)');
  await query('alter table bench.plain_memories drop column words, add primary key (owner, id, version)');
  await query('create index on bench.plain_memories (owner, at desc, id desc)');
  await query('grant usage on sequence daybook.memory_order to daybook');
}

/** Rows of 8 memories each, one page per row, so that a fetch reads one page. */
async function fillTexts(query, deployments) {
  const next = memoryMaker(9);
  const columns = (type) => Array.from({ length: MEMORIES_AT_ONCE }, (_, i) => type.map((name) => `${name}_${i + 1}`)).flat();
  const names = ['kind', 'text', 'symbol', 'tags', 'evidence', 'deployment_id'];
  const rows = Array.from({ length: TEXTS }, (_, n) => [
    n,
    ...Array.from({ length: MEMORIES_AT_ONCE }, (_, i) => {
      const { kind, text, symbol, tags, evidence } = next();
      return [kind, text, symbol, `{${tags}}`, `{${evidence}}`, deployments[(n * MEMORIES_AT_ONCE + i) % deployments.length]];
    }).flat(),
  ]);
  await query(
    `create table bench.memory_texts (n integer primary key, ${columns(names).map((name) => `${name} text`).join(', ')}) with (toast_tuple_target = 8160)`,
  );
  await query(
    `insert into bench.memory_texts select (r->>0)::int, ${columns(names).map((_, i) => `r->>${i + 1}`).join(', ')} from json_array_elements($1::json) r`,
    [JSON.stringify(rows)],
  );
  await query('vacuum analyze bench.memory_texts');
}

/** A contender that says how many events were still to be sealed when it ended. */
const withUnsealed = (stage, contender) => ({
  ...contender,
  measure: async (seconds) => ({ ...(await contender.measure(seconds)), unsealed: await unsealed(stage.query) }),
});

/** Checks what is measured: a memory with its event. */
async function check(stage, body) {
  const { status, text } = await request(stage.service.base, 'POST', '/v1/memories', body);
  const events = await stage.query('select from daybook.memory_events where subject_id = $1', [JSON.parse(text).id]);
  if (status !== 201 || events.length !== 1) throw new Error(`memories: ${status} ${text}, ${events.length} events`);
}

/** {name of the contender: runs}: `daybook`, `pgbench` on its statement, and `plain`. */
export async function measureMemories(stage, plan) {
  const ids = await newDeployments(stage, DEPLOYMENTS);
  writeIds(stage, 'memories.txt', ids);
  await createPlain(stage.query);
  await fillTexts(stage.query, ids);
  await check(stage, { ...memoryMaker(10)(), deployment_id: ids[0] });
  const { memory_create } = await recordStatements(stage, ['memory_create']);
  stage.statement.memory_create = memory_create;
  for (const kind of ['memory', 'memory_plain']) await preparePgbench(stage, kind);
  const all = [
    withUnsealed(stage, daybookContender(stage, 'daybook', 'memory', CONNECTIONS, { more: ['memories.txt'] })),
    pgbenchContender(stage, 'pgbench', 'memory', CLIENTS),
    pgbenchContender(stage, 'plain', 'memory_plain', CLIENTS),
  ];
  return rounds(all, plan.rounds, plan.seconds, async () => {
    await skipVectors(stage.query);
    await sealAll(stage.query);
    await stage.query('checkpoint'); // as for POST /v1/lessons
  });
}
