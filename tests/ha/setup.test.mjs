// The files of the high-availability set-up agree with each other, as far as that shows without running them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { ROOT } from '../lib/paths.mjs';
import { longestGap } from './writers.mjs';

const text = (path) => readFileSync(join(ROOT, 'docker', path), 'utf8');
const compose = parse(text('compose.ha.yaml'), { merge: true });
const patroni = parse(text('ha/patroni.yml'));
const numbered = (name) => [1, 2, 3].map((n) => compose.services[`${name}${n}`]);

test('HAProxy gets every variable that its configuration reads', () => {
  const read = [...new Set([...text('ha/haproxy.cfg').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name))];
  assert.deepEqual(Object.keys(compose.services.haproxy.environment).sort(), read.sort());
});

test('every password of the compose file is in the example of the environment, and must be set', () => {
  const used = new Set([...text('compose.ha.yaml').matchAll(/\$\{(\w+_PASSWORD)/g)].map(([, name]) => name));
  const offered = [...text('ha/example.env').matchAll(/^(\w+_PASSWORD)=$/gm)].map(([, name]) => name);
  assert.deepEqual([...used].sort(), offered.sort());
  for (const name of used) assert.ok(text('compose.ha.yaml').includes(`\${${name}:?`), name);
});

test('every node and every etcd has a volume, a health check and a name that the others know', () => {
  for (const service of [...numbered('node'), ...numbered('etcd')]) {
    assert.ok(service.healthcheck.test.length && service.networks.includes('consensus'));
    assert.ok(service.volumes[0].split(':')[0] in compose.volumes);
  }
  for (const [i, { environment }] of numbered('etcd').entries()) {
    assert.equal(environment.ETCD_NAME, `etcd${i + 1}`);
    assert.ok(environment.ETCD_INITIAL_CLUSTER.includes(`etcd${i + 1}=${environment.ETCD_INITIAL_ADVERTISE_PEER_URLS}`));
  }
  for (const [i, { environment }] of numbered('node').entries())
    assert.equal(environment.PATRONI_POSTGRESQL_CONNECT_ADDRESS, `${environment.PATRONI_NAME}:5432`, `node${i + 1}`);
});

test('an acknowledged write is on two nodes, and a lost leader has time to stop before another is elected', () => {
  const { dcs } = patroni.bootstrap;
  assert.equal(dcs.synchronous_mode && dcs.synchronous_mode_strict, true);
  assert.ok(dcs.loop_wait + 2 * dcs.retry_timeout <= dcs.ttl, 'the leader gives up in time');
  assert.ok(patroni.watchdog.safety_margin > 0);
});

test('the longest time without writes counts the one that a fault began in', () => {
  assert.equal(longestGap([0, 10, 20, 500, 510], 15, 600), 480);
  assert.equal(longestGap([0, 900, 910, 920], 905, 915), 10);
  assert.equal(longestGap([5], 0, 10), 0);
});
