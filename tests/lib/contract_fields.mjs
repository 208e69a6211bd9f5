// Converts the field tables of the service (`daybookd fields`) and the fields of the contract to one form, to compare every limit.
import { openapi, operations } from './contract.mjs';

const NAME = openapi.components.schemas.Name.pattern;
const KEY = openapi.components.schemas.FactKey.pattern;

/** The object without members that have no effect. */
const tidy = (facts) => Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined && value !== ''));
const numberOf = (text) => (text === '' ? undefined : Number(text));
/** A lower limit of 0 has no effect on a length or a count. */
const above0 = (limit) => (limit > 0 ? limit : undefined);

const lengths = ({ min, max }) => ({ minLength: above0(min), maxLength: max });
const counts = ({ min, max }) => ({ minItems: above0(min), maxItems: max });
const range = ({ min, max, above_zero }) => (above_zero ? { exclusiveMinimum: 0, maximum: max } : { minimum: min, maximum: max });
const item = (facts) => Object.fromEntries(Object.entries(facts).map(([key, value]) => [`items.${key}`, value]));

const lineOf = (max) => ({ type: 'string', minLength: 1, maxLength: max });
const listOf = (text) => (text === '' ? undefined : text.split(','));

/** What the contract must say about a field of each kind. */
const EXPECTED = {
  text: (f) => ({ type: 'string', ...lengths(f) }),
  line: (f) => ({ type: 'string', ...lengths(f) }),
  int: (f) => ({ type: 'integer', ...range(f), default: numberOf(f.fallback) }),
  number: (f) => ({ type: 'number', ...range(f), default: numberOf(f.fallback) }),
  bool: (f) => ({ type: 'boolean', default: f.fallback === '' ? undefined : f.fallback === 'true' }),
  time: () => ({ type: 'string', format: 'date-time' }), // its default is the current time, which no schema can state
  uuid: () => ({ type: 'string', format: 'uuid' }),
  name: () => ({ type: 'string', pattern: NAME }),
  key: (f) => ({ type: 'string', maxLength: f.max, pattern: KEY, default: f.fallback }),
  choice: (f) => ({ type: 'string', enum: f.choices, default: f.fallback }),
  texts: (f) => ({ type: 'array', ...counts(f), uniqueItems: true, ...item(lineOf(f.item_max)), default: listOf(f.fallback) }),
  tags: (f) => ({ type: 'array', ...counts(f), uniqueItems: true, ...item(f.choices ? { type: 'string', enum: f.choices } : lineOf(f.item_max)), default: listOf(f.fallback) }),
  numbers: (f) => ({ type: 'array', ...counts(f), ...item({ type: 'number', exclusiveMinimum: f.above_zero ? 0 : undefined }) }),
  uuids: (f) => ({ type: 'array', ...counts(f), uniqueItems: true, ...item({ type: 'string', format: 'uuid' }) }),
  object: () => ({ type: 'object' }),
  objects: (f) => ({ type: 'array', ...counts(f), ...item({ type: 'object' }) }),
  map: (f) => ({ type: 'object', minProperties: above0(f.min), maxProperties: f.max }),
  scalar: (f) => ({ type: 'boolean,number,string', ...lengths(f) }),
  json: () => ({ type: 'array,boolean,number,object,string' }), // its limit counts bytes, which no schema can state
  cursor: () => ({ type: 'string', minLength: 1, maxLength: 512 }), // every cursor of the service is shorter
};

const ONE_OF = (...names) => ({ 'items.enum': names, 'items.minLength': undefined, 'items.maxLength': undefined });
const HASH = (pattern) => ({ pattern, minLength: undefined, maxLength: undefined });
const SLOTS = ONE_OF('entry_timing', 'sizing', 'symbol_selection', 'exit_timing', 'regime_fit');

/** Rules that a field table cannot state because a handler or a statement applies them: [route, field, expected facts]; later ones win. */
export const BEYOND_TABLES = [
  [/ticks|materialize/, /^(body|line) (next\.)?lessons_hash$/, HASH('^([0-9a-f]{16}|none)$')],
  [/materialize/, /^body lessons_hash$|\.entry_lessons_hash$/, HASH('^[0-9a-f]{16}$')],
  [/materialize/, /\.mae_usd$/, { maximum: 0 }],
  [/reflect$|lessons_segment/, / suppress$/, SLOTS],
  [/evict/, / policies$/, ONE_OF('time', 'size', 'relevance')],
  [/PUT .*versions/, / memory\.enabled$/, { default: true }], // set by the statement, because `memory` itself may be absent
  [/PUT .*versions/, / memory\.recent_trades_k$/, { default: 10 }],
  [/PUT .*versions/, /\.reflection\.cadence$/, { default: 'off' }],
  [/PUT .*versions/, /\.reflection\.every_n_trades$/, { default: 10 }],
  [/PATCH .*theses/, / text$/, { null: false }], // null would clear it
];

/** Members of a map that the contract lists by name, because they have a special meaning. */
const KNOWN_MEMBERS = { new_signals: { new_filing_since: { type: 'boolean' }, guidance_update_since: { type: 'boolean' } } };

/** The lines of `daybookd fields` as {roles, fields}: both by "METHOD /path", fields by "from field". */
export function readTables(text) {
  const [head, ...lines] = text.replace(/\n$/, '').split('\n').map((line) => line.split('\t'));
  const [roles, fields] = [{}, {}];
  for (const cells of lines) {
    const row = Object.fromEntries(head.map((name, i) => [name, cells[i]]));
    const route = `${row.method} ${row.path}`;
    fields[route] ??= {};
    if (row.field === '-') roles[route] = row.role;
    else fields[route][`${row.from} ${row.field}`] = beyondTable(route, `${row.from} ${row.field}`, expected(row));
    for (const [name, facts] of Object.entries(KNOWN_MEMBERS[row.field] ?? {})) fields[route][`${row.from} ${row.field}{${name}}`] = facts;
  }
  return { roles, fields };
}

function beyondTable(route, field, facts) {
  const rules = BEYOND_TABLES.filter(([routes, fields]) => routes.test(route) && fields.test(field));
  return tidy(Object.assign({}, facts, ...rules.map(([, , said]) => said)));
}

function expected({ field, from, kind, required, above_zero, min, max, item_max, choices, fallback }) {
  const numbers = { min: numberOf(min), max: numberOf(max), item_max: numberOf(item_max) };
  const facts = EXPECTED[kind]({ ...numbers, above_zero: above_zero !== '', choices: choices ? choices.split(',') : undefined, fallback });
  if (field.endsWith('{name}') || field.endsWith('{}')) return tidy(facts); // a member of a map is never absent
  return tidy({ ...facts, ...presence(from, required !== '') });
}

/** In a body, null means the same as an absent optional field. */
const presence = (from, required) => ({ required, null: from === 'body' || from === 'line' ? !required : undefined });

/** The schema with its references resolved and the limits beside them merged. */
function resolved(schema) {
  if (!schema.$ref) return schema;
  const { $ref, ...beside } = schema;
  const target = $ref.split('/').slice(1).reduce((at, key) => at[key], openapi);
  return { ...resolved(target), ...beside };
}

/** {schema, nullable}: the schema without `null` in its type, oneOf or anyOf. */
function withoutNull(given) {
  const schema = resolved(given);
  for (const key of ['oneOf', 'anyOf']) {
    const choices = schema[key]?.map(resolved);
    if (choices?.length !== 2 || !choices.some((c) => c.type === 'null')) continue;
    const { [key]: _, ...beside } = schema;
    return { schema: { ...choices.find((c) => c.type !== 'null'), ...beside }, nullable: true };
  }
  const types = [schema.type].flat();
  return {
    schema: { ...schema, type: types.filter((t) => t !== 'null').sort().join(), enum: schema.enum?.filter((value) => value !== null) },
    nullable: types.includes('null') && (!schema.enum || schema.enum.includes(null)),
  };
}

const LIMITS = ['type', 'format', 'pattern', 'enum', 'default', 'minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum']
  .concat(['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'])
  .concat(['exclusiveMaximum', 'multipleOf', 'const', 'oneOf', 'anyOf', 'allOf', 'not']); // field tables have no equivalent
const COUNTS = ['minLength', 'minItems', 'minProperties'];
const limitsOf = (schema) =>
  Object.fromEntries(LIMITS.filter((name) => !(COUNTS.includes(name) && schema[name] === 0)).map((name) => [name, schema[name]]));

function addField(fields, from, name, given, extra) {
  const { schema, nullable } = withoutNull(given);
  const facts = { ...limitsOf(schema), ...extra(nullable) };
  if (schema.type === 'array') {
    const items = withoutNull(schema.items).schema;
    Object.assign(facts, item(limitsOf(items)));
    if (items.type === 'object') addMembers(fields, from, `${name}[].`, items);
  } else if (schema.type === 'object' && schema.additionalProperties === false) addMembers(fields, from, `${name}.`, schema);
  else if (schema.type === 'object') {
    for (const [known, member] of Object.entries(schema.properties ?? {})) addField(fields, from, `${name}{${known}}`, member, () => ({}));
    addField(fields, from, `${name}{name}`, { type: 'string', ...schema.propertyNames }, () => ({}));
    addField(fields, from, `${name}{}`, schema.additionalProperties, () => ({}));
  }
  fields[`${from} ${name}`] = tidy(facts);
}

function addMembers(fields, from, prefix, schema) {
  for (const [name, member] of Object.entries(schema.properties)) {
    const required = schema.required?.includes(name) ?? false;
    addField(fields, from, prefix + name, member, (nullable) => ({ required, null: nullable }));
  }
}

function fieldsOf({ parameters, requestBody }) {
  const fields = {};
  for (const parameter of parameters.map(resolved))
    if (parameter.in !== 'header')
      addField(fields, parameter.in, parameter.name, parameter.schema, () => ({ required: parameter.required ?? false }));
  const { 'application/json': body, 'application/x-ndjson': lines } = requestBody?.content ?? {};
  if (body) addMembers(fields, 'body', '', resolved(body.schema));
  if (lines) addMembers(fields, 'line', '', resolved(lines['x-item-schema']));
  return fields;
}

/** The members of an object schema by dotted name. */
export function flatFields(schema) {
  const fields = {};
  addMembers(fields, 'body', '', schema);
  return Object.fromEntries(Object.entries(fields).map(([name, facts]) => [name.slice('body '.length), facts]));
}

const byRoute = (fact) => Object.fromEntries(operations.map(({ method, path, operation }) => [`${method} ${path}`, fact(operation)]));

/** The contract in the same form: {roles, fields}. */
export const readContractFields = () => ({ roles: byRoute((operation) => operation['x-role']), fields: byRoute(fieldsOf) });

/** One line per difference; empty if both agree. */
export function differences(tables, contract) {
  const found = [];
  for (const route of new Set([...Object.keys(tables), ...Object.keys(contract)]))
    for (const field of new Set([...Object.keys(tables[route] ?? {}), ...Object.keys(contract[route] ?? {})])) {
      const [table, said] = [tables[route]?.[field], contract[route]?.[field]];
      if (!table || !said) found.push(`${route} ${field}: only in the ${table ? 'field table' : 'contract'}`);
      else
        for (const fact of new Set([...Object.keys(table), ...Object.keys(said)])) {
          const [a, b] = [JSON.stringify(table[fact]), JSON.stringify(said[fact])];
          if (a !== b) found.push(`${route} ${field}: ${fact} is ${a} in the field table, ${b} in the contract`);
        }
    }
  return found;
}
