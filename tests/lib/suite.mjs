// What most test files start with: a cluster, an empty database, a service on it and a client.
import { after, before } from 'node:test';
import { makeClient } from './client.mjs';
import { startCluster } from './cluster.mjs';
import { startService } from './service.mjs';

/** An object that is filled before the first test: cluster, database, url, service, api. `prepare` runs when it is; `client` are options of makeClient. */
export function suite({ args, env, cluster: clusterOptions, client, prepare } = {}) {
  const s = {
    /** The rows of one statement on the service's database. */
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
    await prepare?.(); // not a second hook: hooks of a file's top level do not wait for each other
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
