// Reading the ledger: every filter and sort, pages without gaps or duplicates, and nothing later than as_of.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy, position, postTick, putVersion } from '../lib/ledger.mjs';
import { everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const D = {};
const T = {};
const at = (time) => `2026-06-04T${time}Z`;
const action = (kind, reason) => ({ proposed_action: { kind, reason }, engine: { kind: 'executed' } });
const bars = (symbol, closes) => ({ bars: { [symbol]: closes } });
const get = async (query = '') => (await s.api.get(`/v1/trade_history?${query}`, { status: 200 })).json.items;
const names = async (query) => (await get(query)).map((x) => Object.keys(T).find((name) => T[name].id === x.id) ?? x.id);

/** Deployment a holds BTC from 10:00 to 11:00 and ETH from 10:30 on; b of another version holds SOL short from 10:00 to 10:45. */
async function prepare() {
  const { skill_id } = await putVersion(s.api, { version: 'v1' });
  await putVersion(s.api, { skill_id, version: 'v2' });
  D.a = await deploy(s.api, { skill_id, version: 'v1', mode: 'sim', at: at('00:00:00') });
  D.b = await deploy(s.api, { skill_id, version: 'v2', mode: 'sim', at: at('00:00:00') });
  const btc = (price, changes) => position('BTC', price, { size_base: 0.01, ...changes });
  const eth = (price, changes) => position('ETH', price, { size_base: 2, ...changes });
  await postTick(s.api, D.a.id, at('10:00:00'), {
    positions: [btc(65200.12345678)],
    ...action('propose_order', 'breakout'),
    ...bars('BTC', Array.from({ length: 20 }, (_, i) => 100 + i)),
    fees: [{ symbol: 'BTC', fees_usd: 0.26 }],
  });
  await postTick(s.api, D.a.id, at('10:30:00'), { positions: [btc(65300), eth(3400.5)], ...action('propose_order', 'second leg') });
  await postTick(s.api, D.a.id, at('11:00:00'), {
    positions: [eth(3390)],
    marks: { BTC: 65940 },
    ...action('close_position', 'target reached'),
  });
  await postTick(s.api, D.a.id, at('11:30:00'), { positions: [eth(3450, { size_base: 3 })], fees: [{ symbol: 'ETH', fees_usd: 0.1 }] });
  const sol = (price) => position('SOL', price, { side: 'short', size_base: 10 });
  await postTick(s.api, D.b.id, at('10:00:00'), { positions: [sol(150)], ...action('propose_order', 'fade') });
  await postTick(s.api, D.b.id, at('10:45:00'), { marks: { SOL: 151.5 } });
  for (const trade of await get()) T[trade.symbol.toLowerCase()] = trade;
}

test('a trade shows every ledger column, digit for digit, and its net PnL', async () => {
  const { text, json } = await s.api.get(`/v1/trade_history/${T.btc.id}`, { status: 200 });
  const [row] = await s.query("select * from daybook.trade_history where owner = 'local' and id = $1", [T.btc.id]);
  const columns = Object.keys(row).filter((name) => name !== 'owner');
  assert.deepEqual(Object.keys(json).sort(), [...columns, 'net_pnl_usd'].sort());
  for (const name of columns.filter((x) => typeof row[x] === 'string' && /^-?[\d.]+$/.test(row[x])))
    assert.ok(text.includes(`"${name}":${row[name]},`), `${name} is not ${row[name]} in ${text}`);
  assert.ok(text.includes('"entry_price":65200.12345678,'));
  const { status, exit_reason, entry_reason, entry_regime_tag, realized_pnl_usd, fees_usd, net_pnl_usd, holding_minutes } = json;
  assert.deepEqual(
    { status, exit_reason, entry_reason, entry_regime_tag, realized_pnl_usd, fees_usd, net_pnl_usd, holding_minutes },
    {
      status: 'closed',
      exit_reason: 'target reached',
      entry_reason: 'breakout',
      entry_regime_tag: json.entry_regime_tag,
      realized_pnl_usd: 7.3987654322,
      fees_usd: 0.26,
      net_pnl_usd: 7.1387654322,
      holding_minutes: 60,
    },
  );
  assert.match(entry_regime_tag, /^trend_up_/);
});

test('an open trade has no exit and no PnL', async () => {
  assert.equal(T.eth.status, 'open');
  for (const name of ['exit_tick_at', 'exit_price', 'exit_reason', 'exit_snapshot_id', 'holding_minutes', 'realized_pnl_usd', 'net_pnl_usd'])
    assert.equal(T.eth[name], null, name);
  assert.equal(T.eth.size_base, 3);
});

test('an unknown trade is 404, and a malformed ID is reported', async () => {
  await s.api.get(`/v1/trade_history/${UNKNOWN_ID}`, { status: 404 });
  assert.deepEqual(faults(await s.api.get('/v1/trade_history/abc', { status: 422 })), ['id: invalid_uuid']);
});

test('sorts by entry, exit and PnL; the last two show only closed trades', async () => {
  assert.deepEqual((await names('sort=entry_desc'))[0], 'eth');
  assert.deepEqual((await names('sort=entry_asc')).at(-1), 'eth');
  assert.deepEqual((await names('')).toSorted(), ['btc', 'eth', 'sol']);
  assert.deepEqual(await names('sort=exit_desc'), ['btc', 'sol']);
  assert.deepEqual(await names('sort=exit_asc'), ['sol', 'btc']);
  assert.deepEqual(await names('sort=pnl_desc'), ['btc', 'sol']);
  assert.deepEqual(await names('sort=pnl_asc'), ['sol', 'btc']);
});

const CASES = {
  [`deployment_id=a`]: ['btc', 'eth'],
  'skill_id=s': ['btc', 'eth', 'sol'],
  'version=v2': ['sol'],
  'skill_id=s&version=v1': ['btc', 'eth'],
  'skill_id=other&version=v1': [],
  'deployment_id=a&version=v2': [],
  'symbol=ETH': ['eth'],
  'symbol=eth': [],
  'side=short': ['sol'],
  'status=open': ['eth'],
  'status=closed': ['btc', 'sol'],
  'regime=none': ['eth', 'sol'],
  'regime=unknown': [],
  'lessons_hash=none': ['btc', 'eth', 'sol'],
  'lessons_hash=0123456789abcdef': [],
  'exit_reason=target%20reached': ['btc'],
  'exit_reason=liquidated': ['sol'],
  [`entry_since=${at('10:00:00')}&entry_until=${at('10:30:00')}`]: ['btc', 'sol'],
  [`entry_since=${at('10:00:00.000001')}`]: ['eth'],
  [`exit_since=${at('10:45:00')}&exit_until=${at('11:00:00')}`]: ['sol'],
  [`exit_since=${at('10:45:00.000001')}`]: ['btc'],
  [`deployment_id=a&entry_since=${at('10:30:00')}`]: ['eth'],
  [`deployment_id=a&exit_until=${at('12:00:00')}`]: ['btc'],
  [`deployment_id=a&symbol=BTC&side=long&status=closed&entry_until=${at('12:00:00')}&exit_since=${at('11:00:00')}`]: ['btc'],
};

const ready = (query) => query.replace('deployment_id=a', `deployment_id=${D.a.id}`).replace('skill_id=s', `skill_id=${D.a.skill_id}`);

test('every filter works alone, combined and with every sort', async () => {
  const closed = ['btc', 'sol'];
  for (const [query, expected] of Object.entries(CASES))
    for (const sort of ['entry_desc', 'entry_asc', 'exit_desc', 'exit_asc', 'pnl_desc', 'pnl_asc']) {
      const found = (await names(`${ready(query)}&sort=${sort}`)).toSorted();
      assert.deepEqual(found, sort.startsWith('entry') ? expected : expected.filter((x) => closed.includes(x)), `${query} ${sort}`);
    }
});

test('as_of shows the ledger as it was then', async () => {
  const shown = async (time, query = '') =>
    Object.fromEntries((await get(`as_of=${at(time)}&${query}`)).map((x) => [x.symbol, `${x.status} ${x.size_base} @ ${x.mark_price}`]));
  assert.deepEqual(await shown('09:59:59'), {});
  assert.deepEqual(await shown('10:00:00'), { BTC: 'open 0.01 @ 65200.12345678', SOL: 'open 10 @ 150' });
  assert.deepEqual(await shown('10:29:59'), { BTC: 'open 0.01 @ 65200.12345678', SOL: 'open 10 @ 150' });
  assert.deepEqual(await shown('10:50:00'), { BTC: 'open 0.01 @ 65300', ETH: 'open 2 @ 3400.5', SOL: 'closed 0 @ 151.5' });
  assert.deepEqual(await shown('11:00:00'), { BTC: 'closed 0 @ 65940', ETH: 'open 2 @ 3390', SOL: 'closed 0 @ 151.5' });
  assert.deepEqual(await shown('11:30:00'), { BTC: 'closed 0 @ 65940', ETH: 'open 3 @ 3450', SOL: 'closed 0 @ 151.5' });
  assert.deepEqual(await shown('10:50:00', 'status=open'), { BTC: 'open 0.01 @ 65300', ETH: 'open 2 @ 3400.5' });
  assert.deepEqual(await shown('10:50:00', 'status=closed'), { SOL: 'closed 0 @ 151.5' });
  assert.deepEqual(await shown('10:50:00', 'exit_reason=target%20reached'), {}, 'the exit was later');
  assert.deepEqual(await shown('10:50:00', `exit_until=${at('23:00:00')}`), { SOL: 'closed 0 @ 151.5' });
  for (const sort of ['exit_desc', 'exit_asc', 'pnl_desc', 'pnl_asc'])
    assert.deepEqual(await shown('10:50:00', `sort=${sort}`), { SOL: 'closed 0 @ 151.5' }, sort);
});

test('a trade as of a tick equals the trade in the response to that tick', async () => {
  const path = (time) => `/v1/trade_history/${T.btc.id}?as_of=${at(time)}`;
  await s.api.get(path('09:59:59'), { status: 404 });
  const { json } = await s.api.get(path('10:40:00'), { status: 200 });
  const [{ open, tick_at, created_at }] = await s.query(
    'select open, tick_at, created_at from daybook.decision_snapshots where deployment_id = $1 and tick_at = $2',
    [D.a.id, at('10:30:00')],
  );
  const { trade_id, ...then } = open.find((x) => x.symbol === 'BTC');
  assert.equal(trade_id, json.id);
  for (const [name, value] of Object.entries(then)) assert.deepEqual(json[name], value, name);
  assert.equal(json.status, 'open');
  assert.equal(json.exit_reason, null);
  assert.equal(json.net_pnl_usd, null);
  assert.equal(new Date(json.last_tick_at).getTime(), tick_at.getTime());
  assert.equal(new Date(json.updated_at).getTime(), created_at.getTime());
  assert.deepEqual((await s.api.get(path('11:00:00'), { status: 200 })).json, T.btc);
});

test('a value missing from every snapshot is null', async () => {
  const [lost] = await s.query('select * from daybook.decision_snapshots where deployment_id = $1 and tick_at = $2', [D.b.id, at('10:00:00')]);
  await s.query("update daybook.decision_snapshots set open = '[]' where id = $1", [lost.id]);
  const { json } = await s.api.get(`/v1/trade_history/${T.sol.id}?as_of=${at('10:10:00')}`, { status: 200 });
  await s.query('update daybook.decision_snapshots set open = $2 where id = $1', [lost.id, JSON.stringify(lost.open)]);
  for (const name of ['size_base', 'mark_price', 'fees_usd', 'mfe_usd', 'last_tick_at', 'updated_at', 'exit_price', 'net_pnl_usd'])
    assert.equal(json[name], null, name);
  assert.equal(json.entry_price, 150);
});

/** Adds closed trades to deployment b; many share an instant and a PnL. */
async function many(count) {
  await s.query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
       entry_size_usd, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd, fees_usd, size_base, average_entry_price,
       mark_price, last_tick_at)
     select 'local', gen_random_uuid(), $1, $2, $3, 'MANY', 'long', 'closed', e, 1, 1, x, 1, 'x', 1, (n % 3)::numeric, 0, 0, 1, 1, x
     from generate_series(1, $4) n,
       lateral (select timestamptz '2026-01-01Z' + (n / 11) * interval '1 hour' as e,
         timestamptz '2026-02-01Z' + (n % 5) * interval '1 hour' as x) i`,
    [D.b.id, D.b.skill_id, D.b.version, count],
  );
}

test('pages have no gaps or duplicates for any sort, however many rows share a key', async () => {
  await many(60);
  const keys = {
    entry: (x) => Date.parse(x.entry_tick_at),
    exit: (x) => Date.parse(x.exit_tick_at),
    pnl: (x) => x.net_pnl_usd,
  };
  for (const filter of [`deployment_id=${D.b.id}`, `skill_id=${D.b.skill_id}&version=v2`, '', 'symbol=MANY'])
    for (const sort of ['entry_desc', 'entry_asc', 'exit_desc', 'exit_asc', 'pnl_desc', 'pnl_asc']) {
      const [key, direction] = sort.split('_');
      const all = (await everyItem(s.api, `/v1/trade_history?limit=7&sort=${sort}&${filter}`)).filter((x) => x.symbol === 'MANY');
      assert.equal(new Set(all.map((x) => x.id)).size, 60, `${sort} ${filter}`);
      assert.equal(all.length, 60, `${sort} ${filter}`);
      const sign = direction === 'asc' ? 1 : -1;
      const sorted = all.toSorted((a, b) => sign * (keys[key](a) - keys[key](b) || (a.id < b.id ? -1 : 1)));
      assert.deepEqual(all, sorted, `${sort} ${filter}`);
    }
});

test('bounds apply to every page, not only the first', async () => {
  const since = '2026-01-01T02:00:00Z';
  const until = '2026-01-01T05:00:00Z';
  for (const sort of ['entry_desc', 'entry_asc', 'exit_desc', 'pnl_asc']) {
    const all = await everyItem(s.api, `/v1/trade_history?limit=5&sort=${sort}&entry_since=${since}&entry_until=${until}`);
    assert.equal(all.length, 33, sort);
    assert.ok(all.every((x) => x.entry_tick_at >= since && x.entry_tick_at < until));
  }
  const exits = `exit_since=2026-02-01T01:00:00Z&exit_until=2026-02-01T03:00:00Z`;
  for (const sort of ['exit_desc', 'exit_asc', 'entry_asc', 'pnl_desc'])
    assert.equal((await everyItem(s.api, `/v1/trade_history?limit=5&sort=${sort}&${exits}`)).length, 24, sort);
  for (const sort of ['entry_desc', 'entry_asc', 'exit_asc'])
    assert.equal((await everyItem(s.api, `/v1/trade_history?limit=9&sort=${sort}&as_of=2026-02-15T00:00:00Z`)).length, 60, sort);
});

test('a cursor is valid only for its own sort and filters', async () => {
  const { next_cursor } = (await s.api.get('/v1/trade_history?limit=2', { status: 200 })).json;
  const cursor = encodeURIComponent(next_cursor);
  for (const query of ['sort=exit_desc', 'symbol=MANY', 'sort=pnl_desc'])
    assert.deepEqual(faults(await s.api.get(`/v1/trade_history?cursor=${cursor}&${query}`, { status: 422 })), ['cursor: invalid_cursor'], query);
});

test('every invalid parameter is reported', async () => {
  assert.deepEqual(
    faults(
      await s.api.get(
        '/v1/trade_history?deployment_id=1&skill_id=-&symbol=&side=up&status=done&sort=size&limit=201&entry_since=today&as_of=x&tag=1',
        { status: 422 },
      ),
    ),
    [
      'as_of: invalid_time',
      'deployment_id: invalid_uuid',
      'entry_since: invalid_time',
      'limit: out_of_range',
      'side: not_a_choice',
      'skill_id: invalid_name',
      'sort: not_a_choice',
      'status: not_a_choice',
      'symbol: too_short',
      'tag: unknown_field',
    ],
  );
});

test('a list has an ETag and is 304 while unchanged', async () => {
  const first = await s.api.get('/v1/trade_history?symbol=BTC', { status: 200 });
  await s.api.get('/v1/trade_history?symbol=BTC', { headers: { 'if-none-match': first.headers.etag }, status: 304 });
});

test('a reader may read and sees only the ledger of its owner', async () => {
  const anonymous = makeClient(s.service.base);
  const reader = anonymous.as((await createKey(s.url, 'someone', 'reader')).key);
  for (const query of ['', '?sort=exit_asc', '?sort=pnl_desc', '?symbol=BTC', `?deployment_id=${D.a.id}`])
    assert.equal((await reader.get(`/v1/trade_history${query}`, { status: 200 })).json.items.length, 0, query);
  await reader.get(`/v1/trade_history/${T.btc.id}`, { status: 404 });
  assert.equal((await reader.get('/v1/trade_history/stats', { status: 200 })).json.total.count, 0);
  assert.equal((await reader.get('/v1/trade_history/export?format=ndjson', { status: 200 })).text, '');
  reader.close();
  anonymous.close();
});
