// Decision snapshots: the list of ticks, each one in full, and the context its agent read.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { at, ledgerRows, openTrade } from '../lib/ledger_rows.mjs';
import { suite } from '../lib/suite.mjs';
import { createKey } from '../lib/service.mjs';
import { makeClient } from '../lib/client.mjs';

const s = suite();
const rows = ledgerRows((...q) => s.query(...q));
const list = async (query) => (await s.api.get(`/v1/decision_snapshots?${query}`, { status: 200 })).json.items.map((i) => i.id);

test('a snapshot is returned in full, digit for digit, and without its large fields in the list', async () => {
  const id = await rows.deployment();
  const open = [openTrade()];
  const figures = {
    open,
    equity_usd: '10022.500000000001',
    action_kind: 'open_position',
    engine_kind: 'rejected',
    engine_rule: 'R3',
    executed_today: 2,
    realized_today_usd: '22.50',
    losing_closes: 1,
    reflection_due: true,
  };
  const snapshot = await rows.tick(id, at(0), figures);
  await s.query(`update daybook.decision_snapshots set input = '{"portfolio":{"equity_usd":10022.500}}' where id = $1`, [snapshot]);
  const { json, text } = await s.api.get(`/v1/decision_snapshots/${snapshot}`, { status: 200 });
  assert.match(text, /"equity_usd":10022\.500000000001,/);
  assert.match(text, /"realized_today_usd":22\.50,/);
  assert.match(text, /"input":\{"portfolio":\{"equity_usd":10022\.500\}\},/);
  assert.deepEqual(json.open, open);
  assert.deepEqual([json.ops, json.reflection_due, json.tick_at], [[], true, at(0)]);
  const { input, ops, open: _, created_at, ...summary } = json;
  assert.ok(input && ops && created_at);
  const page = await s.api.get(`/v1/decision_snapshots?deployment_id=${id}`, { status: 200 });
  assert.deepEqual(page.json, { items: [summary], next_cursor: null });
});

test('the list is newest tick first, for all deployments or one, page by page', async () => {
  const [a, b] = [await rows.deployment(), await rows.deployment()];
  const ids = { [a]: [], [b]: [] };
  for (let n = 0; n < 7; n++)
    for (const d of n % 3 ? [a, b] : [a]) ids[d].unshift(await rows.tick(d, `2026-07-01T00:0${n}:00Z`)); // two at one instant
  for (const d of [a, b]) {
    assert.deepEqual(await list(`deployment_id=${d}`), ids[d]);
    const paged = await everyItem(s.api, `/v1/decision_snapshots?deployment_id=${d}&limit=2`);
    assert.deepEqual(paged.map((i) => i.id), ids[d]);
  }
  const all = await everyItem(s.api, '/v1/decision_snapshots?since=2026-07-01T00:00:00Z&until=2026-07-02T00:00:00Z&limit=3');
  const order = all.map((i) => `${i.tick_at} ${i.id}`);
  assert.deepEqual(order, [...order].sort().reverse());
  assert.deepEqual(all.map((i) => i.id).sort(), [...ids[a], ...ids[b]].sort());
  const { next_cursor } = (await s.api.get(`/v1/decision_snapshots?deployment_id=${a}&limit=1`)).json;
  const other = await s.api.get(`/v1/decision_snapshots?deployment_id=${b}&limit=1&cursor=${encodeURIComponent(next_cursor)}`, { status: 422 });
  assert.deepEqual(faults(other), ['cursor: invalid_cursor']);
});

test('filters combine; since is inclusive, until exclusive, and as_of hides later ticks', async () => {
  const d = await rows.deployment();
  const ticks = [];
  for (const [n, [action_kind, engine_kind, engine_rule]] of [
    ['open_position', 'rejected', 'R1'],
    ['open_position', 'rejected', 'R2'],
    ['close_position', 'executed', null],
    [null, null, null],
  ].entries())
    ticks.push(await rows.tick(d, at(n), { action_kind, engine_kind, engine_rule }));
  const some = (...n) => n.map((i) => ticks[i]);
  const cases = [
    ['', some(3, 2, 1, 0)],
    ['&engine_kind=rejected', some(1, 0)],
    ['&engine_rule=R2', some(1)],
    ['&action_kind=close_position', some(2)],
    ['&action_kind=open_position&engine_rule=R1', some(0)],
    ['&action_kind=close_position&engine_rule=R1', []],
    [`&since=${at(1)}`, some(3, 2, 1)],
    [`&until=${at(1)}`, some(0)],
    [`&as_of=${at(1)}`, some(1, 0)],
    [`&as_of=${at(2)}&since=${at(1)}&engine_kind=executed`, some(2)],
  ];
  for (const [query, expected] of cases) assert.deepEqual(await list(`deployment_id=${d}${query}`), expected, query);
  assert.deepEqual(await list(`engine_rule=R2&since=${at(1)}&until=${at(2)}`), some(1));
  assert.deepEqual(await list(`deployment_id=${UNKNOWN_ID}`), []);
  const bad = await s.api.get('/v1/decision_snapshots?deployment_id=x&limit=201&engine_kind=&color=red', { status: 422 });
  assert.deepEqual(faults(bad), ['color: unknown_field', 'deployment_id: invalid_uuid', 'engine_kind: too_short', 'limit: out_of_range']);
});

test('with as_of before its tick a snapshot is not found', async () => {
  const d = await rows.deployment();
  const id = await rows.tick(d, at(5));
  await s.api.get(`/v1/decision_snapshots/${id}?as_of=${at(5)}`, { status: 200 });
  await s.api.get(`/v1/decision_snapshots/${id}?as_of=${at(4, 59)}`, { status: 404 });
});

test('the context of a snapshot is byte for byte what the agent read before that tick, whatever happened later', async () => {
  const d = await rows.deployment({ k: 5 });
  const queries = ['', '&max_tokens=90', '&k=1', '&k=30&max_tokens=150'];
  const accepts = ['application/json', 'text/markdown'];
  const read = async (path, join) => {
    const seen = [];
    for (const query of queries)
      for (const accept of accepts) {
        const target = `${path}${query && join + query.slice(1)}`;
        seen.push((await s.api.get(target, { headers: { accept }, status: 200 })).text);
      }
    return seen;
  };
  const ticks = [];
  let open = [];
  for (let n = 0; n < 12; n++) {
    const instant = new Date(Date.UTC(2026, 5, 4, 23, 52 + n)).toISOString().replace('.000Z', '.000001Z'); // across midnight
    const before = await read(`/v1/deployments/${d}/context?as_of=${instant}`, '&');
    if (n % 3 === 2) {
      await rows.trade(d, { symbol: open[0].symbol, entry_tick_at: open[0].entry_tick_at, exit_tick_at: instant, entry_reason: `trade ${n}` });
      open = open.slice(1);
    } else {
      open = [...open, openTrade({ symbol: `S${n}`, entry_tick_at: instant })];
    }
    const figures = n % 2 ? { engine_kind: 'rejected', engine_rule: `R${n % 4}` } : { engine_kind: 'executed' };
    const id = await rows.tick(d, instant, { ...figures, open, executed_today: n % 8, realized_today_usd: n * 10, losing_closes: n % 4 });
    ticks.push({ id, before });
  }
  for (const { id, before } of ticks) assert.deepEqual(await read(`/v1/decision_snapshots/${id}/context`, '?'), before);
  assert.equal(new Set(ticks.map((t) => t.before[0])).size, ticks.length);
  assert.match(ticks.at(-1).before[0], /Recent activity.*Recent trades.*Open positions/);
  const first = (await s.api.get(`/v1/decision_snapshots/${ticks[0].id}/context`, { status: 200 })).json;
  assert.equal(first.markdown, '');
});

test('an unknown snapshot is 404', async () => {
  await s.api.get(`/v1/decision_snapshots/${UNKNOWN_ID}`, { status: 404 });
  await s.api.get(`/v1/decision_snapshots/${UNKNOWN_ID}/context`, { status: 404 });
  await s.api.get('/v1/decision_snapshots/x/context', { status: 422 });
});

test('another owner sees nothing, a reader of the same owner everything', async () => {
  const owner = 'desk-1';
  const d = await rows.deployment({ owner });
  const snapshot = await rows.tick(d, at(0), { owner, open: [openTrade()] });
  const paths = [
    `/v1/deployments/${d}/context`,
    `/v1/deployments/${d}/risk_state`,
    `/v1/decision_snapshots/${snapshot}`,
    `/v1/decision_snapshots/${snapshot}/context`,
  ];
  const keys = [await createKey(s.url, owner, 'reader'), await createKey(s.url, 'desk-2', 'admin')];
  const service = await s.another(); // it starts with a key in the table, so it requires one
  const anonymous = makeClient(service.base);
  const [mine, theirs] = keys.map(({ key }) => anonymous.as(key));
  after(async () => {
    for (const client of [anonymous, mine, theirs]) client.close();
    await service.stop();
  });
  for (const path of paths) {
    await mine.get(path, { status: 200 });
    await theirs.get(path, { status: 404 });
    await anonymous.get(path, { status: 401 });
  }
  assert.equal((await mine.get('/v1/decision_snapshots')).json.items.length, 1);
  for (const query of ['', `?deployment_id=${d}`]) assert.deepEqual((await theirs.get(`/v1/decision_snapshots${query}`)).json.items, []);
});
