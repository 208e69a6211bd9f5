// Reads Parquet with two readers that share no code, and compares the rows with an NDJSON export, value by value.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { asyncBufferFromFile, parquetMetadata, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

/** The members of a JSON object as {name: text}, each value as it is written. */
export function membersOf(line) {
  const members = {};
  let at = 1;
  const string = () => {
    for (at++; line[at] !== '"'; at++) if (line[at] === '\\') at++;
    at++;
  };
  while (line[at] !== '}') {
    const name = at;
    string();
    const key = JSON.parse(line.slice(name, at));
    const value = ++at;
    for (let depth = 0; depth > 0 || (line[at] !== ',' && line[at] !== '}'); ) {
      if (line[at] === '"') {
        string();
        continue;
      }
      if (line[at] === '{' || line[at] === '[') depth++;
      if (line[at] === '}' || line[at] === ']') depth--;
      at++;
    }
    members[key] = line.slice(value, at);
    if (line[at] === ',') at++;
  }
  return members;
}

/** Microseconds since 1970 of a time as the service writes it. */
export function microsOf(text) {
  const [, seconds, fraction = ''] = text.match(/^(.{19})(?:\.(\d+))?Z$/);
  return BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0'));
}

const TYPES = {
  VARCHAR: 'text',
  JSON: 'json',
  'TIMESTAMP WITH TIME ZONE': 'time',
  BOOLEAN: 'bool',
  INTEGER: 'int',
  BIGINT: 'int',
  DOUBLE: 'double',
};

/** The value of DuckDB or hyparquet in one form: times as microseconds, JSON as text or parsed, integers as BigInt. */
const plain = {
  text: (value) => value,
  json: (value) => value,
  time: (value) => (typeof value === 'object' ? value.micros : value),
  bool: (value) => value,
  int: BigInt,
  double: (value) => value,
};

/** Runs `work` with a connection of a new DuckDB. */
async function duckdb(work) {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const typesOf = (described) => described.map(([name, type]) => ({ name, type: TYPES[type] ?? type }));
const plainRow = (columns, row) => row.map((value, i) => (value === null ? null : plain[columns[i].type](value)));

/** {columns: [{name, type}], rows: [[value]]} by DuckDB. JSON stays text. */
export async function readDuckdb(bytes) {
  const folder = await mkdtemp(join(tmpdir(), 'daybook-parquet-'));
  try {
    const file = join(folder, 'export.parquet');
    writeFileSync(file, bytes);
    return await duckdb(async (connection) => {
      const columns = typesOf((await connection.runAndReadAll(`describe select * from '${file}'`)).getRows());
      const rows = (await connection.runAndReadAll(`select * from '${file}'`)).getRows();
      return { columns, rows: rows.map((row) => plainRow(columns, row)) };
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The rows of a large file one by one, as {columns, row}, by DuckDB. */
export async function* duckdbRows(file) {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const columns = typesOf((await connection.runAndReadAll(`describe select * from '${file}'`)).getRows());
  const result = await connection.stream(`select * from '${file}'`);
  for (let chunk; (chunk = await result.fetchChunk()) && chunk.rowCount > 0; )
    for (const row of chunk.getRows()) yield { columns, row: plainRow(columns, row) };
  connection.closeSync();
  instance.closeSync();
}

const MICROS = { timestampFromMicroseconds: (micros) => micros };
const hyparquetRow = (columns, row) => columns.map(({ name, type }) => (row[name] === null ? null : plain[type](row[name])));

/** The rows of bytes by hyparquet, with the types that DuckDB named. JSON is parsed. */
export async function readHyparquet(bytes, columns) {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  assert.deepEqual(
    parquetSchema(parquetMetadata(file)).children.map(({ element }) => element.name),
    columns.map(({ name }) => name),
  );
  const read = await parquetReadObjects({ file, compressors, parsers: MICROS });
  return read.map((row) => hyparquetRow(columns, row));
}

/** The rows of a large file one by one, by hyparquet. */
export async function* hyparquetRows(path) {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  let start = 0;
  const columns = await namesOf(path);
  for (const { num_rows } of metadata.row_groups) {
    const end = start + Number(num_rows);
    for (const row of await parquetReadObjects({ file, metadata, compressors, parsers: MICROS, rowStart: start, rowEnd: end }))
      yield hyparquetRow(columns, row);
    start = end;
  }
}

const namesOf = (path) => duckdb(async (connection) => typesOf((await connection.runAndReadAll(`describe select * from '${path}'`)).getRows()));

/** What a cell must be, from the members of a line. */
function expected({ name, type }, members, columns) {
  const own = members[name.replace(/_double$/, '')];
  const decimal = columns.some((c) => c.name === `${name}_double`);
  const raw = name in members ? members[name] : own;
  if (raw === 'null') return null;
  if (type === 'time') return microsOf(JSON.parse(raw));
  if (type === 'int') return BigInt(raw);
  if (type === 'json' || decimal) return raw;
  return type === 'double' ? Number(raw) : JSON.parse(raw);
}

/** What the cells of a row must be, from its line. */
export function cellsOf(columns, line) {
  const members = membersOf(line);
  return columns.map((column) => expected(column, members, columns));
}

/** Fails unless both readers find the items of the NDJSON text in the Parquet file; returns the columns. */
export async function assertSameRows(parquet, ndjson, what) {
  const lines = ndjson.split('\n').slice(0, -1);
  const { columns, rows } = await readDuckdb(parquet);
  const others = await readHyparquet(parquet, columns);
  assert.equal(rows.length, lines.length, what);
  assert.equal(others.length, lines.length, what);
  for (const [i, line] of lines.entries()) {
    const want = cellsOf(columns, line);
    assert.deepEqual(rows[i], want, `${what}: row ${i} by DuckDB`);
    const parsed = want.map((value, c) => (value !== null && columns[c].type === 'json' ? JSON.parse(value) : value));
    assert.deepEqual(others[i], parsed, `${what}: row ${i} by hyparquet`);
  }
  return columns;
}
