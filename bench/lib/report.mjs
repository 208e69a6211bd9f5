// The result tables: measurements against targets, misses included.
import { availableParallelism } from 'node:os';
import { LESSONS } from './journal.mjs';
import { OPEN } from './memory.mjs';
import { IN_FLIGHT, READERS, TRADES as MODEL_TRADES } from './models.mjs';
import { AT_ONCE, TRADES } from './reflect.mjs';
import { K } from './search.mjs';
import { CLIENTS, CONNECTIONS } from './throughput.mjs';
import { LEVELS } from './tick.mjs';

const REQUESTS = { get: 'GET /v1/lessons/{id}', list: 'GET /v1/lessons?limit=10', create: 'POST /v1/lessons' };
const CONTEXT = 'GET /v1/deployments/{id}/context';
const SEARCH = 'POST /v1/episodic/search';
const RERUN = 'POST /v1/episodic/should_rerun';
const TICK = 'POST /v1/deployments/{id}/ticks';
const MEMORY = 'POST /v1/memories';
const REFLECT = 'POST /v1/deployments/{id}/reflect';
const AB = 'GET /v1/skills/{skill_id}/ab';
const NAMES = {
  daybook: 'Daybook',
  pgbench: `pgbench -M prepared, ${CLIENTS} clients`,
  pipelined: 'pgbench pipelined, 4 clients',
  fastify: `Fastify + pg, ${availableParallelism()} processes`,
};

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const range = (values, show) => `${show(Math.min(...values))}–${show(Math.max(...values))}`;
const middle = (runs, pick) => median(runs.map(pick));
const sum = (runs, pick) => runs.reduce((total, run) => total + pick(run), 0);
const whole = (n) => Math.round(n).toLocaleString('en');
const two = (n) => n.toFixed(2);
const one = (n) => n.toFixed(1);
const ms = (us) => (us / 1000).toFixed(us < 10_000 ? 2 : 1);
const mb = (bytes) => `${one(bytes / 1e6)} MB`;

const table = (head, rows) =>
  [head, head.map((_, i) => (i ? '---:' : '---')), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n') +
  '\n';

/** One ratio per round, because a disturbance affects both contenders of a round. */
const roundRatios = (some, others, pick = (run) => run.rps) =>
  some.map((run, round) => pick(run) / pick(others[round]));
const ratios = (runs, other) => roundRatios(runs.daybook, runs[other]);

/** A row of the first table: name, value, target, and whether it is met. */
const target = (what, shown, wanted, met) => [what, shown, wanted, met ? 'yes' : '**no**'];

/** A ratio with a lower or upper limit; failed requests among `runs` count as a miss. */
function limitRow(what, all, sign, limit, runs) {
  const value = median(all);
  const failed = sum(runs, (run) => run.failed);
  return target(
    what,
    `${two(value)} (${range(all, two)})${failed ? `, ${whole(failed)} requests failed` : ''}`,
    `${sign} ${limit}`,
    (sign === '≥' ? value >= limit : value <= limit) && !failed,
  );
}

const ratioRow = (results, kind, other, least, what) =>
  limitRow(`${REQUESTS[kind]}: ${what}`, ratios(results[kind], other), '≥', least, results[kind].daybook);

function cpuRow({ get }) {
  const own = middle(get.daybook, (run) => run.cpu.own);
  const postgres = middle(get.daybook, (run) => run.cpu.postgres);
  return target(
    `${REQUESTS.get}: CPU µs per request, service + PostgreSQL`,
    `${one(own)} + ${one(postgres)} = ${one(own + postgres)}`,
    '≤ 50',
    own + postgres <= 50,
  );
}

const p50 = (run) => run.p50;

function contextRows(runs, ledgers) {
  const [shortest, longest] = [ledgers[0], ledgers.at(-1)];
  const of = (closed, connections) => runs[`${closed} ${connections}`];
  const compared = [shortest, longest].flatMap((closed) => [...of(closed, 1), ...of(closed, CONNECTIONS)]);
  const row = (what, ...rest) => limitRow(`${CONTEXT}: ${what}`, ...rest, compared);
  const grown = `with ${whole(longest)} trades, ratio to ${whole(shortest)}`;
  return [
    row('p50 at one connection, ratio to the raw statement', roundRatios(of(longest, 1), runs['pgbench 1 raw'], p50), '≤', 1.5),
    row('p50 at one connection, ratio to the prepared statement', roundRatios(of(longest, 1), runs['pgbench 1'], p50), '≤', 1.5),
    row('requests per second, ratio to pgbench', roundRatios(of(longest, CONNECTIONS), runs.pgbench), '≥', 0.7),
    row(`requests per second ${grown}`, roundRatios(of(longest, CONNECTIONS), of(shortest, CONNECTIONS)), '≥', 0.8),
    row(`p50 at one connection ${grown}`, roundRatios(of(longest, 1), of(shortest, 1), p50), '≤', 1.2),
  ];
}

const besideRow = ({ alone, beside: other }) =>
  limitRow(
    `${REQUESTS.get}: p50 while another client writes, ratio to reads alone (one loop)`,
    roundRatios(other, alone, p50),
    '≤',
    2,
    [...alone, ...other],
  );

const tickRow = (runs) =>
  limitRow(
    `${TICK}, 3 updates: ticks per second, ratio to pgbench`,
    roundRatios(runs[`update ${CONNECTIONS}`], runs['update pgbench']),
    '≥',
    0.6,
    runs[`update ${CONNECTIONS}`],
  );

const memoriesRows = (runs) => [
  limitRow(
    `${MEMORY}: requests per second, ratio to a plain insert of the row (pgbench)`,
    ratios(runs, 'plain'),
    '≥',
    0.4,
    runs.daybook,
  ),
  shownRow(`${MEMORY}: requests per second, ratio to pgbench on its statement`, ratios(runs, 'pgbench')),
];

const memories = (runs) =>
  ledgerTable([
    [`Daybook, ${CONNECTIONS} connections`, runs.daybook],
    [`its statement: ${NAMES.pgbench}`, runs.pgbench],
    [`a plain insert: ${NAMES.pgbench}`, runs.plain],
  ]) + `\nWhen a run of Daybook ended, ${whole(middle(runs.daybook, (run) => run.unsealed))} of its events were not yet sealed (at most ${whole(Math.max(...runs.daybook.map((run) => run.unsealed)))}).\n`;

const p50Of = (us) => median(us);

function searchRows(memories) {
  const largest = memories.find(({ seed }) => seed);
  const rows = [];
  if (largest) {
    const { count, found, seed } = largest;
    const where = `${SEARCH}, ${whole(count)} entries`;
    const times = p50Of(seed.none) / p50Of(found.none.us);
    rows.push(target(`${where}: speed-up over Python with SQLite and numpy`, one(times), '≥ 20', times >= 20));
    rows.push(target(`${where}: recall@${K}, unfiltered`, two(found.none.recall), '≥ 0.97', found.none.recall >= 0.97));
    const filtered = Math.min(...Object.entries(found).map(([name, { recall }]) => (name === 'none' ? 1 : recall)));
    rows.push(target(`${where}: recall@${K}, worst filter`, two(filtered), '≥ 0.95', filtered >= 0.95));
  }
  const [first, last] = [memories[0], memories.at(-1)];
  if (last.count >= 1e6) {
    const times = p50Of(last.found.none.us) / p50Of(first.found.none.us);
    rows.push(target(`${SEARCH}: p50 with ${whole(last.count)} entries, ratio to ${whole(first.count)}`, two(times), '≤ 3', times <= 3));
  }
  return rows;
}

const search = (memories) =>
  memories
    .map(({ count, dim, found, seed }) => {
      const row = (name, us, recall, exact) => [name, ms(p50Of(us)), ms([...us].sort((a, b) => a - b)[Math.floor(us.length * 0.95)]), recall, exact];
      return (
        `${whole(count)} entries, ${whole(dim)} dimensions:\n\n` +
        table(
          ['filter', 'p50 ms', 'p95 ms', `recall@${K}`, 'compared'],
          [
            ...Object.entries(found).map(([name, { us, recall, exact }]) => row(name, us, recall.toFixed(3), exact ? 'all' : 'index')),
            ...Object.entries(seed ?? {}).map(([name, us]) => row(`Python, SQLite, numpy: ${name}`, us, '1.000', 'all')),
          ],
        )
      );
    })
    .join('\n');

const JOURNAL = 'POST /v1/memories/search';
const READS = { state: 'GET /v1/memory_state', story: 'GET /v1/trade_history/{id}/story' };
/** A journal that is a thousand times longer may have deeper indexes, no more. */
const FLAT = 1.2;

function journalRows({ search: { count, found }, reads }, journals) {
  const [shortest, longest] = [journals[0], journals.at(-1)];
  const times = (search, other) => p50Of(search.memories) / p50Of(search[other]);
  return [
    // Both commit a record. One search varies by more than 5 % between two runs.
    ...Object.entries(found).map(([name, search]) =>
      target(`${JOURNAL}, ${whole(count)} memories, ${name}: p50, ratio to the episodic search with \`record\``, two(times(search, 'recorded')), '≤ 1.05', times(search, 'recorded') <= 1.05),
    ),
    ...Object.entries(found).map(([name, search]) => [`${JOURNAL}, ${name}: the same, ratio to the episodic search without a record`, two(times(search, 'episodic')), '', '']),
    ...Object.entries(READS).map(([what, route]) => {
      const [few, many] = [shortest, longest].map((events) => reads[`${what} ${events}`]);
      return limitRow(`${route}: p50 at one connection with ${whole(longest)} events, ratio to ${whole(shortest)}`, roundRatios(many, few, p50), '≤', FLAT, [...many, ...few]);
    }),
  ];
}

const JOURNAL_NAMES = { memories: JOURNAL, episodic: SEARCH, recorded: `${SEARCH} with \`record\`` };

function journal({ search: { count, dim, found }, reads }, journals) {
  const rows = Object.entries(found).flatMap(([name, search]) =>
    Object.entries(JOURNAL_NAMES).map(([route, what], i) => {
      const us = [...search[route]].sort((a, b) => a - b);
      return [`${name}: ${what}`, ms(p50Of(us)), ms(us[Math.floor(us.length * 0.95)]), i ? '' : search.same.toFixed(2)];
    }),
  );
  const sizes = Object.entries(READS).flatMap(([what, route]) => journals.map((events) => [`${route}, ${whole(events)} events`, reads[`${what} ${events}`]]));
  return (
    `${whole(count)} memories, and as many episodic entries with the same texts and vectors of ${whole(dim)} dimensions:\n\n` +
    `${table(['search', 'p50 ms', 'p95 ms', `equal hits of ${K}`], rows)}\nOne connection, while the journal of the deployment grows:\n\n${ledgerTable(sizes)}`
  );
}

const RERUNS = { rerun: 'a new filing', reuse: 'the prior holds' };

const rerun = (runs) =>
  ledgerTable(
    Object.entries(RERUNS).flatMap(([kind, what]) => [
      [`${what}: Daybook, ${CONNECTIONS} connections`, runs[kind]],
      [`${what}: ${NAMES.pgbench}`, runs[`${kind} pgbench`]],
    ]),
  );

const entries = (runs) =>
  ledgerTable(
    Object.entries(runs).map(([count, all]) => [`Daybook, ${connections(Number(count))}`, all]),
    'entries/s (range)',
  );

/** µs per request of one client. */
const timeOf = (run) => 1e6 / run.rps;

/** A ratio without a target. */
const shownRow = (what, all) => [what, `${two(median(all))} (${range(all, two)})`, '', ''];

const reflectRows = (runs) => [
  shownRow(
    `${REFLECT}, ${whole(TRADES)} trades: time at one connection, ratio to pgbench on its statements`,
    roundRatios(runs[1], runs['pgbench 1'], timeOf),
  ),
  shownRow(
    `${REFLECT}, ${whole(TRADES)} trades: requests per second at ${AT_ONCE} connections, ratio to pgbench on its statements`,
    roundRatios(runs[AT_ONCE], runs[`pgbench ${CLIENTS}`]),
  ),
];

const reflect = (runs) =>
  ledgerTable([
    ...[1, AT_ONCE].map((count) => [`Daybook, ${connections(count)}`, runs[count]]),
    [NAMES.pgbench, runs[`pgbench ${CLIENTS}`]],
    ['pgbench -M prepared, 1 client', runs['pgbench 1']],
  ]);

const AB_NAMES = {
  daybook: 'Daybook',
  pgbench: 'pgbench on its statements',
  seed: "pgbench on plain SQL: an average and a count per revision",
};

const abRows = (runs, { trades, revisions }) =>
  Object.entries({ pgbench: 'pgbench on its statements', seed: 'plain SQL averages' }).map(([name, what]) =>
    shownRow(
      `${AB}, ${whole(revisions)} revisions, ${whole(trades)} trades: time, ratio to ${what}`,
      roundRatios(runs.daybook, runs[name], timeOf),
    ),
  );

const ab = (runs) =>
  table(
    ['', 'ms per request (range)', 'CPU ms: itself + PostgreSQL'],
    Object.entries(AB_NAMES).map(([name, what]) => {
      const all = runs[name];
      const [own, postgres] = [middle(all, (run) => run.cpu.own), middle(all, (run) => run.cpu.postgres)];
      return [
        what,
        `${ms(middle(all, timeOf))} (${range(all.map(timeOf), ms)})`,
        `${ms(own)} + ${ms(postgres)} = ${ms(own + postgres)}`,
      ];
    }),
  );

function modelsRow({ alone, beside }) {
  const row = limitRow(
    `${REQUESTS.get}: p99 with ${IN_FLIGHT} model calls in flight, ratio to none`,
    roundRatios(beside, alone, (run) => run.p99),
    '≤',
    1.5,
    [...alone, ...beside],
  );
  const least = Math.min(...beside.map((run) => run.least));
  if (least >= IN_FLIGHT) return row;
  return [row[0], `${row[1]}, only ${least} in flight`, row[2], '**no**'];
}

const models = ({ alone, beside }) =>
  ledgerTable([
    ['no model calls', alone],
    [`${IN_FLIGHT} in flight, ${one(middle(beside, (run) => run.answers))} completed and restarted per second`, beside],
  ]);

function targets(results, plan) {
  const rows = [];
  if (results.get)
    rows.push(
      ratioRow(results, 'get', 'pgbench', 0.9, 'requests per second, ratio to pgbench'),
      ratioRow(results, 'get', 'fastify', 5, 'requests per second, ratio to Fastify'),
      cpuRow(results),
    );
  if (results.list) rows.push(ratioRow(results, 'list', 'pgbench', 0.5, 'requests per second, ratio to pgbench'));
  if (results.beside) rows.push(besideRow(results.beside));
  if (results.create) rows.push(ratioRow(results, 'create', 'pgbench', 0.5, 'requests per second, ratio to pgbench'));
  if (results.context) rows.push(...contextRows(results.context, plan.ledgers));
  if (results.tick) rows.push(tickRow(results.tick));
  if (results.rerun)
    for (const [kind, what] of Object.entries(RERUNS))
      rows.push(
        limitRow(
          `${RERUN}, ${what}: requests per second, ratio to pgbench`,
          roundRatios(results.rerun[kind], results.rerun[`${kind} pgbench`]),
          '≥',
          0.7,
          results.rerun[kind],
        ),
      );
  if (results.memories) rows.push(...memoriesRows(results.memories));
  if (results.search) rows.push(...searchRows(results.search));
  if (results.journal) rows.push(...journalRows(results.journal, plan.journals));
  if (results.models) rows.push(modelsRow(results.models));
  if (results.reflect) rows.push(...reflectRows(results.reflect));
  if (results.ab) rows.push(...abRows(results.ab, plan.ab));
  if (results.memory) {
    const { open, loaded } = results.memory;
    rows.push(target(`Resident memory with ${whole(OPEN)} open connections`, mb(open), '< 30 MB', open < 30e6));
    rows.push(target(`The same after load at ${CONNECTIONS} more connections`, mb(loaded), '< 30 MB', loaded < 30e6));
  }
  if (results.startup) {
    const { database, fresh, again } = results.startup;
    const row = (what, all, limit) =>
      target(what, `${whole(median(all))} ms (${range(all, whole)})`, `< ${whole(limit)} ms`, median(all) < limit);
    rows.push(row('Start to ready on an existing database', database, 100));
    rows.push(row('Start to ready with an existing private cluster', again, 5000));
    rows.push([
      'Start to ready with a new private cluster',
      `${whole(median(fresh))} ms (${range(fresh, whole)})`,
      '',
      '',
    ]);
  }
  return table(['measured', 'median (range)', 'target', 'met'], rows);
}

/** p50 and p99; pgbench reports only the mean, and nothing comparable for a pipeline. */
function latencies(all) {
  if (all[0].p50 !== undefined) return [ms(middle(all, (run) => run.p50)), ms(middle(all, (run) => run.p99))];
  return [all[0].mean === undefined ? '' : `${ms(middle(all, (run) => run.mean))} (mean)`, ''];
}

/** Requests per second, latencies and CPU time. */
function measured(all) {
  const [own, postgres] = [middle(all, (run) => run.cpu.own), middle(all, (run) => run.cpu.postgres)];
  const isHttp = all[0].cpu.generator > 0;
  const failed = sum(all, (run) => run.failed);
  return {
    rate: `${whole(middle(all, (run) => run.rps))} (${range(
      all.map((run) => run.rps),
      whole,
    )})${failed ? `, ${whole(failed)} failed` : ''}`,
    times: latencies(all),
    cpu: [
      `${one(own)} + ${one(postgres)} = ${one(own + postgres)}`,
      isHttp ? one(middle(all, (run) => run.cpu.generator)) : '',
    ],
  };
}

const TIMES = ['p50 ms', 'p99 ms'];
const CPU = ['CPU µs: itself + PostgreSQL', 'CPU µs: wrk'];

function throughput(runs) {
  const row = (name) => {
    const { rate, times, cpu } = measured(runs[name]);
    return [NAMES[name], rate, name === 'daybook' ? '1' : two(median(ratios(runs, name))), ...times, ...cpu];
  };
  return table(
    ['', 'requests/s (range)', 'Daybook / this', ...TIMES, ...CPU],
    Object.keys(runs).map(row),
  );
}

/** A table of rows [label, runs]. */
const ledgerTable = (rows, rate = 'requests/s (range)') =>
  table(
    ['', rate, ...TIMES, ...CPU],
    rows.map(([what, runs]) => {
      const { rate, times, cpu } = measured(runs);
      return [what, rate, ...times, ...cpu];
    }),
  );

const connections = (count) => (count === 1 ? 'one connection' : `${count} connections`);

function context(runs, ledgers) {
  const longest = ledgers.at(-1);
  const contenders = [
    ...LEVELS.map((count) => [`Daybook, ${connections(count)}`, runs[`${longest} ${count}`]]),
    [NAMES.pgbench, runs.pgbench],
    ['pgbench -M prepared, 1 client', runs['pgbench 1']],
    ['pgbench -M extended, 1 client (the raw statement, parsed and planned each time)', runs['pgbench 1 raw']],
  ];
  const sizes = [CONNECTIONS, 1].flatMap((count) =>
    ledgers.map((closed) => [`${whole(closed)} closed trades, ${connections(count)}`, runs[`${closed} ${count}`]]),
  );
  return (
    `With ${whole(longest)} closed trades in the ledger of the deployment:\n\n${ledgerTable(contenders)}\n` +
    `Daybook, while the ledger grows:\n\n${ledgerTable(sizes)}`
  );
}

const tick = (runs, bulkTicks) =>
  ledgerTable(
    [
      ...LEVELS.map((count) => [`opens a trade: ${connections(count)}`, runs[`open ${count}`]]),
      ...LEVELS.map((count) => [`updates 3: ${connections(count)}`, runs[`update ${count}`]]),
      [`updates 3: ${NAMES.pgbench}`, runs['update pgbench']],
      [`updates 3: ${whole(bulkTicks)} ticks in one body (…/bulk)`, runs['update bulk']],
    ],
    'ticks/s (range)',
  );

function latency(results) {
  const rows = Object.entries(results).flatMap(([kind, runs]) =>
    Object.entries(runs).map(([name, all]) => [
      `${REQUESTS[kind]}: ${name === 'pgbench' ? 'pgbench -M prepared, 1 client' : NAMES[name]}`,
      ...latencies(all),
    ]),
  );
  return table(['', 'p50 ms', 'p99 ms'], rows);
}

const beside = (runs) =>
  table(['', 'p50 ms', 'p99 ms'], [
    ['alone', ...latencies(runs.alone)],
    ['while another client writes lessons', ...latencies(runs.beside)],
  ]);

/* Above this load, the scheduler favours contenders with many processes. */
const QUIET = 0.1;

function disturbance(results) {
  const all = ['get', 'list', 'create', 'context', 'tick', 'rerun', 'entries', 'memories', 'reflect', 'ab', 'models'].flatMap((part) => Object.values(results[part] ?? {}).flat());
  all.push(...Object.values(results.journal?.reads ?? {}).flat());
  if (all.length === 0) return '';
  const share = (pick) =>
    `${one(100 * median(all.map(pick)))} % of one core (at most ${one(100 * Math.max(...all.map(pick)))} %)`;
  const quiet = median(all.map((run) => run.cpu.others + run.cpu.steal)) <= QUIET;
  return (
    `During the measurement other programs used ${share((run) => run.cpu.others)}, and the hypervisor ${share((run) => run.cpu.steal)}.\n` +
    (quiet ? '' : '**The machine was not quiet: do not trust the numbers below.**\n')
  );
}

export function render(results, plan, machine, seconds) {
  const sections = [
    '# Benchmark results\n',
    `Written by \`bench/run\` on ${new Date().toISOString().slice(0, 10)}, in one run of ${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s.\n`,
    machine.map((line) => `- ${line}\n`).join(''),
    disturbance(results),
    `## Targets\n\n${targets(results, plan)}`,
  ];
  for (const kind of Object.keys(REQUESTS))
    if (results[kind])
      sections.push(`## ${REQUESTS[kind]}, ${CONNECTIONS} connections\n\n${throughput(results[kind])}`);
  if (results.context) sections.push(`## ${CONTEXT}\n\n${context(results.context, plan.ledgers)}`);
  if (results.tick) sections.push(`## ${TICK}\n\n${tick(results.tick, plan.bulkTicks)}`);
  if (results.rerun) sections.push(`## ${RERUN}\n\n${rerun(results.rerun)}`);
  if (results.entries) sections.push(`## POST /v1/episodic with the built-in embedder\n\n${entries(results.entries)}`);
  if (results.memories) sections.push(`## ${MEMORY}\n\n${memories(results.memories)}`);
  if (results.search) sections.push(`## ${SEARCH}, one connection\n\n${search(results.search)}`);
  if (results.journal) sections.push(`## The journal: searches and reads\n\n${journal(results.journal, plan.journals)}`);
  if (results.reflect)
    sections.push(`## ${REFLECT} with the built-in reflector, ${whole(TRADES)} trades\n\n${reflect(results.reflect)}`);
  if (results.ab)
    sections.push(`## ${AB}, ${whole(plan.ab.revisions)} revisions, ${whole(plan.ab.trades)} trades, one connection\n\n${ab(results.ab)}`);
  if (results.models)
    sections.push(`## ${REQUESTS.get}, ${READERS} connections, during model calls\n\n${models(results.models)}`);
  if (results.latency) sections.push(`## One connection\n\n${latency(results.latency)}`);
  if (results.beside) sections.push(`## ${REQUESTS.get}, one connection, one loop\n\n${beside(results.beside)}`);
  if (results.memory)
    sections.push(
      `## Memory\n\nResident memory of the service alone: ${mb(results.memory.idle)} at start, ${mb(results.memory.open)} with ${whole(OPEN)} open connections after one request each, and ${mb(results.memory.loaded)} after all three kinds of load with these still open.\n`,
    );
  sections.push(`## Method\n\n${method(plan)}`);
  return sections.filter(Boolean).join('\n');
}

const method = (plan) =>
  [
    `**Machine.** The load generator (wrk, one thread), the contender and PostgreSQL share the ${availableParallelism()} cores. A faster contender leaves less for the others, so compare ratios, not absolute numbers. All use loopback or a Unix socket.`,
    `**Data.** All use one cluster: the private one that \`./run\` creates, durable (fsync and synchronous_commit on), with ${whole(plan.lessons)} lessons of random text written through the API. Reads pick random ones.`,
    `**Rounds.** ${plan.rounds} rounds of ${plan.seconds} s per contender (${plan.ledgerSeconds} s for the ledger, ${plan.oneConnectionSeconds} s for lessons at one connection). Contenders take turns, and each round starts with another one. Values are medians of the rounds. A ratio is the median of the ratios of the rounds.`,
    `**Daybook** runs with its defaults and logs one line per request (to /dev/null).`,
    `**pgbench** runs the service's prepared statements with the text and session settings recorded between the service and PostgreSQL. It fetches ids 32 at a time with a read that counts like the others, and new lessons 8 at a time with a read that does not count. Connecting and preparing finish before the clock starts. In a pipeline many statements share one round trip and one sync.`,
    `**Fastify** validates and serializes with its schemas and runs the same statements by name over 16 connections. It does less: no request log, no keys, no ETag, no request id, and precomputed near-duplicate keys.`,
    `**Context.** A live deployment at the current time: 10 closed trades, 3 positions, 5 rejections in the last hour. The first trades and the last hour of each ledger were posted to the service. SQL copied the first ones (five trades opened by one tick and closed by the next, with their snapshots) under new ids and times. The longest ledger is in the database that pgbench reads too; each of the others has its own database and service. pgbench executes the statement once per transaction. At one client its p50 comes from its log. Fastify has no context.`,
    `**Ticks.** A tick is two statements, each a transaction: one reads the state, the other writes the changes if the state is still the same. Updates go to 1,024 deployments in turn, with 3 positions each. An open is the first tick of a deployment, with 100 bars. pgbench runs the same two statements, with one deployment per client. It passes the state from the first to the second; the other values were recorded from the service, with new ids and times inserted by format() in a read of 8 ticks that does not count. A tick that is rejected or not stored ends the run.`,
    `**should_rerun.** 500 tickers with 20 task types each and five entries per pair, one of them in the last 14 days. With a new filing it is one read. If the prior holds, the reuse is also written before the response. pgbench runs the same statements. It fetches tickers and ids with a read: 32 at a time for the first, where the read counts, and 8 at a time for the second, where it does not. New entries have 35 random words, which the service embeds.`,
    `**Search.** Entries in 200 clusters of random directions, created by SQL. ${plan.queries} queries, each near an entry, ${plan.rounds} times, one at a time, by vector. Sector and industry follow the clusters; ticker and task type do not; "another" is a value that does not occur near the query. Recall is relative to the exact order of all stored vectors. The Python program stores vectors as blobs in SQLite and compares them with numpy (${plan.seedSearches} searches). The memory of a million entries is included if \`bench/run --build-million\` has built it.`,
    `**Memories.** Notes of 20 to 40 random words for 64 deployments, each with its event. The service seals the events while it is measured; vectors follow later and are skipped here, because the service computes few while requests arrive. pgbench runs the statement of the service, and a plain insert of the same row into a table with a primary key and one index, without words, event, checks or foreign key.`,
    `**The journal.** Searches: the episodic entries of the search part in ${whole(plan.journalSearch.dim)} dimensions, and a memory for each with its text and vector. Every search of memories stores what was asked and given with an event; the episodic search stores it only with \`record\`. Each query is asked of both in turn. Reads: deployments with ten events per closed trade (two searches, a proposal, a thesis, a decision, an order with its outcome, an observation, the closing order, the close of the thesis), created by SQL with the rows that they are about, three held symbols with a thesis each, and ${whole(LESSONS)} validated lessons, each in its own database. The story is that of the trade in the middle.`,
    `**Reflection.** ${plan.reflecting} deployments with ${whole(TRADES)} closed trades each, created by SQL, in turn and forced. Each is claimed, its trades are read, a note is computed and stored, and the old note is superseded. pgbench runs the same statements with a note recorded from the service. It computes no note: the difference in time is the cost of the note.`,
    `**Comparison of lessons.** One deployment with equally many trades under each revision, 8 symbols and 4 regimes. ${plan.abSeconds} s per contender and round, one request after the other. The averages are checked against plain SQL. The service also computes medians, bootstrap intervals and corrected p-values of two metrics, overall, by regime and by symbol.`,
    `**Model calls.** The service uses a local stub model, which responds after up to ${plan.modelSeconds} s and runs in the benchmark process. The calls are reflections on ${whole(MODEL_TRADES)} trades, each restarted when it completes. Reads go to the same service, alternating with and without such calls.`,
    `**CPU time** is utime + stime from /proc, of all processes of the contender and of the cluster, divided by the requests of the same period.`,
  ]
    .map((line) => `- ${line}\n`)
    .join('');
