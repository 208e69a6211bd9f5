// pgbench on the service's own statements: the same text, the same parameters, the same session settings.
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ended, run, start, within } from '../../tests/lib/processes.mjs';
import { settled } from './stage.mjs';
import { randomFrom } from './texts.mjs';

const GETS = 32; // statements per fetch of ids
const CREATES = 8; // per fetch of lessons to write
const TICKS = 8; // per fetch of ticks
export const MEMORIES_AT_ONCE = 8; // per fetch of memories to write
const REUSES = 8; // per fetch of tickers
const WARM_SECONDS = 1; // excludes connecting, preparing and planning
const CREATES_A_SECOND = 20_000; // more than a machine with two cores can commit

const bin = () => {
  const root = '/usr/lib/postgresql';
  return join(root, readdirSync(root).sort((a, b) => b - a)[0], 'bin/pgbench');
};

/* pgbench turns every :name into a new parameter, so a value used five times would be sent five times. The statement already
 * has $1, $2, …; the names in a comment after it only list its parameters. A variable that is not set is null. */
const call = ({ sql, params }, variable = (param) => param, end = ';') =>
  `${sql} /* ${params.map((param) => `:${variable(param)}`).join(' ')} */${end}\n`;
const numbered = (name, count) => Array.from({ length: count }, (_, i) => `${name}_${i + 1}`);
const repeat = (count, line) => Array.from({ length: count }, (_, i) => line(i + 1)).join('');
/** Names the variables of the nth call; `fetched` parameters are fetched for several calls at once. */
const nth = (n, fetched) => (param) => (fetched.includes(param) ? `${param}_${n}` : param);

const TEXTS = ['context', 'outcome', 'takeaway', 'tags', 'evidence', 'similar_keys'];
const LATEST = '9999-12-31T23:59:59Z';

/**
 * By kind: the script, how many of its statements count, its variables, and the tables it fetches from, created once or before every
 * run. `settings` names the statement whose session settings are used. `logged`: the time of each transaction is logged.
 */
const KINDS = {
  get: {
    // The fetch is a read by key like the others, so it counts as one of them.
    counted: GETS + 1,
    variables: () => ({ as_of: LATEST }),
    script: ({ get }, wrap) =>
      `\\set n random(0, 1999)\nselect ${numbered('id', GETS).join(', ')} from bench.ids where n = :n \\gset\n` +
      wrap(repeat(GETS, (n) => call(get, nth(n, ['id'])))),
    once: (stage) => {
      const random = randomFrom(3);
      return fillIds(
        stage,
        'ids',
        numbered('id', GETS),
        2000,
        () => stage.ids[Math.floor(random() * stage.ids.length)],
      );
    },
  },
  list: {
    counted: 8,
    variables: () => ({ as_of: LATEST, limit: 10 }),
    script: ({ list }, wrap) => wrap(repeat(8, () => call(list))),
  },
  create: {
    counted: CREATES,
    variables: (stage, clients) => ({ turn: -1, clients, texts: Math.floor(stage.spares / CREATES) }),
    script: ({ create }) =>
      `\\set n random(0, :texts - 1)\n\\set turn :turn + 1\n\\set ids :turn * :clients + :client_id\n` +
      `select clock_timestamp() as at, t.*, i.* from bench.texts t, bench.new_ids i where t.n = :n and i.n = :ids \\gset\n` +
      repeat(CREATES, (n) => call(create, nth(n, ['new_id', ...TEXTS]))),
    once: (stage) => pivotSpares(stage),
    before: (stage, seconds) =>
      fillIds(
        stage,
        'new_ids',
        numbered('new_id', CREATES),
        Math.ceil(((seconds + WARM_SECONDS + 1) * CREATES_A_SECOND) / CREATES),
        newIds(),
      ),
  },
  // One statement per transaction, so the logged time is that of the statement.
  context: {
    counted: 1,
    logged: true,
    variables: (stage) => ({ id: stage.ledgers.at(-1).id, now: new Date().toISOString() }),
    script: ({ context }, wrap) => wrap(call(context)),
  },
  // The fetch is a read by key like the others, so it counts as one of them.
  rerun: {
    settings: 'episode_prior',
    counted: GETS + 1,
    variables: () => ({ as_of: NOW(), days_threshold: 14 }),
    script: ({ episode_prior }, wrap) => fetchPairs(GETS) + wrap(repeat(GETS, (n) => call(episode_prior, twoOf(n)))),
    once: (stage) => fillPairs(stage, GETS),
  },
  reuse: {
    settings: 'episode_reuse',
    counted: REUSES,
    variables: () => ({ as_of: NOW(), days_threshold: 14 }),
    script: ({ episode_prior, episode_reuse }) =>
      fetchPairs(REUSES) +
      repeat(
        REUSES,
        (n) =>
          call(episode_prior, twoOf(n), ' \\gset') +
          call(episode_reuse, (param) => (param === 'prior_id' ? 'id' : twoOf(n)(param))),
      ),
    once: (stage) => fillPairs(stage, REUSES),
  },
  /* \gset passes the state to the next statement, and fails if that one wrote nothing. lib/tick.mjs provides the ticks. */
  tick_update: {
    settings: 'tick_write',
    counted: TICKS,
    variables: ({ tick }) => tick.variables,
    script: ({ tick_state, tick_write }, wrap, { tick }) =>
      `select t.id, ${numbered('m', TICKS)
        .flatMap((m, i) => tick.texts.map((text) => `format(t.${text}, ${m}.id, ${m}.at) as ${text}_${i + 1}`))
        .join(', ')} from bench.ticks as t, ${numbered('m', TICKS)
        .map((m, i) => `bench.next_tick(t.id, ${i + 1}) as ${m}`)
        .join(', ')} where t.n = :client_id \\gset\n` +
      repeat(
        TICKS,
        (n) =>
          call(tick_state, undefined, ' \\gset') +
          call(tick_write, (param) => (param === 'expected' ? 'ticks' : nth(n, tick.texts)(param)), ' \\gset'),
      ),
  },
  /* The service reads the state before and after it claims the deployment. \gset fails if nothing was added. lib/reflect.mjs provides the
   * recorded values. */
  reflect: {
    settings: 'reflection_note_write',
    counted: 1,
    variables: ({ reflection }, clients) => ({
      ...reflection.variables,
      clients,
      each: Math.floor(reflection.deployments / clients),
    }),
    script: (s) =>
      FETCH_REFLECTION +
      ['state', 'claim', 'state', 'trades'].map((name) => call(s[`reflection_${name}`])).join('') +
      'begin;\n' +
      ['settle', 'note_write'].map((name) => call(s[`reflection_${name}`])).join('') +
      call(s.reflection_add, undefined, ' \\gset') +
      'commit;\n',
  },
  // lib/ab.mjs provides every statement with the values that the service sent.
  ab: {
    settings: 'ab_trades',
    counted: 1,
    variables: ({ comparison }) => comparison.variables,
    script: (_, wrap, { comparison }) => comparison.calls.map(({ statement, variable }) => call(statement, variable)).join(''),
  },
  // lib/memories.mjs provides the texts.
  memory: {
    settings: 'memory_create',
    counted: MEMORIES_AT_ONCE,
    variables: () => ({ agent_name: 'bench' }),
    script: ({ memory_create }) => FETCH_MEMORIES + repeat(MEMORIES_AT_ONCE, (n) => call(memory_create, nth(n, MEMORY))),
  },
  memory_plain: {
    settings: 'memory_create',
    counted: MEMORIES_AT_ONCE,
    variables: () => ({ agent_name: 'bench' }),
    script: () => FETCH_MEMORIES + repeat(MEMORIES_AT_ONCE, (n) => call(PLAIN_MEMORY, nth(n, MEMORY))),
  },
  ab_seed: {
    settings: 'ab_trades',
    counted: 1,
    variables: () => ({}),
    script: (_, wrap, { comparison }) => `${comparison.seed};\n`,
  },
};

const NOW = () => new Date().toISOString();
/** The new values of each reflection. Each client has its own deployments. */
const FETCH_REFLECTION =
  '\\set n random(0, :each - 1) * :clients + :client_id\n' +
  'select id, gen_random_uuid() as claim, gen_random_uuid() as note_id, gen_random_uuid() as reflection_id, now() as as_of, now() as now ' +
  'from bench.reflecting where n = :n \\gset\n';
const MEMORY = ['new_id', 'kind', 'text', 'symbol', 'tags', 'evidence', 'deployment_id'];
const FETCH_MEMORIES =
  '\\set n random(0, 1999)\n' +
  `select t.*, clock_timestamp() as now, ${numbered('new_id', MEMORIES_AT_ONCE)
    .map((name) => `daybook.uuid7() as ${name}`)
    .join(', ')} from bench.memory_texts t where t.n = :n \\gset\n`;
const PLAIN_MEMORY = {
  sql: `insert into bench.plain_memories (owner, id, text_id, version, known_from, at, kind, status, text, symbol, tags, evidence, deployment_id, agent_name)
    values ($1, $2::uuid, $2::uuid, 1, $3::timestamptz, $3::timestamptz, $4, 'active', $5, $6, $7::text[], $8::text[], $9::uuid, $10)`.replaceAll(/\s+/g, ' '),
  params: ['owner', 'new_id', 'now', 'kind', 'text', 'symbol', 'tags', 'evidence', 'deployment_id', 'agent_name'],
};
const twoOf = (n) => nth(n, ['ticker', 'task_type', 'new_id']);

/** Fetches ticker and task type for `count` questions, and an id for the row that each may write. */
const fetchPairs = (count) =>
  `\\set n random(0, 1999)\nselect p.*, ${numbered('new_id', count)
    .map((name) => `gen_random_uuid() as ${name}`)
    .join(', ')} from bench.pairs_${count} as p where p.n = :n \\gset\n`;

async function fillPairs(stage, count) {
  const random = randomFrom(5);
  const pick = () => stage.pairs[Math.floor(random() * stage.pairs.length)];
  const columns = [...numbered('ticker', count), ...numbered('task_type', count)];
  await stage.query(`drop table if exists bench.pairs_${count}`);
  await stage.query(
    `create table bench.pairs_${count} (n integer primary key, ${columns.map((name) => `${name} text`).join(', ')}) with (toast_tuple_target = 8160)`,
  );
  const rows = Array.from({ length: 2000 }, (_, n) => {
    const picked = Array.from({ length: count }, pick);
    return [n, ...picked.map(([ticker]) => ticker), ...picked.map(([, task]) => task)];
  });
  await stage.query(
    `insert into bench.pairs_${count} select (r->>0)::int, ${columns.map((_, i) => `r->>${i + 1}`).join(', ')} from json_array_elements($1::json) as r`,
    [JSON.stringify(rows)],
  );
  await stage.query(`vacuum analyze bench.pairs_${count}`);
}

/** Rows of 8 spare lessons each, as text, one page per row, so that a fetch reads one page. */
async function pivotSpares(stage) {
  const columns = Array.from({ length: CREATES }, (_, i) =>
    TEXTS.map((name) => `max(${name}::text) filter (where n % ${CREATES} = ${i}) as ${name}_${i + 1}`),
  ).flat();
  await stage.query('drop table if exists bench.texts');
  await stage.query(
    `create table bench.texts with (toast_tuple_target = 8160) as select n / ${CREATES} as n, ${columns.join(', ')} from bench.spares group by 1`,
  );
  await stage.query('alter table bench.texts add primary key (n)');
  await stage.query('vacuum analyze bench.texts');
}

/** Ids in ascending order, like those of the service. */
function newIds() {
  const ms = Date.now().toString(16).padStart(12, '0');
  let serial = 0;
  return () => {
    const rest = randomUUID();
    const count = (serial++).toString(16).padStart(6, '0');
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3)}${rest.slice(23)}`;
  };
}

async function fillIds(stage, table, columns, count, next) {
  await stage.query(`drop table if exists bench.${table}`);
  await stage.query(
    `create unlogged table bench.${table} (n integer primary key, ${columns.map((name) => `${name} uuid`).join(', ')})`,
  );
  const path = stage.file(`${table}.tsv`);
  writeFileSync(path, Array.from({ length: count }, (_, n) => [n, ...columns.map(next)].join('\t') + '\n').join(''));
  const fd = openSync(path);
  const { code, stderr } = await run('psql', ['-X', '-q', stage.url, '-c', `copy bench.${table} from stdin`], {
    stdio: [fd, 'pipe', 'pipe'],
  });
  closeSync(fd);
  if (code !== 0) throw new Error(`bench.${table}: ${stderr}`);
  await stage.query(`vacuum analyze bench.${table}`);
}

export async function preparePgbench(stage, kind) {
  const { script, once } = KINDS[kind];
  await once?.(stage);
  writeFileSync(
    stage.file(`${kind}.sql`),
    script(stage.statement, (text) => text, stage),
  );
  if (kind === 'get' || kind === 'list')
    // writes are left out: a pipeline of them would be one transaction
    writeFileSync(
      stage.file(`${kind}.pipelined.sql`),
      script(stage.statement, (text) => `\\startpipeline\n${text}\\endpipeline\n`),
    );
}

/** Call before each run, outside the measurement. */
export const refillPgbench = (stage, kind, seconds) => KINDS[kind].before?.(stage, seconds);

/** p50 and p99 (µs) of the transactions in pgbench's log, without the warm-up. */
function logged(path) {
  const rows = readFileSync(path, 'utf8').trimEnd().split('\n').map((line) => line.split(' ').map(Number));
  const begin = rows[0][4] + WARM_SECONDS;
  const us = rows
    .filter(([, , , , second]) => second > begin)
    .map(([, , time]) => time)
    .sort((a, b) => a - b);
  return { p50: us[Math.floor(us.length * 0.5)], p99: us[Math.floor(us.length * 0.99)] };
}

/**
 * Runs pgbench; returns {requests, seconds}. `mode` is its query mode (-M). `atStart` and `atEnd` get its process id when the clock starts
 * and stops. With one client of a logged kind the result also has p50 and p99 (µs). The end of the log is lost, so this needs thousands of
 * transactions.
 */
export async function pgbench(stage, kind, { clients, mode = 'prepared', pipelined = false, seconds, atStart, atEnd }) {
  const { settings = kind, counted, variables, logged: isLogged = false } = KINDS[kind];
  const logs = clients === 1 && isLogged;
  const args = [
    '-n',
    '-M',
    mode,
    '-c',
    clients,
    '-j',
    Math.min(clients, availableParallelism()),
    '-P',
    1,
    '-T',
    seconds + WARM_SECONDS + 10,
  ];
  if (logs) args.push('-l', '--log-prefix', stage.file('pgbench'));
  for (const [name, value] of Object.entries({ owner: 'local', ...variables(stage, clients) })) args.push('-D', `${name}=${value}`);
  args.push('-f', stage.file(pipelined ? `${kind}.pipelined.sql` : `${kind}.sql`), stage.url);
  const child = start(bin(), args.map(String), {
    env: { ...process.env, PGOPTIONS: stage.statement[settings].options, PGAPPNAME: 'pgbench' },
  });
  const end = ended(child);
  let said = '';
  let lines = 0;
  let transactions = 0;
  const measured = new Promise((resolve, reject) => {
    child.stdout.resume();
    child.stderr.setEncoding('utf8').on('data', (text) => {
      const seen = said.length;
      said += text;
      for (const [, tps] of said
        .slice(said.lastIndexOf('\n', seen - 1) + 1, said.lastIndexOf('\n') + 1)
        .matchAll(/^progress: .* s, ([\d.]+) tps, /gm)) {
        if (lines >= WARM_SECONDS && lines < WARM_SECONDS + seconds) transactions += Number(tps);
        lines++;
        if (lines === WARM_SECONDS) atStart(child.pid);
        if (lines === WARM_SECONDS + seconds) {
          atEnd(child.pid);
          resolve();
        }
      }
    });
    end.then(() => reject(new Error(`pgbench ended early:\n${said}`)));
  });
  try {
    await within((seconds + WARM_SECONDS + 30) * 1000, measured, 'pgbench');
  } finally {
    child.kill('SIGTERM');
    await end;
  }
  if (/error|aborted/i.test(said)) throw new Error(`pgbench ${kind}:\n${said}`);
  await settled(stage);
  return { requests: transactions * counted, seconds, ...(logs && logged(stage.file(`pgbench.${child.pid}`))) };
}
