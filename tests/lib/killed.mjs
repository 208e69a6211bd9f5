// Kills the service, and sometimes PostgreSQL, with -9 at random moments under writers that retry until they get a response.
import assert from 'node:assert/strict';
import { makeClient } from './client.mjs';
import { sleep } from './faults.mjs';
import { until } from './processes.mjs';
import { randomOf } from './ticks.mjs';

/** The errors of a retryable failure. */
export const RETRIED = ['database_unavailable', 'outcome_unknown', 'shutting_down', 'overloaded', 'idempotency_in_progress', 'request_timeout'];

/** Asserts that a kill can have caused the problem. */
export const assertRetried = (problem) => assert.ok(RETRIED.includes(problem.code), JSON.stringify(problem));

/** Sends `ask` to the suite's service; returns the response, or null if it must be retried: no response, or a retryable error. */
export async function answerTo(s, ask, statuses = [200]) {
  const answer = await (s.service && ask(s.api).catch((error) => (error.code && error.code !== 'ERR_ASSERTION' ? null : Promise.reject(error))));
  if (!answer || answer.lines || statuses.includes(answer.status)) return answer;
  assertRetried(answer.json);
  return null;
}

/** A writer that retries each item until it gets a response. `send(n)` returns the list of responses from the nth item on. */
export function startWriter(name, send) {
  const writer = { name, answers: [], retries: 0 };
  let going = true;
  const done = (async () => {
    for (let answered = []; going || !answered.length; ) { // the last item may be stored without a response, so it is retried
      answered = await send(writer.answers.length);
      writer.answers.push(...answered);
      if (answered.length) continue;
      writer.retries++;
      await sleep(10);
    }
  })();
  done.catch(() => {}); // reported by stop()
  writer.stop = () => ((going = false), done);
  return writer;
}

/** Kills the suite's service, and PostgreSQL if `both`, and restarts it. */
export async function killAndStart(s, both = false) {
  const dying = s.service;
  s.service = null;
  await Promise.all([dying.kill(), both && s.cluster.kill()]);
  s.api.close();
  if (both) await s.cluster.start();
  s.service = await s.another();
  s.api = makeClient(s.service.base);
}

/** Kills `kills` times, each after more than `apart` further responses, every `nthBoth`th time PostgreSQL too; then stops the writers. */
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
