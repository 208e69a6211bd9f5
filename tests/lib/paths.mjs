// Paths of the repository for the tests.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export const ROOT = at('');
export const TESTS = at('tests/');
export const PROJECT = at('CMakeLists.txt');
export const OPENAPI_YAML = at('openapi/openapi.yaml');
export const OPENAPI_JSON = at('openapi/openapi.json');
export const DOCS = at('openapi/docs/');
export const CONFIGURATION = at('docs/configuration.md');
export const ERRORS_DEF = at('server/errors.def');
/** Files that are created once and shared by all test files. */
export const CACHE = at('build/test/kept/');
export const BIN = at('tests/node_modules/.bin/');

/** The binary under test: $DAYBOOKD, else the newest existing build. */
export function daybookd() {
  const found = [process.env.DAYBOOKD, at('build/asan/daybookd'), at('build/release/daybookd')].find((p) => p && existsSync(p));
  if (!found) throw new Error('no daybookd: set DAYBOOKD, or build into build/asan or build/release');
  return found;
}
