// The documents are consistent: links resolve, the table of contents is complete, the README stays short.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../lib/paths.mjs';
import { brokenLinks, documents, guides, longLines, read } from './guides.mjs';

test('every link between documents leads to an existing file and heading', () => {
  const broken = documents.flatMap((path) => brokenLinks(path).map((target) => `${path}: ${target}`));
  assert.deepEqual(broken, []);
});

test('every file and folder that ARCHITECTURE.md names exists', () => {
  const named = [...read('ARCHITECTURE.md').matchAll(/`((?:core|server|handlers|db|migrations|openapi|tools)\/[\w./]*)`/g)];
  assert.ok(named.length > 20);
  const missing = named.map(([, path]) => path).filter((path) => !existsSync(join(ROOT, path)));
  assert.deepEqual(missing, []);
});

test('the table of contents names every guide', () => {
  const contents = read('docs/README.md');
  const missing = guides.filter((path) => path !== 'docs/README.md' && !contents.includes(`](${path.slice('docs/'.length)})`));
  assert.deepEqual(missing, []);
});

test('the README has at most 150 lines', () => {
  assert.ok(read('README.md').trimEnd().split('\n').length <= 150);
});

test('the lines of the documents stay under 110 columns, tables aside', () => {
  const long = documents.flatMap((path) => longLines(path).map((line) => `${path}: ${line}`));
  assert.deepEqual(long, []);
});
