// What a careful team would write in an afternoon with Fastify and pg: the same three routes and SQL, with schemas for input and output.
import cluster from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import Fastify from 'fastify';
import pg from 'pg';

const { database, statements, keys } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const LATEST = '9999-12-31T23:59:59Z';
const CONNECTIONS = 16; // in total, as many as pgbench has clients

const text = (minLength, maxLength) => ({ type: 'string', minLength, maxLength });
const list = (minItems, maxItems, items) => ({ type: 'array', minItems, maxItems, items });
const nullable = (schema) => ({ ...schema, nullable: true });
const time = { type: 'string', format: 'date-time' };
const uuid = { type: 'string', format: 'uuid' };
const texts = { type: 'array', items: { type: 'string' } };

const lesson = {
  type: 'object',
  properties: {
    id: uuid,
    at: time,
    context: { type: 'string' },
    outcome: { type: 'string' },
    takeaway: { type: 'string' },
    tags: texts,
    evidence: texts,
    status: { type: 'string' },
    active: { type: 'boolean' },
    status_at: time,
    status_reason: nullable({ type: 'string' }),
    validation: nullable({ type: 'object', additionalProperties: true }),
    superseded_by: nullable({ type: 'string' }),
  },
};
const similar = { type: 'array', items: { type: 'object', properties: { id: uuid, score: { type: 'number' } } } };

const get = {
  params: { type: 'object', required: ['id'], properties: { id: uuid } },
  querystring: { type: 'object', additionalProperties: false, properties: { as_of: time } },
  response: { 200: lesson },
};
const page = {
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
      cursor: text(1, 200),
      tags: { type: 'string' },
      tags_all: { type: 'string' },
      status: { enum: ['proposed', 'validated', 'retired', 'superseded'] },
      active: { type: 'boolean' },
      text: text(1, 200),
      since: time,
      until: time,
      as_of: time,
    },
  },
  response: {
    200: {
      type: 'object',
      properties: { items: { type: 'array', items: lesson }, next_cursor: nullable({ type: 'string' }) },
    },
  },
};
const create = {
  body: {
    type: 'object',
    additionalProperties: false,
    required: ['takeaway', 'context', 'outcome', 'tags', 'evidence'],
    properties: {
      takeaway: { ...text(1, 300), pattern: '^[^\\n\\r]*$' },
      context: text(1, 2000),
      outcome: text(1, 2000),
      tags: list(1, 16, text(1, 64)),
      evidence: list(1, 32, text(1, 500)),
      at: time,
    },
  },
  response: { 201: { type: 'object', properties: { ...lesson.properties, similar } } },
};

/** A UUIDv7 like those of the service. Random ones would scatter the inserts over the index. */
function newId() {
  const ms = Date.now().toString(16).padStart(12, '0');
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(15)}`;
}

/** The service computes min-hashes; here those of another lesson are used. The database does the same work, this server less. */
const similarKeys = () => keys[Math.floor(Math.random() * keys.length)];

const readCursor = (cursor) => JSON.parse(Buffer.from(cursor, 'base64url'));
const writeCursor = (row) => Buffer.from(JSON.stringify([row._cursor_1, row._cursor_2])).toString('base64url');

async function serve() {
  const max = Math.ceil(CONNECTIONS / availableParallelism());
  // Statements with the same session settings share a pool.
  const pools = Object.fromEntries(
    Object.values(statements).map(({ options }) => [options, new pg.Pool({ ...database, options, max })]),
  );
  const run = (name, values) => {
    const { sql, params, options } = statements[name];
    return pools[options].query({ name, text: sql, values: params.map((param) => values[param] ?? null) });
  };
  const app = Fastify();

  app.get('/v1/lessons/:id', { schema: get }, async (request, reply) => {
    const { rows } = await run('get', { owner: 'local', id: request.params.id, as_of: request.query.as_of ?? LATEST });
    return rows.length ? rows[0] : reply.code(404).send({ code: 'not_found' });
  });

  app.get('/v1/lessons', { schema: page }, async (request) => {
    const { cursor, ...filter } = request.query;
    const [cursor_1, cursor_2] = cursor ? readCursor(cursor) : [];
    const lists = { tags: filter.tags?.split(','), tags_all: filter.tags_all?.split(',') };
    const { rows } = await run('list', { as_of: LATEST, ...filter, ...lists, owner: 'local', cursor_1, cursor_2 });
    const items = rows.slice(0, filter.limit);
    return { items, next_cursor: rows.length > items.length ? writeCursor(items.at(-1)) : null };
  });

  app.post('/v1/lessons', { schema: create }, async (request, reply) => {
    const { rows } = await run('create', {
      at: new Date(),
      ...request.body,
      owner: 'local',
      new_id: newId(),
      similar_keys: similarKeys(),
    });
    return reply.code(201).header('location', `/v1/lessons/${rows[0].id}`).send(rows[0]);
  });

  await app.listen({ host: '127.0.0.1', port: 0 });
  process.send(app.server.address().port);
}

if (cluster.isPrimary) {
  const workers = Array.from({ length: availableParallelism() }, () => cluster.fork());
  const ports = await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))));
  cluster.on('exit', () => process.exit(1));
  process.on('SIGTERM', () => {
    for (const worker of workers) worker.process.kill('SIGKILL');
    process.exit(0);
  });
  console.log(`listening on http://127.0.0.1:${ports[0]}`);
} else {
  process.on('disconnect', () => process.exit(0));
  await serve();
}
