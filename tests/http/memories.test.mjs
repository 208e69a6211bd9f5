// Memories: notes, proposals, risk notes and decisions; their clock, their references, lists, and retraction.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { blocked } from '../lib/faults.mjs';
import { eventsOf, holding, newMemory, openThesis, remember } from '../lib/journal.mjs';
import { deploy, postTick } from '../lib/ledger.mjs';
import { day, everyItem, faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const as = {};
const s = suite({
  prepare: async () => {
    for (const role of ['reader', 'researcher', 'agent', 'admin']) as[role] = s.api.as((await createKey(s.url, 'local', role)).key);
    s.api.close();
    s.api = as.agent;
  },
});
after(() => Object.values(as).forEach((client) => client.close()));

const read = async (id, query = '') => (await s.api.get(`/v1/memories/${id}${query}`, { status: 200 })).json;
const retract = (id, body, options) => s.api.post(`/v1/memories/${id}/retract`, { reason: 'wrong source', ...body }, options);
const stored = async () => [
  Number((await s.query('SELECT count(*) FROM daybook.memories'))[0].count),
  Number((await s.query('SELECT count(*) FROM daybook.memory_events'))[0].count),
];

const FULL = {
  kind: 'decision',
  text: 'Zugekauft: 需求 trägt.\n\tFunding 0.01 %, "quoted", <tag>',
  symbol: 'BTC',
  action: 'add',
  evidence: ['funding 0.01 %', 'bars, 1h'],
  tags: ['breakout', 'btc'],
  agent_name: 'pm',
  model_call_id: 'call-1',
};

test('a memory is stored with every member, and its event has the full content', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(2) });
  const { json, headers } = await s.api.post('/v1/memories', { ...FULL, deployment_id, thesis_id: thesis.id, at: day(3) }, { status: 201 });
  const { id, created_at, ...rest } = json;
  assert.deepEqual(rest, { ...FULL, version: 1, status: 'active', status_reason: null, at: day(3), deployment_id, thesis_id: thesis.id, observation_type: null, expires_at: null, known_from: day(3) });
  assert.equal(headers.location, `/v1/memories/${id}`);
  assert.deepEqual(await read(id), json);
  const [event] = await eventsOf(s.query, id);
  const { symbol, agent_name, model_call_id, ...content } = FULL;
  assert.deepEqual(event.data, { ...content, version: 1, thesis_id: thesis.id, observation_type: null, expires_at: null });
  assert.deepEqual([event.kind, event.symbol, event.agent_name, event.model_call_id], ['memory.created', symbol, agent_name, model_call_id]);
});

test('a memory of no deployment is in the journal of its owner, by the server\'s clock', async () => {
  const note = await remember(s.api);
  assert.deepEqual([note.deployment_id, note.thesis_id, note.symbol, note.evidence, note.tags], [null, null, null, [], []]);
  assert.equal(note.at, note.known_from);
  const [{ journal_id }] = await s.query('SELECT journal_id FROM daybook.memory_events WHERE subject_id = $1', [note.id]);
  assert.equal(journal_id, '00000000-0000-0000-0000-000000000000');
});

test('without a time, a memory of a simulation has the time of its last tick', async () => {
  const { id: deployment_id } = await deploy(s.api, { mode: 'sim', at: day(1) });
  assert.equal((await remember(s.api, { deployment_id })).at, day(1));
  await postTick(s.api, deployment_id, day(4));
  const note = await remember(s.api, { deployment_id });
  assert.equal(note.at, day(4));
  await postTick(s.api, deployment_id, day(5));
  assert.equal((await retract(note.id, {}, { status: 200 })).json.known_from, day(5));
});

test('without a time, a live memory has the server\'s clock, but not before the last tick', async () => {
  const { id: deployment_id } = await deploy(s.api, { mode: 'live', at: day(1) });
  const before = new Date().toISOString();
  assert.ok((await remember(s.api, { deployment_id })).at >= before.slice(0, 19));
  const ahead = new Date(Date.now() + 3_600_000).toISOString();
  await postTick(s.api, deployment_id, ahead);
  assert.equal(Date.parse((await remember(s.api, { deployment_id })).at), Date.parse(ahead));
});

test('a memory about a thesis belongs to its symbol and deployment, and must not contradict them', async () => {
  const deployment_id = await holding(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(3) });
  const note = await remember(s.api, { thesis_id: thesis.id, at: day(3) });
  assert.deepEqual([note.symbol, note.deployment_id], ['BTC', deployment_id]);
  await remember(s.api, { thesis_id: thesis.id, symbol: 'BTC', deployment_id, at: day(3) });
  const { id: other } = await deploy(s.api);
  const before = await stored();
  const refused = (changes) => s.api.post('/v1/memories', newMemory({ thesis_id: thesis.id, at: day(4), ...changes }), { status: 422 });
  const answer = await refused({ symbol: 'ETH', deployment_id: other });
  assert.deepEqual(faults(answer), ['deployment_id: not_together', 'symbol: not_together']);
  for (const part of ['BTC', thesis.id, deployment_id]) assert.ok(answer.text.includes(part), part);
  assert.deepEqual(faults(await refused({ thesis_id: UNKNOWN_ID })), ['thesis_id: unknown_reference']);
  assert.deepEqual(faults(await refused({ thesis_id: note.id })), ['thesis_id: unknown_reference']);
  assert.deepEqual(faults(await refused({ at: day(2) })), ['thesis_id: unknown_reference'], 'the thesis was opened later');
  assert.deepEqual(await stored(), before);
  await s.api.post(`/v1/theses/${thesis.id}/close`, { reason: 'x', at: day(5) }, { status: 200 });
  await remember(s.api, { thesis_id: thesis.id, at: day(6) });
});

test('a fraction of a second has six digits in every response', async () => {
  const half = '2026-03-01T10:00:00.500000Z';
  const { id: deployment_id } = await deploy(s.api, { mode: 'sim', at: day(1) });
  const thesis = await openThesis(s.api, { deployment_id, at: '2026-03-01T10:00:00.5Z' });
  assert.deepEqual([thesis.at, thesis.known_from], [half, half]);
  const state = (await s.api.get(`/v1/memory_state?deployment_id=${deployment_id}&as_of=2026-03-02T00:00:00Z`, { status: 200 })).json;
  assert.equal(state.theses[0].at, half);
  const csv = (await s.api.get(`/v1/theses/export?format=csv&deployment_id=${deployment_id}`, { status: 200 })).text;
  assert.equal(csv.split(half).length, 3);
});

test('an unknown deployment is 404 and named', async () => {
  const before = await stored();
  const { json } = await s.api.post('/v1/memories', newMemory({ deployment_id: UNKNOWN_ID }), { status: 404 });
  assert.ok(json.detail.includes(`deployment ${UNKNOWN_ID}`));
  assert.deepEqual(await stored(), before);
});

test('a memory with bad members names each of them and stores nothing', async () => {
  const before = await stored();
  const refused = async (body) => faults(await s.api.post('/v1/memories', body, { status: 422, check: false }));
  assert.deepEqual(await refused({}), ['kind: required', 'text: required']);
  assert.deepEqual(await refused({ kind: 'thesis', text: '', symbol: '', deployment_id: 'x', at: 'now', tags: ['a,b'], agent_name: 'a\nb', words: 1 }), [
    'agent_name: several_lines',
    'at: invalid_time',
    'deployment_id: invalid_uuid',
    'kind: not_a_choice',
    'symbol: too_short',
    'tags[0]: invalid_character',
    'text: too_short',
    'words: unknown_field',
  ]);
  assert.deepEqual(await refused(newMemory({ text: ' \n ' })), ['text: too_short']);
  assert.deepEqual(await refused(newMemory({ text: 'x'.repeat(100_001) })), ['text: too_long']);
  assert.deepEqual(await refused(newMemory({ text: 'é'.repeat(20_001), evidence: Array.from({ length: 33 }, (_, i) => `${i}`), tags: Array.from({ length: 17 }, (_, i) => `${i}`) })), [
    'evidence: too_many',
    'tags: too_many',
    'text: too_long',
  ]);
  assert.deepEqual(await refused(newMemory({ kind: 'decision' })), ['action: required']);
  assert.deepEqual(await refused(newMemory({ kind: 'proposal', action: 'buy' })), ['action: not_together']);
  assert.deepEqual(await stored(), before);
  assert.equal((await remember(s.api, { text: '界'.repeat(20_000) })).text.length, 20_000);
});

test('a researcher writes notes, proposals and risk notes, and no decision', async () => {
  for (const kind of ['note', 'proposal', 'risk_note']) {
    const { id } = await remember(as.researcher, { kind });
    await as.researcher.post(`/v1/memories/${id}/retract`, { reason: 'x' }, { status: 200 });
    await as.reader.post('/v1/memories', newMemory({ kind }), { status: 403 });
  }
  const decision = newMemory({ kind: 'decision', action: 'hold' });
  const before = await stored();
  const refused = await as.researcher.post('/v1/memories', decision, { status: 403 });
  assert.equal(refused.json.code, 'forbidden');
  assert.match(refused.json.detail, /decision needs the role agent; the key has the role researcher/);
  assert.deepEqual(await stored(), before);
  for (const role of ['agent', 'admin']) {
    const { id } = await remember(as[role], decision);
    assert.match((await as.researcher.post(`/v1/memories/${id}/retract`, { reason: 'x' }, { status: 403 })).json.detail, /role agent/);
    await as[role].post(`/v1/memories/${id}/retract`, { reason: 'x' }, { status: 200 });
  }
});

test('theses and orders need an agent, and a reader reads them', async () => {
  const deployment_id = await holding(s.api);
  const thesis = await openThesis(s.api, { deployment_id });
  for (const [method, path, body] of [
    ['POST', '/v1/theses', { symbol: 'X', text: 'x' }],
    ['PATCH', `/v1/theses/${thesis.id}`, { text: 'x' }],
    ['POST', `/v1/theses/${thesis.id}/close`, { reason: 'x' }],
    ['POST', '/v1/orders', { deployment_id, symbol: 'X', action: 'buy', side: 'long' }],
    ['POST', `/v1/orders/${UNKNOWN_ID}/outcome`, { outcome: 'filled' }],
  ]) {
    const { json } = await as.researcher(method, path, { body, status: 403 });
    assert.match(json.detail, /needs the role agent; the key has the role researcher/, path);
  }
  assert.deepEqual((await as.reader.get(`/v1/theses/${thesis.id}`, { status: 200 })).json, thesis);
  for (const path of ['memories', 'theses', 'orders']) await as.reader.get(`/v1/${path}`, { status: 200 });
});

test('a retracted memory is not listed, and never erased', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const note = await remember(s.api, { ...FULL, deployment_id, at: day(2) });
  const kept = await remember(s.api, { deployment_id, at: day(2) });
  const gone = (await retract(note.id, { at: day(4), agent_name: 'auditor' }, { status: 200 })).json;
  assert.deepEqual(gone, {
    ...note,
    version: 2,
    status: 'retracted',
    status_reason: 'wrong source',
    agent_name: 'auditor',
    model_call_id: null,
    known_from: day(4),
    created_at: gone.created_at,
  });
  assert.deepEqual(await read(note.id), gone);
  assert.deepEqual(await read(note.id, `?as_of=${day(3)}`), note);
  assert.deepEqual(await everyItem(s.api, `/v1/memories/${note.id}/history?limit=1`), [note, gone]);
  assert.deepEqual(await everyItem(s.api, `/v1/memories/${note.id}/history?as_of=${day(3)}`), [note]);
  const ids = async (query) => (await everyItem(s.api, `/v1/memories?deployment_id=${deployment_id}&${query}`)).map((x) => x.id).sort();
  assert.deepEqual(await ids(''), [kept.id]);
  assert.deepEqual(await ids('status=retracted'), [note.id]);
  assert.deepEqual(await ids('status=any'), [note.id, kept.id].sort());
  assert.deepEqual(await ids(`as_of=${day(3)}`), [note.id, kept.id].sort());
  const [, event] = await eventsOf(s.query, note.id);
  assert.deepEqual([event.kind, event.agent_name, event.data], ['memory.retracted', 'auditor', { version: 2, kind: 'decision', reason: 'wrong source' }]);
  const before = await stored();
  assert.equal((await retract(note.id, { at: day(5) }, { status: 409 })).json.code, 'invalid_transition');
  assert.deepEqual(await stored(), before);
});

test('a retraction needs a reason, a known memory and a time that is not before it', async () => {
  const { id } = await remember(s.api, { at: day(5) });
  const thesis = await openThesis(s.api);
  assert.deepEqual(faults(await s.api.post(`/v1/memories/${id}/retract`, {}, { status: 422, check: false })), ['reason: required']);
  assert.equal((await retract(id, { at: day(4) }, { status: 409 })).json.code, 'time_order');
  for (const unknown of [UNKNOWN_ID, thesis.id]) {
    await retract(unknown, {}, { status: 404 });
    for (const path of ['', '/history']) await s.api.get(`/v1/memories/${unknown}${path}`, { status: 404 });
  }
  assert.equal((await read(id)).status, 'active');
});

test('of many concurrent retractions, one succeeds', async () => {
  const { id } = await remember(s.api);
  const answers = await Promise.all(Array.from({ length: 8 }, () => retract(id, {})));
  assert.deepEqual(answers.map((a) => a.status).sort(), [200, 409, 409, 409, 409, 409, 409, 409]);
  assert.equal((await eventsOf(s.query, id)).length, 2);
});

test('memories that arrive together are stored together, and each gets its own answer', async () => {
  const other = s.api.as((await createKey(s.url, 'neighbour', 'agent')).key);
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(2) });
  const before = Number((await s.query("SELECT count(*) FROM daybook.memories WHERE owner = 'neighbour'"))[0].count);
  const ask = [
    (text) => s.api.post('/v1/memories', newMemory({ text, deployment_id, at: day(3) })),
    (text) => s.api.post('/v1/memories', newMemory({ text, deployment_id: UNKNOWN_ID })),
    (text) => s.api.post('/v1/memories', newMemory({ text, thesis_id: UNKNOWN_ID })),
    (text) => s.api.post('/v1/memories', newMemory({ text, symbol: undefined, thesis_id: thesis.id, at: day(3), evidence: ['a,b', '"', '\\', 'NULL'] })),
    (text) => s.api.post('/v1/memories', newMemory({ text, symbol: 'ETH', thesis_id: thesis.id, at: day(3) })),
    (text) => other.post('/v1/memories', newMemory({ text })),
    (text) => other.post('/v1/memories', newMemory({ text, deployment_id })),
  ];
  const answers = await Promise.all(Array.from({ length: 40 * ask.length }, (_, n) => ask[n % ask.length](`together ${n}`)));
  for (const [n, { status, json }] of answers.entries()) {
    const wanted = [201, 404, 422, 201, 422, 201, 404][n % ask.length];
    assert.equal(status, wanted, `${n}: ${JSON.stringify(json)}`);
    if (status !== 201) continue;
    assert.equal(json.text, `together ${n}`);
    const owner = n % ask.length === 5 ? 'neighbour' : 'local';
    const [row] = await s.query('SELECT owner, text, deployment_id, thesis_id, symbol FROM daybook.memories WHERE id = $1', [json.id]);
    assert.deepEqual([row.owner, row.text, row.deployment_id, row.thesis_id, row.symbol], [owner, json.text, json.deployment_id, json.thesis_id, json.symbol]);
    assert.equal((await eventsOf(s.query, json.id)).length, 1);
  }
  assert.deepEqual(answers[3].json.evidence, ['a,b', '"', '\\', 'NULL']);
  assert.equal(answers[3].json.symbol, 'BTC');
  assert.equal(Number((await s.query("SELECT count(*) FROM daybook.memories WHERE owner = 'neighbour'"))[0].count), before + 40);
  other.close();
});

test('a memory that PostgreSQL refuses fails alone', async () => {
  await s.query(`ALTER TABLE daybook.memories ADD CONSTRAINT refused CHECK (text <> 'refused')`);
  try {
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) => s.api.post('/v1/memories', newMemory({ text: n % 8 ? `kept ${n}` : 'refused' }))),
    );
    assert.deepEqual(answers.map(({ status }) => status), answers.map((_, n) => (n % 8 ? 201 : 500)));
    const ids = answers.filter(({ status }) => status === 201).map(({ json }) => json.id);
    const [{ count }] = await s.query('SELECT count(*) FROM daybook.memories WHERE id = ANY ($1)', [ids]);
    assert.equal(Number(count), 56);
  } finally {
    await s.query('ALTER TABLE daybook.memories DROP CONSTRAINT refused');
  }
});

test('an Idempotency-Key replays a memory byte for byte and stores it once', async () => {
  const headers = { 'idempotency-key': 'memory-1' };
  const body = newMemory();
  const first = await s.api.post('/v1/memories', body, { headers, status: 201 });
  const again = await s.api.post('/v1/memories', body, { headers, status: 201 });
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await eventsOf(s.query, first.json.id)).length, 1);
  assert.equal((await s.api.post('/v1/memories', newMemory(), { headers, status: 409 })).json.code, 'idempotency_conflict');
});

test('the list filters by kind, symbol, tags, thesis, author and time, page by page', async () => {
  const { id: deployment_id } = await deploy(s.api, { at: day(1) });
  const thesis = await openThesis(s.api, { symbol: 'C', deployment_id, at: day(1) });
  const make = (n, text, changes) => remember(s.api, { deployment_id, text, at: day(n), ...changes });
  await make(1, 'A', { symbol: 'A', tags: ['x'], agent_name: 'pm' });
  await make(2, 'B', { kind: 'risk_note', symbol: 'A', tags: ['x', 'y'] });
  await make(3, 'C', { kind: 'decision', action: 'skip', thesis_id: thesis.id, model_call_id: 'call-7' });
  for (const [query, found] of [
    ['', 'CBA'],
    ['kind=risk_note', 'B'],
    ['symbol=A', 'BA'],
    ['symbol=C', 'C'],
    ['tags=x', 'BA'],
    ['tags=y,z', 'B'],
    ['tags_all=x,y', 'B'],
    [`thesis_id=${thesis.id}`, 'C'],
    ['agent_name=pm', 'A'],
    ['model_call_id=call-7', 'C'],
    [`since=${day(2)}&until=${day(3)}`, 'B'],
    [`as_of=${day(2)}`, 'BA'],
    [`as_of=${day(0)}`, ''],
  ])
    assert.equal((await everyItem(s.api, `/v1/memories?deployment_id=${deployment_id}&limit=1&${query}`)).map((x) => x.text).join(''), found, query);
});

test('a limit of 0 or -5, an unknown kind and an unknown parameter are rejected', async () => {
  for (const [query, fault] of [
    ['limit=0', 'limit: out_of_range'],
    ['limit=-5', 'limit: out_of_range'],
    ['limit=201', 'limit: out_of_range'],
    ['kind=thesis', 'kind: not_a_choice'],
    ['status=open', 'status: not_a_choice'],
    ['colour=red', 'colour: unknown_field'],
  ])
    assert.deepEqual(faults(await s.api.get(`/v1/memories?${query}`, { status: 422, check: false })), [fault]);
});

test('another owner sees no memory, thesis or order', async () => {
  const deployment_id = await holding(s.api);
  const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(3) });
  const note = await remember(s.api, { deployment_id, at: day(3) });
  const sent = (await s.api.post('/v1/orders', { deployment_id, symbol: 'BTC', action: 'buy', side: 'long', at: day(3) }, { status: 201 })).json;
  const other = s.api.as((await createKey(s.url, 'other', 'agent')).key);
  for (const path of ['memories', 'theses', 'orders']) assert.deepEqual((await other.get(`/v1/${path}`, { status: 200 })).json.items, []);
  for (const path of [`memories/${note.id}`, `theses/${thesis.id}`, `orders/${sent.id}`]) await other.get(`/v1/${path}`, { status: 404 });
  await other.post('/v1/memories', newMemory({ deployment_id }), { status: 404 });
  assert.deepEqual(faults(await other.post('/v1/memories', newMemory({ thesis_id: thesis.id }), { status: 422 })), ['thesis_id: unknown_reference']);
  await other.post(`/v1/memories/${note.id}/retract`, { reason: 'x' }, { status: 404 });
  await other('PATCH', `/v1/theses/${thesis.id}`, { body: { text: 'x' }, status: 404 });
  await other.post(`/v1/orders/${sent.id}/outcome`, { outcome: 'filled' }, { status: 404 });
  other.close();
});

test('deleting a deployment deletes its memories, orders, events, journal, vectors and retrievals, and no others', async () => {
  const [gone, kept] = [await holding(s.api), await holding(s.api)];
  const theses = [];
  for (const deployment_id of [gone, kept]) {
    const thesis = await openThesis(s.api, { symbol: 'BTC', deployment_id, at: day(3) });
    await remember(s.api, { deployment_id, at: day(3) });
    await s.api.post('/v1/orders', { deployment_id, symbol: 'BTC', action: 'add', side: 'long', at: day(3) }, { status: 201 });
    await s.query(
      `INSERT INTO daybook.memory_retrievals (owner, id, kind, at, query, filters, candidates, selection, deployment_id)
       VALUES ('local', daybook.uuid7(), 'memories', $2, '{}', '{}', '[]', '{}', $1)`,
      [deployment_id, day(3)],
    );
    await s.query("INSERT INTO daybook.memory_journals (owner, journal_id) VALUES ('local', $1) ON CONFLICT DO NOTHING", [deployment_id]);
    await s.query(
      `INSERT INTO daybook.memory_vectors (owner, text_id, memory_id, model, dim, v384)
       VALUES ('local', $1, $1, 'test', 1, ('[1' || repeat(',0', 383) || ']')::public.halfvec)`,
      [thesis.id],
    );
    theses.push(thesis.id);
  }
  const rows = async (id) => {
    const counts = [];
    for (const [table, column] of [['memories', 'deployment_id'], ['orders', 'deployment_id'], ['memory_events', 'journal_id'], ['memory_journals', 'journal_id'], ['memory_retrievals', 'deployment_id']])
      counts.push(Number((await s.query(`SELECT count(*) FROM daybook.${table} WHERE ${column} = $1`, [id]))[0].count));
    return counts;
  };
  const hasVector = async (id) => (await s.query('SELECT FROM daybook.memory_vectors WHERE text_id = $1', [id])).length > 0; // the background may replace it
  const before = await rows(kept);
  assert.deepEqual(await rows(gone), before);
  assert.ok(before.every((n) => n > 0), before.join());
  await s.api('DELETE', `/v1/deployments/${gone}`, { status: 204 });
  assert.deepEqual(await rows(gone), [0, 0, 0, 0, 0]);
  assert.deepEqual(await rows(kept), before);
  assert.deepEqual([await hasVector(theses[0]), await hasVector(theses[1])], [false, true]);
});

test('a deployment that is deleted while its journal is sealed leaves nothing behind', async () => {
  const gone = await holding(s.api);
  const sealer = await s.cluster.connect(s.database);
  await sealer.query('set search_path = daybook, public');
  await sealer.query('begin');
  await sealer.query("insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'note', now(), '{}')", [gone]);
  await sealer.query("select daybook.seal_journal('local', $1, 10, true)", [gone]);
  const deleted = s.api('DELETE', `/v1/deployments/${gone}`, { status: 204 });
  await blocked(s.query, 1);
  await sealer.query('commit');
  await sealer.end();
  await deleted;
  for (const table of ['memory_events', 'memory_journals']) assert.deepEqual(await s.query(`select from daybook.${table} where journal_id = $1`, [gone]), [], table);
  const { items } = (await s.api.get('/v1/memory_events/verify?limit=200', { status: 200 })).json;
  assert.ok(items.every(({ ok, deployment_id }) => ok && deployment_id !== gone));
});
