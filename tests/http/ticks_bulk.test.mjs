// Bulk ticks: applied as if posted one by one, up to the first rejected line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { makeClient } from '../lib/client.mjs';
import { createKey } from '../lib/service.mjs';
import { addNote, bytesOf, checkTable, countRows, deploy, exact, goldenCases, goldenLines, ledgerOf, ledgerSuite, post, postBulk, randomOf, rowsOf, tickOf, ticksPath } from '../lib/ticks.mjs';

const s = ledgerSuite();
const BATCH = 64; // ticks the service stores per transaction; the tests cover its boundaries

const BARS = Array.from({ length: 12 }, (_, i) => 100 + i);

/** A stream with opens, adds, partial closes, flips, closes, reopens, fees, rejections and several days. */
function stream(count, seed = 1) {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, i) => {
    const positions = [];
    for (const symbol of ['BTC', 'ETH', 'SOL'])
      if (random() < 0.7) positions.push([symbol, random() < 0.75 ? 'long' : 'short', `${1 + Math.floor(random() * 4)}.50`, `${100 + Math.floor(random() * 50)}.25`, random() < 0.1 ? { leverage: exact('1.2345678901234567890123e-5') } : {}]);
    return tickOf(i * 41, positions, {
      marks: { BTC: exact('110.10'), ETH: 120, SOL: 130 },
      bars: { BTC: BARS, ETH: [1] },
      fees: [{ symbol: 'BTC', fees_usd: exact('0.10') }],
      proposed_action: { kind: random() < 0.5 ? 'adjust_position' : 'hold', reason: `step ${i}` },
      engine: { kind: random() < 0.8 ? 'executed' : 'rejected', rule: 'R3' },
    });
  });
}

const fresh = async () => {
  const deployment = await deploy(s.query, { cadence: 'per_n_trades', everyN: 3 });
  await addNote(s.query, deployment);
  return deployment;
};

/** The ledger of a runner that posts the ticks one by one, and the response bodies. */
async function oneByOne(ticks) {
  const deployment = await fresh();
  const texts = [];
  for (const tick of ticks) texts.push((await post(s.api, deployment, tick, { check: false })).text);
  return { ledger: await ledgerOf(s.query, deployment), texts };
}

/** Responses with each id replaced by the position of its first occurrence. */
function nameless(texts) {
  const seen = new Map();
  return texts.map((text) => text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => (seen.has(id) ? seen : seen.set(id, `id-${seen.size}`)).get(id)));
}

const answersOf = (lines) => lines.map(({ line, ...answer }) => JSON.stringify(answer));

test('every golden case yields its ops, its errors and the line to resume at', async () => {
  for (const { name, ticks } of goldenCases()) {
    const deployment = await deploy(s.query);
    const names = new Map();
    const answers = [];
    for (let from = 0; from < ticks.length; ) {
      const { lines, last } = await postBulk(s.api, deployment, ticks.slice(from).map((t) => t.tick));
      for (const { line: raw, ...answer } of lines) {
        const line = Number(JSON.stringify(raw));
        const i = from + line - 1;
        const what = `${name}, tick ${i + 1}`;
        const [expected] = ticks[i].expected;
        if (answer.problem) {
          assert.match(expected, /^(same_tick|older_tick|duplicate_symbol|bad_size|bad_price|too_large)\b/, what);
          assert.deepEqual([last.done, last.resume_at], [false, line], what);
          assert.equal(answer.problem, lines.at(-1).problem, what);
        } else if (answer.replayed) {
          assert.equal(expected, 'same_tick', what);
        } else {
          names.set(answer.snapshot_id, `s${i + 1}`);
          assert.deepEqual(goldenLines(JSON.stringify(answer), names), ticks[i].expected, what);
          answers.push(JSON.stringify(answer));
        }
      }
      from = last.done ? ticks.length : from + last.resume_at; // continue after the rejected line
    }
    assert.equal(answers.length, ticks.filter(({ expected: [line] }) => /^(\{|nothing|stray)/.test(line)).length, name);
    await checkTable(s.query, deployment, answers);
  }
});

test('responses and ledger are the same as one by one, for any number of lines', async () => {
  for (const count of [1, 2, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 3 * BATCH + 17]) {
    const ticks = stream(count, count);
    const deployment = await fresh();
    const { lines, last } = await postBulk(s.api, deployment, ticks);
    assert.deepEqual(last, { done: true, applied: count, replayed: 0, resume_at: null });
    assert.deepEqual(lines.map(({ line }) => Number(JSON.stringify(line))), ticks.map((_, i) => i + 1));
    const single = await oneByOne(ticks);
    assert.equal(await ledgerOf(s.query, deployment), single.ledger, `${count} ticks`);
    assert.deepEqual(nameless(answersOf(lines)), nameless(single.texts), `${count} ticks`);
    await checkTable(s.query, deployment, answersOf(lines));
  }
});

test('a retried body replays every line and writes nothing', async () => {
  const ticks = stream(BATCH + 20, 7);
  const deployment = await fresh();
  const first = await postBulk(s.api, deployment, ticks);
  const before = await bytesOf(s.query, deployment);
  const again = await postBulk(s.api, deployment, ticks);
  assert.deepEqual(again.last, { done: true, applied: 0, replayed: ticks.length, resume_at: null });
  assert.deepEqual(answersOf(again.lines), answersOf(first.lines).map((text) => text.replace('"replayed":false', '"replayed":true')));
  assert.equal(await bytesOf(s.query, deployment), before);
});

test('lines already stored or repeated in the body are replayed', async () => {
  const ticks = stream(30, 8);
  const deployment = await fresh();
  for (const tick of ticks.slice(0, 10)) await post(s.api, deployment, tick);
  const body = [...ticks.slice(5, 20), ticks[19], ticks[12], ...ticks.slice(20)];
  const { lines, last } = await postBulk(s.api, deployment, body);
  assert.deepEqual(last, { done: true, applied: 20, replayed: 7, resume_at: null });
  assert.deepEqual(lines.map((l) => l.replayed), body.map((_, i) => i < 5 || i === 15 || i === 16));
  assert.equal(await ledgerOf(s.query, deployment), (await oneByOne(ticks)).ledger);
});

test('empty lines are skipped but counted; the last line needs no newline', async () => {
  const [a, b, c] = stream(3, 9).map((tick) => JSON.stringify(tick));
  for (const text of [`\n${a}\n\n\n${b}\n${c}`, `\n${a}\n\n\n${b}\n${c}\n\n\n`, `\r\n${a}\r\n\r\n\r\n${b}\r\n${c}\r\n`]) {
    const { lines, last } = await postBulk(s.api, await fresh(), text);
    assert.deepEqual(lines.map(({ line }) => JSON.stringify(line)), ['2', '5', '6'], JSON.stringify(text.slice(0, 5)));
    assert.equal(last.applied, 3);
  }
  for (const nothing of ['', '\n', '\n\n\n']) assert.deepEqual((await postBulk(s.api, await fresh(), nothing)).last, { done: true, applied: 0, replayed: 0, resume_at: null });
});

const [good] = stream(1);
const BAD = {
  'no JSON': ['{"tick_at":', 'invalid_json'],
  'a key twice': ['{"tick_at":1,"tick_at":2}', 'duplicate_key'],
  'NaN': ['{"tick_at":NaN}', 'invalid_json'],
  'bad fields': [JSON.stringify({ portfolio: { equity_usd: 1, positions: [{ symbol: '', side: 'up', size_base: -1 }] }, mood: 1 }), 'invalid_fields', ['mood: unknown_field', 'portfolio.positions[0].side: not_a_choice', 'portfolio.positions[0].size_base: out_of_range', 'portfolio.positions[0].symbol: too_short', 'tick_at: required']],
  'the id of the deployment': [JSON.stringify({ ...tickOf(99999), id: UNKNOWN_ID }), 'invalid_fields', ['id: unknown_field']],
  'a symbol twice': [JSON.stringify(tickOf(99999, [['BTC', 'long', '1', '1'], ['BTC', 'short', '1', '1']])), 'invalid_fields', ['portfolio.positions: duplicate_item']],
  'no mark': [JSON.stringify({ tick_at: tickOf(99999).tick_at, portfolio: { equity_usd: 1, positions: [{ symbol: 'X', side: 'long', size_base: 1 }] } }), 'invalid_fields', ['portfolio.positions: out_of_range']],
  'a notional that does not fit': [JSON.stringify(tickOf(99999, [['X', 'long', '99999999999', '99999999999']])), 'invalid_fields', ['portfolio.positions: out_of_range']],
  'a year ahead': [JSON.stringify(tickOf('2999-01-01T00:00:00Z')), 'invalid_fields', ['tick_at: in_the_future']],
  'an older tick': [JSON.stringify(tickOf(-5)), 'tick_out_of_order'],
  'different content for the first tick': [JSON.stringify({ ...good, engine: { kind: 'other' } }), 'tick_conflict'],
  'a list': ['[]', 'invalid_json'],
  'two ticks on one line': [`${JSON.stringify(tickOf(99998))} ${JSON.stringify(tickOf(99999))}`, 'invalid_json'],
};

test('after a bad line the earlier ones stay, later ones are not applied, and the last line says where to resume', async () => {
  const ledgers = new Map();
  for (const [i, [what, [bad, code, fields]]] of Object.entries(BAD).entries())
    for (const at of i % 4 === 3 ? [1, BATCH, BATCH + 1] : [1, 7]) {
      const ticks = stream(at + 5, 1);
      // The first tick is already posted, so that a line can conflict with it.
      const deployment = await fresh();
      await post(s.api, deployment, ticks[0]);
      const lines = ticks.slice(1).map((tick) => JSON.stringify(tick));
      lines.splice(at - 1, 0, bad);
      const answer = await postBulk(s.api, deployment, `${lines.join('\n')}\n`);
      const place = `${what} in line ${at}`;
      assert.equal(answer.lines.length, at, place);
      const { problem } = JSON.parse(JSON.stringify(answer.lines.at(-1)));
      assert.equal(problem?.code, code, place);
      if (fields) assert.deepEqual(faults({ json: problem }), fields, place);
      else assert.equal(problem.errors, undefined, place);
      assert.deepEqual(answer.last, { done: false, applied: at - 1, replayed: 0, resume_at: at }, place);
      assert.equal((await rowsOf(s.query, 'decision_snapshots', deployment)).length, at, place);
      if (!ledgers.has(at)) ledgers.set(at, (await oneByOne(ticks.slice(0, at))).ledger);
      assert.equal(await ledgerOf(s.query, deployment), ledgers.get(at), place);
      // Without the bad line the rest is accepted from there.
      const rest = await postBulk(s.api, deployment, lines.slice(at).join('\n'));
      assert.deepEqual(rest.last, { done: true, applied: ticks.length - at, replayed: 0, resume_at: null }, place);
    }
});

test('of two bad lines only the errors of the first are reported', async () => {
  const ticks = stream(4, 3).map((tick) => JSON.stringify(tick));
  const [twice, , twiceFields] = BAD['a symbol twice'];
  const pairs = [
    [twice, BAD['bad fields'][0], 'invalid_fields', twiceFields],
    [JSON.stringify(tickOf(-5)), BAD['bad fields'][0], 'tick_out_of_order'],
    [JSON.stringify(tickOf(-5)), twice, 'tick_out_of_order'],
    [BAD['bad fields'][0], twice, 'invalid_fields', BAD['bad fields'][2]],
    [twice, '{', 'invalid_fields', twiceFields],
    [JSON.stringify(tickOf(-5)), '{', 'tick_out_of_order'],
  ];
  for (const [first, second, code, fields] of pairs) {
    const { lines, last } = await postBulk(s.api, await fresh(), [...ticks, first, second].join('\n'));
    const { problem } = JSON.parse(JSON.stringify(lines.at(-1)));
    assert.deepEqual([problem.code, last.resume_at, last.applied], [code, 5, 4]);
    assert.deepEqual(problem.errors && faults({ json: problem }), fields, JSON.stringify(problem));
    if (code === 'invalid_fields') assert.equal(problem.detail, fields.length === 1 ? '1 field is not valid' : `${fields.length} fields are not valid`);
  }
});

test('a line over the body limit is rejected with its line number', async () => {
  const deployment = await fresh();
  const [a, b] = stream(2, 4).map((tick) => JSON.stringify(tick));
  const { lines, last } = await postBulk(s.api, deployment, [a, `{"tick_at":"${'x'.repeat(1_100_000)}"}`, b].join('\n'));
  assert.equal(lines.length, 2);
  assert.equal(JSON.parse(JSON.stringify(lines[1])).problem.status, 413);
  assert.deepEqual(last, { done: false, applied: 1, replayed: 0, resume_at: 2 });
});

test('many ticks of maximum size are accepted', async () => {
  const deployment = await fresh();
  const wide = (side) => Array.from({ length: 200 }, (_, i) => [`S${i}`, side, '1', '10']);
  const ticks = Array.from({ length: 8 }, (_, i) => tickOf(i, i % 4 === 3 ? [] : wide(i % 2 ? 'long' : 'short'), { bars: { S1: Array(5000).fill(1.5) } }));
  const { lines, last } = await postBulk(s.api, deployment, ticks);
  assert.equal(last.applied, 8);
  assert.equal(lines[1].ops.length, 400);
  assert.equal(await ledgerOf(s.query, deployment), (await oneByOne(ticks)).ledger);
});

test('two runners posting the same body concurrently store each tick once, with the ledger of a single runner', async () => {
  const ticks = stream(200, 5);
  const deployment = await fresh();
  const answers = await Promise.all([0, 1, 2].map(() => postBulk(s.api, deployment, ticks)));
  for (const { last } of answers) assert.deepEqual([last.done, last.applied + last.replayed], [true, 200]);
  assert.equal(answers.reduce((sum, { last }) => sum + last.applied, 0), 200);
  assert.equal(await ledgerOf(s.query, deployment), (await oneByOne(ticks)).ledger);
});

test('single ticks posted during a bulk request: one order, nothing lost', async () => {
  const ticks = stream(300, 6);
  const deployment = await fresh();
  const [bulk] = await Promise.all([
    postBulk(s.api, deployment, ticks),
    (async () => {
      for (const tick of ticks.filter((_, i) => i % 10 === 0)) await post(s.api, deployment, tick).catch(() => {}); // ticks ahead of the body make its next lines out of order
    })(),
  ]);
  // An overtaken runner gets an error, and the ledger matches the stored ticks.
  const stored = new Set((await rowsOf(s.query, 'decision_snapshots', deployment)).map((row) => row.tick_at));
  const kept = ticks.filter((tick) => stored.has(tick.tick_at.replace('Z', '+00:00')));
  assert.equal(kept.length, stored.size);
  if (!bulk.last.done) assert.equal(bulk.lines.at(-1).problem.code, 'tick_out_of_order');
  assert.equal(await ledgerOf(s.query, deployment), (await oneByOne(kept)).ledger);
});

test('2,000 ticks', async (t) => {
  const ticks = stream(2000, 11);
  const deployment = await fresh();
  const begun = Date.now();
  const { last } = await postBulk(s.api, deployment, ticks, { check: false });
  t.diagnostic(`${last.applied} ticks in ${Date.now() - begun} ms`);
  assert.deepEqual(last, { done: true, applied: 2000, replayed: 0, resume_at: null });
  const [state] = await rowsOf(s.query, 'agent_state', deployment);
  assert.equal(JSON.stringify(state.ticks), '2000');
  const [{ open, closed }] = await s.query("SELECT count(*) FILTER (WHERE status = 'open')::int AS open, count(*) FILTER (WHERE status = 'closed')::int AS closed FROM daybook.trade_history WHERE deployment_id = $1", [deployment]);
  assert.ok(closed > 1000 && open <= 3);
  assert.equal(JSON.stringify(state.closed_trades), String(closed));
});

test('a request that fails before its first line has an error status, and nothing is stored', async () => {
  const deployment = await fresh();
  const before = await countRows(s.query);
  const refused = async (id, body, status, code, options) => assert.equal((await postBulk(s.api, id, body, { status, ...options })).json.code, code);
  await refused(UNKNOWN_ID, stream(2), 404, 'not_found');
  await refused('nonsense', stream(2), 422, 'invalid_fields');
  await refused(deployment, stream(2), 415, 'unsupported_media_type', { headers: { 'content-type': 'application/json' } });
  await refused(deployment, stream(2), 400, 'invalid_idempotency_key', { headers: { 'idempotency-key': 'with space' } });
  assert.deepEqual(await countRows(s.query), before);
});

test('an Idempotency-Key is accepted and not stored: ticks are idempotent by their instant', async () => {
  const deployment = await fresh();
  const headers = { 'idempotency-key': 'bulk-1' };
  const ticks = stream(3, 12);
  assert.equal((await postBulk(s.api, deployment, ticks.slice(0, 2), { headers })).last.applied, 2);
  assert.deepEqual((await postBulk(s.api, deployment, ticks, { headers })).last, { done: true, applied: 1, replayed: 2, resume_at: null });
});

test('a line whose tick could not be stored is not acknowledged', async () => {
  const deployment = await deploy(s.query);
  const service = await s.another({ args: ['--request-timeout-ms', '1000'] });
  const api = makeClient(service.base);
  const holder = await s.cluster.connect(s.database);
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM daybook.agent_state WHERE deployment_id = $1 FOR UPDATE', [deployment]);
    const ticks = Array.from({ length: 3 }, (_, i) => tickOf(`2026-06-04T10:0${i}:00Z`));
    const { lines, last } = await postBulk(api, deployment, ticks);
    assert.deepEqual(JSON.parse(JSON.stringify(lines)).map(({ line, problem }) => [line, problem?.code]), [[1, 'request_timeout']]);
    assert.deepEqual(last, { done: false, applied: 0, replayed: 0, resume_at: 1 });
    await holder.query('ROLLBACK');
    assert.deepEqual((await postBulk(api, deployment, ticks)).last, { done: true, applied: 3, replayed: 0, resume_at: null });
  } finally {
    await holder.end();
    api.close();
    await service.stop();
  }
});

test('responses much larger than the ticks are streamed', async () => {
  const deployment = await deploy(s.query);
  const reason = 'x'.repeat(2000);
  const positions = Array.from({ length: 200 }, (_, i) => [`S${i}`, 'long', 1, 1]);
  const tick = (i) => tickOf(new Date(Date.UTC(2026, 5, 4, 0, i)).toISOString(), positions);
  const first = { ...tick(0), proposed_action: { kind: 'propose_order', reason }, engine: { kind: 'executed' } };
  const { last, text } = await postBulk(s.api, deployment, [first, ...Array.from({ length: 20 }, (_, i) => tick(i + 1))], { check: false });
  assert.deepEqual(last, { done: true, applied: 21, replayed: 0, resume_at: null });
  assert.ok(text.length > 5e6);
});

test('another owner gets 404; researchers and readers may not post ticks', async () => {
  const mine = await deploy(s.query, { owner: 'ann' });
  const keys = {};
  for (const [who, owner, role] of [['agent', 'ann', 'agent'], ['researcher', 'ann', 'researcher'], ['reader', 'ann', 'reader'], ['other', 'bob', 'agent']]) keys[who] = (await createKey(s.url, owner, role)).key;
  const service = await s.another();
  try {
    const api = makeClient(service.base);
    for (const [who, status] of [['researcher', 403], ['reader', 403], ['other', 404]]) await postBulk(api.as(keys[who]), mine, stream(3), { status });
    await postBulk(api, mine, stream(3), { status: 401 });
    assert.deepEqual(await rowsOf(s.query, 'decision_snapshots', mine), []);
    assert.equal((await postBulk(api.as(keys.agent), mine, stream(3))).last.applied, 3);
    api.close();
  } finally {
    await service.stop();
    await s.query('DELETE FROM daybook.api_keys');
  }
});
