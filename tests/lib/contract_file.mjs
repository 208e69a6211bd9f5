// openapi.yaml, parsed by the first that asks and kept as JSON: to parse it takes most of a second of every test file.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEPT, OPENAPI_YAML } from './paths.mjs';

/** The contract as an object. What is kept has the hash of the text in its name, so another text is never taken for this one. */
export async function readContract() {
  const text = readFileSync(OPENAPI_YAML, 'utf8');
  const kept = join(KEPT, `openapi-${createHash('sha256').update(text).digest('hex')}.json`);
  try {
    return JSON.parse(readFileSync(kept, 'utf8'));
  } catch {} // not there yet
  const { parse } = await import('yaml');
  const contract = parse(text);
  mkdirSync(KEPT, { recursive: true });
  writeFileSync(`${kept}.${process.pid}`, JSON.stringify(contract));
  renameSync(`${kept}.${process.pid}`, kept); // whole or not at all: others read at the same time
  return contract;
}
