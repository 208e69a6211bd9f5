// Sixteen writers on one journal, undisturbed and while the service, and sometimes PostgreSQL, is killed with -9 at random moments. The writers
// retry with their Idempotency-Key. Every memory is stored once, and its event is in a chain without gaps.
// `./test faults --rounds 50` kills 50 times under 16 x 500 memories.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertWhole } from '../lib/events.mjs';
import { sleep } from '../lib/faults.mjs';
import { remember } from '../lib/journal.mjs';
import { answerTo, killAndStart } from '../lib/killed.mjs';
import { deploy } from '../lib/ledger.mjs';
import { day } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';
import { randomOf } from '../lib/ticks.mjs';

const KILLS = Number(process.env.TEST_ROUNDS ?? 8);
const NTH_BOTH = 4; // of the kills also kill PostgreSQL
const WRITERS = 16;
const EACH = 10 * KILLS;
const TOTAL = WRITERS * EACH;

const s = suite({ cluster: { durable: true } });

/** Writers of EACH memories. `answered(n)` is called with each response; returns the ids that were acknowledged, by text, and the number of retries. */
async function write(deployment_id, answered = () => {}) {
  const told = { ids: new Map(), retries: 0 };
  const writer = async (number) => {
    for (let n = 0; n < EACH; ) {
      const text = `Writer ${number}, memory ${n}`;
      const headers = { 'idempotency-key': `${deployment_id}-${number}-${n}` };
      const send = (api) => api.post('/v1/memories', { kind: 'note', text, symbol: 'BTC', deployment_id, agent_name: `writer ${number}` }, { headers, check: n % 10 === 0 });
      const answer = await answerTo(s, send, [201]);
      if (answer) {
        told.ids.set(text, answer.json.id);
        n++;
        answered(told.ids.size);
      } else {
        told.retries++;
        await sleep(10);
      }
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, number) => writer(number)));
  return told;
}

/** Fails unless the journal has exactly what was acknowledged: once, with its event, in a whole chain. */
async function assertStored(deployment_id, { ids }) {
  const rows = await s.query('select id, text from daybook.memories where deployment_id = $1', [deployment_id]);
  assert.equal(rows.length, TOTAL);
  assert.deepEqual(new Map(rows.map(({ id, text }) => [text, id])), ids);
  const events = await assertWhole(s.api, `deployment_id=${deployment_id}`, TOTAL);
  const texts = new Map(events.map((e) => [e.data.text, e.subject_id]));
  assert.deepEqual([...new Set(events.map((e) => e.kind))], ['memory.created']);
  assert.deepEqual(texts, ids);
}

test(`${WRITERS} writers of ${EACH} memories on one journal: each stored once, the sequence without gaps, the chain whole`, async () => {
  const { id } = await deploy(s.api, { at: day(1) });
  const told = await write(id);
  assert.equal(told.ids.size, TOTAL);
  await assertStored(id, told);
});

test(`the same, killed ${KILLS} times`, async (t) => {
  const { id } = await deploy(s.api, { at: day(1) });
  const random = randomOf(13);
  // Kills follow the number of responses, so that all of them meet the writers.
  const moments = Array.from({ length: KILLS }, (_, i) => Math.floor(((i + random()) * 0.9 * TOTAL) / KILLS));
  let [done, killing] = [0, null];
  const killOne = async () => {
    await sleep(random() * 10);
    await killAndStart(s, (done + 1) % NTH_BOTH === 0);
    done++;
    killing = null;
  };
  const told = await write(id, (count) => {
    if (!killing && done < KILLS && count > moments[done]) killing = killOne();
  });
  await killing;
  assert.equal(done, KILLS, 'all kills met the writers');
  assert.ok(told.retries >= KILLS, 'the kills were seen');
  await assertStored(id, told);

  const before = await s.query('select count(*) as n from daybook.memories');
  const { json } = await s.api.post(
    '/v1/memories',
    { kind: 'note', text: 'Writer 0, memory 0', symbol: 'BTC', deployment_id: id, agent_name: 'writer 0' },
    { headers: { 'idempotency-key': `${id}-0-0` }, status: 201 },
  );
  assert.equal(json.id, told.ids.get('Writer 0, memory 0'), 'a late retry is answered as the first time');
  assert.deepEqual(await s.query('select count(*) as n from daybook.memories'), before);
  t.diagnostic(`${KILLS} kills: ${told.ids.size} memories acknowledged and stored, ${told.retries} retries`);
});

test('events that the killed service had not sealed are sealed by the next one', async () => {
  const { id } = await deploy(s.api, { at: day(1) });
  const holder = await s.cluster.connect(s.database);
  await remember(s.api, { deployment_id: id });
  await assertWhole(s.api, `deployment_id=${id}`, 1);
  await holder.query('begin');
  await holder.query("select from daybook.memory_journals where owner = 'local' and journal_id = $1 for update", [id]);
  await remember(s.api, { deployment_id: id });
  await killAndStart(s);
  await holder.query('rollback');
  await holder.end();
  await assertWhole(s.api, `deployment_id=${id}`, 2);
});
