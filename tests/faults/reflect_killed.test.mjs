// The service is killed with -9 between the model's answer and the commit of the note. There is always exactly one active note, either the
// previous or the complete new one, and the next reflection can run immediately.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { startCluster } from '../lib/cluster.mjs';
import { blocked, sessions, whileLocked } from '../lib/faults.mjs';
import { hang, say, startModelServer } from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { notesOf, noteText, reflect, reflectPath, traded } from '../lib/reflect.mjs';
import { startService } from '../lib/service.mjs';
import { randomOf } from '../lib/ticks.mjs';

const ROUNDS = 20;
const random = randomOf(5);

let cluster, database, models, id;
const query = (sql, values) => cluster.query(database, sql, values);
const running = new Set();

async function start() {
  const env = { ...models.modelEnv('anthropic'), DAYBOOK_LOOPS: '1', DAYBOOK_WRITE_CONNECTIONS: '2', DAYBOOK_SLOW_CONNECTIONS: '2' };
  const service = await startService(cluster.url(database), { env });
  service.api = makeClient(service.base);
  running.add(service);
  return service;
}

async function kill(service) {
  running.delete(service);
  await service.kill();
  service.api.close();
}

before(async () => {
  models = await startModelServer();
  cluster = await startCluster({ durable: true, settings: { timezone: 'UTC' } });
  database = await cluster.createDatabase();
});
after(async () => {
  try {
    for (const service of running) {
      service.api.close();
      await service.stop();
    }
  } finally {
    await cluster?.close();
    await models?.close();
  }
});

/** The single active note, which must exist and be complete. */
async function theActive() {
  const notes = await notesOf(query, id);
  const active = notes.filter((n) => n.status === 'active');
  assert.equal(active.length, 1, `${active.length} of ${notes.length} notes are active`);
  assert.equal(active[0].id, notes.at(-1).id, 'it is the last one');
  const [{ attempts }] = await query("SELECT count(*)::int AS attempts FROM daybook.reflections WHERE deployment_id = $1 AND outcome = 'ran'", [id]);
  assert.equal(attempts, notes.length, 'each note has its attempt');
  return active[0];
}

/** The tables to lock, so that the transaction stops before, between and after its writes. */
const TABLES = ['daybook.reflection_claims', 'daybook.agent_state', 'daybook.reflection_notes', 'daybook.reflections'];

/** Kills the service after the model's answer, while the transaction waits for a lock on the table. */
async function killedAtLock(service, table) {
  models.model.next(hang());
  const asked = models.model.requests.length;
  const lost = service.api.post(reflectPath(id), { force: true }).catch((error) => error);
  await models.model.asked(asked + 1);
  await whileLocked(
    cluster,
    database,
    async () => {
      models.model.release(say(noteText({ sizing: ['never stored (n=3)'] })));
      await blocked(query, 1);
      await kill(service);
    },
    table,
  );
  assert.ok((await lost) instanceof Error, 'there was no response');
}

/** Kills the service at a random moment after the model's answer, possibly during the commit. */
async function killedAnytime(service) {
  models.model.next(say(noteText({ sizing: [`perhaps stored ${random()} (n=3)`] })));
  const asked = models.model.requests.length;
  const answer = service.api.post(reflectPath(id), { force: true }).catch((error) => error);
  await models.model.asked(asked + 1);
  const moment = Date.now() + random() * 6;
  await until(() => Date.now() >= moment, 'the moment has come');
  await kill(service);
  return await answer;
}

test(`killed ${ROUNDS} times while storing the note: the previous one stays active, and the next reflection runs immediately`, async () => {
  let service = await start();
  ({ id } = await traded(service.api, 3));
  models.model.next(say(noteText()));
  let { note } = await reflect(service.api, id);
  for (let round = 0; round < ROUNDS; round++) {
    await killedAtLock(service, TABLES[round % TABLES.length]);
    service = await start();
    assert.equal((await theActive()).id, note.id, `round ${round}: the note before`);
    models.model.next(say(noteText({ sizing: [`round ${round} (n=3)`] })));
    const retried = await service.api.post(reflectPath(id), { force: true });
    assert.equal(retried.status, 200, `round ${round}: ${retried.text}`);
    assert.equal(retried.json.outcome, 'ran');
    assert.equal(retried.json.note.previous_id, note.id);
    note = retried.json.note;
    assert.equal((await theActive()).id, note.id);
  }
  await until(async () => (await query('SELECT count(*)::int AS n FROM daybook.reflection_claims'))[0].n === 0, 'no claim is left');
});

test('killed at any moment after the answer, the active note is the previous or the complete new one', async (t) => {
  let service = [...running][0];
  let active = await theActive();
  const seen = { before: 0, after: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const answer = await killedAnytime(service);
    service = await start();
    const gone = async () => (await sessions(query, "state <> 'idle' AND backend_xid IS NOT NULL")).length === 0;
    await until(gone, 'the transaction of the killed service has ended');
    const now = await theActive();
    if (!(answer instanceof Error)) assert.equal(answer.json.note?.id, now.id, 'the acknowledged note is stored');
    seen[now.id === active.id ? 'before' : 'after']++;
    active = now;
  }
  models.model.next(say(noteText()));
  assert.equal((await reflect(service.api, id, { force: true })).outcome, 'ran');
  await theActive();
  t.diagnostic(`the note before ${seen.before} times, the new one ${seen.after} times`);
});

test('an Idempotency-Key of a killed request is usable immediately and creates one note', async () => {
  let service = [...running][0];
  const headers = { 'idempotency-key': 'killed-once' };
  const active = await theActive();
  models.model.next(hang());
  const asked = models.model.requests.length;
  const lost = service.api.post(reflectPath(id), { force: true }, { headers }).catch((error) => error);
  await models.model.asked(asked + 1);
  await kill(service);
  await lost;
  models.model.release(say(noteText()));
  service = await start();
  models.model.next(say(noteText({ sizing: ['by the retry (n=3)'] })));
  const answer = await service.api.post(reflectPath(id), { force: true }, { headers, status: 200 });
  assert.deepEqual([answer.json.outcome, answer.json.note.previous_id], ['ran', active.id]);
  const again = await service.api.post(reflectPath(id), { force: true }, { headers, status: 200 });
  assert.equal(again.text, answer.text);
  assert.equal((await theActive()).id, answer.json.note.id);
});
