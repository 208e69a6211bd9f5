// Writers of facts while the service, and sometimes PostgreSQL, is killed with -9 at random moments. Each writer puts the next value of its key,
// without a time and without an Idempotency-Key, and retries until it gets a response: each value is one version, in order.
// `./test faults --rounds 50` kills 50 times.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factPath, historyOf, newFact } from '../lib/facts.mjs';
import { answerTo, killUnder, startWriter } from '../lib/killed.mjs';
import { suite } from '../lib/suite.mjs';

const KILLS = Number(process.env.TEST_ROUNDS ?? 8);
const WRITERS = 4;

const s = suite({ cluster: { durable: true } });

/** Every fifth change is a correction, which carries an Idempotency-Key. */
const sendTo = (key) => async (n) => {
  const send = (api) =>
    n % 5 === 4
      ? api.post(factPath(key, '/correct'), { value: n }, { headers: { 'idempotency-key': `${key}-${n}` }, check: false })
      : api('PUT', factPath(key), { body: newFact({ value: n }), check: false });
  const answer = await answerTo(s, send, [200, 201]);
  return answer ? [answer.json] : [];
};

test(`killed ${KILLS} times, each acknowledged value is one version, and none is lost or stored twice`, async () => {
  const writers = Array.from({ length: WRITERS }, (_, number) => startWriter(`writer/${number}`, sendTo(`writer/${number}`)));
  await killUnder(s, writers, { kills: KILLS, nthBoth: 4, apart: 3, seed: 14 });
  for (const { name, answers } of writers) {
    const history = [];
    for (let query = {}; query; ) {
      const page = (await s.api.get(factPath(name, '/history', { limit: 200, ...query }), { status: 200 })).json;
      history.push(...page.items);
      query = page.next_cursor && { cursor: page.next_cursor };
    }
    assert.deepEqual(history.map((f) => [f.version, f.value]), answers.map((_, n) => [n + 1, n]));
    assert.deepEqual(answers.map((f) => [f.version, f.value]), history.map((f) => [f.version, f.value]));
  }
  assert.equal((await historyOf(s.api, 'writer/0', { limit: 1 })).length, 1);
});
