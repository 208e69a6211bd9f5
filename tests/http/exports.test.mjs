// Exports of every resource in every format: the same items as the list, and the same values in Parquet as in NDJSON.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';
import { exchange, makeClient } from '../lib/client.mjs';
import { operations } from '../lib/contract.mjs';
import { fill, RESOURCES } from '../lib/exports.mjs';
import { deploy } from '../lib/ledger.mjs';
import { faults } from '../lib/lessons.mjs';
import { assertSameRows, membersOf, readDuckdb } from '../lib/parquet.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const NAMES = Object.keys(RESOURCES);
const D = {};

async function prepare() {
  D.none = await deploy(s.api, { mode: 'sim' });
  D.one = await fill(s, 1);
  D.many = await fill(s, 1000);
}

const path = (name, d, format, more = '') => `/v1/${name}/export?format=${format}&${RESOURCES[name].filter(d)}${more}`;
const text = async (...args) => (await s.api.get(path(...args), { status: 200 })).text;
const bytes = async (...args) => (await s.api.get(path(...args), { status: 200 })).bytes;

test('every resource with an export is tested', () => {
  const exported = operations.filter((o) => o.path.endsWith('/export')).map((o) => o.path.split('/')[2]);
  assert.deepEqual(exported.toSorted(), NAMES.toSorted());
});

for (const name of NAMES)
  for (const [count, d] of [[0, 'none'], [1, 'one'], [1000, 'many']])
    test(`${name}: a Parquet file of ${count} rows has the values of the NDJSON export, by two readers`, async () => {
      const lines = await text(name, D[d], 'ndjson');
      const columns = await assertSameRows(await bytes(name, D[d], 'parquet'), lines, name);
      assert.equal(lines.split('\n').length - 1, count);
      const [header, ...rows] = (await text(name, D[d], 'csv')).split(/(?<=\r\n)/);
      const names = columns.map((c) => c.name).filter((c) => !columns.some((other) => c === `${other.name}_double`));
      assert.equal(header, `${names}\r\n`);
      assert.equal(rows.length, count);
      if (count) assert.deepEqual(Object.keys(membersOf(lines.split('\n')[0])), names);
    });

for (const name of NAMES)
  test(`${name}: the lines are the items of the list, byte for byte`, async () => {
    const lines = (await text(name, D.many, 'ndjson')).split('\n').slice(0, -1);
    const items = [];
    for (let cursor = ''; cursor !== null; ) {
      const sort = name === 'trade_history' ? '&sort=entry_asc' : '';
      const page = await s.api.get(`/v1/${name}?limit=200&${RESOURCES[name].filter(D.many)}${sort}${cursor && `&cursor=${cursor}`}`, { status: 200 });
      const { items: list, next_cursor } = membersOf(page.text);
      items.push(list.slice(1, -1));
      cursor = JSON.parse(next_cursor);
    }
    assert.equal(items.join(','), lines.join(','));
  });

test('types: times are timestamps in UTC, decimals a string and a double, lists and objects JSON', async () => {
  const types = async (name) => Object.fromEntries((await readDuckdb(await bytes(name, D.none, 'parquet'))).columns.map((c) => [c.name, c.type]));
  const trades = await types('trade_history');
  assert.deepEqual([trades.entry_tick_at, trades.entry_price, trades.entry_price_double, trades.id], ['time', 'text', 'double', 'text']);
  const events = await types('memory_events');
  assert.deepEqual(Object.keys(events), ['deployment_id', 'seq', 'id', 'kind', 'at', 'recorded_at', 'symbol', 'subject_id', 'agent_name', 'model_call_id', 'data', 'prev_hash', 'hash']);
  assert.deepEqual([events.seq, events.at, events.data], ['int', 'time', 'json']);
  const lessons = await types('lessons');
  assert.deepEqual([lessons.tags, lessons.active, lessons.validation], ['json', 'bool', 'json']);
  const snapshots = await types('decision_snapshots');
  assert.deepEqual([snapshots.executed_today, snapshots.reflection_due], ['int', 'bool']);
  assert.equal((await types('memories')).version, 'int');
});

test('the response names a file and its type', async () => {
  for (const [format, type, suffix] of [
    ['ndjson', 'application/x-ndjson', 'ndjson'],
    ['csv', 'text/csv; charset=utf-8; header=present', 'csv'],
    ['parquet', 'application/vnd.apache.parquet', 'parquet'],
  ]) {
    const { headers } = await s.api.get(path('memories', D.one, format), { status: 200 });
    assert.equal(headers['content-type'], type);
    assert.equal(headers['content-disposition'], `attachment; filename="memories.${suffix}"`);
  }
  const { headers } = await s.api.get('/v1/lessons/export?format=md', { status: 200 });
  assert.equal(headers['content-disposition'], 'attachment; filename="lessons.md"');
});

test('the same rows give the same bytes', async () => {
  for (const name of NAMES) assert.ok((await bytes(name, D.many, 'parquet')).equals(await bytes(name, D.many, 'parquet')), name);
});

test('a text that looks like a formula is escaped in every CSV, lists and objects are JSON', async () => {
  const lines = async (name) => (await text(name, D.many, 'csv')).split('\r\n');
  for (const name of ['trade_history', 'memories', 'theses', 'orders', 'lessons', 'episodic']) {
    const all = await text(name, D.many, 'csv');
    assert.ok(/,'=1\+1 \d/.test(all) && /,'-2 \d/.test(all) && /,'@x \d/.test(all), name);
    assert.ok(!/,"?[=@]/.test(all), name);
  }
  assert.match((await lines('memories'))[1], /,"\[""a,b"",""say \\""x\\"""",""n\d""\]",/);
  assert.match((await lines('memory_events'))[1], /,"\{""n"": 0, ""list"": \[1\.10, null, true\], ""null"": null, ""text"": ""plain 0""\}",/);
});

test('as_of, since and until limit every export', async () => {
  const until = '2026-01-01T01:00:00Z'; // n = 59 is the last before it
  const count = async (name, more) => (await text(name, D.many, 'ndjson', more)).split('\n').length - 1;
  for (const name of NAMES) {
    assert.equal(await count(name, `&as_of=${until}`), 60, name);
    if (['trade_history', 'facts'].includes(name)) continue; // has entry_since and exit_since; has neither
    assert.equal(await count(name, `&until=${until}`), 60, name);
    assert.equal(await count(name, `&since=${until}`), 940, name);
    await assertSameRows(await bytes(name, D.many, 'parquet', `&until=${until}`), await text(name, D.many, 'ndjson', `&until=${until}`), name);
  }
});

test('an unknown format, or none, is rejected by name', async () => {
  for (const name of NAMES) {
    assert.deepEqual(faults(await s.api.get(`/v1/${name}/export`, { status: 422 })), ['format: required']);
    assert.deepEqual(faults(await s.api.get(`/v1/${name}/export?format=xlsx&limit=5`, { status: 422 })), ['format: not_a_choice', 'limit: unknown_field']);
  }
});

test('HEAD of an export has no body', async () => {
  const request = (method, target, end) => `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${end}\r\n`;
  const { received } = await exchange(
    s.service.port,
    request('HEAD', path('memories', D.many, 'parquet'), '') + request('GET', '/health/live', 'Connection: close\r\n'),
  );
  const [head, next] = received.toString().split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 200 .*vnd\.apache\.parquet/s);
  assert.match(next, /^HTTP\/1\.1 200 /);
});

test('events are numbered before they are exported, and each journal is in its order', async () => {
  const d = await fill(s, 700, ['memory_events']); // more than are sealed at once
  const events = (await text('memory_events', d, 'ndjson')).split('\n').slice(0, -1).map((line) => JSON.parse(line));
  assert.deepEqual(events.map((e) => e.seq), Array.from({ length: 700 }, (_, i) => i + 1));
  assert.ok(events.every((e) => e.deployment_id === d.id && /^[0-9a-f]{64}$/.test(e.hash)));
  const all = (await s.api.get('/v1/memory_events/export?format=ndjson', { status: 200 })).text.split('\n').slice(0, -1).map((line) => JSON.parse(line));
  assert.equal(all.length, 1701);
  assert.deepEqual(all.map((e) => e.deployment_id), all.map((e) => e.deployment_id).toSorted());
  assert.deepEqual(events.map((e) => e.prev_hash), ['0'.repeat(64), ...events.map((e) => e.hash)].slice(0, -1));
  await s.query(`insert into daybook.memory_events (owner, kind, at, data) values ('local', 'lesson.proposed', now(), '{}')`);
  const own = JSON.parse((await s.api.get('/v1/memory_events/export?format=ndjson&journal=owner', { status: 200 })).text);
  assert.deepEqual([own.deployment_id, own.seq], [null, 1]);
  assert.equal((await text('memory_events', d, 'ndjson', '&after_seq=690')).split('\n').length - 1, 10);
  assert.deepEqual(faults(await s.api.get(path('memory_events', d, 'ndjson', '&journal=owner'), { status: 422 })), ['journal: not_together']);
});

test('an error in the middle ends the stream visibly, and leaves a Parquet file without its footer', async () => {
  // More than what the sockets between here and the service hold, also when it is compressed.
  const d = await deploy(s.api, { mode: 'sim' });
  await s.query(
    `insert into daybook.memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id)
     select 'local', gen_random_uuid(), 'memories', now(), jsonb_build_object('text', t), '{}', '[]', '{}', $1
     from generate_series(1, 200) n, lateral (select string_agg(md5(n::text || i), '') as t from generate_series(1, 6250) i) r`,
    [d.id],
  );
  for (const format of ['ndjson', 'csv', 'parquet']) {
    const request = http.get(`${s.service.base}${path('memory_retrievals', d, format)}`, { agent: new http.Agent({ keepAlive: false }) });
    const [response] = await once(request, 'response');
    response.pause();
    const holder = await s.cluster.connect(s.database);
    await holder.query('alter table daybook.memory_retrievals rename to gone');
    const chunks = [];
    const end = await new Promise((resolve) => {
      response.on('data', (chunk) => chunks.push(chunk)).on('end', () => resolve('end')).on('error', (error) => resolve(error.code)).resume();
    });
    await holder.query('alter table daybook.gone rename to memory_retrievals');
    await holder.end();
    assert.equal(end, 'ECONNRESET', format);
    if (format === 'parquet') assert.notEqual(Buffer.concat(chunks).subarray(-4).toString(), 'PAR1');
  }
});

test('clients that do not read, and clients that leave, hold up nobody', async () => {
  const d = await fill(s, 20000, ['memories']);
  const slow = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const request = http.get(`${s.service.base}${path('memories', d, 'parquet')}`, { agent: new http.Agent({ keepAlive: false }) });
      const [response] = await once(request, 'response');
      response.pause();
      return { request, response };
    }),
  );
  await assertSameRows(await bytes('memories', D.many, 'parquet'), await text('memories', D.many, 'ndjson'), 'memories');
  for (const { request, response } of slow) {
    response.on('error', () => {});
    request.destroy();
  }
  await assertSameRows(await bytes('memories', d, 'parquet'), await text('memories', d, 'ndjson'), 'several row groups');
});

test('an export shows no row of another owner', async () => {
  const service = await s.another();
  const { key } = await createKey(s.url, 'other', 'reader');
  const api = makeClient(service.base, { headers: { authorization: `Bearer ${key}` } });
  for (const name of NAMES) {
    const query = name === 'lessons' || name === 'episodic' ? '' : `&${RESOURCES[name].filter(D.many)}`;
    assert.equal((await api.get(`/v1/${name}/export?format=ndjson${query}`, { status: 200 })).text, '', name);
    assert.equal((await readDuckdb((await api.get(`/v1/${name}/export?format=parquet${query}`, { status: 200 })).bytes)).rows.length, 0, name);
  }
  api.close();
  await service.stop();
});
