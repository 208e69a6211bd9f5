// The journal: search in memories beside the episodic search, and reads of journals of up to a million events.
import { openDatabase } from './context.mjs';
import { newHistory } from './ledger.mjs';
import { sealAll } from './memories.mjs';
import { request } from './stage.mjs';
import { lessonMaker, memoryMaker } from './texts.mjs';
import { daybookContender, rounds } from './throughput.mjs';
import { columnOf, fillVectors, queryVectors } from './vectors.mjs';

const K = 5;
const HELD = ['BTC', 'ETH', 'SOL']; // of the last hour of lib/ledger.mjs
export const LESSONS = 20;

async function ask(base, method, path, body) {
  const { status, text } = await request(base, method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return JSON.parse(text);
}

/* ---- search ---- */

/** Writes each entry of the episodic memory as a memory too, with its id, texts and vector. */
async function copyEntries(client, dim) {
  const column = columnOf(dim);
  const index = `daybook.memory_vectors_${column}`;
  const [{ definition }] = (await client.query('select pg_get_indexdef($1::regclass) as definition', [index])).rows;
  await client.query(`drop index ${index}`);
  await client.query(
    `insert into memories (owner, id, version, known_from, kind, status, at, text_id, text, symbol, tags, embedding_status)
     select owner, id, 1, created_at, (array['note', 'proposal', 'risk_note'])[1 + abs(hashtext(question)) % 3], 'active', created_at, id,
       question || ' ' || answer, ticker, array[task_type], 'embedded'
     from episodic_memory order by created_at`,
  );
  await client.query(
    `insert into memory_vectors (owner, text_id, memory_id, model, dim, ${column})
     select owner, episode_id, episode_id, model, dim, ${column} from episodic_vectors`,
  );
  await client.query(definition);
  await client.query('vacuum analyze memories');
  await client.query('vacuum analyze memory_vectors');
}

/** What is searched for, in both memories. */
const SEARCHES = {
  'by vector': () => [{}, {}],
  'by vector and words': (n, cluster) => [{ text: `answer ${cluster}` }, { text: `answer ${cluster}` }],
  'by vector, one symbol in 20': (n) => [{ symbol: `T${n % 20}` }, { ticker: `T${n % 20}` }],
};
const MEMORIES = '/v1/memories/search';
const EPISODIC = '/v1/episodic/search';
const ROUTES = {
  memories: (memory) => [MEMORIES, memory],
  episodic: (memory, entry) => [EPISODIC, entry],
  recorded: (memory, entry) => [EPISODIC, { ...entry, record: true }], // each search of the memories is
};

async function timed(base, [path, body]) {
  const began = performance.now();
  const { items } = await ask(base, 'POST', path, body);
  return { us: (performance.now() - began) * 1000, ids: items.map((item) => item.id) };
}

/** {search: {memories, episodic, recorded: µs of each, same: the share of equal hits}}; the routes take turns. */
async function measureSearches(base, queries, plan) {
  const found = {};
  const routes = Object.keys(ROUTES);
  for (const name of Object.keys(SEARCHES)) found[name] = { same: 0, ...Object.fromEntries(routes.map((route) => [route, []])) };
  for (let round = -1; round < plan.rounds; round++)
    for (const [name, bodies] of Object.entries(SEARCHES))
      for (const [n, { cluster, vector }] of queries.entries()) {
        const asked = bodies(n, cluster).map((more) => ({ vector, model: 'bench', k: K, ...more }));
        const results = {};
        for (let i = 0; i < routes.length; i++) {
          const route = routes[(n + round + 1 + i) % routes.length];
          results[route] = await timed(base, ROUTES[route](...asked));
          if (round >= 0) found[name][route].push(results[route].us);
        }
        if (round < 0) found[name].same += results.memories.ids.filter((id) => results.episodic.ids.includes(id)).length;
      }
  for (const search of Object.values(found)) search.same /= queries.length * K;
  return found;
}

async function measureSearch(stage, { count, dim }, plan) {
  const name = `journal_search_${count}`;
  const place = await openDatabase(stage, name);
  await fillVectors(place.client, { count, dim });
  await copyEntries(place.client, dim);
  const queries = await queryVectors(place.client, { count: plan.queries });
  const found = await measureSearches(place.service.base, queries, plan);
  await place.close();
  await place.service.stop();
  await stage.query(`drop database ${name}`);
  return { count, dim, found };
}

/* ---- the state and the story, while the journal grows ---- */

const EVENTS_PER_TRADE = 10;
const ID = (kind) => `format('0191000${kind}-0000-7000-8000-%s', lpad(to_hex(k), 12, '0'))::uuid`;

/* The closed trades of a deployment, numbered in the order of their entries, with the ids of what happened around them. */
const TRADES = `
  select t.*, ${ID(1)} as search_1, ${ID(2)} as search_2, ${ID(3)} as proposal, ${ID(4)} as decision, ${ID(5)} as thesis, ${ID(6)} as order_1,
    ${ID(7)} as order_2
  from (select row_number() over (order by entry_tick_at, id) - 1 as k, id, symbol, side, entry_tick_at as entry, exit_tick_at as exit,
          entry_snapshot_id as snapshot
        from trade_history where owner = 'local' and deployment_id = $1 and status = 'closed') t`;

/* Around each trade: two searches, a proposal, a thesis, a decision, an order with its outcome, an observation, the order that closes it, and
 * the close of the thesis. The rows and their events are like those that the service writes. */
const FILL = [
  `insert into memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id, symbol, rendered, tokens)
   select 'local', r.id, 'memories', r.at, jsonb_build_object('text', 'breakout of ' || t.symbol), jsonb_build_object('symbol', t.symbol), '[]',
     array[t.thesis], $1, t.symbol, '<memories>' || t.k || '</memories>', 60
   from made t, lateral (values (t.search_1, t.entry - interval '90 s'), (t.search_2, t.entry - interval '40 s')) r (id, at) order by t.k, r.at`,
  `insert into memories (owner, id, version, known_from, known_until, kind, status, at, text_id, text, symbol, action, side, deployment_id, thesis_id,
     outcome, status_reason, embedding_status)
   select 'local', m.id, m.version, m.known_from, m.known_until, m.kind, m.status, m.at, m.id, m.said || t.symbol || ' ' || t.k, t.symbol, m.action,
     m.side, $1, m.thesis, m.outcome, m.reason, 'none'
   from made t, lateral (values
     (t.proposal, 1, t.entry - interval '60 s', timestamptz 'infinity', 'proposal', 'active', t.entry - interval '60 s', 'enter ', null, null, null::uuid, null::jsonb, null),
     (t.thesis, 1, t.entry - interval '50 s', t.exit, 'thesis', 'open', t.entry - interval '50 s', 'the trend holds in ', null, t.side, null, null, null),
     (t.decision, 1, t.entry - interval '30 s', 'infinity', 'decision', 'active', t.entry - interval '30 s', 'buy ', 'buy', null, t.thesis, null, null),
     (t.thesis, 2, t.exit, 'infinity', 'thesis', 'closed', t.entry - interval '50 s', 'the trend holds in ', null, t.side, null, '{"result":"target"}'::jsonb, 'target')
   ) m (id, version, known_from, known_until, kind, status, at, said, action, side, thesis, outcome, reason) order by t.k, m.known_from`,
  `insert into orders (owner, id, deployment_id, client_order_id, at, symbol, action, side, size, reason, thesis_id, decision_id, outcome, outcome_at, outcome_data)
   select 'local', o.id, $1, o.client, o.at, t.symbol, o.action, t.side, 1, 'breakout', t.thesis, o.decision, o.outcome, o.outcome_at, o.data
   from made t, lateral (values
     (t.order_1, t.k || 'a', t.entry - interval '20 s', 'buy', t.decision, 'filled', t.entry - interval '10 s', '{"price":100}'::jsonb),
     (t.order_2, t.k || 'b', t.exit - interval '20 s', 'close', null, null, null, null)
   ) o (id, client, at, action, decision, outcome, outcome_at, data) order by t.k, o.at`,
  // The hashes are no chain: nothing that is measured verifies it.
  `insert into memory_events (owner, journal_id, seq, hash, kind, at, symbol, subject_id, data)
   select 'local', $1, $2::bigint + ${EVENTS_PER_TRADE} * t.k + e.place, encode(sha256(int8send(t.k * 16 + e.place)), 'hex'), e.kind, e.at, t.symbol, e.subject, e.data
   from made t, lateral (values
     (1, 'memory.searched', t.entry - interval '90 s', t.search_1, '{"selection":[],"tokens":60}'::jsonb),
     (2, 'memory.created', t.entry - interval '60 s', t.proposal, '{"version":1,"kind":"proposal"}'),
     (3, 'thesis.opened', t.entry - interval '50 s', t.thesis, '{"version":1}'),
     (4, 'memory.searched', t.entry - interval '40 s', t.search_2, '{"selection":[],"tokens":60}'),
     (5, 'memory.created', t.entry - interval '30 s', t.decision, '{"version":1,"kind":"decision"}'),
     (6, 'order.submitted', t.entry - interval '20 s', t.order_1, '{"action":"buy"}'),
     (7, 'order.outcome', t.entry - interval '10 s', t.order_1, '{"outcome":"filled"}'),
     (8, 'thesis.outcome_observed', t.entry, t.thesis, jsonb_build_object('trade_id', t.id, 'snapshot_id', t.snapshot, 'unrealized_pnl_usd', 1)),
     (9, 'order.submitted', t.exit - interval '20 s', t.order_2, '{"action":"close"}'),
     (10, 'thesis.closed', t.exit, t.thesis, '{"version":2}')
   ) e (place, kind, at, subject, data) order by t.k, e.place`,
];

/** A deployment with that many events in its journal, and what the service writes last: theses of the held symbols, decisions, lessons. */
async function fillJournal({ service, query }, events) {
  const { base } = service;
  const id = await newHistory(base, query, events / EVENTS_PER_TRADE);
  await sealAll(query);
  const [{ last }] = await query('select coalesce(max(seq), 0) as last from memory_events where journal_id = $1', [id]);
  await query('set session_replication_role = replica'); // skips foreign key checks
  await query(`create temp table made as ${TRADES}`.replace('$1', `'${id}'`));
  for (const sql of FILL) await query(sql.replaceAll('$1', `'${id}'::uuid`).replaceAll('$2', last));
  await query(
    `insert into memory_journals (owner, journal_id, seq, hash)
     select owner, journal_id, seq, hash from memory_events where owner = 'local' and journal_id = $1 order by seq desc limit 1
     on conflict (owner, journal_id) do update set seq = excluded.seq, hash = excluded.hash`,
    [id],
  );
  await query('set session_replication_role = origin');
  const [{ story }] = await query('select id as story from made where k = (select max(k) / 2 from made)');
  await query('drop table made');
  const text = memoryMaker(11);
  const lesson = lessonMaker(12);
  for (const symbol of HELD) await ask(base, 'POST', '/v1/theses', { deployment_id: id, symbol, side: 'long', text: text().text });
  for (let i = 0; i < LESSONS; i++) {
    const { id: made } = await ask(base, 'POST', '/v1/lessons', lesson());
    await ask(base, 'POST', `/v1/lessons/${made}/validate`, { outcome: { metric: 'hit_rate', value: 0.7, sample_size: 12 } });
  }
  await sealAll(query);
  await query('vacuum analyze');
  await query('checkpoint');
  return { id, story };
}

/** Checks the data before measuring: the number of events, a state of full size, and a story with every kind of entry. */
async function check({ service, query, id, paths }, events) {
  const [{ n }] = await query('select count(*)::int as n from memory_events where journal_id = $1', [id]);
  const state = await ask(service.base, 'GET', paths.state);
  const story = await ask(service.base, 'GET', paths.story);
  const kinds = new Set(story.entries.map((entry) => entry.kind));
  const wanted = ['retrieval', 'thesis.opened', 'decision', 'order', 'observation', 'thesis.closed'];
  if (n < events || state.positions.length !== HELD.length || wanted.some((kind) => !kinds.has(kind)))
    throw new Error(`a journal of ${events} events has ${n}: ${JSON.stringify(state)}, ${[...kinds]}`);
}

async function openJournals(stage, plan) {
  const journals = [];
  for (const events of plan.journals) {
    const place = await openDatabase(stage, `journal_${events}`);
    const { id, story } = await fillJournal(place, events);
    const paths = { state: `/v1/memory_state?deployment_id=${id}`, story: `/v1/trade_history/${story}/story` };
    await check({ ...place, id, paths }, events);
    await place.close();
    journals.push({ ...place, events, paths });
  }
  return journals;
}

/** {search, reads}: `reads` has runs by `state` or `story` and the number of events. */
export async function measureJournal(stage, plan) {
  const search = await measureSearch(stage, plan.journalSearch, plan);
  const journals = await openJournals(stage, plan);
  const all = ['state', 'story'].flatMap((what) =>
    journals.map(({ service, events, paths }) =>
      daybookContender(stage, `${what} ${events}`, 'path', 1, { service, more: [paths[what]] }),
    ),
  );
  const reads = await rounds(all, plan.rounds, plan.ledgerSeconds);
  for (const { service } of journals) await service.stop();
  return { search, reads };
}
