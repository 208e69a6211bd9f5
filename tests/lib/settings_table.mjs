// The settings table of docs/configuration.md. `daybookd settings` prints it, `npm run settings` writes it into the document.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { CONFIGURATION, daybookd } from './paths.mjs';

const TABLE = /(?<=^<!-- settings: begin -->\n)[^]*?(?=^<!-- settings: end -->$)/m;

/** The table in the document; undefined if its two markers are missing. */
export const documentedSettings = () => readFileSync(CONFIGURATION, 'utf8').match(TABLE)?.[0];

/** The expected table. */
export const settingsTable = () => execFileSync(daybookd(), ['settings'], { encoding: 'utf8' });

if (process.argv[1] === import.meta.filename) {
  const table = settingsTable();
  writeFileSync(CONFIGURATION, readFileSync(CONFIGURATION, 'utf8').replace(TABLE, () => table));
  console.log(`${CONFIGURATION}: ${table.split('\n').length - 3} settings`);
}
