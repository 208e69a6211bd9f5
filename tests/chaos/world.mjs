// Two services on one database. Clients reach each service, and the services reach PostgreSQL, through proxies that can cut connections.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { assertQuiet } from '../lib/faults.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { until } from '../lib/processes.mjs';
import { startProxy } from '../lib/proxy.mjs';
import { startService } from '../lib/service.mjs';
import { mountDisk } from './disk.mjs';

const DISK_BYTES = 8 * 2 ** 30; // of the cluster: it takes only the memory that is used
const SPOOL_BYTES = 64 * 2 ** 20;
const BULK_BYTES = 4 * 2 ** 20;

export async function makeWorld({ args = [], disks = true } = {}) {
  const [disk, spoolDisk] = disks ? [await mountDisk(DISK_BYTES), await mountDisk(SPOOL_BYTES)] : [null, null];
  const cluster = await startCluster({ durable: true, where: disk?.folder, settings: { timezone: 'UTC', max_wal_size: '256MB' } });
  const database = await cluster.createDatabase('chaos');
  const toDatabase = await startProxy(() => ({ path: `${cluster.folder}/.s.PGSQL.5432` }));
  const url = `postgresql://postgres@127.0.0.1:${toDatabase.port}/${database}`;
  const services = [{ name: 'A' }, { name: 'B' }];
  const world = { cluster, database, disk, spoolDisk, toDatabase, services, bulkBytes: BULK_BYTES, crashes: [] };
  world.query = (sql, values) => cluster.query(database, sql, values);

  for (const s of services) {
    /** Starts the service; an end that nobody asked for is a crash. */
    s.start = async () => {
      const env = spoolDisk ? { TMPDIR: spoolDisk.folder } : {};
      const process = await startService(url, { args: ['--max-bulk-bytes', String(BULK_BYTES), '--max-spool-bytes', String(BULK_BYTES), ...args], env });
      s.expected = false;
      s.process = process;
      process.ended.then(({ code, signal }) => s.process === process && !s.expected && world.crashes.push(`${s.name}: ${code ?? signal}\n${process.log.slice(-3000)}`));
    };
    s.kill = async () => {
      s.expected = true;
      await s.process.kill();
      check(s);
    };
    /** SIGTERM; leaks are found here. */
    s.stop = async () => {
      s.expected = true;
      await s.process.stop();
      check(s);
    };
    s.proxy = await startProxy(() => s.process && { host: '127.0.0.1', port: s.process.port });
    s.base = `http://127.0.0.1:${s.proxy.port}`;
  }
  const check = (s) => {
    try {
      assertQuiet(s.process.log);
    } catch (error) {
      world.crashes.push(`${s.name}: ${error.message}`);
    }
  };
  for (const s of services) await s.start();

  world.close = async () => {
    for (const s of services) s.proxy.close();
    toDatabase.close();
    await cluster.close();
    for (const d of [disk, spoolDisk]) await d?.close();
  };
  /** The processes of PostgreSQL, the postmaster first. */
  world.postgres = () => {
    const parent = Number(readFileSync(`${cluster.folder}/data/postmaster.pid`, 'utf8').split('\n')[0]);
    return [parent, ...readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').split(' ').filter(Boolean).map(Number)];
  };
  /** What a stopped service may not leave behind: sessions, and files in its folder for bulk bodies. */
  world.assertNothingLeft = async () => {
    const sessions = () => world.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'daybookd'");
    await until(async () => (await sessions()).length === 0, 'the database sessions of stopped services end', 30_000);
    if (spoolDisk) assert.deepEqual(readdirSync(spoolDisk.folder), [], 'files of bulk bodies');
  };
  return world;
}
