// A hanging database: requests time out and their statements are cancelled, excess requests are refused immediately, and a stop is not delayed.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { assertQuiet, blocked, connectAndSend, fill, gauges, metric, sessions, settled, sleep, whileLocked } from '../lib/faults.mjs';
import { create, newLesson, OUTCOME } from '../lib/lessons.mjs';
import { eventually, until } from '../lib/processes.mjs';
import { createKey } from '../lib/service.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ cluster: { durable: true } });

async function withService(args, work, { stop = true } = {}) {
  const service = await s.another({ args });
  const api = makeClient(service.base);
  try {
    await work(service, api);
  } finally {
    api.close();
    if (stop) await service.stop();
    else if (service.child.exitCode === null && service.child.signalCode === null) await service.kill();
  }
  assertQuiet(service.log);
}

const locked = (work, table) => whileLocked(s.cluster, s.database, work, table);

async function timed(promise) {
  const begun = Date.now();
  const answer = await promise;
  return { answer, ms: Date.now() - begun };
}

/** Freezes all PostgreSQL processes (SIGSTOP); returns the function that resumes them. */
async function freeze() {
  const [{ pid: backend }] = await s.query('SELECT pg_backend_pid() AS pid');
  const parent = Number(readFileSync(`${s.cluster.folder}/data/postmaster.pid`, 'utf8').split('\n')[0]);
  const all = [parent, ...readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').split(' ').filter(Boolean).map(Number)].filter((pid) => pid !== backend);
  const each = (signal) => {
    for (const pid of all) {
      try {
        process.kill(pid, signal);
      } catch {} // it has ended in the meantime
    }
  };
  each('SIGSTOP');
  return () => each('SIGCONT');
}

test('a hanging statement times out and is cancelled, on every lane', async () => {
  const limit = 600;
  await withService(['--request-timeout-ms', String(limit)], async (service, api) => {
    const { id } = await create(api, { at: '2026-01-01T00:00:00Z' });
    const body = newLesson({ tags: ['hung'] });
    const requests = [
      () => api.get('/v1/lessons'),
      () => api.get(`/v1/lessons/${id}`),
      () => api.get('/v1/lessons/block'),
      () => api.get('/v1/lessons/export?format=jsonl'),
      () => api.get('/v1/lessons/curation'),
      () => api.post('/v1/lessons', body),
      () => api.post('/v1/lessons', body, { headers: { 'idempotency-key': 'hung' } }),
      () => api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }),
    ];
    // First with statements not yet prepared on this service, then with prepared ones.
    for (const warm of [false, true]) {
      if (warm) for (const path of ['/v1/lessons/export?format=jsonl', '/v1/lessons/curation']) await api.get(path, { status: 200 });
      await locked(async () => {
        const results = await Promise.all(requests.map((request) => timed(request())));
        for (const [i, { answer, ms }] of results.entries()) {
          assert.deepEqual([answer.status, answer.json.code], [504, 'request_timeout'], requests[i].toString());
          assert.ok(ms >= limit * 0.9, `${requests[i]} took ${ms} ms`);
        }
        await until(async () => (await sessions(s.query, "state <> 'idle'")).length === 0, 'no statement is left');
      });
      assert.deepEqual((await api.get('/v1/lessons?tags=hung', { status: 200 })).json.items, []);
    }
    await api.post('/v1/lessons', body, { headers: { 'idempotency-key': 'hung' }, status: 201 });
    await api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }, { status: 200 });
  });
});

test('many requests queued behind a hanging statement all time out in time', async () => {
  const limit = 1000;
  await withService(['--request-timeout-ms', String(limit), '--loops', '1', '--write-connections', '2'], async (service, api) => {
    // A connection opened while the table is locked would fail with a different error.
    await until(async () => (await metric(api, 'daybook_db_connections', '{lane="write"}')) === 2, 'both connections are open');
    await until(async () => (await sessions(s.query, "state <> 'idle'")).length === 0, 'their statements are prepared');
    const results = await locked(() =>
      Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 ? api.post('/v1/lessons', newLesson({ tags: [`behind-${i}`] })) : api.get('/v1/lessons')))),
    );
    for (const [i, answer] of results.entries()) {
      const expected = i % 2 ? ['request_timeout', 'outcome_unknown'] : ['request_timeout'];
      assert.ok(expected.includes(answer.json.code), answer.text);
    }
    await until(async () => (await sessions(s.query, "state <> 'idle'")).length === 0, 'no statement is left');
    for (const [i, answer] of results.entries()) {
      if (i % 2 === 0) continue;
      const stored = (await api.get(`/v1/lessons?tags=behind-${i}`, { status: 200 })).json.items.length;
      assert.ok(stored <= (answer.json.code === 'outcome_unknown' ? 1 : 0), answer.text);
    }
    await create(api);
  });
});

test('requests to a frozen server time out, and it is used again once it resumes', async () => {
  const limit = 1000;
  await withService(['--request-timeout-ms', String(limit)], async (service, api) => {
    await api.get('/v1/lessons/curation', { status: 200 });
    const thaw = await freeze();
    let results;
    try {
      const writes = Array.from({ length: 6 }, (_, i) => api.post('/v1/lessons', newLesson({ tags: [`frozen-${i}`] }), { headers: i % 2 ? { 'idempotency-key': `frozen-${i}` } : {} }));
      results = await Promise.all([...writes, api.get('/v1/lessons'), api.get('/v1/lessons/curation')]);
    } finally {
      thaw();
    }
    for (const [i, answer] of results.entries()) {
      const expected = i < 6 && i % 2 === 0 ? 'outcome_unknown' : 'request_timeout';
      assert.equal(answer.json.code, expected, `${i}: ${answer.text}`);
    }
    await until(async () => (await api.get('/v1/lessons')).status === 200, 'reads are served again');
    await until(async () => (await api.get('/v1/lessons/curation')).status === 200, 'slow reads too');
    for (let i = 0; i < 6; i++) {
      const body = newLesson({ tags: [`frozen-${i}`] });
      if (i % 2) await until(async () => (await api.post('/v1/lessons', body, { headers: { 'idempotency-key': `frozen-x-${i}` } })).status === 201, 'writes too');
      const found = (await api.get(`/v1/lessons?tags=frozen-${i}`, { status: 200 })).json.items.length;
      assert.ok(found <= 1, `${found} of frozen-${i}`);
    }
  });
});

test('requests over the in-flight limit are refused immediately, health checks are not', async () => {
  await withService(['--loops', '1', '--max-in-flight', '8', '--request-timeout-ms', '20000'], async (service, api) => {
    await create(api);
    const baseline = await gauges(api);
    await locked(async (unlock) => {
      const stuck = Promise.all(Array.from({ length: 8 }, (_, i) => api.post('/v1/lessons', newLesson({ tags: ['stuck'] }), { headers: i % 2 ? { 'idempotency-key': `stuck-${i}` } : {} })));
      stuck.catch(() => {}); // awaited below
      await blocked(s.query, 8);
      for (let i = 0; i < 20; i++) {
        const answer = await (i % 2 ? api.get('/v1/lessons') : api.post('/v1/lessons', newLesson({ tags: ['refused'] })));
        assert.deepEqual([answer.status, answer.json.code], [503, 'overloaded'], answer.text);
        assert.ok(Number(answer.headers['retry-after']) >= 1);
      }
      for (const path of ['/health/live', '/metrics', '/version']) await api.get(path, { status: 200, check: false });
      await unlock();
      for (const answer of await stuck) assert.equal(answer.status, 201, answer.text);
    });
    assert.equal((await api.get('/v1/lessons?tags=stuck', { status: 200 })).json.items.length, 8);
    assert.deepEqual((await api.get('/v1/lessons?tags=refused', { status: 200 })).json.items, []);
    await settled(api, { connections: baseline.connections + 40, requests: baseline.requests });
  });
});

test('a stop finishes requests in flight, on every lane', async () => {
  await withService([], async (service, api) => {
    const { id } = await create(api, { at: '2026-01-01T00:00:00Z' });
    await locked(async (unlock) => {
      const answers = Promise.all([
        api.get('/v1/lessons'),
        api.post('/v1/lessons', newLesson({ tags: ['stopped'] })),
        api.post('/v1/lessons', newLesson({ tags: ['stopped'] }), { headers: { 'idempotency-key': 'stopped' } }),
        api.post(`/v1/lessons/${id}/validate`, { outcome: OUTCOME }),
        api.get('/v1/lessons/export?format=md'),
        api.get('/v1/lessons/curation'),
      ]);
      answers.catch(() => {}); // awaited below
      await blocked(s.query, 6);
      const stopped = service.stop();
      await until(() => service.log.includes('stop signal=TERM'), 'it stops');
      await unlock();
      assert.deepEqual((await answers).map((a) => a.status), [200, 201, 201, 200, 200, 200]);
      await stopped;
    });
  }, { stop: false });
  assert.equal((await s.api.get('/v1/lessons?tags=stopped', { status: 200 })).json.items.length, 2);
});

test('a stop waits no longer than its limit and sends an error to abandoned requests', async () => {
  await withService(['--stop-timeout-ms', '500'], async (service, api) => {
    const { id } = await create(api, { at: '2026-01-01T00:00:00Z' });
    await locked(async () => {
      const answers = Promise.all([
        api.get('/v1/lessons'),
        api.get('/v1/lessons/curation'),
        api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }),
        api.post('/v1/lessons', newLesson(), { headers: { 'idempotency-key': 'given-up' } }),
        api.post('/v1/lessons', newLesson()),
      ]);
      answers.catch(() => {}); // awaited below
      await blocked(s.query, 5);
      await eventually(service.stop(), 'the service ends');
      assert.deepEqual((await answers).map((a) => a.json.code), ['shutting_down', 'shutting_down', 'shutting_down', 'shutting_down', 'outcome_unknown']);
    });
  }, { stop: false });
});

test('a stop is clean whatever the service is doing', async () => {
  // exports that nobody reads, and exports waiting for a connection
  await fill(s.query, 3000);
  await withService(['--stop-timeout-ms', '300', '--slow-connections', '1'], async (service, api) => {
    const readers = await Promise.all(Array.from({ length: 10 }, () => connectAndSend(service.port, 'GET /v1/lessons/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n')));
    await until(async () => (await metric(api, 'daybook_requests_in_flight')) >= readers.length, 'the exports have started');
    await eventually(service.stop(), 'the service ends');
    for (const socket of readers) socket.destroy();
  }, { stop: false });

  // hanging statements, among them exports in progress
  await withService(['--stop-timeout-ms', '300', '--slow-connections', '1'], async (service) => {
    const reader = await connectAndSend(service.port, 'GET /v1/lessons/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await new Promise((resolve) => reader.once('data', resolve));
    reader.pause();
    await locked(async () => {
      reader.resume();
      const waiting = await Promise.all(Array.from({ length: 5 }, () => connectAndSend(service.port, 'GET /v1/lessons/curation HTTP/1.1\r\nHost: localhost\r\n\r\n')));
      await blocked(s.query, 1);
      await eventually(service.stop(), 'the service ends');
      for (const socket of [reader, ...waiting]) socket.destroy();
    });
  }, { stop: false });

  // a frozen server, and a write that timed out with its outcome still unknown
  await withService(['--request-timeout-ms', '700', '--stop-timeout-ms', '300'], async (service, api) => {
    await api.get('/v1/lessons?limit=1', { status: 200 });
    const thaw = await freeze();
    try {
      const keyed = api.post('/v1/lessons', newLesson(), { headers: { 'idempotency-key': 'overtime' } });
      const answers = Promise.all([api.post('/v1/lessons', newLesson()), keyed]);
      answers.catch(() => {}); // awaited below
      await keyed; // both requests have timed out
      await eventually(service.stop(), 'the service ends');
      assert.deepEqual((await answers).map((a) => a.json.code), ['outcome_unknown', 'request_timeout']);
    } finally {
      thaw();
    }
  }, { stop: false });
});

test('a stop during a key lookup is clean, even when the lookup hangs', async () => {
  await createKey(s.url, 'alpha', 'agent');
  await withService(['--request-timeout-ms', '1000', '--stop-timeout-ms', '300'], async (service, api) => {
    const stranger = api.as('dbk_unknown');
    await until(async () => (await stranger.get('/v1/lessons')).status === 401, 'keys are required');
    try {
      await locked(async () => {
        await sleep(1200); // the next lookup hangs
        const answer = await stranger.get('/v1/lessons');
        assert.ok(['request_timeout', 'database_unavailable'].includes(answer.json.code), answer.text);
        const left = stranger.get('/v1/lessons').catch((error) => error);
        await sleep(100);
        await eventually(service.stop(), 'the service ends');
        const last = await left;
        assert.ok(last instanceof Error || ['shutting_down', 'request_timeout', 'database_unavailable'].includes(last.json.code));
      }, 'daybook.api_keys');
    } finally {
      stranger.close();
    }
  }, { stop: false });
});
