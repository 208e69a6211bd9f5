// Deployments: settings inherited from the version, point-in-time reads, and deletion with everything they own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy, putVersion } from '../lib/ledger.mjs';
import { day, everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const NO_STATE = { last_tick_at: null, last_snapshot_id: null, day_start_equity_usd: null };
const OWNED = ['agent_state', 'decision_snapshots', 'trade_history', 'reflection_notes'];

async function prepare() {
  await putVersion(s.api, { skill_id: 'daily', memory: { reflection: { cadence: 'daily', every_n_trades: 7 } }, at: day(1) });
  await putVersion(s.api, { skill_id: 'daily', version: 'v2', at: day(1) });
}

const post = (changes, options) => s.api.post('/v1/deployments', { skill_id: 'daily', version: 'v1', mode: 'live', ...changes }, options);
const refusedFor = async (changes) => faults(await post(changes, { status: 422 }));
const ids = (items) => items.map((x) => x.id);

let snapshots = 0;
/** Stores a tick as the service would; returns the id of its snapshot. */
async function tick(deployment, tick_at, equity, owner = 'local') {
  const id = `0190dddd-dddd-7ddd-8ddd-${String(++snapshots).padStart(12, '0')}`;
  await s.query(
    `insert into daybook.decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, input, ops, open, reflection_due,
       day_start_equity_usd, executed_today, realized_today_usd, losing_closes)
     values ($1, $2, $3, $4, $5, '{}', '[]', '[]', false, $5, 0, 0, 0)`,
    [owner, id, deployment, tick_at, equity],
  );
  return id;
}

/** Adds a tick, a closed trade, an open trade and a note to the deployment. */
async function history({ id, skill_id, version }) {
  const snapshot = await tick(id, day(1), 100);
  const trade = `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at,
      entry_price, entry_size_usd, entry_snapshot_id, exit_tick_at, exit_price, exit_reason, exit_snapshot_id, holding_minutes,
      realized_pnl_usd, size_base, average_entry_price, mark_price, last_tick_at)
    values ('local', gen_random_uuid(), $1, $2, $3, 'BTC', 'long',`;
  await s.query(`${trade} 'closed', $4, 1, 1, $5, $4, 2, 'x', $5, 0, 1, 0, 1, 2, $4)`, [id, skill_id, version, day(1), snapshot]);
  await s.query(`${trade} 'open', $4, 1, 1, $5, null, null, null, null, null, null, 1, 1, 1, $4)`, [id, skill_id, version, day(1), snapshot]);
  await s.query(
    `insert into daybook.reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at, lessons_text, content_hash, model_used)
     values ('local', gen_random_uuid(), $2, $3, $1, 'active', $4, 'x', '0123456789abcdef', 'builtin')`,
    [id, skill_id, version, day(1)],
  );
}

async function counts(id) {
  const found = {};
  for (const table of OWNED)
    found[table] = (await s.query(`select count(*)::int as n from daybook.${table} where deployment_id = $1`, [id]))[0].n;
  return found;
}

test('a new deployment is returned as it was created, without a tick', async () => {
  const answer = await post({ name: 'Desk 1 東京', at: day(5) }, { status: 201 });
  const { id, ...rest } = answer.json;
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(answer.headers.location, `/v1/deployments/${id}`);
  assert.deepEqual(rest, {
    skill_id: 'daily',
    version: 'v1',
    mode: 'live',
    name: 'Desk 1 東京',
    reflection: { cadence: 'daily', every_n_trades: 7, model: null },
    created_at: day(5),
    state: NO_STATE,
  });
  assert.equal((await s.api.get(answer.headers.location, { status: 200 })).text, answer.text);
  assert.deepEqual(await counts(id), { agent_state: 1, decision_snapshots: 0, trade_history: 0, reflection_notes: 0 });
});

test('created_at defaults to the server clock, and the name is optional', async () => {
  const before = Date.now();
  const { created_at, name } = (await post({}, { status: 201 })).json;
  assert.ok(Date.parse(created_at) >= before - 1 && Date.parse(created_at) <= Date.now() + 1, created_at);
  assert.equal(name, null);
});

test("the cadence is the deployment's own, else off for a simulation, else the version's", async () => {
  const reflectionOf = async (changes) => {
    const { cadence, every_n_trades } = (await post(changes, { status: 201 })).json.reflection;
    return [cadence, every_n_trades];
  };
  for (const mode of ['live', 'paper']) assert.deepEqual(await reflectionOf({ mode }), ['daily', 7]);
  assert.deepEqual(await reflectionOf({ mode: 'sim' }), ['off', 7]);
  assert.deepEqual(await reflectionOf({ mode: 'sim', reflection: {} }), ['off', 7]);
  assert.deepEqual(await reflectionOf({ mode: 'sim', reflection: { cadence: null, every_n_trades: 3 } }), ['off', 3]);
  assert.deepEqual(await reflectionOf({ mode: 'sim', reflection: { cadence: 'daily' } }), ['daily', 7]);
  assert.deepEqual(await reflectionOf({ mode: 'live', reflection: { cadence: 'off' } }), ['off', 7]);
  assert.deepEqual(await reflectionOf({ mode: 'paper', reflection: { cadence: 'per_n_trades', every_n_trades: 1000 } }), ['per_n_trades', 1000]);
  assert.deepEqual(await reflectionOf({ mode: 'live', version: 'v2' }), ['off', 10]);
});

test('a deployment may use its own model', async () => {
  for (const model of ['claude-haiku', 'vendor/モデル=1', 'x'.repeat(100), null]) {
    const { id, reflection } = (await post({ reflection: { model } }, { status: 201 })).json;
    assert.deepEqual(reflection, { cadence: 'daily', every_n_trades: 7, model });
    assert.deepEqual((await s.api.get(`/v1/deployments/${id}`, { status: 200 })).json.reflection, reflection);
  }
  assert.deepEqual(await refusedFor({ reflection: { model: '' } }), ['reflection.model: too_short']);
  assert.deepEqual(await refusedFor({ reflection: { model: 'x'.repeat(101) } }), ['reflection.model: too_long']);
  assert.deepEqual(await refusedFor({ reflection: { model: 'a\nb' } }), ['reflection.model: several_lines']);
  assert.deepEqual(await refusedFor({ reflection: { model: 4 } }), ['reflection.model: wrong_type']);
});

test('a retry with the same Idempotency-Key creates nothing and gets the same response', async () => {
  const options = { headers: { 'idempotency-key': 'deploy-1' } };
  const first = await post({ name: 'once' }, { ...options, status: 201 });
  const again = await post({ name: 'once' }, { ...options, status: 201 });
  assert.equal(again.text, first.text);
  assert.equal(again.headers.location, first.headers.location);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await s.query("select from daybook.deployments where name = 'once'")).length, 1);
  await post({ name: 'twice' }, { ...options, status: 409 });
  const refused = { headers: { 'idempotency-key': 'deploy-2' }, status: 422 };
  assert.equal((await post({ version: 'none' }, refused)).text, (await post({ version: 'none' }, refused)).text);
});

test('an unknown skill or version is reported by name', async () => {
  const answer = await post({ skill_id: 'nothing' }, { status: 422 });
  assert.deepEqual(faults(answer), ['skill_id: unknown_reference']);
  assert.match(answer.json.errors[0].detail, /nothing/);
  assert.deepEqual(await refusedFor({ version: 'v9' }), ['version: unknown_reference']);
});

test('every invalid field is rejected by name, and nothing is stored', async () => {
  const before = await s.query('select count(*) from daybook.deployments');
  assert.deepEqual(faults(await s.api.post('/v1/deployments', {}, { status: 422 })), ['mode: required', 'skill_id: required', 'version: required']);
  assert.deepEqual(await refusedFor({ skill_id: '..', version: '' }), ['skill_id: invalid_name', 'version: invalid_name']);
  assert.deepEqual(await refusedFor({ skill_id: 1, version: ['v1'], mode: 2 }), [
    'mode: wrong_type',
    'skill_id: wrong_type',
    'version: wrong_type',
  ]);
  assert.deepEqual(await refusedFor({ mode: 'dry' }), ['mode: not_a_choice']);
  assert.deepEqual(await refusedFor({ name: '' }), ['name: too_short']);
  assert.deepEqual(await refusedFor({ name: 'x'.repeat(201) }), ['name: too_long']);
  assert.deepEqual(await refusedFor({ name: 'a\nb' }), ['name: several_lines']);
  assert.deepEqual(await refusedFor({ at: '2026-02-30T00:00:00Z' }), ['at: invalid_time']);
  assert.deepEqual(await refusedFor({ reflection: 'daily' }), ['reflection: wrong_type']);
  assert.deepEqual(await refusedFor({ reflection: { cadence: 'weekly', every_n_trades: 0, x: 1 }, state: {} }), [
    'reflection.cadence: not_a_choice',
    'reflection.every_n_trades: out_of_range',
    'reflection.x: unknown_field',
    'state: unknown_field',
  ]);
  assert.deepEqual(await refusedFor({ reflection: { every_n_trades: 1001 } }), ['reflection.every_n_trades: out_of_range']);
  assert.deepEqual(await s.query('select count(*) from daybook.deployments'), before);
  await post({ name: '🚀'.repeat(200) }, { status: 201 });
});

test('an unknown deployment is 404, a malformed ID 422', async () => {
  for (const method of ['GET', 'DELETE']) {
    await s.api(method, `/v1/deployments/${UNKNOWN_ID}`, { status: 404 });
    assert.deepEqual(faults(await s.api(method, '/v1/deployments/x', { status: 422 })), ['id: invalid_uuid']);
  }
});

test('the state is that of the last tick up to as_of, digit for digit', async () => {
  const { id } = await deploy(s.api, { at: day(20) });
  const first = await tick(id, day(21, '10:00:00.5'), '10250.7500000000000001');
  const second = await tick(id, day(22), '0.0000964');
  const read = async (as_of) => {
    const answer = await s.api.get(`/v1/deployments/${id}${as_of ? `?as_of=${as_of}` : ''}`, { status: 200 });
    const listed = (await s.api.get(`/v1/deployments?limit=200${as_of ? `&as_of=${as_of}` : ''}`)).json.items.find((x) => x.id === id);
    assert.deepEqual(listed, answer.json, 'the list shows another state');
    return answer;
  };
  const at = async (as_of) => Object.values((await read(as_of)).json.state).slice(0, 2);
  assert.deepEqual((await read(day(20))).json.state, NO_STATE);
  assert.deepEqual((await read(day(21))).json.state, NO_STATE);
  assert.deepEqual(await at(day(21, '10:00:00.499999')), [null, null]);
  assert.deepEqual(await at(day(21, '10:00:00.5')), [day(21, '10:00:00.5'), first]);
  assert.deepEqual(await at(day(21, '23:59:59.999999')), [day(21, '10:00:00.5'), first]);
  assert.deepEqual(await at(day(22)), [day(22), second]);
  assert.deepEqual(await at(), [day(22), second]);
  assert.match((await read(day(21, '12:00:00'))).text, /"day_start_equity_usd":10250\.7500000000000001}/);
  assert.match((await read()).text, /"day_start_equity_usd":0\.0000964}/);
});

test('before its created_at a deployment does not exist', async () => {
  const { id } = await deploy(s.api, { at: day(40) });
  const before = day(39, '23:59:59.999999');
  await s.api.get(`/v1/deployments/${id}?as_of=${before}`, { status: 404 });
  assert.ok(!ids(await everyItem(s.api, `/v1/deployments?as_of=${before}`)).includes(id));
  await s.api.get(`/v1/deployments/${id}?as_of=${day(40)}`, { status: 200 });
  assert.ok(ids(await everyItem(s.api, `/v1/deployments?as_of=${day(40)}`)).includes(id));
});

test('the list is newest first, page by page, and filters combine', async () => {
  for (const version of ['v1', 'v2']) await putVersion(s.api, { skill_id: 'listed', version });
  const made = {};
  for (const [n, version, mode] of [[3, 'v1', 'live'], [1, 'v1', 'sim'], [2, 'v2', 'live'], [3, 'v2', 'sim'], [4, 'v1', 'paper']])
    made[`${version} ${mode}`] = (await deploy(s.api, { skill_id: 'listed', version, mode, at: day(n) })).id;
  const listed = async (query) => ids(await everyItem(s.api, `/v1/deployments?skill_id=listed${query}`)).map((id) => Object.keys(made).find((k) => made[k] === id));
  const all = ['v1 paper', 'v2 sim', 'v1 live', 'v2 live', 'v1 sim'];
  for (const limit of [1, 2, 4, 5, 50]) assert.deepEqual(await listed(`&limit=${limit}`), all, `limit ${limit}`);
  assert.deepEqual(await listed('&version=v2'), ['v2 sim', 'v2 live']);
  assert.deepEqual(await listed('&mode=sim&limit=1'), ['v2 sim', 'v1 sim']);
  assert.deepEqual(await listed('&mode=live&version=v1'), ['v1 live']);
  assert.deepEqual(await listed('&mode=paper&version=v2'), []);
  assert.deepEqual(await listed(`&as_of=${day(2)}`), ['v2 live', 'v1 sim']);
  assert.deepEqual((await s.api.get('/v1/deployments?skill_id=nothing', { status: 200 })).json, { items: [], next_cursor: null });
  assert.ok(ids(await everyItem(s.api, '/v1/deployments?limit=7')).includes(made['v1 live']));
});

test('an invalid filter or cursor is rejected by name', async () => {
  const bad = async (query) => faults(await s.api.get(`/v1/deployments?${query}`, { status: 422 }));
  assert.deepEqual(await bad('skill_id=a%20b&version=-&mode=dry&limit=0&as_of=now&name=x'), [
    'as_of: invalid_time',
    'limit: out_of_range',
    'mode: not_a_choice',
    'name: unknown_field',
    'skill_id: invalid_name',
    'version: invalid_name',
  ]);
  const { next_cursor } = (await s.api.get('/v1/deployments?limit=1&skill_id=daily')).json;
  assert.deepEqual(await bad(`limit=1&cursor=${next_cursor}`), ['cursor: invalid_cursor']);
});

test('deleting a deployment deletes everything it owns and nothing else', async () => {
  const { skill_id, version, ...gone } = await deploy(s.api);
  const stays = await deploy(s.api, { skill_id, version, mode: 'sim' });
  for (const { id } of [gone, stays]) await history({ id, skill_id, version });
  const full = { agent_state: 1, decision_snapshots: 1, trade_history: 2, reflection_notes: 1 };
  assert.deepEqual([await counts(gone.id), await counts(stays.id)], [full, full]);
  const answer = await s.api('DELETE', `/v1/deployments/${gone.id}`, { status: 204 });
  assert.equal(answer.text, '');
  assert.deepEqual(await counts(gone.id), { agent_state: 0, decision_snapshots: 0, trade_history: 0, reflection_notes: 0 });
  assert.deepEqual(await counts(stays.id), full);
  await s.api.get(`/v1/deployments/${gone.id}`, { status: 404 });
  await s.api('DELETE', `/v1/deployments/${gone.id}`, { status: 404 });
  await s.api.get(`/v1/deployments/${stays.id}`, { status: 200 });
  await s.api.get(`/v1/skills/${skill_id}/versions/${version}`, { status: 200 });
});

test('what is written while a deployment is deleted is deleted too', async () => {
  const { id } = await deploy(s.api);
  const writer = await s.cluster.connect(s.database);
  await writer.query('begin');
  await writer.query(
    `insert into daybook.memories (owner, id, version, known_from, kind, status, at, text_id, text, deployment_id)
     values ('local', daybook.uuid7(), 1, now(), 'note', 'active', now(), daybook.uuid7(), 'late', $1)`,
    [id],
  );
  await writer.query(`insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'memory.created', now(), '{}')`, [id]);
  const deleted = s.api('DELETE', `/v1/deployments/${id}`, { status: 204 });
  const waits = `select count(*)::int as n from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`;
  while (!(await s.query(waits, [s.database]))[0].n) await new Promise((next) => setTimeout(next, 20));
  await writer.query('commit');
  await writer.end();
  await deleted;
  for (const table of ['memories where deployment_id', 'memory_events where journal_id', 'memory_journals where journal_id'])
    assert.equal((await s.query(`select count(*)::int as n from daybook.${table} = $1`, [id]))[0].n, 0, table);
});

test('of many concurrent deletes of a deployment, one succeeds', async () => {
  const { id } = await deploy(s.api);
  const answers = await Promise.all(Array.from({ length: 8 }, () => s.api('DELETE', `/v1/deployments/${id}`)));
  assert.deepEqual(answers.map((a) => a.status).sort(), [204, ...Array(7).fill(404)]);
});

test('one request deletes a long history', async () => {
  const { id, skill_id, version } = await deploy(s.api);
  await s.query(
    `insert into daybook.decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, input, ops, open, reflection_due,
       day_start_equity_usd, executed_today, realized_today_usd, losing_closes)
     select 'local', ('0190eeee-eeee-7eee-8eee-' || lpad(n::text, 12, '0'))::uuid, $1, timestamptz '2026-01-01' + n * interval '1 minute', 1, '{}', '[]',
       '[]', false, 1, 0, 0, 0 from generate_series(1, 20000) n`,
    [id],
  );
  await s.query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price,
       entry_size_usd, entry_snapshot_id, exit_tick_at, exit_price, exit_reason, exit_snapshot_id, holding_minutes, realized_pnl_usd, size_base,
       average_entry_price, mark_price, last_tick_at)
     select owner, id, deployment_id, $2, $3, 'BTC', 'long', 'closed', tick_at, 1, 1, id, tick_at, 1, 'x', id, 0, 0, 0, 1, 1, tick_at
     from daybook.decision_snapshots where deployment_id = $1 and extract(minute from tick_at) < 10`,
    [id, skill_id, version],
  );
  await s.api('DELETE', `/v1/deployments/${id}`, { status: 204 });
  assert.deepEqual(Object.values(await counts(id)), [0, 0, 0, 0]);
});

// Last, because once a key exists every caller needs one.
test("two owners never see or change each other's rows, and each role may do its part", async () => {
  const anonymous = makeClient(s.service.base);
  const as = {};
  after(() => [anonymous, ...Object.values(as)].forEach((client) => client.close()));
  for (const [name, owner, role] of [
    ['mine', 'alpha', 'agent'],
    ['reader', 'alpha', 'reader'],
    ['researcher', 'alpha', 'researcher'],
    ['other', 'beta', 'agent'],
  ])
    as[name] = anonymous.as((await createKey(s.url, owner, role)).key);
  const version = await putVersion(as.mine, { skill_id: 'secret', strategy: 'of alpha' });
  const mine = await deploy(as.mine, { skill_id: 'secret', version: 'v1' });
  const snapshot = await tick(mine.id, day(1), 1, 'alpha');

  for (const path of ['/v1/skills/secret/versions/v1', '/v1/skills/secret/versions', `/v1/deployments/${mine.id}`]) {
    await as.other.get(path, { status: 404 });
    await as.reader.get(path, { status: 200 });
  }
  for (const path of ['/v1/skills', '/v1/deployments', '/v1/deployments?skill_id=secret']) {
    assert.deepEqual((await as.other.get(path, { status: 200 })).json.items, [], path);
    assert.equal((await as.reader.get(path, { status: 200 })).json.items.length, 1, path);
  }
  await as.other('DELETE', `/v1/deployments/${mine.id}`, { status: 404 });
  assert.deepEqual(faults(await as.other.post('/v1/deployments', { skill_id: 'secret', version: 'v1', mode: 'sim' }, { status: 422 })), [
    'skill_id: unknown_reference',
  ]);
  await putVersion(as.other, { skill_id: 'secret', strategy: 'of beta' });
  assert.deepEqual((await as.mine.get('/v1/skills/secret/versions/v1')).json, version);

  for (const role of ['reader', 'researcher']) {
    await as[role]('PUT', '/v1/skills/secret/versions/v2', { body: { strategy: 'x' }, status: 403 });
    await as[role].post('/v1/deployments', { skill_id: 'secret', version: 'v1', mode: 'sim' }, { status: 403 });
    await as[role]('DELETE', `/v1/deployments/${mine.id}`, { status: 403 });
  }
  assert.equal((await as.mine.get(`/v1/deployments/${mine.id}`, { status: 200 })).json.state.last_snapshot_id, snapshot);
});
