// Ledger exports: every trade once, as JSON lines and as CSV without executable formulas.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange } from '../lib/client.mjs';
import { deploy, position, postTick } from '../lib/ledger.mjs';
import { everyItem, faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const MANY = 3500;
const FORMULAS = ['=HYPERLINK("http://x","y")', '+1', '-1', '@SUM(A1)', '\tlater', '\nfirst'];
const REASONS = [...FORMULAS, 'plain', 'a,b', 'say "no"', 'two\nlines', "'quoted'", 'ünï'];
const D = {};

async function prepare() {
  D.bulk = await deploy(s.api, { mode: 'sim' });
  D.live = await deploy(s.api);
  const { id, skill_id, version } = D.bulk;
  await s.query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
       entry_size_usd, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd, size_base, average_entry_price, mark_price,
       last_tick_at)
     select 'local', gen_random_uuid(), $1, $2, $3, case n % 7 when 3 then '-RARE' else 'X' end, 'long', 'closed', e, 0.0000964, 1, e, 1,
       ($5::text[])[1 + n % 12], 0, -0.10, 0, 1, 1, e
     from generate_series(0, $4::int - 1) n, lateral (select timestamptz '2026-01-01Z' + (n / 9) * interval '0.5 second' as e) i`,
    [id, skill_id, version, MANY, REASONS],
  );
  await postTick(s.api, D.live.id, '2026-03-01T10:00:00Z', { positions: [position('BTC', 65200.12345678)] });
  await postTick(s.api, D.live.id, '2026-03-01T11:00:00Z', { positions: [position('BTC', 65300)] });
}

const path = (query) => `/v1/trade_history/export?${query}`;
const lines = async (query) =>
  (await s.api.get(path(`format=ndjson&${query}`), { status: 200 })).text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** Parses RFC 4180 strictly: doubled quotes inside quotes, CR LF line ends. */
function cells(text) {
  const rows = [[]];
  for (let i = 0; i < text.length; ) {
    let cell = '';
    if (text[i] === '"') {
      for (i++; text[i] !== '"' || text[i + 1] === '"'; i++) {
        if (text[i] === '"') i++;
        cell += text[i];
      }
      i++;
    } else while (i < text.length && text[i] !== ',' && text[i] !== '\r') cell += text[i++];
    rows.at(-1).push(cell);
    if (text.startsWith('\r\n', i)) {
      rows.push([]);
      i += 2;
    } else assert.equal(text[i++], ',', `in ${JSON.stringify(text.slice(i - 30, i + 5))}`);
  }
  assert.deepEqual(rows.pop(), [], 'the last line ends with a line break');
  return rows;
}

test('ndjson has every trade once, in the form and order of the list', async () => {
  const answer = await s.api.get(path('format=ndjson'), { status: 200 });
  assert.match(answer.headers['content-type'], /^application\/x-ndjson/);
  const exported = await lines('');
  assert.equal(exported.length, MANY + 1);
  assert.deepEqual(exported, await everyItem(s.api, '/v1/trade_history?limit=200&sort=entry_asc'));
  assert.deepEqual(await lines('sort=entry_desc'), exported.toReversed());
});

test('csv matches the list cell for cell', async () => {
  const { text, headers } = await s.api.get(path('format=csv'), { status: 200 });
  assert.match(headers['content-type'], /^text\/csv; charset=utf-8/);
  const [names, ...rows] = cells(text);
  const listed = (await s.api.get('/v1/trade_history?limit=200&sort=entry_asc', { status: 200 })).text;
  const trades = JSON.parse(listed.replaceAll(/":(-?\d[\d.]*)/g, '":"$1"')).items; // numbers as they are written
  assert.deepEqual(names, Object.keys(trades[0]));
  assert.equal(rows.length, MANY + 1);
  const guarded = (value) => (/^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value);
  const TEXTS = ['symbol', 'entry_reason', 'exit_reason'];
  for (const [i, trade] of trades.entries())
    assert.deepEqual(
      rows[i],
      names.map((name) => (trade[name] === null ? '' : TEXTS.includes(name) ? guarded(trade[name]) : trade[name])),
    );
});

test('text that looks like a formula is escaped, a negative number is not', async () => {
  const [names, ...rows] = cells((await s.api.get(path('format=csv'), { status: 200 })).text);
  const column = (name) => new Set(rows.map((row) => row[names.indexOf(name)]));
  assert.deepEqual(column('exit_reason'), new Set(['', ...REASONS.map((x) => (FORMULAS.includes(x) ? `'${x}` : x))]));
  assert.deepEqual(column('symbol'), new Set(['X', "'-RARE", 'BTC']));
  assert.deepEqual(column('realized_pnl_usd'), new Set(['-0.10', '']));
  assert.ok(column('entry_price').has('0.0000964'));
});

test('the export takes the filters and as_of of the list', async () => {
  for (const query of [
    `deployment_id=${D.live.id}`,
    'symbol=-RARE',
    'exit_reason=%2B1&side=long',
    'status=open',
    'entry_since=2026-01-01T00:01:00Z&entry_until=2026-01-01T00:02:00Z',
    'as_of=2026-03-01T10:30:00Z&status=open',
  ])
    assert.deepEqual(await lines(query), await everyItem(s.api, `/v1/trade_history?limit=200&sort=entry_asc&${query}`), query);
  const [then] = await lines(`as_of=2026-03-01T10:30:00Z&deployment_id=${D.live.id}`);
  assert.equal(then.mark_price, 65200.12345678);
});

test('an export without matches is empty, or only the header row for CSV', async () => {
  assert.equal((await s.api.get(path('format=ndjson&symbol=none'), { status: 200 })).text, '');
  assert.equal(cells((await s.api.get(path('format=csv&symbol=none'), { status: 200 })).text).length, 1);
});

test('an unknown format or sort is rejected', async () => {
  assert.deepEqual(faults(await s.api.get(path(''), { status: 422 })), ['format: required']);
  assert.deepEqual(faults(await s.api.get(path('format=xml&sort=pnl_desc&limit=5'), { status: 422 })), [
    'format: not_a_choice',
    'limit: unknown_field',
    'sort: not_a_choice',
  ]);
});

test('HEAD of an export has no body, not even a final chunk', async () => {
  const request = (method, target, end) => `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${end}\r\n`;
  const { received } = await exchange(
    s.service.port,
    request('HEAD', path('format=csv'), '') + request('GET', '/health/live', 'Connection: close\r\n'),
  );
  const [head, next] = received.toString().split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 200 .*text\/csv/s);
  assert.match(next, /^HTTP\/1\.1 200 /);
});
