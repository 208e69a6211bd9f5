// Generates the files that the C build embeds: openapi/openapi.json from the YAML files, openapi/docs/ from the viewer's package.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bundle, readable } from './bundle.mjs';
import { DOCS, OPENAPI_JSON } from './paths.mjs';

const VIEWER = 'openapi-explorer';

/** The folder of a package, resolved from `from`. */
function folder(name, from) {
  const found = createRequire(from)
    .resolve.paths(`${name}/`)
    .map((p) => join(p, name))
    .find(existsSync);
  if (!found) throw new Error(`${name} is not installed: npm ci`);
  return found;
}

/** The licences of the viewer and of everything bundled into it. */
function licences() {
  const texts = new Map();
  const visit = (dir) => {
    const { name, version, license, dependencies = {} } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
    if (texts.has(name)) return;
    const file = readdirSync(dir).find((f) => /^licen[cs]e/i.test(f));
    const text = file ? readFileSync(join(dir, file), 'utf8').trimEnd() : '(no licence file; the package states the licence above)';
    texts.set(name, `${name} ${version}: ${license}\n\n${text}\n`);
    for (const dependency of Object.keys(dependencies)) visit(folder(dependency, join(dir, 'package.json')));
  };
  visit(folder(VIEWER, import.meta.filename));
  const [viewer, ...bundled] = [...texts.values()];
  return [viewer, ...bundled.sort()].join(`\n${'-'.repeat(80)}\n\n`);
}

/** Each generated file with its expected bytes. */
export function generated() {
  const script = join(folder(VIEWER, import.meta.filename), 'dist/browser/openapi-explorer.min.js');
  return new Map([
    [OPENAPI_JSON, Buffer.from(`${readable(bundle())}\n`)],
    [join(DOCS, 'viewer.js'), readFileSync(script)],
    [join(DOCS, 'LICENSE'), Buffer.from(licences())],
  ]);
}

if (process.argv[1] === import.meta.filename) {
  for (const [path, bytes] of generated()) {
    writeFileSync(path, bytes);
    console.log(`${path}: ${bytes.length} bytes`);
  }
}
