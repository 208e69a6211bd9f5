// ETags: a caller with the current response gets 304, and the new response as soon as it changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const withTag = (etag) => ({ headers: { 'if-none-match': etag } });

test('an unchanged lesson is 304 without a body, a changed one 200', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const path = `/v1/lessons/${id}`;
  const { headers, text } = await s.api.get(path, { status: 200 });
  const same = await s.api.get(path, { ...withTag(headers.etag), status: 304 });
  assert.equal(same.headers.etag, headers.etag);
  assert.equal(same.bytes.length, 0);
  await s.api.post(`${path}/validate`, { outcome: OUTCOME, at: day(2) }, { status: 200 });
  const changed = await s.api.get(path, { ...withTag(headers.etag), status: 200 });
  assert.notEqual(changed.headers.etag, headers.etag);
  assert.notEqual(changed.text, text);
  const before = await s.api.get(`${path}?as_of=${day(1)}`, { status: 200 });
  assert.equal(before.text, text);
  assert.equal(before.headers.etag, headers.etag);
});

test('If-None-Match accepts lists, weak tags and *', async () => {
  const { headers } = await s.api.get('/v1/lessons/block', { status: 200 });
  for (const value of [`"x", ${headers.etag}`, `W/${headers.etag.replace(/^W\//, '')}`, '*'])
    await s.api.get('/v1/lessons/block', { ...withTag(value), status: 304 });
  for (const value of ['"x"', headers.etag.replaceAll('"', ''), ''])
    await s.api.get('/v1/lessons/block', { ...withTag(value), status: 200 });
});

test('the block keeps its ETag and bytes until one of its lessons changes', async () => {
  const tag = 'kept';
  const { id } = await create(s.api, { tags: [tag], at: day(3) });
  const path = `/v1/lessons/block?tags=${tag}`;
  const first = await s.api.get(path, { status: 200 });
  await create(s.api, { tags: ['other'], at: day(4) });
  await s.api.get(path, { ...withTag(first.headers.etag), status: 304 });
  await s.api('HEAD', path, { ...withTag(first.headers.etag), status: 304 });
  await s.api.post(`/v1/lessons/${id}/retire`, { reason: 'done', at: day(5) }, { status: 200 });
  const last = await s.api.get(path, { ...withTag(first.headers.etag), status: 200 });
  assert.notEqual(last.text, first.text);
});

test('the JSON and plain text forms of a block have different ETags', async () => {
  const json = await s.api.get('/v1/lessons/block', { status: 200 });
  const plain = await s.api.get('/v1/lessons/block', { headers: { accept: 'text/plain' }, status: 200 });
  assert.notEqual(json.headers.etag, plain.headers.etag);
  await s.api.get('/v1/lessons/block', { headers: { accept: 'text/plain', 'if-none-match': json.headers.etag }, status: 200 });
});
