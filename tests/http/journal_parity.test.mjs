// The same 2,000 ticks and journal calls leave the same journal: in a simulation and live, one by one and in bulk.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { assertWhole, eventsOf } from '../lib/events.mjs';
import { newOrder, newThesis } from '../lib/journal.mjs';
import { deploy, newTick, position, putVersion } from '../lib/ledger.mjs';
import { everyItem } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const TICKS = 2000;
const SYMBOLS = ['BTC', 'ETH', 'SOL'];
const START = Date.UTC(2026, 0, 1);
/** Vectors are made whenever the background job comes to them, so that a search could find them in one world and not in another. */
const s = suite({ args: ['--backfill', 'off'] });

const time = (i, seconds = 0) => new Date(START + i * 13 * 60_000 + seconds * 1000).toISOString().replace('.000', '');

// ---- what happens ----

/** Numbers from 0 to below n, the same in every run. */
function dice(seed) {
  let state = seed;
  return (n) => Math.floor(((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648) * n);
}

/** One journal call before a tick, of those that are possible now. */
function journalCall(roll, symbol, at, open) {
  const about = { symbol, text: `${symbol} trades ${['heavily', 'thinly', 'sideways'][roll(3)]} at ${at}` };
  if (!open[symbol]) {
    open[symbol] = true;
    return (w) => w.open({ ...about, at, invalidation: 'a close below the range' });
  }
  switch (roll(8)) {
    case 0: {
      delete open[symbol];
      const outcome = { metric: 'return', value: roll(9) };
      return (w) => w.close(symbol, { at, reason: 'it is over', outcome });
    }
    case 1:
      return (w) => w.change(symbol, { at, text: `${about.text}, again` });
    case 2:
      return (w) => w.post('/v1/memories', { ...about, kind: 'decision', action: 'hold', at, deployment_id: w.id });
    case 3:
      return (w) => w.post('/v1/memories', { ...about, kind: 'note', at, deployment_id: w.id, model_call_id: `call ${at}` });
    default: {
      const search = roll(2) ? { symbol } : { text: `${symbol} heavily`, k: 5 };
      return (w) => w.search({ ...search, as_of: at, agent_name: 'trader' });
    }
  }
}

/** The positions of a tick: `held` is [size, mark] by symbol. A price is left out now and then. */
const positionsOf = (roll, held) =>
  Object.entries(held).map(([symbol, [size, mark]]) => ({ ...position(symbol, roll(40) ? mark : undefined, { size_base: Math.abs(size), side: size > 0 ? 'long' : 'short' }) }));

/** Changes a position; returns the proposed action. */
function trade(roll, held, symbol) {
  const [size, mark] = held[symbol] ?? [0, 100 + roll(50)];
  const next = !size ? 1 + roll(4) : [size * 2, size / 2, -size, 0][roll(4)];
  if (next) held[symbol] = [next, mark];
  else delete held[symbol];
  return { kind: !next ? 'close_position' : size ? 'adjust_position' : 'propose_order', symbol, reason: `step to ${next}` };
}

/** The steps of a run: ticks, and functions of the world that make the journal calls between them. */
function script() {
  const roll = dice(13);
  const held = {};
  const open = {};
  const steps = [];
  for (let i = 0; i < TICKS; i++) {
    const symbol = SYMBOLS[roll(3)];
    const order = (seconds) => (w) => w.post('/v1/orders', newOrder({ symbol, deployment_id: w.id, reason: 'planned', at: time(i, seconds) }));
    if (!roll(14)) steps.push(journalCall(roll, symbol, time(i, -300), open));
    for (const [name, [size, mark]] of Object.entries(held)) held[name] = [size, mark + roll(7) - 3 || 1];
    const changes = !roll(9);
    const announced = changes ? roll(8) : null; // 0, 1: before the tick; 2: after it
    if (announced === 0) steps.push(order(-60));
    if (announced === 1) steps.push(order(0));
    const proposed_action = changes ? trade(roll, held, symbol) : { kind: 'hold' };
    steps.push(newTick(time(i), { positions: positionsOf(roll, held), marks: { [symbol]: 100 }, proposed_action, engine: { kind: roll(12) ? 'executed' : 'rejected' } }));
    if (announced === 2) steps.push(order(0));
  }
  return steps;
}

// ---- the worlds ----

/** A deployment of an owner of its own, with the calls that the script makes. */
async function makeWorld(mode, bulk) {
  const name = `${mode}-${bulk ? 'bulk' : 'single'}`;
  const { key } = await createKey(s.url, name, 'agent');
  const api = makeClient(s.service.base, { headers: { authorization: `Bearer ${key}` } });
  await putVersion(api, { skill_id: 'parity', version: '1' });
  const { id } = await deploy(api, { skill_id: 'parity', version: '1', mode, at: time(0, -3600) });
  const theses = {};
  const answers = [];
  const keep = (answer) => answers.push(answer.json);
  const w = { name, api, id, answers };
  w.post = async (path, body) => keep(await api.post(path, body, { status: 201 }));
  w.open = async (body) => {
    await w.post('/v1/theses', newThesis({ deployment_id: id, ...body }));
    theses[body.symbol] = answers.at(-1).id;
  };
  w.close = async (symbol, body) => keep(await api.post(`/v1/theses/${theses[symbol]}/close`, body, { status: 200 }));
  w.change = async (symbol, body) => keep(await api('PATCH', `/v1/theses/${theses[symbol]}`, { body, status: 200 }));
  w.search = async (body) => keep(await api.post('/v1/memories/search', { deployment_id: id, max_tokens: 400, ...body }, { status: 200 }));
  w.ticks = async (ticks) => {
    if (!bulk) for (const tick of ticks) keep(await api.post(`/v1/deployments/${id}/ticks`, tick, { status: 200 }));
    else answers.push(...(await upload(api, id, ticks)));
  };
  return w;
}

async function upload(api, id, ticks) {
  const body = ticks.map((tick) => `${JSON.stringify(tick)}\n`).join('');
  const { text } = await api.post(`/v1/deployments/${id}/ticks/bulk`, body, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  const lines = text.trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(lines.pop().applied, ticks.length);
  return lines.map(({ line, ...answer }) => answer);
}

/** Runs the script. Ticks are collected until the next journal call. */
async function run(w, steps) {
  let ticks = [];
  for (const step of [...steps, async () => {}]) {
    if (typeof step !== 'function') {
      ticks.push(step);
      continue;
    }
    if (ticks.length) await w.ticks(ticks);
    ticks = [];
    await step(w);
  }
}

// ---- comparing ----

/** Everything that can be read about the journal of the world. */
async function readAll({ api, id, answers }) {
  const of = `deployment_id=${id}`;
  await until(async () => (await api.get(`/v1/memory_events/verify?${of}`, { status: 200 })).json.items[0].pending === 0);
  const events = await assertWhole(api, of);
  const retrievals = await everyItem(api, `/v1/memory_retrievals?${of}&limit=200`);
  const instants = Array.from({ length: 9 }, (_, i) => time((i + 1) * (TICKS / 9), 1));
  const read = async (path) => (await api.get(path, { status: 200 })).json;
  const trades = await everyItem(api, `/v1/trade_history?${of}&limit=200`);
  return {
    events,
    answers,
    retrievals: await Promise.all(retrievals.map((r) => read(`/v1/memory_retrievals/${r.id}`))),
    states: await Promise.all(instants.map((at) => read(`/v1/memory_state?${of}&max_tokens=300&as_of=${at}`))),
    orders: await everyItem(api, `/v1/orders?${of}&limit=200`),
    theses: await everyItem(api, `/v1/theses?${of}&limit=200`),
    memories: await everyItem(api, `/v1/memories?${of}&limit=200`),
    trades,
    stories: await Promise.all(trades.slice(0, 5).map((t) => read(`/v1/trade_history/${t.id}/story`))),
  };
}

const WALL_CLOCK = new Set(['created_at', 'updated_at', 'recorded_at']);
/** What depends on ids or on the clock: hashes. Budgets do not, so they are small enough to leave something out. */
const DERIVED = new Set(['hash', 'prev_hash', 'content_hash', 'sha256', 'rendered_sha256']);
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** One line per item, with ids numbered in the order in which they appear. */
function linesOf(world) {
  const seen = new Map();
  const numbered = (id) => seen.get(id) ?? seen.set(id, `#${seen.size}`).get(id);
  const kept = (key, value) => (WALL_CLOCK.has(key) || DERIVED.has(key) ? undefined : value);
  return Object.entries(world).flatMap(([name, items]) => items.map((item) => `${name} ${JSON.stringify(item, kept).replace(UUID, numbered)}`));
}

function assertSame(got, expected, what) {
  const different = expected.findIndex((line, i) => line !== got[i]);
  if (different >= 0) assert.equal(got[different], expected[different], `${what}, line ${different}`);
  assert.equal(got.length, expected.length, what);
}

test('2,000 ticks and journal calls leave the same journal in a simulation and live, one by one and in bulk', async () => {
  const steps = script();
  assert.equal(steps.filter((step) => typeof step !== 'function').length, TICKS);
  const worlds = [];
  for (const [mode, bulk] of [['sim', true], ['live', true], ['sim', false]]) worlds.push(await makeWorld(mode, bulk));
  await Promise.all(worlds.map((w) => run(w, steps)));
  const [first, ...others] = await Promise.all(worlds.map(readAll));
  const counted = Object.groupBy(first.events, (event) => event.kind);
  for (const kind of ['memory.created', 'memory.searched', 'thesis.opened', 'thesis.changed', 'thesis.closed', 'order.submitted', 'action.executed', 'thesis.not_retrieved', 'thesis.outcome_observed'])
    assert.ok(counted[kind]?.length >= 5, `${kind}: ${counted[kind]?.length}`);
  assert.ok(counted['action.executed'].some((e) => e.data.warnings.length) && counted['action.executed'].some((e) => !e.data.warnings.length));
  assert.ok(counted['thesis.outcome_observed'].some((e) => e.data.mark_price === null), 'a price that was not known');
  const days = counted['thesis.outcome_observed'].map((e) => `${e.subject_id} ${e.at.slice(0, 10)}`);
  assert.equal(new Set(days).size, days.length, 'one observation per thesis and day');
  const expected = linesOf(first);
  others.forEach((world, i) => assertSame(linesOf(world), expected, worlds[i + 1].name));
  worlds.forEach((w) => w.api.close());
});
