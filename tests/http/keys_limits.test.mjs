// Keys with an expiry, a rate and a successor, and what rejected keys are told.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { metricsOf } from '../lib/metrics.mjs';
import { until } from '../lib/processes.mjs';
import { command, createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const s = suite({
  args: ['--loops', '2', '--max-failed-keys', '100000', '--log-format', 'json'],
  prepare: async () => {
    await createKey(s.url, 'other', 'agent');
    await until(async () => (await s.api.get('/v1/lessons')).status === 401, 'keys are required');
  },
});

/** Runs a key command; returns {token, ids, said}. */
async function key(args, { code = 0 } = {}) {
  const result = await command(['key', ...args, '--database-url', s.url]);
  assert.equal(result.code, code, result.stderr);
  return { token: result.stdout.trimEnd(), ids: result.stderr.match(UUID), said: result.stderr };
}
const create = (...args) => key(['create', '--owner', 'desk', '--role', 'agent', ...args]);
const statusOf = async (token) => (await s.api.as(token).get('/v1/lessons?limit=1')).status;
const rejected = async (reason) => (await metricsOf(s.api)).get(`daybook_keys_rejected_total{reason="${reason}"}`);

test('an expired key stops at its instant, and its owner is told', async () => {
  const { token, said } = await create('--expires', '4s');
  const end = Date.parse(said.match(/expires at (\S+)\./)[1]) + 1000; // the message is in whole seconds
  const api = s.api.as(token);
  const before = await rejected('expired');
  const last = await until(async () => {
    const sent = Date.now();
    const answer = await api.get('/v1/lessons?limit=1');
    assert.ok(answer.status === 401 || sent < end, `accepted ${sent - end} ms after its end`);
    return answer.status === 401 && answer;
  }, 'the key has expired');
  assert.match(last.json.detail, /^the key expired at \d{4}-\d\d-\d\dT/);
  assert.equal(last.headers['www-authenticate'], 'Bearer realm="daybook"');
  assert.ok((await rejected('expired')) > before);
});

test('a revoked key is told the same as an unknown one', async () => {
  const { token, ids } = await create();
  assert.equal(await statusOf(token), 200);
  const before = [await rejected('revoked'), await rejected('unknown')];
  await key(['revoke', ids[0]]);
  const revoked = await until(async () => {
    const answer = await s.api.as(token).get('/v1/lessons'); // each loop learns of it at a time of its own
    return answer.status === 401 && answer;
  }, 'the revoked key is refused');
  const unknown = await s.api.as('dbk_none').get('/v1/lessons', { status: 401 });
  assert.equal(revoked.json.detail, 'the key is unknown or revoked');
  assert.equal(unknown.json.detail, revoked.json.detail);
  assert.ok((await rejected('revoked')) > before[0] && (await rejected('unknown')) > before[1]);
});

test('a key that was unknown a moment ago works once it exists', async () => {
  const token = 'dbk_later';
  await s.api.as(token).get('/v1/lessons', { status: 401 });
  const hash = createHash('sha256').update(token).digest('hex');
  await s.query("INSERT INTO daybook.api_keys (id, owner, role, token_hash) VALUES ($1, 'desk', 'agent', $2)", [randomUUID(), hash]);
  await until(async () => (await statusOf(token)) === 200, 'the key is accepted');
});

test('a row that is changed or deleted by hand is noticed', async () => {
  const changed = await create();
  const deleted = await create();
  assert.deepEqual([await statusOf(changed.token), await statusOf(deleted.token)], [200, 200]);
  await s.query("UPDATE daybook.api_keys SET created_at = '2020-01-01', revoked_at = '2020-01-02' WHERE id = $1", [changed.ids[0]]);
  await s.query('DELETE FROM daybook.api_keys WHERE id = $1', [deleted.ids[0]]);
  await until(async () => (await statusOf(changed.token)) === 401, 'the changed key is refused');
  await until(async () => (await statusOf(deleted.token)) === 401, 'the deleted key is refused');
});

test('a key has its rate over all loops together, and a 429 says when to retry', async () => {
  const RATE = 2;
  const BURST = 5;
  const { token } = await create('--rate', `${RATE}`, '--burst', `${BURST}`);
  const before = await rejected('limited');
  const begun = Date.now();
  // A connection each, so that both loops get some.
  const answers = await Promise.all(Array.from({ length: 60 }, async () => {
    const api = s.api.as(token);
    const answer = await api.get('/v1/lessons?limit=1', { headers: { connection: 'close' } });
    api.close();
    return answer;
  }));
  const seconds = (Date.now() - begun) / 1000;
  const accepted = answers.filter((a) => a.status === 200).length;
  const refused = answers.filter((a) => a.status === 429);
  assert.equal(accepted + refused.length, answers.length);
  assert.ok(accepted >= BURST && accepted <= BURST + RATE * seconds + 1, `${accepted} in ${seconds} s`);
  for (const { json, headers } of refused) {
    assert.equal(json.code, 'rate_limited');
    assert.equal(json.detail, 'the key has 2 requests a second, and 5 at once');
    assert.equal(headers['retry-after'], '1');
  }
  assert.equal((await rejected('limited')) - before, refused.length);
  await until(async () => (await statusOf(token)) === 200, 'the key has a request again');
});

test('a request is counted once for the rate, also one with a body and a bulk one', async () => {
  const { token } = await create('--rate', '1', '--burst', '100');
  const api = s.api.as(token);
  for (let i = 0; i < 50; i++) await api.post('/v1/lessons', '{', { status: 400 });
  for (let i = 0; i < 50; i++) {
    const answer = await api.post('/v1/lessons', '{');
    assert.equal(answer.status, 400, `request ${50 + i}: ${answer.text}`);
  }
  api.close();
  const bulk = s.api.as((await create('--rate', '1', '--burst', '100')).token);
  for (let i = 0; i < 100; i++) await bulk.post('/v1/episodic/bulk', '{}\n', { headers: { 'content-type': 'application/x-ndjson' }, status: 200 });
  bulk.close();
});

test('a rotated key hands over at once, or after the overlap', async () => {
  const first = await create('--name', 'runner', '--rate', '500');
  const second = await key(['rotate', first.ids[0], '--overlap', '1h']);
  assert.notEqual(second.token, first.token);
  assert.ok(second.said.includes(first.ids[0]) && !second.said.includes(second.token));
  assert.deepEqual([await statusOf(first.token), await statusOf(second.token)], [200, 200]);
  const third = await key(['rotate', second.ids[0]]);
  assert.equal(await statusOf(third.token), 200);
  await until(async () => (await statusOf(second.token)) === 401, 'the old key is refused');
  assert.equal(await statusOf(first.token), 200);
  const rows = await s.query("SELECT owner, role, name, rate, burst FROM daybook.api_keys WHERE name = 'runner'");
  assert.deepEqual(rows, Array.from({ length: 3 }, () => ({ owner: 'desk', role: 'agent', name: 'runner', rate: 500, burst: 500 })));
  const again = await key(['rotate', second.ids[0]], { code: 1 });
  assert.match(again.said, /^daybookd: the key \S+ was rotated before/);
});

test('the list shows the expiry and the rate', async () => {
  await create('--name', 'limited one', '--expires', '2999-01-31', '--rate', '3', '--burst', '9');
  const { stdout } = await command(['key', 'list', '--database-url', s.url]);
  assert.match(stdout.split('\n')[0], /^id +owner +role +created_at +revoked_at +expires_at +rate +burst +name$/);
  assert.match(stdout, /2999-01-31T00:00:00Z +3 +9 +limited one$/m);
});

test('bad options of key commands are reported in one line', async () => {
  const id = '01890000-0000-7000-8000-000000000000';
  for (const [args, code] of [
    [['create', '--owner', 'x', '--role', 'agent', '--expires', 'soon'], 1],
    [['create', '--owner', 'x', '--role', 'agent', '--expires', '2020-01-01'], 1],
    [['create', '--owner', 'x', '--role', 'agent', '--rate', '0'], 1],
    [['create', '--owner', 'x', '--role', 'agent', '--burst', '5'], 2],
    [['create', '--owner', 'x', '--role', 'agent', '--rate'], 2],
    [['rotate'], 2],
    [['rotate', 'nonsense'], 1],
    [['rotate', id], 1],
    [['rotate', id, '--overlap', 'later'], 1],
    [['rotate', id, '--role', 'admin'], 2],
  ]) {
    const { stdout, stderr, code: got } = await command(['key', ...args, '--database-url', s.url]);
    assert.equal(got, code, `${args.join(' ')}: ${stderr}`);
    assert.equal(stdout, '');
    assert.match(stderr, /^daybookd: [^\n]+\n$/, args.join(' '));
  }
  const { stdout } = await command(['key', '--help']);
  for (const word of ['--expires', '--rate', '--burst', 'rotate ID', '--overlap']) assert.ok(stdout.includes(word), word);
});

test('the log names the address and the id of a rejected key, never the key', async () => {
  const { token, ids } = await create('--expires', '1s');
  await until(async () => (await statusOf(token)) === 401, 'the key has expired');
  await s.api.as('dbk_secret_of_somebody').get('/v1/lessons', { status: 401 });
  await until(() => s.service.log.includes('"event":"key_rejected"'), 'it is logged');
  const lines = s.service.log.split('\n').filter((line) => line.includes('"event":"key_rejected"')).map((line) => JSON.parse(line));
  for (const line of lines) {
    assert.equal(line.address, '127.0.0.1');
    assert.ok(['unknown', 'revoked', 'expired'].includes(line.reason), line.reason);
    assert.equal(line.count & (line.count - 1), 0, `${line.count} is a power of two`);
    assert.equal(line.key === undefined, line.reason === 'unknown');
  }
  for (const secret of [token, 'dbk_secret_of_somebody']) assert.ok(!s.service.log.includes(secret));
  assert.ok(ids.length === 1);
});
