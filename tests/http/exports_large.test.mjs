// A large export: every value of every row, and the memory that the service needs for it. EXPORT_ROWS=1000000 makes it a million events;
// the limit of memory holds for builds without a sanitizer, which keeps freed memory.
import assert from 'node:assert/strict';
import { createReadStream, createWriteStream, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import { deploy } from '../lib/ledger.mjs';
import { cellsOf, duckdbRows, hyparquetRows } from '../lib/parquet.mjs';
import { suite } from '../lib/suite.mjs';

const ROWS = Number(process.env.EXPORT_ROWS ?? 20000);
const EXTRA_KB = 16 * 1024;
const s = suite({ prepare });
const D = {};
let folder;

/** Events that are numbered already, so that only the export is measured. */
async function prepare() {
  folder = await mkdtemp(join(tmpdir(), 'daybook-export-'));
  D.id = (await deploy(s.api, { mode: 'sim' })).id;
  await s.query(
    `insert into daybook.memory_events (owner, journal_id, seq, hash, kind, at, symbol, subject_id, agent_name, data)
     select 'local', $1, n, encode(sha256(n::text::bytea), 'hex'), 'memory.created', timestamptz '2026-01-01Z' + n * interval '1.000001 second',
       case when n % 3 = 0 then 'S' || n % 50 end, case when n % 2 = 0 then gen_random_uuid() end, case when n % 5 <> 0 then 'agent ' || n % 7 end,
       jsonb_build_object('version', 1, 'kind', 'note', 'text', 'Note ' || n || ': ' || md5(n::text) || ' ' || repeat('ünï ', n % 40), 'tags', jsonb_build_array('a', n % 9), 'thesis_id', null)
     from generate_series(1, $2::int) n`,
    [D.id, ROWS],
  );
  await s.query('vacuum analyze daybook.memory_events');
}
after(() => rm(folder, { recursive: true }));

const status = (name) => Number(readFileSync(`/proc/${s.service.pid}/status`, 'utf8').match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))[1]);

/** The address sanitizer reserves terabytes. */
const isSanitized = () => status('VmSize') > 2 ** 30;

/** Saves the export; returns its file, the seconds that it took, and the resident memory that it added. */
async function save(format, agent) {
  const file = join(folder, `events.${format}`);
  writeFileSync(`/proc/${s.service.pid}/clear_refs`, '5'); // the peak starts again
  const before = status('VmRSS');
  const begun = Date.now();
  await new Promise((resolve, reject) => {
    const url = `${s.service.base}/v1/memory_events/export?format=${format}&deployment_id=${D.id}`;
    http.get(url, { agent }, (response) => pipeline(response, createWriteStream(file)).then(resolve, reject)).on('error', reject);
  });
  return { file, seconds: (Date.now() - begun) / 1000, extra: status('VmHWM') - before };
}

test(`${ROWS} events have the same values in Parquet as in NDJSON, and need little memory`, async (t) => {
  const agent = new http.Agent({ keepAlive: true });
  await s.api.get(`/v1/memory_events/export?format=parquet&until=2026-01-01T00:00:10Z`, { status: 200 }); // code and connections are loaded
  const saved = {};
  for (const format of ['parquet', 'ndjson', 'csv']) {
    saved[format] = await save(format, agent);
    const { file, seconds, extra } = saved[format];
    t.diagnostic(`${format}: ${ROWS} rows, ${(statSync(file).size / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s, ${extra} KB of memory more`);
    if (!isSanitized()) assert.ok(extra < EXTRA_KB, `${format}: ${extra} KB`);
  }
  agent.destroy();
  const lines = createInterface({ input: createReadStream(saved.ndjson.file) })[Symbol.asyncIterator]();
  const others = hyparquetRows(saved.parquet.file);
  let count = 0;
  for await (const { columns, row } of duckdbRows(saved.parquet.file)) {
    const { value: line } = await lines.next();
    const want = cellsOf(columns, line);
    const { value: other } = await others.next();
    for (const [c, value] of want.entries()) {
      if (row[c] !== value) assert.fail(`row ${count}, ${columns[c].name}: DuckDB reads ${row[c]}, not ${value}`);
      const parsed = value !== null && columns[c].type === 'json' ? JSON.parse(value) : value;
      if (other[c] !== parsed) assert.deepEqual(other[c], parsed, `row ${count}, ${columns[c].name} by hyparquet`);
    }
    count++;
  }
  assert.equal(count, ROWS);
  assert.ok((await lines.next()).done);
  assert.ok((await others.next()).done);
});
