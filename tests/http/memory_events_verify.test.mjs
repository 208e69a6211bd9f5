// The chain of a journal: whatever someone does to its rows with SQL is found and named, by the service and by tools/verify-journal.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { assertWhole, eventsOf, verify, verifyJournal, ZEROS } from '../lib/events.mjs';
import { remember } from '../lib/journal.mjs';
import { deploy } from '../lib/ledger.mjs';
import { create, day } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const EVENTS = 12;

/** A journal of EVENTS sealed events; returns its query and its events. */
async function newJournal(count = EVENTS) {
  const journal = randomUUID();
  await s.query(
    `insert into daybook.memory_events (owner, journal_id, kind, at, symbol, agent_name, data)
     select 'local', $1, 'memory.created', timestamptz '2026-01-01' + n * interval '1 hour', 'BTC', 'trader', jsonb_build_object('text', 'note ' || n, 'size', 1.50, 'tags', jsonb_build_array('a', jsonb_build_object('b', null))) from generate_series(1, $2::int) n order by n`,
    [journal, count],
  );
  const query = `deployment_id=${journal}`;
  const { items } = await eventsOf(s.api, query);
  assert.deepEqual([items.length, (await verify(s.api, query)).ok], [count, true]);
  return { journal, query, events: items };
}

const exportOf = async (query) => (await s.api.get(`/v1/memory_events/export?format=ndjson&${query}`, { status: 200 })).text;

/** What the service finds, and what the script says about an export when the last hash was noted before. */
async function findings({ query, events }) {
  const found = await verify(s.api, query);
  const script = await verifyJournal(await exportOf(query), ['--head', events.at(-1).hash]);
  return { found, script: script.stdout, status: script.status };
}

const hashSql = (n, before) =>
  `daybook.memory_event_hash(${before}, daybook.memory_event_text(journal_id, ${n}, id, kind, at, recorded_at, symbol, subject_id, agent_name, model_call_id, data))`;

/** Verifies a journal in steps of `max` events; returns the results. */
async function inSteps(query, max) {
  const results = [];
  for (let after = 0; after !== null; after = results.at(-1).next_after_seq) results.push(await verify(s.api, `${query}&max_events=${max}&after_seq=${after}`));
  return results;
}

test('a long journal is verified in steps, and a step finds what is broken', async () => {
  const { journal, query } = await newJournal();
  const whole = await inSteps(query, 5);
  assert.deepEqual(whole.map((r) => [r.checked, r.ok, r.next_after_seq]), [[5, null, 5], [5, null, 10], [2, true, null]]);
  assert.deepEqual((await inSteps(query, EVENTS)).map((r) => r.ok), [true]);
  assert.deepEqual((await inSteps(query, 4)).map((r) => r.ok), [null, null, true]);
  await s.query(`update daybook.memory_events set data = '{}' where journal_id = $1 and seq = 8`, [journal]);
  const broken = await inSteps(query, 5);
  assert.deepEqual(broken.map((r) => [r.checked, r.ok, r.first_broken?.seq]), [[5, null, undefined], [2, false, 8]]);
  await s.query('delete from daybook.memory_events where journal_id = $1 and seq = 10', [journal]);
  assert.deepEqual((await verify(s.api, `${query}&after_seq=10`)).first_broken.what, 'missing');
  assert.deepEqual((await verify(s.api, `${query}&after_seq=99`)).first_broken.what, 'truncated');
  const { json } = await s.api.get('/v1/memory_events/verify?after_seq=3', { status: 422 });
  assert.equal(json.errors[0].field, 'after_seq');
});

test('a page of journals ends where the events of the request do', async () => {
  const made = [await newJournal(3), await newJournal(3), await newJournal(3)];
  const seen = [];
  for (let cursor = ''; cursor !== null; ) {
    const { json } = await s.api.get(`/v1/memory_events/verify?max_events=4${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { status: 200 });
    const checked = json.items.reduce((sum, r) => sum + r.checked, 0);
    assert.ok(json.items.length && checked <= 4);
    for (const [i, r] of json.items.entries()) assert.ok(r.ok === true || (r.ok === null && i === json.items.length - 1), JSON.stringify(r));
    seen.push(...json.items.map((r) => r.deployment_id));
    cursor = json.next_cursor;
  }
  assert.equal(new Set(seen).size, seen.length);
  for (const { journal } of made) assert.ok(seen.includes(journal));
});

const CHANGES = {
  data: `data = '{"text": "another"}'`,
  'member of data': `data = jsonb_set(data, '{text}', '"another"')`,
  'inner member of data': `data = jsonb_set(data, '{tags,1,b}', 'false')`,
  'order in data': `data = jsonb_set(data, '{tags}', '[{"b": null}, "a"]')`,
  'number in data': `data = jsonb_set(data, '{size}', '1.5')`,
  'set of members (one more)': `data = data || '{"more": null}'`,
  'set of members (one less)': `data = data - 'size'`,
  kind: `kind = 'thesis.opened'`,
  at: `at = at + interval '1 microsecond'`,
  recorded_at: `recorded_at = recorded_at - interval '1 microsecond'`,
  symbol: `symbol = 'ETH'`,
  'symbol (removed)': `symbol = null`,
  subject_id: `subject_id = gen_random_uuid()`,
  agent_name: `agent_name = null`,
  model_call_id: `model_call_id = 'x'`,
  id: `id = gen_random_uuid()`,
  hash: `hash = repeat('a', 64)`,
};
for (const [member, sql] of Object.entries(CHANGES))
  test(`a changed ${member} is named, of the first, an inner and the last event`, async () => {
    for (const seq of [1, 5, EVENTS]) {
      const j = await newJournal();
      await s.query(`update daybook.memory_events set ${sql} where journal_id = $1 and seq = ${seq}`, [j.journal]);
      const { found, script, status } = await findings(j);
      const { hash, id } = j.events[seq - 1];
      assert.equal(found.ok, false);
      assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.checked], ['changed', seq, seq - 1]);
      assert.equal(found.first_broken.found, member === 'hash' ? 'a'.repeat(64) : hash);
      if (member === 'hash') assert.equal(found.first_broken.expected, hash);
      if (member !== 'id') assert.equal(found.first_broken.id, id);
      assert.equal(status, 1);
      assert.match(script, new RegExp(`^broken: deployment ${j.journal}: changed: event ${seq} `));
    }
  });

const rewriteFrom = async (journal, seq, before) => {
  for (let n = seq; n <= EVENTS; n++)
    before = (await s.query(`update daybook.memory_events set hash = ${hashSql(n, `'${before}'`)} where journal_id = $1 and seq = ${n} returning hash`, [journal]))[0].hash;
  return before;
};

test('a chain that was rewritten up to its end is found by the end of the journal, and by a hash that was noted', async () => {
  const j = await newJournal();
  await s.query(`update daybook.memory_events set data = '{}' where journal_id = $1 and seq = 3`, [j.journal]);
  const end = await rewriteFrom(j.journal, 3, j.events[1].hash);
  const { found, script, status } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.expected, found.first_broken.found], ['changed', EVENTS, j.events.at(-1).hash, end]);
  assert.equal(found.first_broken.id, j.events.at(-1).id);
  assert.equal(status, 1);
  assert.match(script, /^broken: truncated or changed: no journal ends with/);
  // With the end of the journal rewritten too, only the hash that someone noted elsewhere tells.
  await s.query('update daybook.memory_journals set hash = $2 where journal_id = $1', [j.journal, end]);
  const rewritten = await findings(j);
  assert.deepEqual([rewritten.found.ok, rewritten.found.head, rewritten.status], [true, end, 1]);
});

const ENDS = {
  hash: [`hash = repeat('a', 64)`, 'changed', EVENTS],
  'number, made larger': ['seq = seq + 1', 'truncated', EVENTS + 1],
  'number, made smaller': ['seq = seq - 1', 'changed', EVENTS - 1],
};
for (const [what, [sql, named, seq]] of Object.entries(ENDS))
  test(`the end of a journal with another ${what} is named`, async () => {
    const j = await newJournal();
    await s.query(`update daybook.memory_journals set ${sql} where journal_id = $1`, [j.journal]);
    const { found, status } = await findings(j);
    assert.deepEqual([found.ok, found.first_broken.what, found.first_broken.seq, found.checked], [false, named, seq, Math.min(seq, EVENTS)]);
    assert.equal(status, 0); // the events are as they were
  });

test('the end of a journal that was set back, or removed, does not hide the events behind it', async () => {
  const j = await newJournal();
  await s.query('update daybook.memory_journals set seq = 8, hash = $2 where journal_id = $1', [j.journal, j.events[7].hash]);
  const { first_broken } = (await findings(j)).found;
  assert.deepEqual([first_broken.what, first_broken.seq, first_broken.id], ['inserted', 9, j.events[8].id]);
  await s.query('delete from daybook.memory_journals where journal_id = $1', [j.journal]);
  const without = (await findings(j)).found.first_broken;
  assert.deepEqual([without.what, without.seq, without.id], ['inserted', 1, j.events[0].id]);
});

test('a changed event with a new hash breaks the link behind it', async () => {
  const j = await newJournal();
  await s.query(`update daybook.memory_events set data = '{"text": "x"}' where journal_id = $1 and seq = 5`, [j.journal]);
  await s.query(`update daybook.memory_events set hash = ${hashSql(5, `'${j.events[3].hash}'`)} where journal_id = $1 and seq = 5`, [j.journal]);
  const { found, status } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, status], ['changed', 6, 1]);
});

test('the last event, changed with a new hash, is found by the end of the journal', async () => {
  const j = await newJournal();
  await s.query(`update daybook.memory_events set data = '{}' where journal_id = $1 and seq = ${EVENTS}`, [j.journal]);
  await s.query(`update daybook.memory_events set hash = ${hashSql(EVENTS, `'${j.events[EVENTS - 2].hash}'`)} where journal_id = $1 and seq = ${EVENTS}`, [j.journal]);
  const { found, script, status } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.expected], ['changed', EVENTS, j.events.at(-1).hash]);
  assert.equal(status, 1);
  assert.match(script, /^broken: truncated or changed: no journal ends with/);
});

test('a removed event is named', async () => {
  for (const seq of [1, 7]) {
    const j = await newJournal();
    await s.query(`delete from daybook.memory_events where journal_id = $1 and seq = ${seq}`, [j.journal]);
    const { found, script, status } = await findings(j);
    assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.id, found.checked], ['missing', seq, null, seq - 1]);
    assert.equal(status, 1);
    assert.match(script, new RegExp(`: missing: event ${seq}\n`));
  }
});

/** Moves the events from `seq` on by `by` numbers. */
async function shift(journal, seq, by) {
  await s.query(`update daybook.memory_events set seq = seq + 1000 where journal_id = $1 and seq >= ${seq}`, [journal]);
  await s.query(`update daybook.memory_events set seq = seq - 1000 + ${by} where journal_id = $1 and seq >= 1000`, [journal]);
}

test('a removed event is named although the ones behind it were renumbered', async () => {
  for (const seq of [1, 7, EVENTS - 1]) {
    const j = await newJournal();
    await s.query(`delete from daybook.memory_events where journal_id = $1 and seq = ${seq}`, [j.journal]);
    await shift(j.journal, seq + 1, -1);
    const { found, status } = await findings(j);
    assert.deepEqual([found.first_broken.what, found.first_broken.seq, status], ['missing', seq, 1]);
  }
});

const hashBefore = (j, seq) => `'${seq === 1 ? ZEROS : j.events[seq - 2].hash}'`;
for (const [how, hash] of Object.entries({ 'a made-up hash': () => `repeat('b', 64)`, 'the right hash': (j, seq) => hashSql(seq, hashBefore(j, seq)) }))
  test(`an event inserted as the first, an inner and the last one with ${how} is named`, async () => {
    for (const seq of [1, 6, EVENTS]) {
      const j = await newJournal();
      await shift(j.journal, seq, 1);
      const [{ id }] = await s.query("insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'note', now(), '{}') returning id", [j.journal]);
      await s.query(`update daybook.memory_events set seq = ${seq}, hash = ${hash(j, seq)} where id = $1`, [id]);
      const { found, script, status } = await findings(j);
      assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.id], ['inserted', seq, id]);
      assert.equal(status, 1);
      if (how === 'a made-up hash') assert.match(script, new RegExp(`: inserted: event ${seq} \\(${id}\\)`));
    }
  });

test('an event appended behind the end is named', async () => {
  const j = await newJournal();
  const [{ id }] = await s.query("insert into daybook.memory_events (owner, journal_id, kind, at, data, seq, hash) values ('local', $1, 'note', now(), '{}', 13, repeat('c', 64)) returning id", [j.journal]);
  const { found, status } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.id], ['inserted', 13, id]);
  assert.equal(status, 1);
});

for (const [name, a, b] of [['two neighbours', 4, 5], ['two distant events', 3, 9], ['the first and the last', 1, EVENTS]])
  test(`${name}, exchanged, are named as reordered`, async () => {
    const j = await newJournal();
    await s.query(`update daybook.memory_events set seq = 999 where journal_id = $1 and seq = ${a}`, [j.journal]);
    await s.query(`update daybook.memory_events set seq = ${a} where journal_id = $1 and seq = ${b}`, [j.journal]);
    await s.query(`update daybook.memory_events set seq = ${b} where journal_id = $1 and seq = 999`, [j.journal]);
    const { found, status } = await findings(j);
    assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.id], ['reordered', a, j.events[b - 1].id]);
    assert.equal(status, 1);
  });

test('an event moved to another place is named as reordered', async () => {
  const j = await newJournal();
  await s.query('update daybook.memory_events set seq = 999 where journal_id = $1 and seq = 9', [j.journal]);
  for (let seq = 8; seq >= 4; seq--) await s.query('update daybook.memory_events set seq = seq + 1 where journal_id = $1 and seq = $2', [j.journal, seq]);
  await s.query('update daybook.memory_events set seq = 4 where journal_id = $1 and seq = 999', [j.journal]);
  const { found } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.first_broken.id], ['reordered', 4, j.events[8].id]);
});

test('a cut tail is named', async () => {
  for (const keep of [0, 8, EVENTS - 1]) {
    const j = await newJournal();
    await s.query(`delete from daybook.memory_events where journal_id = $1 and seq > ${keep}`, [j.journal]);
    const { found, status } = await findings(j);
    const expected = { seq: keep + 1, id: null, what: 'truncated', expected: j.events.at(-1).hash, found: keep ? j.events[keep - 1].hash : ZEROS };
    assert.deepEqual([found.first_broken, found.checked, found.events], [expected, keep, EVENTS]);
    assert.equal(status, 1); // by the head that was noted
  }
});

test('new events do not hide a cut tail', async () => {
  const j = await newJournal();
  await s.query('delete from daybook.memory_events where journal_id = $1 and seq > 8', [j.journal]);
  await s.query("insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'note', now(), '{}')", [j.journal]);
  const { found } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.events], ['missing', 9, EVENTS + 1]);
});

test('a journal longer than a page is walked to its end', async () => {
  const j = await newJournal(2500);
  await s.query(`update daybook.memory_events set data = '{}' where journal_id = $1 and seq = 2001`, [j.journal]);
  const { found } = await findings(j);
  assert.deepEqual([found.first_broken.what, found.first_broken.seq, found.checked], ['changed', 2001, 2000]);
});

test('an event moved to another journal is missing in its own, and inserted in the other', async () => {
  const [from, to] = [await newJournal(), await newJournal()];
  await s.query(`update daybook.memory_events set journal_id = $2, seq = 13 where journal_id = $1 and seq = 5`, [from.journal, to.journal]);
  assert.deepEqual((({ what, seq }) => [what, seq])((await findings(from)).found.first_broken), ['missing', 5]);
  assert.deepEqual((({ what, seq, id }) => [what, seq, id])((await findings(to)).found.first_broken), ['inserted', 13, from.events[4].id]);
});

test('the script finds the broken one among the journals of an export', async () => {
  const journals = [await newJournal(3), await newJournal(3), await newJournal(3)];
  const lines = (await Promise.all(journals.map(({ query }) => exportOf(query)))).join('');
  assert.equal((await verifyJournal(lines)).status, 0);
  await s.query("update daybook.memory_events set data = '{}' where journal_id = $1 and seq = 2", [journals[1].journal]);
  const { status, stdout } = await verifyJournal((await Promise.all(journals.map(({ query }) => exportOf(query)))).join(''));
  assert.equal(status, 1);
  assert.match(stdout, new RegExp(`^broken: deployment ${journals[1].journal}: changed: event 2 `));
});

test('all journals of the owner are verified, in pages', async () => {
  await create(s.api, { at: day(1) });
  const items = [];
  for (let cursor = ''; cursor !== null; ) {
    const { json } = await s.api.get(`/v1/memory_events/verify?limit=7${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { status: 200 });
    items.push(...json.items);
    cursor = json.next_cursor;
  }
  const journals = await s.query("select journal_id from daybook.memory_journals where owner = 'local' union select journal_id from daybook.memory_events where owner = 'local' order by 1");
  const own = '00000000-0000-0000-0000-000000000000';
  assert.deepEqual(items.map((i) => i.deployment_id ?? own), journals.map(({ journal_id }) => journal_id));
  assert.equal(items[0].deployment_id, null);
  assert.ok(items.some(({ ok }) => ok) && items.some(({ ok }) => !ok));
});

test('the script and the service agree about any JSON', async () => {
  const journal = randomUUID();
  const odd = [
    '{}',
    '{"a": 1.10, "b": -0.0, "c": 1e3, "d": 1E-7, "e": 123456789012345678901234567890.123456789, "f": 0.1e-20, "g": -5, "h": 1e100}',
    '{"bb": 1, "a": 2, "ccc": 3, "é": 4, "z": 5, "aa": {"y": [1, [2, {"k": []}], {}], "x": null}}',
    JSON.stringify({ controls: Array.from({ length: 32 }, (_, i) => String.fromCharCode(i || 127)).join(''), quotes: '"\\/\b\f\n\r\t', separators: '\u2028\u2029\u0085\u00a0', ends: 'a\r\nb' }),
    JSON.stringify({ plane: '𝄞🎻', cjk: '日本語', combining: 'e\u0301 \u200d \ufeff', rtl: 'שלום', '': 'an empty key', '𝄞': 1, 'ключ': [true, false, null] }),
    '{"escaped": "\\u00e9\\ud834\\udd1e\\u007f", "nested": {"deep": {"deeper": {"deepest": [[[[]]]]}}}}',
    '{"text": "{\\"not\\": \\"nested\\"}, [1, 2]: x", "long": "' + 'word '.repeat(2000) + '"}',
  ];
  for (const [n, data] of odd.entries())
    await s.query(
      "insert into daybook.memory_events (owner, journal_id, kind, at, recorded_at, symbol, agent_name, data) values ('local', $1, 'odd', $2, $3, $4, $5, $6::jsonb)",
      [journal, `2026-01-01T00:00:00${['', '.5', '.000001', '.123456', '.1', '.100001', ''][n]}Z`, '2026-01-01T00:00:00.25Z', n % 2 ? 'ÄÖ/USD' : null, n % 3 ? 'агент' : null, data],
    );
  await assertWhole(s.api, `deployment_id=${journal}`, odd.length);
});

for (const time of ['infinity', '-infinity'])
  test(`an event whose time became ${time} is named, whatever else changed`, async () => {
    for (const column of ['at', 'recorded_at']) {
      const j = await newJournal();
      await s.query(`update daybook.memory_events set ${column} = '${time}', data = '{}', kind = 'x' where journal_id = $1 and seq = 5`, [j.journal]);
      const { ok, first_broken } = await verify(s.api, j.query);
      assert.deepEqual([ok, first_broken?.what, first_broken?.seq], [false, 'changed', 5]);
    }
  });

for (const member of ['agent_name', 'model_call_id', 'symbol'])
  test(`a ${member} that became empty is named`, async () => {
    const j = await newJournal();
    await s.query(`update daybook.memory_events set ${member} = null, seq = null, hash = null where journal_id = $1`, [j.journal]);
    await s.query('delete from daybook.memory_journals where journal_id = $1', [j.journal]);
    const { items } = await eventsOf(s.api, j.query);
    await s.query(`update daybook.memory_events set ${member} = '' where journal_id = $1 and seq = 5`, [j.journal]);
    const { found, script, status } = await findings({ ...j, events: items });
    assert.deepEqual([found.ok, found.first_broken?.what, found.first_broken?.seq, status], [false, 'changed', 5, 1]);
    assert.match(script, /: changed: event 5 /);
  });

const append = (journal) => s.query(`insert into daybook.memory_events (owner, journal_id, kind, at, data) values ('local', $1, 'x', now(), '{}')`, [journal]);

for (const seq of ['9223372036854775807', '-5'])
  test(`an end of a journal at ${seq} is named, and holds up no other journal`, async () => {
    const [bad, good] = [await newJournal(), await newJournal()];
    await s.query(`update daybook.memory_journals set seq = ${seq} where journal_id = $1`, [bad.journal]);
    for (const { journal } of [bad, good]) await append(journal);
    const found = await verify(s.api, bad.query);
    assert.deepEqual([found.ok, found.pending, found.first_broken === null], [false, 1, false]);
    const { json } = await s.api.get('/v1/memory_events/verify?limit=200', { status: 200 });
    const result = (journal) => json.items.find((item) => item.deployment_id === journal);
    assert.deepEqual([result(bad.journal).ok, result(good.journal).ok, result(good.journal).events], [false, true, EVENTS + 1]);
    await s.query('delete from daybook.memory_events where journal_id = $1', [bad.journal]);
    await s.query('delete from daybook.memory_journals where journal_id = $1', [bad.journal]);
  });

test('a deployment that is being deleted is not among the journals, and its journal is not called broken', async () => {
  const { id } = await deploy(s.api);
  await remember(s.api, { deployment_id: id });
  await verify(s.api, `deployment_id=${id}`);
  await s.query('delete from daybook.agent_state where deployment_id = $1', [id]); // the first step of the deletion
  await s.query('delete from daybook.memory_events where journal_id = $1', [id]);
  await s.api.get(`/v1/memory_events/verify?deployment_id=${id}`, { status: 404 });
  const { json } = await s.api.get('/v1/memory_events/verify?limit=200', { status: 200 });
  assert.ok(!json.items.some((item) => item.deployment_id === id));
});

test('the script accepts no line that says two things', async () => {
  const { query } = await newJournal(3);
  const text = await exportOf(query);
  assert.equal((await verifyJournal(text)).status, 0);
  const lines = text.trimEnd().split('\n');
  const changed = (change) => verifyJournal([lines[0], change(lines[1]), lines[2]].join('\n'));
  for (const change of [
    (line) => line.replace('{', '{"data": {"text": "another"}, '),
    (line) => line.replace('"data":{', '"data":{"text":"another",'),
    (line) => line.replace('{', '{"remark": "another", '),
    (line) => line.replace(/"prev_hash":"[^"]*",/, ''),
    (line) => line.replace(/"deployment_id":("[^"]*")/, '"deployment_id":[$1]'),
  ]) {
    const { status, stderr } = await changed(change);
    assert.equal(status, 2);
    assert.match(stderr, /^verify-journal: line 2 is not an event: /);
  }
  const { status, stdout } = await changed((line) => line.replace(/"prev_hash":"..../, '"prev_hash":"ffff'));
  assert.deepEqual([status, /: changed prev_hash: event 2 /.test(stdout)], [1, true], stdout);
});

test('the script explains itself, and says when it cannot read its input', async () => {
  const help = await verifyJournal('', ['--help']);
  assert.equal(help.status, 0);
  assert.match(help.stdout, /--head HASH/);
  assert.equal((await verifyJournal('')).stdout, 'ok: no events\n');
  for (const bad of ['nonsense\n', '[1]\n', '{"seq": 1}\n']) {
    const { status, stderr } = await verifyJournal(bad);
    assert.equal(status, 2);
    assert.match(stderr, /^verify-journal: line 1 /);
  }
  assert.equal((await verifyJournal('', ['/nonexistent'])).status, 2);
});
