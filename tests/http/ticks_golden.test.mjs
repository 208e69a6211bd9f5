// The golden files of the materializer, run through the API: tick by tick, and without storage.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, checkTable, deploy, goldenCases, goldenLines, ledgerSuite, parseExact, ticksPath, withoutSnapshots } from '../lib/ticks.mjs';

const s = ledgerSuite();
const cases = goldenCases();

/** The API error for each refusal of the materializer: status and code, and the fields it may name. */
const REFUSALS = {
  duplicate_symbol: [/^portfolio\.positions$/, ['duplicate_item']],
  bad_size: [/^portfolio\.positions\[\d+\]\.size_base$/, ['required', 'out_of_range']],
  bad_price: [/^(portfolio\.positions(\[\d+\]\.\w+)?|marks\.\w+)$/, ['out_of_range']],
  too_large: [/^portfolio\.positions$/, ['out_of_range']],
};

function checkRefusal(answer, expected, prefix = '') {
  const [field, codes] = REFUSALS[expected.split(' ')[0]];
  assert.equal(answer.status, 422, answer.text);
  for (const error of answer.json.errors) {
    assert.ok(error.field.startsWith(prefix), answer.text);
    assert.match(error.field.slice(prefix.length), field);
    assert.ok(codes.includes(error.code), answer.text);
  }
}

const isRefusal = ([line]) => REFUSALS[line.split(' ')[0]] !== undefined;

test('the golden files cover every op and every refusal', () => {
  assert.ok(cases.length >= 60, `${cases.length} cases`);
  const lines = cases.flatMap((c) => c.ticks.flatMap((t) => t.expected));
  for (const part of ['"open_trade"', '"update_trade"', '"close_trade"', '"flip":true', '"added"', '"reduced"', '"liquidated"', '"external_flatten"', '"last_known"', '"marks"', '"broker"', 'stray ', 'same_tick', 'older_tick', ...Object.keys(REFUSALS)])
    assert.ok(lines.some((line) => line.includes(part)), part);
});

test('every case through POST ticks yields its ops and the matching table', async () => {
  let compared = 0;
  for (const { name, ticks } of cases) {
    const deployment = await deploy(s.query);
    const names = new Map();
    const answers = [];
    for (const [i, { tick, expected }] of ticks.entries()) {
      const what = `${name}, tick ${i + 1}`;
      const before = await bytesOf(s.query, deployment);
      const answer = await s.api.post(ticksPath(deployment), tick);
      const unchanged = async () => assert.equal(await bytesOf(s.query, deployment), before, what);
      if (isRefusal(expected)) {
        checkRefusal(answer, expected[0]);
        await unchanged();
      } else if (expected[0] === 'older_tick') {
        assert.deepEqual([answer.status, answer.json.code], [409, 'tick_out_of_order'], what);
        await unchanged();
      } else if (expected[0] === 'same_tick') {
        // The materializer sees only the instant; the ledger also knows the content of the stored tick.
        const same = JSON.stringify(tick) === JSON.stringify(ticks[i - 1].tick);
        if (same) assert.equal(answer.text, answers.at(-1).replace('"replayed":false', '"replayed":true'), what);
        else assert.deepEqual([answer.status, answer.json.code], [409, 'tick_conflict'], what);
        await unchanged();
      } else {
        assert.equal(answer.status, 200, `${what}: ${answer.text}`);
        names.set(answer.json.snapshot_id, `s${i + 1}`);
        assert.deepEqual(goldenLines(answer.text, names), expected, what);
        answers.push(answer.text);
      }
      compared++;
    }
    await checkTable(s.query, deployment, answers);
  }
  assert.equal(compared, cases.flatMap((c) => c.ticks).length);
});

test('every case through POST /v1/materialize yields its ops, with the open trades fed back', async () => {
  let compared = 0;
  for (const { name, ticks } of cases) {
    let prev;
    for (const [i, { tick, expected }] of ticks.entries()) {
      const what = `${name}, tick ${i + 1}`;
      const answer = await s.api.post('/v1/materialize', { prev, next: tick });
      if (isRefusal(expected)) checkRefusal(answer, expected[0], 'next.');
      else if (['older_tick', 'same_tick'].includes(expected[0])) assert.deepEqual([answer.status, answer.json.code], [409, 'tick_out_of_order'], what);
      else {
        assert.equal(answer.status, 200, `${what}: ${answer.text}`);
        assert.deepEqual(goldenLines(answer.text), expected.map(withoutSnapshots), what);
        prev = { tick_at: tick.tick_at, open: parseExact(answer.text).open };
      }
      compared++;
    }
  }
  assert.equal(compared, cases.flatMap((c) => c.ticks).length);
});
