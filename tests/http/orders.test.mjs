// Orders: the intent, the check of theses that never blocks, repeats by client_order_id, and outcomes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf, holding, newOrder, openThesis, order, remember, retrieved } from '../lib/journal.mjs';
import { deploy, position, postTick } from '../lib/ledger.mjs';
import { day, everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const read = async (id, query = '') => (await s.api.get(`/v1/orders/${id}${query}`, { status: 200 })).json;
const report = (id, outcome, changes, options) => s.api.post(`/v1/orders/${id}/outcome`, { outcome, ...changes }, options);
const count = async (table = 'memory_events') => Number((await s.query(`SELECT count(*) FROM daybook.${table}`))[0].count);
const warned = async (deployment_id, at, changes) => (await order(s.api, { deployment_id, at, ...changes })).warnings.map((w) => w.thesis_id);

test('an order is stored with every member, and its event has the full content', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(2) });
  const decision = await remember(s.api, { kind: 'decision', action: 'buy', symbol: 'BTC', deployment_id, at: day(2) });
  const body = {
    deployment_id,
    client_order_id: 'desk-1',
    symbol: 'BTC',
    action: 'buy',
    side: 'long',
    size: 0.25,
    reason: 'The retest held.',
    thesis_id: thesis.id,
    decision_id: decision.id,
    agent_name: 'pm',
    model_call_id: 'call-1',
    at: day(3),
  };
  const { json, headers } = await s.api.post('/v1/orders', body, { status: 201 });
  const { id, created_at, ...rest } = json;
  assert.deepEqual(rest, { ...body, warnings: [], outcome: null, outcome_at: null, outcome_data: null });
  assert.equal(headers.location, `/v1/orders/${id}`);
  assert.deepEqual(await read(id), json);
  const [event] = await eventsOf(s.query, id);
  const { deployment_id: _, symbol, agent_name, model_call_id, at, ...content } = body;
  assert.deepEqual([event.kind, event.symbol, event.agent_name, event.model_call_id], ['order.submitted', 'BTC', 'pm', 'call-1']);
  assert.deepEqual(event.data, content);
});

test('sizes and prices keep every digit', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { text } = await s.api.post('/v1/orders', `{"deployment_id":"${deployment_id}","symbol":"X","action":"buy","side":"long","size":0.1234567890123456789}`, { status: 201 });
  assert.ok(text.includes('"size":0.1234567890123456789'), text);
  const filled = await s.api.post(`/v1/orders/${JSON.parse(text).id}/outcome`, '{"outcome":"filled","average_price":65010.50,"fees_usd":-0.10}', { status: 200 });
  for (const number of ['65010.50', '-0.10']) assert.ok(filled.text.includes(`: ${number}`), filled.text);
});

test('an order without an open thesis, or on a symbol that is not held, has no warning', async () => {
  const id = await holding(s.api, 'BTC');
  assert.deepEqual(await warned(id, day(3)), []);
  await openThesis(s.api, { symbol: 'ETH', deployment_id: id, at: day(3) });
  assert.deepEqual(await warned(id, day(4), { symbol: 'ETH' }), []);
  const other = await openThesis(s.api, { symbol: 'BTC', at: day(3) }); // of no deployment
  assert.deepEqual(await warned(id, day(4)), []);
  await s.api.post(`/v1/theses/${other.id}/close`, { reason: 'x', at: day(4) }, { status: 200 });
});

test('an order on a held symbol whose open thesis was not retrieved is stored, warns, and leaves an event', async () => {
  const id = await holding(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, at: day(3) });
  const stored = await order(s.api, { deployment_id: id, action: 'add', agent_name: 'pm', at: day(4) });
  assert.deepEqual(
    stored.warnings.map(({ code, thesis_id }) => [code, thesis_id]),
    [['thesis_not_retrieved', thesis.id]],
  );
  assert.deepEqual(await read(stored.id), stored);
  const event = (await eventsOf(s.query, thesis.id)).at(-1);
  assert.deepEqual([event.kind, event.symbol, event.agent_name, event.data], ['thesis.not_retrieved', 'BTC', 'pm', { action: 'add', order_id: stored.id }]);
  const kinds = await s.query("SELECT kind FROM daybook.memory_events WHERE journal_id = $1 AND at = $2 ORDER BY n", [id, day(4)]);
  assert.deepEqual(kinds.map((e) => e.kind), ['order.submitted', 'thesis.not_retrieved']);
});

test('a search that returned the thesis ends the warning until the next order or the next change of the thesis', async () => {
  const id = await holding(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, at: day(3) });
  await retrieved(s.query, [UNKNOWN_ID, thesis.id], day(4));
  assert.deepEqual(await warned(id, day(4)), [], 'the same instant, but written before');
  assert.deepEqual(await warned(id, day(4)), [thesis.id], 'the order before it comes after the search');
  await retrieved(s.query, [thesis.id], day(6));
  await s.api('PATCH', `/v1/theses/${thesis.id}`, { body: { text: 'changed', at: day(7) }, status: 200 });
  assert.deepEqual(await warned(id, day(8)), [thesis.id], 'the thesis changed since');
  await retrieved(s.query, [thesis.id], day(9));
  assert.deepEqual(await warned(id, day(8, '12:00:00')), [thesis.id], 'a search of the future counts for nothing');
  assert.deepEqual(await warned(id, day(10)), []);
  await s.api.post(`/v1/theses/${thesis.id}/close`, { reason: 'x', at: day(11) }, { status: 200 });
  assert.deepEqual(await warned(id, day(12)), [], 'no thesis is open');
});

test('each of the parallel theses is checked, and a search of another owner or another thesis counts for nothing', async () => {
  const id = await holding(s.api);
  const a = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, at: day(3) });
  const b = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, parallel: true, at: day(3) });
  await retrieved(s.query, [a.id], day(4));
  await retrieved(s.query, [b.id], day(4), { owner: 'somebody' });
  assert.deepEqual(await warned(id, day(5)), [b.id]);
});

test('the order of an entry may be posted after the tick that opened the position; the next one is checked', async () => {
  const entered = async () => {
    const id = await holding(s.api);
    const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, at: day(1) });
    return [id, thesis.id];
  };
  const [late, thesis] = await entered();
  assert.deepEqual(await warned(late, day(2)), []);
  assert.deepEqual(await warned(late, day(2)), [thesis], 'the entry has its order');
  const [added, other] = await entered();
  assert.deepEqual(await warned(added, day(2), { action: 'add' }), [other], 'an add is no entry');
  const [early, third] = await entered();
  assert.deepEqual(await warned(early, day(1, '12:00:00')), []);
  assert.deepEqual(await warned(early, day(2)), [third], 'the order of the entry was posted before');
});

test('a symbol that was sold is not held any more, except in the past', async () => {
  const id = await holding(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id: id, at: day(3) });
  await postTick(s.api, id, day(5), { marks: { BTC: 100 }, engine: { kind: 'executed' } });
  assert.deepEqual(await warned(id, day(6)), []);
  assert.deepEqual(await warned(id, day(4)), [thesis.id]);
});

test('the same order again is answered with the stored one and 200, and leaves one order and one event', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const body = newOrder({ deployment_id, client_order_id: 'again', size: 0.25, reason: 'x' });
  const first = await s.api.post('/v1/orders', { ...body, at: day(3) }, { status: 201 });
  for (const changes of [{ at: day(3) }, {}, { size: 0.25, model_call_id: 'another' }])
    assert.equal((await s.api.post('/v1/orders', { ...body, ...changes }, { status: 200 })).text, first.text);
  await report(first.json.id, 'filled', { at: day(4) }, { status: 200 });
  assert.equal((await s.api.post('/v1/orders', body, { status: 200 })).json.outcome, 'filled');
  assert.equal((await eventsOf(s.query, first.json.id)).length, 2);
  for (const changes of [{ symbol: 'ETH' }, { action: 'sell' }, { side: 'short' }, { size: 0.26 }, { size: null }, { reason: 'y' }, { at: day(5) }]) {
    const answer = await s.api.post('/v1/orders', { ...body, ...changes }, { status: 409 });
    assert.equal(answer.json.code, 'order_conflict', JSON.stringify(changes));
    assert.ok(answer.json.detail.includes(first.json.id));
  }
  const { id: other } = await deploy(s.api);
  await s.api.post('/v1/orders', { ...body, deployment_id: other }, { status: 201 });
});

test('of many concurrent deliveries of an order, one is stored and all get the same answer', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const body = newOrder({ deployment_id, client_order_id: 'burst', at: day(3) });
  const answers = await Promise.all(Array.from({ length: 8 }, () => s.api.post('/v1/orders', body)));
  assert.deepEqual(answers.map((a) => a.status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
  assert.equal(new Set(answers.map((a) => a.text)).size, 1);
  assert.equal((await eventsOf(s.query, answers[0].json.id)).length, 1);
});

test('an Idempotency-Key replays an order byte for byte', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const headers = { 'idempotency-key': 'order-1' };
  const first = await s.api.post('/v1/orders', newOrder({ deployment_id }), { headers, status: 201 });
  const again = await s.api.post('/v1/orders', newOrder({ deployment_id }), { headers, status: 201 });
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await everyItem(s.api, `/v1/orders?deployment_id=${deployment_id}`)).length, 1);
});

const FINAL = ['filled', 'rejected', 'cancelled'];

test('every outcome can be the first one, and a final one is kept', async () => {
  const { id: deployment_id } = await deploy(s.api);
  for (const first of FINAL) {
    const { id } = await order(s.api, { deployment_id, at: day(3) });
    const details = { filled_size: 0.2, average_price: 10, fees_usd: 0.1, broker_order_id: 'b-1', reason: 'x' };
    const stored = (await report(id, first, { ...details, at: day(4), agent_name: 'desk' }, { status: 200 })).json;
    assert.deepEqual([stored.outcome, stored.outcome_at, stored.outcome_data], [first, day(4), details]);
    assert.deepEqual((await report(id, first, { at: day(5), reason: 'again' }, { status: 200 })).json, stored);
    for (const next of [...FINAL, 'unknown'].filter((name) => name !== first)) {
      const refused = await report(id, next, { at: day(5) }, { status: 409 });
      assert.equal(refused.json.code, 'invalid_transition');
      assert.ok(refused.json.detail.includes(first));
    }
    assert.deepEqual(await read(id), stored);
    const [, event, ...more] = await eventsOf(s.query, id);
    assert.deepEqual([event.kind, event.agent_name, event.data, more], ['order.outcome', 'desk', { outcome: first, action: 'buy', ...details }, []]);
  }
});

test('a final outcome with other figures is refused, because they would be lost', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { id } = await order(s.api, { deployment_id, at: day(3) });
  const stored = (await report(id, 'filled', { filled_size: 0.5, average_price: 100, at: day(4) }, { status: 200 })).json;
  for (const same of [{}, { filled_size: 0.5 }, { average_price: 100.0, reason: 'again' }]) assert.deepEqual((await report(id, 'filled', same, { status: 200 })).json, stored);
  for (const other of [{ filled_size: 2 }, { average_price: 101.5 }, { fees_usd: 1.2 }, { broker_order_id: 'b-2' }]) {
    const { json } = await report(id, 'filled', other, { status: 409 });
    assert.equal(json.code, 'invalid_transition');
  }
  assert.deepEqual(await read(id), stored);
});

test('an unknown outcome can be resolved later, and the past still shows it as unknown', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { id } = await order(s.api, { deployment_id, at: day(3) });
  const unknown = (await report(id, 'unknown', { reason: 'time-out', at: day(4) }, { status: 200 })).json;
  assert.equal((await report(id, 'filled', { at: day(3) }, { status: 409 })).json.code, 'time_order');
  const filled = (await report(id, 'filled', { filled_size: 1, at: day(6) }, { status: 200 })).json;
  assert.equal(filled.outcome, 'filled');
  assert.deepEqual(await read(id, `?as_of=${day(5)}`), unknown);
  assert.equal((await read(id, `?as_of=${day(3)}`)).outcome, null);
  await s.api.get(`/v1/orders/${id}?as_of=${day(2)}`, { status: 404 });
  const outcomes = async (query) => (await everyItem(s.api, `/v1/orders?deployment_id=${deployment_id}&${query}`)).map((x) => x.outcome);
  assert.deepEqual(await outcomes(`outcome=unknown&as_of=${day(5)}`), ['unknown']);
  assert.deepEqual(await outcomes('outcome=unknown'), []);
  assert.deepEqual(await outcomes(`outcome=none&as_of=${day(3)}`), [null]);
});

test('an outcome dated before its order is 409 time_order, and an unknown order is 404', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { id } = await order(s.api, { deployment_id, at: day(3) });
  assert.equal((await report(id, 'filled', { at: day(2) }, { status: 409 })).json.code, 'time_order');
  assert.equal((await read(id)).outcome, null);
  await report(UNKNOWN_ID, 'filled', {}, { status: 404 });
  await s.api.get(`/v1/orders/${UNKNOWN_ID}`, { status: 404 });
});

test('without a time, an order of a simulation has the time of its last tick', async () => {
  const id = await holding(s.api);
  const stored = await order(s.api, { deployment_id: id });
  assert.equal(stored.at, day(2));
  await postTick(s.api, id, day(4), { positions: [position('BTC', 101)] });
  assert.equal((await report(stored.id, 'filled', {}, { status: 200 })).json.outcome_at, day(4));
});

test('an order for an unknown deployment is 404 and names it', async () => {
  const before = [await count(), await count('orders')];
  const { json } = await s.api.post('/v1/orders', newOrder({ deployment_id: UNKNOWN_ID }), { status: 404 });
  assert.ok(json.detail.includes(`deployment ${UNKNOWN_ID}`));
  assert.deepEqual([await count(), await count('orders')], before);
});

test('an order with bad members names each of them and stores nothing', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const before = [await count(), await count('orders')];
  const refused = async (body) => faults(await s.api.post('/v1/orders', body, { status: 422, check: false }));
  assert.deepEqual(await refused({}), ['action: required', 'deployment_id: required', 'side: required', 'symbol: required']);
  assert.deepEqual(await refused({ deployment_id, symbol: ' ', action: 'hold', side: 'up', size: 0, reason: '', client_order_id: '', amount: 1 }), [
    'action: not_a_choice',
    'amount: unknown_field',
    'client_order_id: too_short',
    'reason: too_short',
    'side: not_a_choice',
    'size: out_of_range',
    'symbol: too_short',
  ]);
  assert.deepEqual(await refused(newOrder({ deployment_id, thesis_id: UNKNOWN_ID, decision_id: UNKNOWN_ID })), ['decision_id: unknown_reference', 'thesis_id: unknown_reference']);
  for (const limit of [0, -5]) assert.deepEqual(faults(await s.api.get(`/v1/orders?limit=${limit}`, { status: 422, check: false })), ['limit: out_of_range']);
  assert.deepEqual([await count(), await count('orders')], before);
});

test('an order that contradicts its thesis or its decision is refused by name', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const { id: other } = await deploy(s.api);
  const thesis = await openThesis(s.api, { symbol: 'ETH', deployment_id: other, at: day(1) });
  const decision = await remember(s.api, { kind: 'decision', action: 'buy', symbol: 'ETH', deployment_id: other, at: day(1) });
  const note = await remember(s.api, { at: day(1) });
  const post = (changes) => s.api.post('/v1/orders', newOrder({ deployment_id, at: day(2), ...changes }), { status: 422 });
  const refused = await post({ thesis_id: thesis.id });
  assert.deepEqual(faults(refused), ['deployment_id: not_together', 'symbol: not_together']);
  assert.ok(refused.text.includes(other) && refused.text.includes('ETH') && refused.text.includes(thesis.id));
  assert.deepEqual(faults(await post({ decision_id: decision.id })), ['deployment_id: not_together', 'symbol: not_together']);
  assert.deepEqual(faults(await post({ decision_id: note.id })), ['decision_id: unknown_reference']);
  assert.deepEqual(faults(await post({ thesis_id: decision.id })), ['thesis_id: unknown_reference']);
  const later = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(5) });
  assert.deepEqual(faults(await post({ thesis_id: later.id })), ['thesis_id: unknown_reference']);
  assert.deepEqual(await everyItem(s.api, `/v1/orders?deployment_id=${deployment_id}`), []);
});

test('an order may follow a thesis that is closed, as an exit does', async () => {
  const { id: deployment_id } = await deploy(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(1) });
  await s.api.post(`/v1/theses/${thesis.id}/close`, { reason: 'x', at: day(2) }, { status: 200 });
  await order(s.api, { deployment_id, action: 'close', thesis_id: thesis.id, at: day(3) });
});

test('the list filters by deployment, symbol, action, client_order_id and time, page by page', async () => {
  const { id: deployment_id } = await deploy(s.api);
  await order(s.api, { deployment_id, symbol: 'A', at: day(1), client_order_id: 'one' });
  await order(s.api, { deployment_id, symbol: 'B', at: day(2), action: 'sell' });
  const { id } = await order(s.api, { deployment_id, symbol: 'C', at: day(3), action: 'sell' });
  await report(id, 'rejected', { at: day(4) }, { status: 200 });
  for (const [query, found] of [
    ['', 'CBA'],
    ['symbol=B', 'B'],
    ['action=sell', 'CB'],
    ['outcome=rejected', 'C'],
    ['outcome=none', 'BA'],
    ['client_order_id=one', 'A'],
    [`since=${day(2)}&until=${day(3)}`, 'B'],
    [`as_of=${day(2)}`, 'BA'],
  ])
    assert.equal((await everyItem(s.api, `/v1/orders?deployment_id=${deployment_id}&limit=1&${query}`)).map((x) => x.symbol).join(''), found, query);
});
