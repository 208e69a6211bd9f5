// Reads the documents for the tests: the list of files, their fenced blocks, their links.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from '../lib/paths.mjs';

const DOCS = join(ROOT, 'docs');

/** Every Markdown file under docs/, by its path from the root. A new guide is found here. */
export const guides = readdirSync(DOCS, { recursive: true })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)
  .sort();

/** The guides and the documents at the root. */
export const documents = [...readdirSync(ROOT).filter((name) => name.endsWith('.md')), ...guides].sort();

export const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** The fenced blocks of a document: {language, code}. */
export const blocks = (text) => [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, code]) => ({ language, code }));

/** The blocks that a reader can paste and run; `console`, `sql` and others are for reading. */
export const runnable = (text) => blocks(text).filter(({ language }) => language === 'sh' || language === 'python');

const withoutBlocks = (text) => text.replace(/^```.*?^```$/gms, '');

/** The anchor that GitHub generates for a heading. */
const anchor = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const anchors = (text) => [...withoutBlocks(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading));

/** The broken links of a document: the target file or heading does not exist. */
export function brokenLinks(path) {
  const links = [...withoutBlocks(read(path)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target);
  return links.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [file, heading] = target.split('#');
    const full = file ? join(ROOT, dirname(path), file) : join(ROOT, path);
    if (!existsSync(full)) return true;
    return heading !== undefined && !anchors(read(relative(ROOT, full))).includes(heading);
  });
}

/** Lines of 110 columns or more. A row of a table and a line of an NDJSON body cannot be broken. */
export const longLines = (path) =>
  read(path)
    .split('\n')
    .filter((line) => line.length >= 110 && !/^(?:\||\{")/.test(line));
