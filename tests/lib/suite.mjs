// The common setup of test files: a cluster, an empty database, a service on it and a client.
import { after, before } from 'node:test';
import { makeClient } from './client.mjs';
import { startCluster } from './cluster.mjs';
import { startService } from './service.mjs';

/** An object that is filled before the first test: cluster, database, url, service, api. Then `prepare` runs. `client`: options of makeClient. */
export function suite({ args, env, cluster: clusterOptions, client, prepare } = {}) {
  const s = {
    /** Runs one statement on the service's database; returns its rows. */
    query: (sql, values) => s.cluster.query(s.database, sql, values),
    /** Another service on the same database; the caller stops it. */
    another: (options) => startService(s.url, { args, env, ...options }),
  };
  before(async () => {
    s.cluster = await startCluster(clusterOptions);
    s.database = await s.cluster.createDatabase();
    s.url = s.cluster.url(s.database);
    s.service = await startService(s.url, { args, env });
    s.api = makeClient(s.service.base, client);
    await prepare?.(); // not a second hook: top-level hooks of a file run concurrently
  });
  after(async () => {
    s.api?.close();
    try {
      await s.service?.stop();
    } finally {
      await s.cluster?.close();
    }
  });
  return s;
}
