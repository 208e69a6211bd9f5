// Reads and checks the events of journals, for tests.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './paths.mjs';

export const ZEROS = '0'.repeat(64);

/** All events that match, as the list returns them; `text` is the NDJSON of their exact bytes. */
export async function eventsOf(api, query = '') {
  const items = [];
  const lines = [];
  for (let cursor = ''; cursor !== null; ) {
    const path = `/v1/memory_events?limit=200${query && `&${query}`}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { json, text } = await api.get(path, { status: 200 });
    items.push(...json.items);
    lines.push(...itemsOf(text));
    cursor = json.next_cursor;
  }
  return { items, text: lines.map((line) => `${line}\n`).join('') };
}

/** The items of a page as they stand in its text: each ends with its hash. */
const itemsOf = (text) => text.match(/\{"deployment_id":[^]*?"hash":"[0-9a-f]{64}"\}(?=[,\]])/g) ?? [];

/** The result of verifying one journal; `query` chooses it. */
export async function verify(api, query) {
  const { json } = await api.get(`/v1/memory_events/verify?${query}`, { status: 200 });
  assert.equal(json.items.length, 1);
  return json.items[0];
}

/** Asserts that a journal is gapless and whole; returns its events. */
export async function assertWhole(api, query, count) {
  const { items, text } = await eventsOf(api, query);
  if (count !== undefined) assert.equal(items.length, count);
  assert.deepEqual(items.map(({ seq }) => seq), items.map((_, i) => i + 1));
  items.forEach((item, i) => assert.equal(item.prev_hash, i ? items[i - 1].hash : ZEROS));
  const result = await verify(api, query);
  assert.deepEqual(result, { ...result, events: items.length, checked: items.length, pending: 0, ok: true, head: items.at(-1)?.hash ?? ZEROS, first_broken: null });
  const script = await verifyJournal(text, ['--head', result.head]);
  assert.equal(script.status, 0, script.stdout + script.stderr);
  return items;
}

/** Runs tools/verify-journal: {status, stdout, stderr}. */
export function verifyJournal(text, args = []) {
  return new Promise((resolve, reject) => {
    const child = spawn(join(ROOT, 'tools/verify-journal'), args);
    const out = { stdout: '', stderr: '' };
    for (const name of Object.keys(out)) child[name].setEncoding('utf8').on('data', (chunk) => (out[name] += chunk));
    child.on('error', reject).on('close', (status) => resolve({ status, ...out }));
    child.stdin.on('error', () => {}).end(text);
  });
}
