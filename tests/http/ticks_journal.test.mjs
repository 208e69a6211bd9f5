// What ticks leave in the journal: observations of open theses, executed actions that no order announced, and their warnings.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertWhole } from '../lib/events.mjs';
import { holding, openThesis, order, retrieved } from '../lib/journal.mjs';
import { deploy, newTick, position, postTick } from '../lib/ledger.mjs';
import { day } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const thesisOf = (deployment_id, at, changes = {}) => openThesis(s.api, { symbol: 'BTC', deployment_id, at, ...changes });
const close = (id, at) => s.api.post(`/v1/theses/${id}/close`, { reason: 'over', at }, { status: 200 });
const executed = (kind = 'adjust_position', symbol = 'BTC') => ({ proposed_action: { kind, symbol, reason: 'stronger' }, engine: { kind: 'executed' } });
const long = (size_base, mark_price = 100, symbol = 'BTC') => ({ positions: size_base ? [position(symbol, mark_price, { size_base })] : [] });
const short = (size_base) => ({ positions: [position('BTC', 100, { side: 'short', size_base })] });
/** A tick of the deployment after which BTC has this size. */
const hold = (id, at, size, more) => postTick(s.api, id, at, { ...long(size), ...more });
/** A tick that executes a change of BTC to this size. */
const change = (id, at, size, more) => hold(id, at, size, { ...executed(), ...more });
const warned = (answer) => answer.warnings.map((w) => w.thesis_id);

/** The events of a deployment that ticks and orders leave, in the order of writes. */
const eventsOf = (id, kind = '(thesis.outcome_observed|thesis.not_retrieved|action.executed|order.submitted)') =>
  s.query('SELECT kind, at, symbol, subject_id, data FROM daybook.memory_events WHERE journal_id = $1 AND kind ~ $2 ORDER BY n', [id, `^${kind}$`]);
const observed = async (id, thesis) => (await eventsOf(id, 'thesis.outcome_observed')).filter((e) => !thesis || e.subject_id === thesis.id).map((e) => e.at.toISOString().replace('.000', ''));
const actions = async (id) => (await eventsOf(id, 'action.executed')).map((e) => [e.data.action, e.data.size, e.data.warnings.length]);

// ---- observations ----

test('an open thesis of a held symbol is observed with quantity, mark, value and unrealized result', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(3));
  const { open, snapshot_id } = await hold(id, day(4), 2.5, { positions: [position('BTC', 110, { size_base: 2.5 })] });
  const [event, ...none] = await eventsOf(id);
  assert.deepEqual(none, []);
  assert.deepEqual([event.kind, event.at.toISOString(), event.symbol, event.subject_id], ['thesis.outcome_observed', '2026-01-04T00:00:00.000Z', 'BTC', thesis.id]);
  const average = open[0].average_entry_price;
  assert.deepEqual(event.data, {
    snapshot_id,
    trade_id: open[0].trade_id,
    side: 'long',
    quantity: 2.5,
    mark_price: 110,
    market_value_usd: 275,
    unrealized_pnl_usd: 2.5 * (110 - average),
  });
});

test('the result of a short position has the other sign, and all decimals are kept', async () => {
  const { id } = await deploy(s.api, { mode: 'sim', at: day(1) });
  await thesisOf(id, day(1));
  const tick = (at, mark) => `{"tick_at":"${at}","portfolio":{"equity_usd":1,"positions":[{"symbol":"BTC","side":"short","size_base":0.10,"mark_price":${mark}}]}}`;
  await s.api.post(`/v1/deployments/${id}/ticks`, tick(day(2), '0.000000000000000003'), { status: 200 });
  await s.api.post(`/v1/deployments/${id}/ticks`, tick(day(3), '0.000000000000000001'), { status: 200 });
  const [row] = await s.query("SELECT data::text FROM daybook.memory_events WHERE journal_id = $1 AND kind = 'thesis.outcome_observed' ORDER BY n DESC LIMIT 1", [id]);
  for (const part of ['"quantity": 0.10', '"market_value_usd": 0.00000000000000000010', '"unrealized_pnl_usd": 0.00000000000000000020'])
    assert.ok(row.data.includes(part), row.data);
});

test('the price is unknown if the tick has none, whatever the ledger remembers', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2));
  const unpriced = { positions: [{ symbol: 'BTC', side: 'long', size_base: 1 }] };
  await postTick(s.api, id, day(3), unpriced);
  await postTick(s.api, id, day(4), { ...unpriced, marks: { BTC: 90 } });
  const data = (await eventsOf(id)).map((e) => [e.data.quantity, e.data.mark_price, e.data.market_value_usd, e.data.unrealized_pnl_usd]);
  assert.deepEqual(data, [[1, null, null, null], [1, 90, 90, -10]]);
});

test('there is one observation per UTC day, and midnight begins the next day', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2, '12:00:00'));
  for (const at of [day(2, '23:59:58'), day(2, '23:59:59'), '2026-01-02T23:59:59.999999Z', day(3), '2026-01-03T00:00:00.000001Z', day(3, '23:59:59'), day(5)]) await hold(id, at, 1);
  assert.deepEqual(await observed(id), [day(2, '23:59:58'), day(3), day(5)]);
});

test('only theses that are open at the time of the tick are observed', async () => {
  const id = await holding(s.api);
  const early = await thesisOf(id, day(3), { parallel: true });
  const same = await thesisOf(id, day(4), { parallel: true });
  const later = await thesisOf(id, '2026-01-04T00:00:00.000001Z', { parallel: true });
  const closed = await thesisOf(id, day(3), { parallel: true });
  await close(closed.id, day(4));
  const closing = await thesisOf(id, day(3), { parallel: true });
  await close(closing.id, day(5));
  await s.api('PATCH', `/v1/theses/${early.id}`, { body: { text: 'reworded', at: day(4) }, status: 200 });
  await hold(id, day(4), 1);
  assert.deepEqual((await eventsOf(id)).map((e) => e.subject_id).sort(), [early.id, same.id, closing.id].sort());
  await hold(id, day(4, '01:00:00'), 1);
  assert.deepEqual(await observed(id, later), [day(4, '01:00:00')]);
  assert.equal((await eventsOf(id)).length, 4);
});

test('theses of other symbols, of other deployments and of none are not observed', async () => {
  const id = await holding(s.api);
  const { id: other } = await deploy(s.api);
  await thesisOf(id, day(2), { symbol: 'ETH' });
  await thesisOf(other, day(2));
  const none = await openThesis(s.api, { symbol: 'BTC', at: day(2) });
  await hold(id, day(3), 1);
  await close(none.id, day(3));
  assert.deepEqual([await eventsOf(id), await eventsOf(other)], [[], []]);
});

test('a position that is gone after the tick is not observed, one that was flipped is, as the new trade', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2));
  const { open } = await postTick(s.api, id, day(3), short(3));
  await postTick(s.api, id, day(4), { marks: { BTC: 100 } });
  await postTick(s.api, id, day(5));
  const [event, ...none] = await eventsOf(id);
  assert.deepEqual(none, []);
  assert.deepEqual([event.data.trade_id, event.data.side, event.data.quantity], [open[0].trade_id, 'short', 3]);
});

test('a retried tick leaves nothing twice, and neither do two runners with the same tick', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  const first = await change(id, day(3), 2);
  const again = await change(id, day(3), 2);
  assert.deepEqual(again, { ...first, replayed: true });
  assert.deepEqual(warned(first), [thesis.id]);
  assert.equal((await eventsOf(id)).length, 3);
  const answers = await Promise.all(Array.from({ length: 6 }, () => change(id, day(4), 3)));
  assert.equal(answers.filter((a) => !a.replayed).length, 1);
  for (const answer of answers) assert.deepEqual({ ...answer, replayed: true }, { ...answers[0], replayed: true });
  const runners = await Promise.all([1, 2, 3, 4].map((n) => s.api.post(`/v1/deployments/${id}/ticks`, newTick(day(5, `00:00:0${n}`), long(3)))));
  assert.ok(runners.some((r) => r.status === 200));
  assert.deepEqual((await observed(id)).map((at) => at.slice(0, 10)), ['2026-01-03', '2026-01-04', '2026-01-05']);
  assert.equal((await actions(id)).length, 2);
});

test('the stored retry of a bulk upload leaves nothing twice', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2));
  const ticks = [newTick(day(3), { ...long(2), ...executed() }), newTick(day(4), long(2))].map((t) => `${JSON.stringify(t)}\n`).join('');
  const upload = async () => (await s.api.post(`/v1/deployments/${id}/ticks/bulk`, ticks, { status: 200, headers: { 'content-type': 'application/x-ndjson' } })).text;
  const first = await upload();
  const again = await upload();
  assert.equal(first.match(/thesis_not_retrieved/g).length, 1);
  assert.equal(again.replaceAll('"replayed":true', '"replayed":false').split('\n').slice(0, 2).join(), first.split('\n').slice(0, 2).join());
  assert.equal((await eventsOf(id)).length, 4);
});

// ---- executed actions ----

test('each executed change of a held position leaves its action', async () => {
  const id = await holding(s.api);
  await change(id, day(3), 1.5);
  await change(id, day(4), 0.25);
  await change(id, day(5), 0.25); // no change
  const flip = await postTick(s.api, id, day(6), { ...short(2), ...executed('propose_order') });
  await postTick(s.api, id, day(7), { marks: { BTC: 100 }, ...executed('close_position') });
  assert.deepEqual(await actions(id), [['add', 0.5, 0], ['reduce', 1.25, 0], ['flip', 2.25, 0], ['close', 2, 0]]);
  const [first, , third] = await eventsOf(id);
  assert.equal(third.subject_id, flip.snapshot_id);
  assert.equal(third.data.trade_id, flip.ops[0].trade_id);
  const { trade_id, ...rest } = first.data;
  assert.deepEqual(rest, { action: 'add', side: 'long', size: 0.5, reason: 'stronger', action_kind: 'adjust_position', warnings: [] });
  await until(async () => (await s.api.get(`/v1/memory_events/verify?deployment_id=${id}`, { status: 200 })).json.items[0].pending === 0);
  await assertWhole(s.api, `deployment_id=${id}`, 4);
});

test('an entry, a rejected action, a hold, another symbol and a change by the broker are no actions', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2));
  const quiet = [{}, { engine: { kind: 'executed' } }, { ...executed(), engine: { kind: 'rejected', rule: 'cap' } }, { proposed_action: executed().proposed_action }, executed('hold'), executed('adjust_position', 'ETH')];
  for (const [n, more] of quiet.entries()) assert.deepEqual((await hold(id, day(3, `00:00:0${n}`), 2 + n, more)).warnings, []);
  const entered = await postTick(s.api, id, day(3, '01:00:00'), { positions: [position('BTC', 100, { size_base: 7 }), position('ETH', 10)], ...executed('propose_order', 'ETH') });
  assert.deepEqual([entered.open.length, await actions(id)], [2, []]);
});

test('an action that names no symbol is one for each position that changed', async () => {
  const id = await holding(s.api);
  const both = (btc, eth) => ({ positions: [position('BTC', 100, { size_base: btc }), position('ETH', 10, { size_base: eth })] });
  await postTick(s.api, id, day(3), both(1, 1));
  const a = await thesisOf(id, day(3));
  const b = await thesisOf(id, day(3), { symbol: 'ETH' });
  const answer = await postTick(s.api, id, day(4), { ...both(2, 2), ...executed('adjust_position', null) });
  assert.deepEqual(warned(answer), [a.id, b.id]);
  assert.deepEqual((await eventsOf(id)).map((e) => [e.kind, e.symbol]), [
    ['action.executed', 'BTC'],
    ['thesis.not_retrieved', 'BTC'],
    ['action.executed', 'ETH'],
    ['thesis.not_retrieved', 'ETH'],
    ['thesis.outcome_observed', 'BTC'],
    ['thesis.outcome_observed', 'ETH'],
  ]);
  assert.deepEqual(warned(await postTick(s.api, id, day(4), { ...both(2, 2), ...executed('adjust_position', null) })), [a.id, b.id]);
});

test('an action without a search before it warns as an order does, and leaves an event', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  const answer = await change(id, day(3), 2);
  const stored = await order(s.api, { deployment_id: id, action: 'add', at: day(4) });
  assert.deepEqual(answer.warnings, stored.warnings);
  const [action, event] = await eventsOf(id);
  assert.deepEqual(action.data.warnings, answer.warnings);
  assert.deepEqual([event.kind, event.subject_id, event.at.toISOString().slice(0, 10)], ['thesis.not_retrieved', thesis.id, '2026-01-03']);
  assert.deepEqual(event.data, { action: 'add', snapshot_id: answer.snapshot_id, trade_id: answer.open[0].trade_id });
});

test('a search ends the warning until the next action or the next change of the thesis', async () => {
  const id = await holding(s.api);
  const a = await thesisOf(id, day(2), { parallel: true });
  const b = await thesisOf(id, day(2), { parallel: true });
  await retrieved(s.query, [a.id], day(3));
  assert.deepEqual(warned(await change(id, day(3), 2)), [b.id], 'at the same instant, but before');
  assert.deepEqual(warned(await change(id, day(4), 3)), [a.id, b.id], 'the action before it comes after the search');
  await retrieved(s.query, [a.id, b.id], day(6));
  assert.deepEqual(warned(await change(id, day(5), 4)), [a.id, b.id], 'a search of the future counts for nothing');
  await s.api('PATCH', `/v1/theses/${a.id}`, { body: { text: 'changed', at: day(7) }, status: 200 });
  assert.deepEqual(warned(await change(id, day(7), 5)), [a.id]);
  await close(b.id, day(8));
  assert.deepEqual(warned(await change(id, day(8), 6)), [a.id], 'a closed thesis is not checked');
  const later = await thesisOf(id, day(9), { parallel: true });
  assert.deepEqual(warned(await change(id, day(8, '12:00:00'), 7)), [a.id], 'nor one that is opened later');
  assert.deepEqual(warned(await postTick(s.api, id, day(9), { marks: { BTC: 100 }, ...executed('close_position') })), [a.id, later.id], 'a close is checked');
});

test('in one bulk upload each action is checked after the one before it', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  await retrieved(s.query, [thesis.id], day(3));
  const ticks = [2, 3, 3, 4].map((size, n) => `${JSON.stringify(newTick(day(3 + n), { ...long(size), ...executed() }))}\n`).join('');
  const { text } = await s.api.post(`/v1/deployments/${id}/ticks/bulk`, ticks, { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
  const lines = text.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.slice(0, 4).map(warned), [[], [thesis.id], [], [thesis.id]]);
  assert.deepEqual(await actions(id), [['add', 1, 0], ['add', 1, 1], ['add', 1, 1]]);
  assert.equal((await observed(id)).length, 4);
});

// ---- orders and ticks about the same action ----

test('a tick that carries what an order announced warns no second time and leaves no action', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  const stored = await order(s.api, { deployment_id: id, action: 'add', at: day(3) });
  assert.deepEqual(warned(stored), [thesis.id]);
  assert.deepEqual((await change(id, day(3, '00:05:00'), 2)).warnings, []);
  assert.deepEqual((await change(id, day(3, '00:05:00'), 2)).warnings, []);
  assert.deepEqual(warned(await change(id, day(4), 3)), [thesis.id], 'it announced the next tick only');
  assert.deepEqual((await eventsOf(id)).map((e) => e.kind), ['order.submitted', 'thesis.not_retrieved', 'thesis.outcome_observed', 'action.executed', 'thesis.not_retrieved', 'thesis.outcome_observed']);
});

test('an order may have the time of its tick, of the tick before, or of a clock that is ahead', async () => {
  for (const at of [day(3), undefined, '2026-01-03T00:00:05Z']) {
    const id = await holding(s.api);
    await thesisOf(id, day(2));
    await order(s.api, { deployment_id: id, action: 'add', at });
    assert.deepEqual((await change(id, day(3), 2)).warnings, [], `order at ${at}`);
    assert.deepEqual(await actions(id), [], `order at ${at}`);
  }
});

test('an order with the time of its tick or of the tick before announces that tick only', async () => {
  for (const at of [day(3), undefined]) {
    const id = await holding(s.api);
    const thesis = await thesisOf(id, day(2));
    await order(s.api, { deployment_id: id, action: 'add', at });
    await change(id, day(3), 2);
    assert.deepEqual(warned(await change(id, day(4), 3)), [thesis.id], `order at ${at}`);
  }
});

test('orders that were posted in advance announce the ticks of their times, in one upload or one by one', async () => {
  const ticks = [2, 3, 4].map((size, n) => newTick(day(3 + n), { ...long(size), ...executed() }));
  for (const bulk of [false, true]) {
    const id = await holding(s.api);
    const thesis = await thesisOf(id, day(2));
    await postTick(s.api, id, day(2, '01:00:00'), long(1));
    await order(s.api, { deployment_id: id, action: 'add', at: day(3) });
    await postTick(s.api, id, day(2, '02:00:00'), long(1));
    await order(s.api, { deployment_id: id, action: 'add', at: day(4, '12:00:00') });
    await postTick(s.api, id, day(2, '03:00:00'), long(1));
    if (bulk) await s.api.post(`/v1/deployments/${id}/ticks/bulk`, ticks.map((t) => JSON.stringify(t)).join('\n'), { status: 200, headers: { 'content-type': 'application/x-ndjson' } });
    else for (const tick of ticks) await s.api.post(`/v1/deployments/${id}/ticks`, tick, { status: 200 });
    const found = await eventsOf(id, 'action.executed');
    assert.deepEqual(found.map((e) => [e.at.toISOString().slice(0, 10), e.data.warnings[0].thesis_id]), [['2026-01-04', thesis.id]]);
  }
});

test('an order on another symbol announces nothing', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  await order(s.api, { deployment_id: id, symbol: 'ETH', at: day(3) });
  assert.deepEqual(warned(await change(id, day(3), 2)), [thesis.id]);
});

test('an order that arrives after the tick that executed it is stored, and is not checked again', async () => {
  for (const at of [day(3), day(2, '12:00:00')]) {
    const id = await holding(s.api);
    const thesis = await thesisOf(id, day(2));
    assert.deepEqual(warned(await change(id, day(3), 2)), [thesis.id]);
    assert.deepEqual(warned(await order(s.api, { deployment_id: id, action: 'add', at })), []);
    assert.deepEqual((await eventsOf(id)).map((e) => e.kind), ['action.executed', 'thesis.not_retrieved', 'thesis.outcome_observed', 'order.submitted']);
    assert.deepEqual(warned(await change(id, day(4), 3)), [thesis.id], `the late order of ${at} announces no further action`);
  }
});

test('of two orders after a tick the first is its late one, and the second announces the next', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  await change(id, day(3), 2);
  assert.deepEqual(warned(await order(s.api, { deployment_id: id, action: 'add' })), []);
  assert.deepEqual(warned(await order(s.api, { deployment_id: id, action: 'add' })), [thesis.id]);
  assert.deepEqual((await change(id, day(4), 3)).warnings, []);
  assert.deepEqual((await actions(id)).length, 1);
});

test('a search after an action counts for the next one', async () => {
  const id = await holding(s.api);
  const thesis = await thesisOf(id, day(2));
  await change(id, day(3), 2);
  await s.api.post('/v1/memories/search', { symbol: 'BTC', deployment_id: id, kind: ['thesis'] }, { status: 200 });
  assert.deepEqual((await change(id, day(4), 3)).warnings, []);
  assert.deepEqual(warned(await change(id, day(5), 4)), [thesis.id]);
});

// ---- the story, and roles ----

test('the story tells both ways whether there was a search first', async () => {
  const told = async (id, search, announce) => {
    if (search) await s.api.post('/v1/memories/search', { symbol: 'BTC', deployment_id: id, as_of: day(3) }, { status: 200 });
    if (announce) await order(s.api, { deployment_id: id, action: 'close', at: day(4) });
    await postTick(s.api, id, day(4), { marks: { BTC: 100 }, ...executed('close_position') });
    const [{ id: trade }] = await s.query('SELECT id FROM daybook.trade_history WHERE deployment_id = $1', [id]);
    const { summary, entries } = (await s.api.get(`/v1/trade_history/${trade}/story`, { status: 200 })).json;
    return [summary.searched_first, summary.warnings, entries.filter((e) => ['order', 'action', 'warning', 'observation'].includes(e.kind)).map((e) => e.kind)];
  };
  for (const search of [false, true])
    for (const announce of [false, true]) {
      const { id } = await deploy(s.api, { mode: 'sim', at: day(1) });
      await thesisOf(id, day(1));
      if (search) await s.api.post('/v1/memories/search', { symbol: 'BTC', deployment_id: id, as_of: day(1) }, { status: 200 });
      if (announce) await order(s.api, { deployment_id: id, at: day(2) });
      await postTick(s.api, id, day(2), { ...long(1), ...executed('propose_order') });
      const entry = announce ? ['order', 'observation'] : ['observation'];
      const exit = [announce ? 'order' : 'action', ...(search ? [] : ['warning'])];
      assert.deepEqual(await told(id, search, announce), [search, search ? 0 : 1, [...entry, ...exit]], `search ${search}, order ${announce}`);
    }
});

test('the warning about a flip belongs to the trade that it closed', async () => {
  const id = await holding(s.api);
  await thesisOf(id, day(2));
  const { ops } = await postTick(s.api, id, day(3), { ...short(1), ...executed() });
  const warnings = async (trade) => (await s.api.get(`/v1/trade_history/${trade}/story`, { status: 200 })).json.summary.warnings;
  assert.deepEqual([await warnings(ops[0].trade_id), await warnings(ops[1].trade_id)], [1, 0]);
});
