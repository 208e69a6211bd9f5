// Two owners with the same names, symbols and texts: whatever one writes or searches, no byte that the other reads changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { openapi, operations } from '../lib/contract.mjs';
import { holding, newOrder, openThesis, order, remember } from '../lib/journal.mjs';
import { position, postTick, putVersion } from '../lib/ledger.mjs';
import { create, day, OUTCOME } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { newResearch } from '../lib/research.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const as = {};
const rows = {}; // ids of each owner's rows
const SEARCHES = [{ text: 'miners and funding' }, { text: 'odds', kind: ['lesson'] }, {}];

async function prepare() {
  const keys = [await createKey(s.url, 'ann', 'agent'), await createKey(s.url, 'bob', 'agent')];
  await s.service.stop();
  s.service = await s.another(); // started after the keys were created
  [as.ann, as.bob] = keys.map(({ key }) => makeClient(s.service.base).as(key));
}

/** Rows of each resource, the same for each owner; returns their ids by the name of the path. */
async function fill(api) {
  await putVersion(api, { skill_id: 'shared', version: 'v1', at: day(1) });
  const deployment = await holding(api, 'BTC', { skill_id: 'shared', version: 'v1', name: 'desk' });
  const of = { deployment_id: deployment, symbol: 'BTC' };
  const thesis = await openThesis(api, { ...of, text: 'Spot demand absorbs the supply of miners.', at: day(3) });
  const note = await remember(api, { ...of, text: 'Funding flipped', thesis_id: thesis.id, at: day(4) });
  await remember(api, { text: 'Funding of no deployment', at: day(4) });
  const lesson = await create(api, { at: day(3), takeaway: 'Shrink the odds of macro calls by a tenth' });
  await api.post(`/v1/lessons/${lesson.id}/validate`, { outcome: OUTCOME, at: day(4) }, { status: 200 });
  const found = (await api.post('/v1/memories/search', { text: 'miners', ...of, as_of: day(4) }, { status: 200 })).json;
  const sent = await order(api, { ...of, client_order_id: 'order-1', thesis_id: thesis.id, at: day(4) });
  await order(api, { ...of, at: day(5) });
  await api.post(`/v1/orders/${sent.id}/outcome`, { outcome: 'filled', at: day(5) }, { status: 200 });
  const entry = (await api.post('/v1/episodic', newResearch({ ticker: 'ACME', task_type: 'tone', created_at: day(3) }), { status: 201 })).json;
  const { snapshot_id } = await postTick(api, deployment, day(6), { positions: [position('BTC', 120)], engine: { kind: 'executed' } });
  const [trade] = (await api.get('/v1/trade_history', { status: 200 })).json.items;
  return {
    deployments: deployment, memories: note.id, theses: thesis.id, lessons: lesson.id, memory_retrievals: found.retrieval_id, orders: sent.id,
    episodic: entry.id, decision_snapshots: snapshot_id, trade_history: trade.id,
  };
}

const parametersOf = (o) => (o.operation.parameters ?? []).map((p) => (p.$ref ? p.$ref.split('/').slice(1).reduce((at, key) => at[key], openapi) : p));

/** The text of every GET that is answered with 200, by its path. Resources of which `ids` has no row are left out. */
async function readAll(api, ids) {
  const answers = new Map();
  for (const o of operations.filter(({ method, path }) => method === 'GET' && path.startsWith('/v1/'))) {
    if (o.path.includes('{id}') && !ids[o.path.split('/')[2]]) continue;
    const path = o.path.replace('{id}', ids[o.path.split('/')[2]]).replace('{skill_id}', 'shared').replace('{version}', 'v1');
    const hasAsOf = parametersOf(o).some((p) => p.in === 'query' && p.name === 'as_of');
    const query = [hasAsOf && `as_of=${day(20)}`, path.endsWith('/export') && 'format=ndjson'].filter(Boolean).join('&');
    const { status, text } = await api.get(`${path}?${query}`);
    if (status === 200) answers.set(`GET ${o.path}`, text);
  }
  return answers;
}

function assertSame(after, before) {
  for (const [name, text] of before) assert.equal(after.get(name), text, name);
}

const search = async (api, ids) => {
  const texts = [];
  for (const body of SEARCHES)
    for (const more of [{}, { deployment_id: ids.deployments }])
      texts.push((await api.post('/v1/memories/search', { ...body, ...more, as_of: day(30) }, { status: 200 })).text.replace(/"retrieval_id":"[^"]+"/, ''));
  return texts;
};

const allEmbedded = () => until(async () => (await s.query("select from daybook.memory_texts where embedding_status = 'pending'")).length === 0, 'every text has a vector');

test('what one owner writes and searches changes no byte that another one reads', async () => {
  const ids = (rows.ann = await fill(as.ann));
  await allEmbedded();
  const found = await search(as.ann, ids);
  const before = await readAll(as.ann, ids);
  for (const name of ['/v1/memories', '/v1/memories/{id}', '/v1/theses/{id}/history', '/v1/orders/{id}', '/v1/memory_events', '/v1/memory_events/verify', '/v1/memory_events/export',
    '/v1/memory_retrievals/{id}', '/v1/memory_state', '/v1/trade_history/{id}/story', '/v1/deployments/{id}/context', '/v1/embeddings', '/v1/lessons/block'])
    assert.ok(before.has(`GET ${name}`), `${name} is read`);

  const own = (rows.bob = await fill(as.bob));
  for (let n = 0; n < 20; n++) await remember(as.bob, { text: `Miners, funding and odds ${n}`, at: day(4) });
  await search(as.bob, own);
  await allEmbedded();
  assertSame(await readAll(as.ann, ids), before);
  assert.deepEqual(await search(as.ann, ids), found);
});

test("another owner's ids are unknown to every read and write, and leave no trace", async () => {
  const { ann: ids, bob: own } = rows;
  const before = [await readAll(as.ann, ids), await readAll(as.bob, own)];
  for (const o of operations.filter(({ method, path }) => method === 'GET' && path.includes('{id}') && path.startsWith('/v1/'))) {
    const id = ids[o.path.split('/')[2]];
    if (id) await as.bob.get(o.path.replace('{id}', id), { status: 404 });
  }
  const of = { deployment_id: ids.deployments };
  for (const [path, body] of [
    ['/v1/memories', { kind: 'note', text: 'a text', ...of }],
    ['/v1/theses', { symbol: 'BTC', text: 'a text', ...of }],
    ['/v1/orders', newOrder(of)],
    ['/v1/memories/search', of],
    [`/v1/memories/${ids.memories}/retract`, { reason: 'x' }],
    [`/v1/theses/${ids.theses}/close`, { reason: 'x' }],
    [`/v1/orders/${ids.orders}/outcome`, { outcome: 'filled' }],
  ])
    await as.bob.post(path, body, { status: 404 });
  await as.bob('PATCH', `/v1/theses/${ids.theses}`, { body: { text: 'x' }, status: 404 });
  for (const [path, body] of [
    ['/v1/memories', { kind: 'note', text: 'a text', thesis_id: ids.theses }],
    ['/v1/orders', newOrder({ deployment_id: own.deployments, thesis_id: ids.theses })],
    ['/v1/orders', newOrder({ deployment_id: own.deployments, decision_id: ids.memories })],
    [`/v1/theses/${own.theses}/close`, { reason: 'x', outcome: OUTCOME, validates: [ids.lessons] }],
  ])
    await as.bob.post(path, body, { status: 422 });
  for (const query of [`memories?deployment_id=${ids.deployments}`, `memories?thesis_id=${ids.theses}`, `theses?deployment_id=${ids.deployments}`, `orders?deployment_id=${ids.deployments}`,
    `memory_retrievals?memory_id=${ids.theses}`, `memory_events?subject_id=${ids.theses}`, `memory_events?deployment_id=${ids.deployments}`])
    assert.deepEqual((await as.bob.get(`/v1/${query}`, { status: 200 })).json.items, [], query);
  assertSame(await readAll(as.ann, ids), before[0]);
  assertSame(await readAll(as.bob, own), before[1]);
});
