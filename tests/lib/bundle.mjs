// Bundles the contract from openapi/: the root file lists one file per resource, each with its paths and components.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { OPENAPI_YAML, PROJECT } from './paths.mjs';

const read = (path) => parse(readFileSync(path, 'utf8'));

/** The project version, shared by the binary and the contract. */
export const projectVersion = () => readFileSync(PROJECT, 'utf8').match(/^project\(\w+ VERSION ([\d.]+)/m)[1];

/** Adds the members of `more` to `all`; a duplicate name is an error. */
function add(all, more, what) {
  for (const [name, value] of Object.entries(more ?? {})) {
    if (all[name] !== undefined) throw new Error(`openapi: ${what} ${name} is defined twice`);
    all[name] = value;
  }
  return all;
}

/** The responses by status; inline success responses get the standard headers. */
function withStandardResponses(own, standard) {
  const all = { ...standard.responses, ...own };
  const complete = ([status, response]) =>
    status < '300' && !response.$ref ? [status, { ...response, headers: { ...standard.headers, ...response.headers } }] : [status, response];
  const entries = Object.entries(all).map(complete);
  return Object.fromEntries(entries.map(([status, { description, headers, ...rest }]) => [status, { description, headers, ...rest }]));
}

/** What an export takes from its list: parameters, the schema of an item, and an example of a line. */
function listed(list, components) {
  const page = list.responses[200].content['application/json'];
  const [first] = Object.values(page.examples).flatMap(({ value }) => value.items);
  return {
    parameters: list.parameters,
    items: components.schemas[page.schema.$ref.split('/').at(-1)].properties.items.items,
    examples: { ndjson: { summary: 'format=ndjson', value: `${JSON.stringify(first)}\n` } },
  };
}

/**
 * The export of a list, completed from the list that its x-list names: the parameters without those of pages, the items as lines, and the
 * standard's response. What the export defines itself takes precedence; x-without names parameters of the list that it does not take.
 */
function exported({ 'x-list': path, 'x-without': without = [], parameters = [], responses, ...own }, paths, components, standard) {
  const list = listed(paths[path].get, components);
  const named = (parameter) => (parameter.$ref ? components.parameters[parameter.$ref.split('/').at(-1)] : parameter).name;
  const left = new Set(['limit', 'cursor', ...without, ...parameters.map(named)]);
  const { description, content } = standard.exported;
  const { 'application/x-ndjson': lines, ...others } = content;
  return {
    ...own,
    description: `${own.description.trimEnd()}\n\n${standard.about}`,
    parameters: [
      ...(parameters.some((p) => named(p) === 'format') ? [] : [{ $ref: '#/components/parameters/ExportFormat' }]),
      ...parameters,
      ...list.parameters.filter((p) => !left.has(named(p))),
    ],
    responses: {
      200: {
        description,
        content: {
          'application/x-ndjson': {
            ...lines,
            'x-item-schema': list.items,
            examples: list.examples,
          },
          ...others,
          ...responses?.[200].content,
        },
      },
    },
  };
}

/** An operation expanded with the parameters and responses of its x-standard, and with its role in the description. */
function expanded(where, { 'x-standard': name, 'x-role': role, ...own }, standards) {
  const standard = standards[name];
  if (!standard) throw new Error(`openapi: ${where} names no standard: ${name}`);
  const { operationId, tags, summary, description, security = standard.security, parameters = [], requestBody, responses } = own;
  return {
    operationId,
    tags,
    summary,
    description: security ? description : `${description.trimEnd()}\n\nRole: \`${role}\`.\n`,
    'x-role': role,
    security,
    parameters: [...parameters, ...standard.parameters],
    requestBody,
    responses: withStandardResponses(responses, standard),
  };
}

/** The complete document, with x-files, x-standards and x-standard resolved. */
export function bundle() {
  const { 'x-files': names, ...root } = read(OPENAPI_YAML);
  const files = names.map((name) => read(join(dirname(OPENAPI_YAML), name)));
  const standards = files.reduce((all, file) => add(all, file['x-standards'], 'the standard'), {});
  const paths = files.reduce((all, file) => add(all, file.paths, 'the path'), {});
  const components = {};
  for (const file of files)
    for (const [kind, named] of Object.entries(file.components ?? {})) components[kind] = add(components[kind] ?? {}, named, kind);
  for (const item of Object.values(paths))
    if (item.get?.['x-list']) item.get = exported(item.get, paths, components, standards[item.get['x-standard']]);
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(item)) item[method] = expanded(`${method} ${path}`, operation, standards);
  return { ...root, info: { ...root.info, version: projectVersion() }, paths, components };
}

const WIDTH = 110;

/** JSON formatted for diffs: a value that fits stays on one line, any other has one line per member. */
export function readable(value, indent = '', used = 0) {
  const flat = JSON.stringify(value);
  if (value === null || typeof value !== 'object') return flat;
  const spaced = JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
  if (indent.length + used + spaced.length <= WIDTH) return spaced;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((item) => inner + readable(item, inner))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([key, member]) => `${inner}${JSON.stringify(key)}: ${readable(member, inner, key.length + 4)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}
