// Request bodies: each kind of defect has its own error code, and a rejected body stores nothing.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { exchange } from '../lib/client.mjs';
import { faults, newLesson } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ args: ['--max-body-bytes', '20000', '--max-json-depth', '8'] });

afterEach(async () => {
  assert.deepEqual((await s.api.get('/v1/lessons', { status: 200 })).json.items, [], 'a rejected request stored something');
});

const good = newLesson();
const goodText = JSON.stringify(good);
const post = (body, options) => s.api.post('/v1/lessons', body, options);

async function refused(body, status, code) {
  const answer = await post(body, { status });
  assert.equal(answer.json.code, code);
}

test('a body that is not JSON is invalid_json', async () => {
  for (const body of [
    '',
    ' ',
    '{',
    '{"a":1',
    `${goodText}x`,
    `${goodText}${goodText}`,
    "{'a':1}",
    '{"a":1,}',
    '{a:1}',
    '// {}',
    '{"a":01}',
    '{"a":.5}',
    '{"a":+1}',
    '{"a":"\t"}',
    '{"a":"\\x"}',
  ])
    await refused(body, 400, 'invalid_json');
});

test('NaN and Infinity are invalid_json', async () => {
  for (const value of ['NaN', '-NaN', 'Infinity', '-Infinity', 'nan'])
    await refused(goodText.replace('}', `,"at":${value}}`), 400, 'invalid_json');
});

test('a lone surrogate is rejected', async () => {
  for (const escape of ['\\ud800', '\\udc00', '\\ud800a']) {
    const answer = await post(goodText.replace('Case', escape), { status: 400 });
    assert.ok(['invalid_json', 'invalid_utf8'].includes(answer.json.code), answer.json.code);
  }
});

test('a repeated key is duplicate_key, at any depth', async () => {
  await refused(goodText.replace('{', '{"context":"x",'), 400, 'duplicate_key');
  await refused(goodText.replace('{', '{"c\\u006fntext":"x",'), 400, 'duplicate_key');
  await refused('{"context":{"a":1,"a":1}}', 400, 'duplicate_key');
});

test('bytes that are not UTF-8 are invalid_utf8', async () => {
  for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
    const [before, after] = goodText.split('Case');
    await refused(Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]), 400, 'invalid_utf8');
  }
});

test('a NUL character is null_character, in a text and in a key', async () => {
  await refused(goodText.replace('Case', 'a\\u0000b'), 400, 'null_character');
  await refused(goodText.replace('{', '{"a\\u0000":1,'), 400, 'null_character');
});

test('nesting over the limit is too_deep, however small or large the body', async () => {
  const nested = (depth) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  await refused(nested(9), 400, 'too_deep');
  await refused('['.repeat(19_000), 400, 'too_deep');
  assert.deepEqual(faults(await post(nested(8), { status: 422 })).includes('a: unknown_field'), true);
});

test('a number that no double can hold is number_out_of_range', async () => {
  await refused(goodText.replace('{', '{"a":1e999,'), 400, 'number_out_of_range');
  await refused(goodText.replace('{', '{"a":-1e400,'), 400, 'number_out_of_range');
});

test('a body over the limit is 413 body_too_large, with Content-Length or chunked', async () => {
  const large = JSON.stringify({ ...good, context: 'x'.repeat(20_001) });
  await refused(large, 413, 'body_too_large');
  const chunked = await s.api.post('/v1/lessons', large, { headers: { 'content-length': undefined, 'transfer-encoding': 'chunked' } });
  assert.equal(chunked.status, 413);
  assert.equal(chunked.json.code, 'body_too_large');
});

test('a rejected body is drained so that a client that is still writing sees the error', async () => {
  const large = Buffer.alloc(3_000_000, 'x');
  for (const [path, type, status] of [
    ['/v1/lessons', 'application/json', 413],
    ['/v1/lessons', 'text/plain', 413],
    ['/v1/nowhere', 'application/json', 404],
    ['/v1/lessons/block', 'application/json', 405],
  ])
    for (let i = 0; i < 5; i++) {
      const answer = await s.api.post(path, large, { headers: { 'content-type': type }, status, check: false });
      assert.notEqual(answer.headers.connection, 'close');
    }
});

test('a Content-Length far over the limit is rejected before the body is sent', async () => {
  const head = 'POST /v1/lessons HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n';
  const answer = await exchange(s.service.port, head, { method: 'POST', path: '/v1/lessons' });
  assert.equal(answer.status, 413);
});

test('a media type other than JSON is 415 unsupported_media_type', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', undefined])
    assert.equal((await post(goodText, { headers: { 'content-type': type }, status: 415 })).json.code, 'unsupported_media_type');
});

test('a compressed body is 415 unsupported_media_type', async () => {
  for (const encoding of ['gzip', 'br', 'gzip, identity'])
    assert.equal((await post(goodText, { headers: { 'content-encoding': encoding }, status: 415 })).json.code, 'unsupported_media_type');
});

test('the top level of a body must be an object', async () => {
  for (const body of ['[]', '1', '"a"', 'null', 'true']) {
    const answer = await post(body);
    assert.ok([400, 422].includes(answer.status), `${body}: ${answer.status}`);
  }
});

test('all invalid fields are reported together', async () => {
  const answer = await post(
    { context: '', outcome: 'x'.repeat(2001), takeaway: 'one\ntwo', tags: [], evidence: ['ok', '', 'ok', 7], at: 'today', extra: true },
    { status: 422 },
  );
  assert.equal(answer.json.code, 'invalid_fields');
  assert.deepEqual(faults(answer), [
    'at: invalid_time',
    'context: too_short',
    'evidence[1]: too_short',
    'evidence[2]: duplicate_item',
    'evidence[3]: wrong_type',
    'extra: unknown_field',
    'outcome: too_long',
    'tags: too_few',
    'takeaway: several_lines',
  ]);
});

test('all missing fields are reported together', async () => {
  assert.deepEqual(faults(await post({}, { status: 422 })), [
    'context: required',
    'evidence: required',
    'outcome: required',
    'tags: required',
    'takeaway: required',
  ]);
});

test('a value of the wrong type is wrong_type', async () => {
  const answer = await post({ context: 1, outcome: true, takeaway: ['a'], tags: 'a', evidence: {}, at: 5 }, { status: 422 });
  assert.deepEqual(faults(answer), [
    'at: wrong_type',
    'context: wrong_type',
    'evidence: wrong_type',
    'outcome: wrong_type',
    'tags: wrong_type',
    'takeaway: wrong_type',
  ]);
});

test('null means the same as an absent field', async () => {
  assert.deepEqual(faults(await post({ ...good, context: null, at: null }, { status: 422 })), ['context: required']);
});

test('an error does not echo large or hostile input', async () => {
  const answer = await post({ ...good, ['k'.repeat(5000)]: 1 }, { status: 422 });
  assert.ok(answer.bytes.length < 4000, `${answer.bytes.length} bytes`);
  assert.ok((await post({ ...good, ['"\\<&\u2028']: 1 }, { status: 422 })).json.errors[0].field.length > 0);
});

test('thousands of invalid fields yield a bounded response', async () => {
  const answer = await post(Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`f${i}`, 1])), { status: 422 });
  assert.ok(answer.json.errors.length <= 100);
});
