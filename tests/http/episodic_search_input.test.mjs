// Invalid searches: each error names its field.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axis, store } from '../lib/searches.mjs';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare: () => store(s.api, { embedding: axis(3, 0), embedding_model: 'three' }) });
const post = (body, status) => s.api.post('/v1/episodic/search', body, { status });

const FIELDS = {
  'an empty search': [{}, ['text: required']],
  'an empty text': [{ text: '' }, ['text: too_short']],
  'a text of white space': [{ text: ' \n\t ' }, ['text: too_short']],
  'a text of 4,001 characters': [{ text: 'x'.repeat(4001) }, ['text: too_long']],
  'a text with a control character': [{ text: 'a\u0007' }, ['text: control_character']],
  'a text that is a number': [{ text: 5 }, ['text: wrong_type']],
  'a text and an entry': [{ text: 'a', id: UNKNOWN_ID }, ['id: not_together']],
  'a vector and an entry': [{ vector: [1], model: 'three', id: UNKNOWN_ID }, ['id: not_together']],
  'a vector without its model': [{ vector: [1, 0, 0] }, ['model: required']],
  'a model without a vector': [{ text: 'a', model: 'three' }, ['vector: required']],
  'a vector in mode text': [{ vector: [1, 0, 0], model: 'three', mode: 'text' }, ['text: required']],
  'an empty vector': [{ vector: [], model: 'three' }, ['vector: too_few']],
  'a vector of 4,001 numbers': [{ vector: axis(4001, 0), model: 'three' }, ['vector: too_many']],
  'a vector of another dimension': [{ vector: [1, 0], model: 'three' }, ['vector: invalid_vector']],
  "a vector of the service's model with another dimension": [{ vector: [1, 0], model: 'builtin-1' }, ['vector: invalid_vector']],
  'a vector of zeros': [{ vector: [0, 0, 0], model: 'three' }, ['vector: invalid_vector']],
  'a vector with a text': [{ vector: [1, '0', 0], model: 'three' }, ['vector[1]: wrong_type']],
  'a vector with null': [{ vector: [1, null, 0], model: 'three' }, ['vector[1]: wrong_type']],
  'a malformed ID': [{ id: 'abc' }, ['id: invalid_uuid']],
  'an unknown ID': [{ id: UNKNOWN_ID }, ['id: unknown_reference']],
  'k = 0': [{ text: 'a', k: 0 }, ['k: out_of_range']],
  'k = 101': [{ text: 'a', k: 101 }, ['k: out_of_range']],
  'k = 1.5': [{ text: 'a', k: 1.5 }, ['k: wrong_type']],
  'an unknown mode': [{ text: 'a', mode: 'fuzzy' }, ['mode: not_a_choice']],
  'an unknown filter': [{ text: 'a', symbol: 'BTC' }, ['symbol: unknown_field']],
  'an unknown source': [{ text: 'a', source: 'rumour' }, ['source: not_a_choice']],
  'a confidence above 1': [{ text: 'a', min_confidence: 1.01 }, ['min_confidence: out_of_range']],
  'a penalty above 1': [{ text: 'a', regime_penalty: 2 }, ['regime_penalty: out_of_range']],
  'a penalty below 0': [{ text: 'a', regime_penalty: -0.1 }, ['regime_penalty: out_of_range']],
  'an invalid time': [{ text: 'a', since: 'yesterday' }, ['since: invalid_time']],
  'regime_only without a regime': [{ text: 'a', regime_only: true }, ['regime: required']],
  'a regime of lists': [{ text: 'a', regime: { rates: ['cutting'] } }, ['regime.rates: wrong_type']],
  'a regime of 17 keys': [{ text: 'a', regime: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, i])) }, ['regime: too_many']],
  'a body with several invalid fields': [{ k: 0, mode: 'x', ticker: '' }, ['k: out_of_range', 'mode: not_a_choice', 'ticker: too_short']],
};
for (const [name, [body, expected]] of Object.entries(FIELDS))
  test(`${name} is rejected`, async () => {
    assert.deepEqual(faults(await post(body, 422)).toSorted(), expected.toSorted());
  });

const RAW = {
  'NaN in a vector': ['{"vector":[1,NaN,0],"model":"three"}', 400, 'invalid_json'],
  'Infinity in a vector': ['{"vector":[1,Infinity,0],"model":"three"}', 400, 'invalid_json'],
  'a number too large for a double': ['{"vector":[1,1e999,0],"model":"three"}', 400, 'number_out_of_range'],
  'a body that is not JSON': ['text=a', 400, 'invalid_json'],
  'a repeated key': ['{"text":"a","text":"b"}', 400, 'duplicate_key'],
  'a text of 1 MB': [JSON.stringify({ text: 'x'.repeat(1 << 20) }), 413, 'body_too_large'],
};
for (const [name, [body, status, code]] of Object.entries(RAW))
  test(`${name} is rejected`, async () => {
    assert.equal((await post(body, status)).json.code, code);
  });

test('a number too large for a float is an invalid vector', async () => {
  assert.deepEqual(faults(await post('{"vector":[1e300,0,0],"model":"three"}', 422)), ['vector: invalid_vector']);
});

test('a vector of any length is normalized', async () => {
  const [short, long] = await Promise.all([[1e-20, 0, 0], [1e18, 0, 0]].map((vector) => post({ vector, model: 'three' }, 200)));
  assert.equal(short.text, long.text);
  assert.equal(short.json.items[0].score, 1);
});

test('a search in an empty memory finds nothing', async () => {
  const { json } = await post({ text: 'anything', ticker: 'NONE' }, 200);
  assert.deepEqual(json.items, []);
});
