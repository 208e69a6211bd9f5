// A service, and sometimes PostgreSQL, that is killed with -9 at random moments under writers that retry until they are answered.
import assert from 'node:assert/strict';
import { makeClient } from './client.mjs';
import { sleep } from './faults.mjs';
import { until } from './processes.mjs';
import { randomOf } from './ticks.mjs';

const RETRIED = ['database_unavailable', 'outcome_unknown', 'shutting_down', 'overloaded', 'idempotency_in_progress', 'request_timeout'];

/** A problem that a kill may be the reason of. */
export const assertRetried = (problem) => assert.ok(RETRIED.includes(problem.code), JSON.stringify(problem));

/** The answer to what `ask` sends to the suite's service, or null when it is to be sent again: there was none, or one that says so. */
export async function answerTo(s, ask, statuses = [200]) {
  const answer = await (s.service && ask(s.api).catch((error) => (error.code && error.code !== 'ERR_ASSERTION' ? null : Promise.reject(error))));
  if (!answer || answer.lines || statuses.includes(answer.status)) return answer;
  assertRetried(answer.json);
  return null;
}

/** Sends the next of its own until it is answered, then goes on: `send(n)` gives what was answered from the nth on, a list. */
export function startWriter(name, send) {
  const writer = { name, answers: [], retries: 0 };
  let going = true;
  const done = (async () => {
    for (let answered = []; going || !answered.length; ) { // what was sent last may be stored without an answer: it is asked for again
      answered = await send(writer.answers.length);
      writer.answers.push(...answered);
      if (answered.length) continue;
      writer.retries++;
      await sleep(10);
    }
  })();
  done.catch(() => {}); // seen by stop()
  writer.stop = () => ((going = false), done);
  return writer;
}

/** Kills the suite's service, and PostgreSQL if `both`, and starts it again. */
export async function killAndStart(s, both = false) {
  const dying = s.service;
  s.service = null;
  await Promise.all([dying.kill(), both && s.cluster.kill()]);
  s.api.close();
  if (both) await s.cluster.start();
  s.service = await s.another();
  s.api = makeClient(s.service.base);
}

/** Kills so many times, each time after more than `apart` further answers, every `nthBoth`th time PostgreSQL too; then the writers stop. */
export async function killUnder(s, writers, { kills, nthBoth, apart = 0, seed }) {
  const random = randomOf(seed);
  const sum = (of) => writers.reduce((n, w) => n + of(w), 0);
  const answered = () => sum((w) => w.answers.length);
  for (let i = 1; i <= kills; i++) {
    const before = answered();
    await until(() => answered() > before + apart, 'answers come');
    await sleep(random() * 100);
    await killAndStart(s, i % nthBoth === 0);
  }
  await Promise.all(writers.map((w) => w.stop()));
  assert.ok(answered() > kills && sum((w) => w.retries) >= kills, 'the kills were seen');
}
