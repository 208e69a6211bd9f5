// The table of settings in docs/configuration.md, which `daybookd settings` prints: `npm run settings` writes it there.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { CONFIGURATION, daybookd } from './paths.mjs';

const TABLE = /(?<=^<!-- settings: begin -->\n)[^]*?(?=^<!-- settings: end -->$)/m;

/** The table that the document has; undefined without its two markers. */
export const documentedSettings = () => readFileSync(CONFIGURATION, 'utf8').match(TABLE)?.[0];

/** The table as it must be. */
export const settingsTable = () => execFileSync(daybookd(), ['settings'], { encoding: 'utf8' });

if (process.argv[1] === import.meta.filename) {
  const table = settingsTable();
  writeFileSync(CONFIGURATION, readFileSync(CONFIGURATION, 'utf8').replace(TABLE, () => table));
  console.log(`${CONFIGURATION}: ${table.split('\n').length - 3} settings`);
}
