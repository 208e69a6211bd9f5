// pgbench on the service's own statements: the same text, the same parameters, the same session settings.
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ended, run, start, within } from '../../tests/lib/processes.mjs';
import { settled } from './stage.mjs';
import { randomFrom } from './texts.mjs';

const GETS = 32; // statements for each fetch of the ids that they ask for
const CREATES = 8; // and of the lessons that they write
const WARM_SECONDS = 1; // connecting, preparing and the first plans are not what is measured
const CREATES_A_SECOND = 20_000; // more than any machine of two cores can do durably

const bin = () => {
  const root = '/usr/lib/postgresql';
  return join(root, readdirSync(root).sort((a, b) => b - a)[0], 'bin/pgbench');
};

/* pgbench makes a new parameter of every :name, and would send a value that a statement uses five times five times. In a comment
 * behind a statement that has its $1, $2 already, the names are just the list of its parameters. A variable that is nowhere
 * set is null. */
const call = ({ sql, params }, n) =>
  `${sql} /* ${params.map((p) => `:${p}${FETCHED.has(p) ? `_${n}` : ''}`).join(' ')} */;\n`;
const FETCHED = new Set(['id', 'new_id', 'context', 'outcome', 'takeaway', 'tags', 'evidence', 'similar_keys']);
const numbered = (name, count) => Array.from({ length: count }, (_, i) => `${name}_${i + 1}`);
const repeat = (count, line) => Array.from({ length: count }, (_, i) => line(i + 1)).join('');

const TEXTS = ['context', 'outcome', 'takeaway', 'tags', 'evidence', 'similar_keys'];

/** Per kind: the script, how many of its statements count, and the tables that it fetches from, made once or before every run. */
const KINDS = {
  get: {
    // The fetch is a read by key like those that it serves, so it counts as one of them.
    counted: GETS + 1,
    script: (st, wrap) =>
      `\\set n random(0, 1999)\nselect ${numbered('id', GETS).join(', ')} from bench.ids where n = :n \\gset\n` +
      wrap(repeat(GETS, (n) => call(st, n))),
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
  list: { counted: 8, script: (st, wrap) => wrap(repeat(8, () => call(st))) },
  create: {
    counted: CREATES,
    script: (st) =>
      `\\set n random(0, :texts - 1)\n\\set turn :turn + 1\n\\set ids :turn * :clients + :client_id\n` +
      `select clock_timestamp() as at, t.*, i.* from bench.texts t, bench.new_ids i where t.n = :n and i.n = :ids \\gset\n` +
      repeat(CREATES, (n) => call(st, n)),
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
};

/** Rows of 8 spare lessons each, as text, in one page each, so that a fetch is one look. */
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

/** Ids in the order of time, like the service's. */
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
    script(stage.statement[kind], (text) => text),
  );
  if (kind !== 'create')
    // a pipeline of creates would be one transaction
    writeFileSync(
      stage.file(`${kind}.pipelined.sql`),
      script(stage.statement[kind], (text) => `\\startpipeline\n${text}\\endpipeline\n`),
    );
}

/** Before each run, outside of what is measured. */
export const refillPgbench = (stage, kind, seconds) => KINDS[kind].before?.(stage, seconds);

/** {requests, seconds} of a run; `atStart` and `atEnd` are called with its process id when the clock starts and stops. */
export async function pgbench(stage, kind, { clients, pipelined = false, seconds, atStart, atEnd }) {
  const variables = {
    owner: 'local',
    as_of: '9999-12-31T23:59:59Z',
    limit: 10,
    turn: -1,
    clients,
    texts: Math.floor(stage.spares / CREATES),
  };
  const args = [
    '-n',
    '-M',
    'prepared',
    '-c',
    clients,
    '-j',
    Math.min(clients, availableParallelism()),
    '-P',
    1,
    '-T',
    seconds + WARM_SECONDS + 10,
  ];
  for (const [name, value] of Object.entries(variables)) args.push('-D', `${name}=${value}`);
  args.push('-f', stage.file(pipelined ? `${kind}.pipelined.sql` : `${kind}.sql`), stage.url);
  const child = start(bin(), args.map(String), {
    env: { ...process.env, PGOPTIONS: stage.statement[kind].options, PGAPPNAME: 'pgbench' },
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
  return { requests: transactions * KINDS[kind].counted, seconds };
}
