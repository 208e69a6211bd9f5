// The contract and the service agree: routes, error codes, generated files, and the findings of external linters and testers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectVersion } from '../lib/bundle.mjs';
import { differences as checkDifferences } from '../lib/contract_checks.mjs';
import { openapi, operations } from '../lib/contract.mjs';
import { BEYOND_TABLES, differences, readContractFields, readTables } from '../lib/contract_fields.mjs';
import { generated } from '../lib/generate.mjs';
import { BIN, ERRORS_DEF, TESTS } from '../lib/paths.mjs';
import { run, until } from '../lib/processes.mjs';
import { command } from '../lib/service.mjs';
import { documentedSettings, settingsTable } from '../lib/settings_table.mjs';
import { suite } from '../lib/suite.mjs';
import { specmatic } from './specmatic.mjs';

const s = suite();

test('the binary and the contract have the same routes', async () => {
  const { code, stdout } = await command(['routes']);
  assert.equal(code, 0);
  assert.deepEqual(stdout.trim().split('\n').sort(), operations.map((o) => `${o.method} ${o.path}`).sort());
});

const tables = async () => {
  const { code, stdout } = await command(['fields']);
  assert.equal(code, 0);
  return readTables(stdout);
};

test('the field tables and the contract have the same limits', async () => {
  const { fields } = await tables();
  assert.ok(Object.values(fields).flatMap(Object.keys).length > 400);
  assert.deepEqual(differences(fields, readContractFields().fields), []);
  for (const [route, field] of BEYOND_TABLES)
    assert.ok(
      Object.entries(fields).some(([r, of]) => route.test(r) && Object.keys(of).some((name) => field.test(name))),
      `no field is meant by ${route} ${field} any more`,
    );
});

test('every operation names the role of its route, and the contract describes each role', async () => {
  const { roles } = await tables();
  assert.deepEqual(readContractFields().roles, roles);
  const described = [...openapi.info.description.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(described, ['reader', 'researcher', 'agent', 'admin']);
  for (const { path, operation } of operations) {
    assert.equal(operation['x-role'] === 'public', operation.security !== undefined, path);
    if (!operation.security) assert.ok(operation.description.endsWith(`Role: \`${operation['x-role']}\`.\n`), path);
  }
});

test('CHECK constraints of the database match the limits of the contract', async () => {
  const { compared, wrong } = await checkDifferences(s);
  assert.deepEqual(wrong, []);
  assert.ok(compared > 15, `only ${compared} limits were compared`);
});

test('the contract has the version of the binary', async () => {
  const { stdout } = await command(['--version']);
  assert.equal(stdout.split(' ')[1], openapi.info.version);
  assert.equal(openapi.info.version, projectVersion());
  assert.equal((await s.api.get('/version')).json.version, openapi.info.version);
});

test('the service and the contract have the same errors with the same statuses', () => {
  const table = readFileSync(ERRORS_DEF, 'utf8');
  const codes = [...table.matchAll(/^X\((\w+), (\d+),/gm)].map(([, name, status]) => [name.toLowerCase(), Number(status)]);
  const faults = [...table.matchAll(/^FAULT\((\w+)\)/gm)].map(([, name]) => name.toLowerCase());
  const { ErrorCode, FieldErrorCode } = openapi.components.schemas;
  assert.deepEqual([...ErrorCode.enum].sort(), codes.map(([name]) => name).sort());
  assert.deepEqual([...FieldErrorCode.enum].sort(), faults.sort());
  for (const response of Object.values(openapi.components.responses))
    for (const [name, { value }] of Object.entries(response.content?.['application/problem+json']?.examples ?? {})) {
      assert.equal(value.code, name);
      assert.equal(value.status, codes.find(([code]) => code === name)[1], name);
    }
});

/** Takes an Idempotency-Key, so it may conflict. */
const isOnce = (operation) => operation.parameters.some((p) => JSON.stringify(p).includes('Idempotency'));

test('every response schema is closed, and every operation lists its errors', () => {
  const open = [];
  const walk = (schema, path) => {
    if (schema === null || typeof schema !== 'object') return;
    if (schema.type === 'object' && schema.additionalProperties === undefined) open.push(path);
    for (const [key, value] of Object.entries(schema)) walk(value, `${path}/${key}`);
  };
  walk(openapi.components.schemas, '');
  for (const { path, operation } of operations) walk(operation.responses, path);
  assert.deepEqual(open, []);
  for (const { method, path, operation } of operations)
    for (const status of path.startsWith('/v1/')
      ? [400, 401, 403, 405, 422, 429, 431, 500, 503, 504, ...(method === 'POST' ? [408, 413, 415, ...(isOnce(operation) ? [409] : [])] : [])]
      : [405, 429, 431, 500, 503])
      assert.ok(operation.responses[status], `${method} ${path} does not tell ${status}`);
});

test('the generated files are up to date: npm run generate', () => {
  for (const [path, bytes] of generated()) assert.ok(readFileSync(path).equals(bytes), `${path} is not up to date`);
});

test('docs/configuration.md has the settings table that the binary prints: npm run settings', () => {
  assert.equal(documentedSettings(), settingsTable());
});

const env = { ...process.env, PATH: `${BIN}:${process.env.PATH}`, REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', REDOCLY_TELEMETRY: 'off' };

test('Spectral reports nothing', async () => {
  const { code, stdout, stderr } = await run(
    join(BIN, 'spectral'),
    ['lint', '--ruleset', 'contract/spectral.yaml', '--fail-severity', 'hint', '../openapi/openapi.json'],
    { cwd: TESTS, env },
  );
  assert.equal(code, 0, stdout + stderr);
});

test('Redocly reports nothing', async () => {
  const { code, stdout, stderr } = await run(
    join(BIN, 'redocly'),
    ['lint', '--config', 'contract/redocly.yaml', '../openapi/openapi.json'],
    { cwd: TESTS, env },
  );
  assert.equal(code, 0, stdout + stderr);
});

test('Specmatic finds no violation and no 5xx in a live service', async (t) => {
  const { alarms: known, sometimes } = JSON.parse(readFileSync(join(TESTS, 'contract/specmatic-known.json'), 'utf8'));
  await until(async () => (await s.api.get('/health/ready')).status === 200, 'it is ready');
  const { tests, requests, failures, output } = await specmatic(s.service.base, { seconds: 240 });
  assert.ok(tests.length > 150 && requests >= tests.length, `only ${tests.length} tests:\n${output.slice(-3000)}`);
  assert.deepEqual(failures, [], 'responses with status 500 or above');
  const alarms = tests.filter(({ failure }) => failure);
  const isKnown = ({ name, failure }) => [...known, ...sometimes].some((k) => new RegExp(k.test).test(name) && new RegExp(k.failure).test(failure));
  assert.deepEqual(
    alarms.filter((alarm) => !isKnown(alarm)).map(({ name, failure }) => `${name}\n${failure.slice(0, 600)}`),
    [],
  );
  for (const k of known)
    assert.ok(
      alarms.some(({ name }) => new RegExp(k.test).test(name)),
      `a known failure that no longer occurs: ${k.test}`,
    );
  t.diagnostic(`${tests.length} tests, ${alarms.length} known alarms`);
});
