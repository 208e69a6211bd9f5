// Checks responses of the service against the contract, openapi.json. A test proves that the file matches its YAML sources.
import { readFileSync } from 'node:fs';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { OPENAPI_JSON } from './paths.mjs';

export const openapi = JSON.parse(readFileSync(OPENAPI_JSON, 'utf8'));

const ajv = new Ajv({ allErrors: true, strict: false });
addFormats(ajv);
ajv.addSchema(openapi, 'openapi');

const escape = (key) => key.replaceAll('~', '~0').replaceAll('/', '~1');
const follow = (object) =>
  object?.$ref
    ? object.$ref
        .split('/')
        .slice(1)
        .reduce((at, key) => at[key], openapi)
    : object;

const validators = new Map(); // by schema object, because compiling a schema takes a thousand times as long as a validation

function validatorOf(schema) {
  if (!validators.has(schema))
    validators.set(schema, schema.$ref ? ajv.getSchema(`openapi${schema.$ref}`) : ajv.compile({ $id: undefined, ...absolute(schema) }));
  return validators.get(schema);
}

/** The violations of `schema` by `value` as text, or null. */
function wrongBy(schema, value) {
  const validate = validatorOf(schema);
  return validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: 'it' });
}

/** A copy with absolute references, so that it can be compiled separately. */
function absolute(schema) {
  if (Array.isArray(schema)) return schema.map(absolute);
  if (schema === null || typeof schema !== 'object') return schema;
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, key === '$ref' ? `openapi${value}` : absolute(value)]));
}

/** Every operation, fixed paths before templates. */
export const operations = Object.entries(openapi.paths)
  .flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })))
  .map((o) => ({ ...o, pattern: new RegExp(`^${o.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`) }))
  .sort((a, b) => a.path.split('{').length - b.path.split('{').length);

const NO_OPERATION = { responses: {} };
const PROBLEM = { schema: { $ref: '#/components/schemas/Problem' } };
const jsonOf = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

function wrongHeaders(documented, headers) {
  for (const [name, reference] of Object.entries(documented ?? {})) {
    const header = follow(reference);
    const value = headers[name.toLowerCase()];
    if (value === undefined) {
      if (header.required) return `the header ${name} is missing`;
      continue;
    }
    const wrong = wrongBy(header.schema, header.schema.type === 'integer' ? Number(value) : value);
    if (wrong) return `the header ${name} is "${value}": ${wrong}`;
  }
  return null;
}

function wrongProblem(problem, response, status, headers) {
  if (problem.status !== status) return `the problem says status ${problem.status}`;
  if (problem.type !== `urn:daybook:error:${problem.code}`) return `the problem of code ${problem.code} has type ${problem.type}`;
  if ((problem.code === 'invalid_fields') !== (problem.errors !== undefined))
    return `errors belongs to invalid_fields, not to ${problem.code}`;
  if (!headers['idempotency-replayed'] && problem.request_id !== headers['x-request-id']) return 'request_id is not X-Request-ID';
  const codes = response && Object.keys(response.content['application/problem+json'].examples);
  if (codes && !codes.includes(problem.code)) return `the code ${problem.code} is not documented for this status here (${codes})`;
  return null;
}

function wrongBody(response, { method, status, headers, text }) {
  const [type] = (headers['content-type'] ?? '').split(';');
  const isProblem = type === 'application/problem+json';
  if (method === 'HEAD') return text === '' ? null : 'HEAD has a body';
  if (response && !response.content) return text === '' ? null : `there is a body, none is documented: ${text.slice(0, 200)}`;
  const media = response ? response.content[type] : isProblem && PROBLEM;
  if (!media) return `the content type ${type} is not documented`;
  if (!type.endsWith('json') || type === 'application/x-ndjson') {
    if (!media['x-item-schema']) return null;
    if (text !== '' && !text.endsWith('\n')) return 'the last line does not end';
    for (const line of text.split('\n').slice(0, -1)) {
      const wrong = wrongBy(media['x-item-schema'], jsonOf(line));
      if (wrong) return `${wrong} in the line ${line}`;
    }
    return null;
  }
  const body = jsonOf(text);
  if (body === undefined) return 'the body is not JSON';
  return wrongBy(media.schema, body) ?? (isProblem ? wrongProblem(body, response, status, headers) : null);
}

/** An accepted request must be valid according to the contract. */
function wrongRequest(operation, { requestText, query }) {
  const media = operation.requestBody?.content['application/json'];
  if (media && (requestText || follow(operation.requestBody).required)) {
    const wrong = wrongBy(media.schema, jsonOf(requestText ?? ''));
    if (wrong) return `it took a body that the contract forbids: ${wrong}`;
  }
  const known = (operation.parameters ?? []).map(follow).filter((p) => p.in === 'query');
  const unknown = [...query.keys()].find((name) => !known.some((p) => p.name === name));
  return unknown === undefined ? null : `it took the query parameter ${unknown}, which the contract does not know`;
}

function wrongAnswer(exchange) {
  const { method, path, status, headers } = exchange;
  const url = new URL(path, 'http://service');
  const onPath = operations.filter((o) => o.pattern.test(url.pathname));
  const { operation } = onPath.find((o) => o.method === (method === 'HEAD' ? 'GET' : method)) ?? { operation: NO_OPERATION };

  if (!headers['x-request-id']) return 'the header X-Request-ID is missing';
  if (method === 'OPTIONS' && status === 204) return headers.allow ? wrongBody({}, exchange) : 'the header Allow is missing';
  // For a path or method that is not in the contract, only an error is right.
  const documented = operation.responses[status] ?? (status === 405 ? onPath[0]?.operation.responses[405] : undefined);
  if (!documented && operation !== NO_OPERATION) return 'the status is not documented';
  if (!documented && status < 400) return 'the contract knows no such operation, and it was taken';
  const response = follow(documented);
  return (
    wrongHeaders(response?.headers, headers) ??
    wrongBody(response, exchange) ??
    (status >= 200 && status < 300 && method !== 'HEAD' ? wrongRequest(operation, { ...exchange, query: url.searchParams }) : null)
  );
}

/** Throws unless the contract allows the response: {method, path, requestText, status, headers, text}. */
export function checkAnswer(exchange) {
  const wrong = wrongAnswer(exchange);
  if (!wrong) return;
  const { method, path, status, text } = exchange;
  throw new Error(`contract: ${method} ${path} answered ${status}: ${wrong}\n  ${text.slice(0, 1000)}`);
}
