// Invalid ticks: every invalid field is reported by name, and nothing is stored.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from '../lib/lessons.mjs';
import { bytesOf, countRows, deploy, exact, ledgerSuite, post, tickOf, ticksPath } from '../lib/ticks.mjs';

const s = ledgerSuite();
let deployment;

const held = [['BTC', 'long', '1', '100']];
const tick = (changes = {}) => ({ ...tickOf(1, held), ...changes });
const portfolio = (positions, equity = 10000) => ({ portfolio: { equity_usd: equity, positions } });
const btc = (changes = {}) => ({ symbol: 'BTC', side: 'long', size_base: 1, mark_price: 100, ...changes });
const at = (changes) => portfolio([btc(changes)]);
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const symbols = (count, value) => Object.fromEntries(many(count, (i) => [`S${i}`, value]));
const later = (days) => new Date(Date.now() + days * 86_400_000).toISOString();

/** Posts an invalid body and checks that no table changed. */
async function refuse(body, status, what) {
  deployment ??= await deploy(s.query).then(async (id) => (await post(s.api, id, tickOf(0, held)), id));
  const [bytes, counts] = [await bytesOf(s.query, deployment), await countRows(s.query)];
  const answer = await s.api.post(ticksPath(deployment), body);
  assert.equal(answer.status, status, `${what}: ${answer.text}`);
  assert.equal(await bytesOf(s.query, deployment), bytes, what);
  assert.deepEqual(await countRows(s.query), counts, what);
  return answer;
}

const p = 'portfolio.positions';
const FIELDS = [
  // sizes and prices
  ['a negative size', at({ size_base: -1 }), [`${p}[0].size_base: out_of_range`]],
  ['a tiny negative size', at({ size_base: exact('-0.0000000000000000000000001') }), [`${p}[0].size_base: out_of_range`]],
  ['no size', at({ size_base: undefined }), [`${p}[0].size_base: required`]],
  ['a size of null', at({ size_base: null }), [`${p}[0].size_base: required`]],
  ['a mark of zero', at({ mark_price: 0 }), [`${p}[0].mark_price: out_of_range`]],
  ['a mark that is zero at 18 digits', at({ mark_price: exact('1e-19') }), [`${p}[0].mark_price: out_of_range`]],
  ['a negative mark', at({ mark_price: -5 }), [`${p}[0].mark_price: out_of_range`]],
  ['a negative leverage', at({ leverage: -1 }), [`${p}[0].leverage: out_of_range`]],
  ['an entry price of zero', at({ entry_price: 0 }), [`${p}[0].entry_price: out_of_range`]],
  ['a negative entry price', at({ entry_price: -1 }), [`${p}[0].entry_price: out_of_range`]],
  ['a new position without a mark', portfolio([btc(), { symbol: 'ETH', side: 'long', size_base: 1 }]), [`${p}: out_of_range`]],
  // sides and symbols
  ['an unknown side', at({ side: 'both' }), [`${p}[0].side: not_a_choice`]],
  ['a side in capitals', at({ side: 'LONG' }), [`${p}[0].side: not_a_choice`]],
  ['no side', at({ side: undefined }), [`${p}[0].side: required`]],
  ['a side that is a number', at({ side: 1 }), [`${p}[0].side: wrong_type`]],
  ['two positions of a symbol', portfolio([btc(), btc({ side: 'short' })]), [`${p}: duplicate_item`]],
  ['two positions of a symbol, one of them flat', portfolio([btc(), btc({ size_base: 0 })]), [`${p}: duplicate_item`]],
  ['two symbols twice', portfolio([btc(), btc({ symbol: 'ETH' }), btc(), btc({ symbol: 'ETH' })]), [`${p}: duplicate_item`, `${p}: duplicate_item`]],
  ['a symbol of 1,000 characters', at({ symbol: 'B'.repeat(1000) }), [`${p}[0].symbol: too_long`]],
  ['a symbol of 65 characters', at({ symbol: '€'.repeat(65) }), [`${p}[0].symbol: too_long`]],
  ['an empty symbol', at({ symbol: '' }), [`${p}[0].symbol: too_short`]],
  ['a blank symbol', at({ symbol: '  ' }), [`${p}[0].symbol: too_short`]],
  ['a symbol of two lines', at({ symbol: 'B\nC' }), [`${p}[0].symbol: several_lines`]],
  ['a symbol with a control character', at({ symbol: 'B\u0007C' }), [`${p}[0].symbol: control_character`]],
  ['no symbol', at({ symbol: undefined }), [`${p}[0].symbol: required`]],
  // lists
  ['201 positions', portfolio(many(201, (i) => btc({ symbol: `S${i}` }))), [`${p}: too_many`]],
  ['positions that are not a list', portfolio({ BTC: 1 }), [`${p}: wrong_type`]],
  ['positions that are not objects', portfolio([1, null, 'BTC']), [`${p}[0]: wrong_type`, `${p}[1]: wrong_type`, `${p}[2]: wrong_type`]],
  ['1,001 marks', { marks: symbols(1001, 1) }, ['marks: too_many']],
  ['1,001 fees', { fees: many(1001, () => ({ symbol: 'BTC', fees_usd: 1 })) }, ['fees: too_many']],
  ['bars of 201 symbols', { bars: symbols(201, [1]) }, ['bars: too_many']],
  ['5,001 bars', { bars: { BTC: many(5001, () => 1) } }, ['bars.BTC: too_many']],
  // marks, fees, bars
  ['a zero in marks', { marks: { ETH: 0 } }, ['marks.ETH: out_of_range']],
  ['a negative price in marks', { marks: { ETH: -1 } }, ['marks.ETH: out_of_range']],
  ['a price in marks that is zero at 18 digits', { marks: { ETH: exact('1e-19') } }, ['marks.ETH: out_of_range']],
  ['a mark that is text', { marks: { ETH: '100' } }, ['marks.ETH: wrong_type']],
  ['marks that are a list', { marks: [1] }, ['marks: wrong_type']],
  ['fees without a symbol', { fees: [{ fees_usd: 1 }] }, ['fees[0].symbol: required']],
  ['fees without an amount', { fees: [{ symbol: 'BTC' }] }, ['fees[0].fees_usd: required']],
  ['a bar of zero', { bars: { BTC: [1, 0, 2] } }, ['bars.BTC[1]: out_of_range']],
  ['a negative bar', { bars: { BTC: [1, 2, -3] } }, ['bars.BTC[2]: out_of_range']],
  ['bars that are texts and null', { bars: { BTC: ['1', null] } }, ['bars.BTC[0]: wrong_type', 'bars.BTC[1]: wrong_type']],
  ['bars of a symbol of 1,000 characters', { bars: { ['B'.repeat(1000)]: [1] } }, /^bars\.B+.*: too_long$/],
  ['bars that are a number', { bars: { BTC: 5 } }, ['bars.BTC: wrong_type']],
  // too large
  ['a size of 21 digits', at({ size_base: exact('100000000000000000000') }), [`${p}[0].size_base: out_of_range`]],
  ['a size with a large exponent', at({ size_base: exact('1e300') }), [`${p}[0].size_base: out_of_range`]],
  ['a mark of 21 digits', at({ mark_price: exact('100000000000000000000') }), [`${p}[0].mark_price: out_of_range`]],
  ['an equity of 21 digits', portfolio([btc()], exact('-100000000000000000000')), ['portfolio.equity_usd: out_of_range']],
  ['a fee of 21 digits', { fees: [{ symbol: 'BTC', fees_usd: exact('1e20') }] }, ['fees[0].fees_usd: out_of_range']],
  ['a price of 21 digits in marks', { marks: { BTC: exact('1e20') } }, ['marks.BTC: out_of_range']],
  ['a notional that does not fit', at({ size_base: exact('99999999999999999999'), mark_price: 200 }), [`${p}: out_of_range`]],
  ['fees whose sum does not fit', { fees: many(10, () => ({ symbol: 'BTC', fees_usd: exact('99999999999999999999') })) }, [`${p}: out_of_range`]],
  // too small
  ['invalid prices, each reported by its position', portfolio([btc({ mark_price: 0 }), btc({ symbol: 'ETH', entry_price: 0 }), btc({ symbol: 'SOL', mark_price: exact('1e-30'), entry_price: 0 })]), [`${p}[0].mark_price: out_of_range`, `${p}[1].entry_price: out_of_range`, `${p}[2].entry_price: out_of_range`, `${p}[2].mark_price: out_of_range`]],
  // the instant
  ['a year in the future', { tick_at: later(365) }, ['tick_at: in_the_future']],
  ['25 hours in the future', { tick_at: later(25 / 24) }, ['tick_at: in_the_future']],
  ['the year 9999', { tick_at: '9999-12-31T23:59:59Z' }, ['tick_at: in_the_future']],
  ['no tick_at', { tick_at: undefined }, ['tick_at: required']],
  ['a tick_at without a zone', { tick_at: '2026-06-04T10:01:00' }, ['tick_at: invalid_time']],
  ['a tick_at of February 30', { tick_at: '2026-02-30T10:01:00Z' }, ['tick_at: invalid_time']],
  ['a tick_at that is a number', { tick_at: 1780567260 }, ['tick_at: wrong_type']],
  // shapes
  ['no portfolio', { portfolio: undefined }, ['portfolio: required']],
  ['a portfolio that is a list', { portfolio: [] }, ['portfolio: wrong_type']],
  ['no equity and no positions', { portfolio: {} }, ['portfolio.equity_usd: required', `${p}: required`]],
  ['an equity that is text', portfolio([], '10000'), ['portfolio.equity_usd: wrong_type']],
  ['unknown fields at every level', { ...portfolio([btc({ pnl: 1 })]), mood: 'calm', engine: { kind: 'executed', speed: 1 }, proposed_action: { kind: 'hold', why: 'x' }, fees: [{ symbol: 'BTC', fees_usd: 1, currency: 'USD' }] }, ['engine.speed: unknown_field', 'fees[0].currency: unknown_field', 'mood: unknown_field', `${p}[0].pnl: unknown_field`, 'proposed_action.why: unknown_field']],
  ['fields of the response', { snapshot_id: 'x', replayed: true }, ['replayed: unknown_field', 'snapshot_id: unknown_field']],
  ['an action without a kind', { proposed_action: { reason: 'x' } }, ['proposed_action.kind: required']],
  ['an action of 65 characters', { proposed_action: { kind: 'x'.repeat(65) } }, ['proposed_action.kind: too_long']],
  ['a reason of 2,001 characters', { proposed_action: { kind: 'hold', reason: 'x'.repeat(2001) } }, ['proposed_action.reason: too_long']],
  ['an empty reason', { proposed_action: { kind: 'hold', reason: '' } }, ['proposed_action.reason: too_short']],
  ['an engine that is text', { engine: 'executed' }, ['engine: wrong_type']],
  ['an engine without a kind', { engine: { rule: 'R3' } }, ['engine.kind: required']],
  // all at once
  ['many invalid fields', { ...portfolio([btc({ side: 'up', size_base: -1, mark_price: -5 }), { symbol: '', size_base: 'x' }], null), tick_at: 'now', marks: { ETH: 0 }, bars: { BTC: [0, -1, 'x'] } },
    ['bars.BTC[0]: out_of_range', 'bars.BTC[1]: out_of_range', 'bars.BTC[2]: wrong_type', 'marks.ETH: out_of_range', 'portfolio.equity_usd: required', `${p}[0].mark_price: out_of_range`, `${p}[0].side: not_a_choice`, `${p}[0].size_base: out_of_range`, `${p}[1].side: required`, `${p}[1].size_base: wrong_type`, `${p}[1].symbol: too_short`, 'tick_at: invalid_time']],
  ['all errors that involve several fields', { ...portfolio([btc(), btc({ size_base: exact('1e20') })], exact('1e20')), tick_at: later(365) }, ['portfolio.equity_usd: out_of_range', `${p}: duplicate_item`, `${p}[1].size_base: out_of_range`, 'tick_at: in_the_future']],
];

for (const [what, changes, expected] of FIELDS)
  test(`422: ${what}`, async () => {
    const answer = await refuse(tick(changes), 422, what);
    assert.equal(answer.json.code, 'invalid_fields');
    if (expected instanceof RegExp) assert.match(faults(answer).join(), expected);
    else assert.deepEqual(faults(answer), expected);
  });

const text = JSON.stringify(tick());
const MALFORMED = [
  ['NaN', text.replace('10000', 'NaN'), 'invalid_json'],
  ['Infinity', text.replace('10000', '-Infinity'), 'invalid_json'],
  ['a number with a plus', text.replace('10000', '+1'), 'invalid_json'],
  ['a number with a leading zero', text.replace('10000', '010'), 'invalid_json'],
  ['hexadecimal', text.replace('10000', '0x10'), 'invalid_json'],
  ['a number too large for a double', text.replace('10000', '1e400'), 'number_out_of_range'],
  ['a number too small for a double', text.replace('10000', '1e-400'), 'number_out_of_range'],
  ['a number of 65 digits', text.replace('10000', '1'.repeat(65)), 'number_out_of_range'],
  ['a repeated key', text.replace('"side"', '"symbol":"ETH","side"'), 'duplicate_key'],
  ['a symbol twice in marks', JSON.stringify(tick({ marks: { X: 1, Y: 2 } })).replace('"Y"', '"X"'), 'duplicate_key'],
  ['a symbol twice in bars', JSON.stringify(tick({ bars: { X: [1], Y: [2] } })).replace('"Y"', '"\\u0058"'), 'duplicate_key'],
  ['a NUL', text.replace('BTC', 'B\\u0000C'), 'null_character'],
  ['a truncated body', text.slice(0, -20), 'invalid_json'],
  ['two ticks', `${text}\n${text}`, 'invalid_json'],
  ['bytes that are not UTF-8', Buffer.from(text.replace('BTC', 'B\xffC'), 'latin1'), 'invalid_utf8'],
  ['nesting over the limit', text.replace('10000', `${'['.repeat(500)}${']'.repeat(500)}`), 'too_deep'],
];

for (const [what, body, code] of MALFORMED)
  test(`400: ${what}`, async () => {
    const answer = await refuse(body, 400, what);
    assert.equal(answer.json.code, code);
  });

test('413: a million bars', async () => {
  const body = JSON.stringify(tick({ bars: Object.fromEntries(many(200, (i) => [`S${i}`, many(5000, () => 1)])) }));
  assert.ok(body.length > 2_000_000);
  const answer = await refuse(body, 413, 'a million bars');
  assert.equal(answer.json.code, 'body_too_large');
});

test('415: another media type', async () => {
  const counts = await countRows(s.query);
  for (const type of ['text/plain', 'application/x-ndjson', undefined]) {
    const answer = await s.api.post(ticksPath(deployment), text, { headers: { 'content-type': type }, status: 415 });
    assert.equal(answer.json.code, 'unsupported_media_type');
  }
  assert.deepEqual(await countRows(s.query), counts);
});

test('values exactly at the limits are accepted', async () => {
  const id = await deploy(s.query);
  const taken = [
    tickOf(0, many(200, (i) => [`S${i}`, 'short', '99999999.5', '999999999'])),
    tickOf(1, many(200, (i) => [`S${i}`, 'long', '99999999.5', '999999999'])), // 400 ops
    tickOf(2, [], { marks: symbols(1000, 1), fees: many(1000, (i) => ({ symbol: `S${i}`, fees_usd: 1 })) }),
    tickOf(3, [['€'.repeat(64), 'long', '99999999999999999999', '1']], { proposed_action: { kind: 'x'.repeat(64), reason: 'r'.repeat(2000) }, engine: { kind: 'e'.repeat(64), rule: 'r'.repeat(64) } }),
    tickOf(24 * 60, [['€'.repeat(64), 'long', '1', '0.000000000000000001']], { bars: Object.fromEntries([['A', many(5000, () => 1)], ...many(199, (i) => [`S${i}`, []])]) }),
    { ...tickOf(later(0.99)), portfolio: { equity_usd: exact('-99999999999999999999.999999999999999999'), positions: [] } },
  ];
  const ops = [];
  for (const body of taken) ops.push((await post(s.api, id, body)).json.ops.length);
  assert.deepEqual(ops, [200, 400, 200, 1, 1, 1]);
});

test('a PnL of today that overflows is rejected', async () => {
  const id = await deploy(s.query);
  const short = many(3, (i) => [`S${i}`, 'short', '1', '1']);
  await post(s.api, id, tickOf(0, short));
  const answer = await post(s.api, id, tickOf(1, [], { marks: symbols(3, exact('50000000000000000000')) }), { status: 422 });
  assert.match(answer.json.errors[0].detail, /20 digits for the PnL of today$/);
  await post(s.api, id, tickOf(1, short));
});

test('a rejected tick can be corrected and sent again for the same instant', async () => {
  const id = await deploy(s.query);
  await post(s.api, id, tickOf(5, [['BTC', 'long', '-1', '100']]), { status: 422 });
  assert.equal((await post(s.api, id, tickOf(5, held))).json.replayed, false);
  await post(s.api, id, tickOf(6, [['BTC', 'long', '99999999999999999999', '200']]), { status: 422 });
  assert.equal((await post(s.api, id, tickOf(6, held))).json.ops[0].op, 'update_trade');
});
