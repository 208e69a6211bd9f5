// Labels: written by name, replaced, deleted, and readable at any instant.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suite } from '../lib/suite.mjs';

const s = suite();
const at = (day) => `2026-01-0${day}T00:00:00Z`;
const put = (caption, day, status = 200) => s.api('PUT', '/v1/labels/desk', { body: { caption, at: at(day) }, status });

test('as_of shows a label as it was at each instant', async () => {
  assert.deepEqual((await put('Macro', 1)).json, { label: 'desk', caption: 'Macro', known_from: at(1) });
  await put('Rates', 3);
  assert.equal((await s.api.get('/v1/labels/desk', { status: 200 })).json.caption, 'Rates');
  assert.equal((await s.api.get(`/v1/labels/desk?as_of=${at(2)}`, { status: 200 })).json.caption, 'Macro');
});

test('a change dated before the last one is rejected', async () => {
  assert.equal((await put('Late', 2, 409)).json.code, 'time_order');
});

test('the same PUT twice stores one version', async () => {
  const history = async () => (await s.api.get('/v1/labels/desk/history', { status: 200 })).text;
  const before = await history();
  assert.deepEqual((await put('Rates', 3)).json, { label: 'desk', caption: 'Rates', known_from: at(3) });
  const later = await s.api('PUT', '/v1/labels/desk', { body: { caption: 'Rates' }, status: 200 });
  assert.equal(later.json.known_from, at(3));
  assert.equal(await history(), before);
});

test('another text at the same instant is rejected', async () => {
  assert.equal((await put('Other', 3, 409)).json.code, 'time_order');
});

test('a label can be deleted at the instant of its PUT', async () => {
  await s.api('PUT', '/v1/labels/brief', { body: { caption: 'Gone', at: at(1) }, status: 200 });
  await s.api('DELETE', `/v1/labels/brief?at=${at(1)}`, { status: 204 });
  await s.api.get(`/v1/labels/brief?as_of=${at(1)}`, { status: 404 });
});

test('a deleted label is gone from that instant on, and stays in the history', async () => {
  await s.api('DELETE', `/v1/labels/desk?at=${at(5)}`, { status: 204 });
  const missing = await s.api.get('/v1/labels/desk', { status: 404 });
  assert.match(missing.json.detail, /label desk/);
  const { items, next_cursor } = (await s.api.get('/v1/labels/desk/history?limit=1', { status: 200 })).json;
  const rest = (await s.api.get(`/v1/labels/desk/history?limit=1&cursor=${next_cursor}`, { status: 200 })).json;
  assert.deepEqual(
    [...items, ...rest.items].map(({ caption, known_until }) => [caption, known_until]),
    [
      ['Macro', at(3)],
      ['Rates', at(5)],
    ],
  );
});
