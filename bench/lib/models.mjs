// Do reads slow down while the service waits for a language model? The model is a local stub that responds after seconds.
import http from 'node:http';
import { say, startModelServer } from '../../tests/lib/model_server.mjs';
import { until } from '../../tests/lib/processes.mjs';
import { newDeployments } from './ledger.mjs';
import { ready, request, startDaybook } from './stage.mjs';
import { daybookContender, rounds } from './throughput.mjs';
import { fillTrades } from './trades.mjs';

export const IN_FLIGHT = 200;
export const READERS = 16;
export const TRADES = 100;
const ASKERS = IN_FLIGHT + 30; // so that IN_FLIGHT requests wait for the model while others are on their way
const LOOK_MS = 50;
const many = new http.Agent({ keepAlive: true });
const NOTE = ['Entry timing', 'Sizing', 'Symbol selection', 'Exit timing', 'Regime fit']
  .map((heading) => `### ${heading}\n- The pattern holds in 60 of 100 trades.\n`)
  .join('\n');

/** A model that takes up to `seconds`, so that responses are spread over time; none after hurry(), until calm(). */
async function startModel(seconds) {
  const models = await startModelServer();
  const waiting = new Map(); // the response function by its timer
  let slow = true;
  const model = { ...models, waiting, answered: 0 };
  models.model.always((asked, response, server) => {
    models.model.requests.length = 0; // the stub records its requests
    const answer = () => {
      waiting.delete(timer);
      model.answered++;
      say(NOTE, { tokensIn: 4000, tokensOut: 120 })(asked, response, server);
    };
    const timer = setTimeout(answer, slow ? seconds * Math.random() * 1000 : 0);
    waiting.set(timer, answer);
  });
  model.hurry = () => {
    slow = false;
    for (const [timer, answer] of [...waiting]) {
      clearTimeout(timer);
      answer();
    }
  };
  model.calm = () => (slow = true);
  return model;
}

/** Reflects on each of the deployments again and again, until stop(). */
function startReflecting(base, ids, model) {
  let going = true;
  model.calm();
  const one = async (id) => {
    while (going) {
      const { status, text } = await request(base, 'POST', `/v1/deployments/${id}/reflect`, { force: true }, many);
      if (status !== 200 || JSON.parse(text).outcome !== 'ran') throw new Error(`reflect: ${status} ${text}`);
    }
  };
  const all = Promise.all(ids.map(one));
  all.catch(() => {}); // reported by stop()
  return {
    ready: () => Promise.race([all, until(() => model.waiting.size >= IN_FLIGHT, `${IN_FLIGHT} model calls are in flight`, 60_000)]),
    async stop() {
      going = false;
      model.hurry();
      await all;
    },
  };
}

/** Reads after `before`; a run reports the minimum of model calls in flight, and their responses per second. */
function readsWhile(stage, name, service, model, before) {
  const contender = daybookContender(stage, name, 'get', READERS, { service });
  return {
    name,
    before,
    async measure(seconds) {
      let least = model.waiting.size;
      const answered = model.answered;
      const look = setInterval(() => (least = Math.min(least, model.waiting.size)), LOOK_MS);
      const run = await contender.measure(seconds);
      clearInterval(look);
      return { ...run, least, answers: (model.answered - answered) / seconds };
    },
  };
}

/** {alone, beside}: runs of reads without and with model calls in flight. */
export async function measureModels(stage, plan) {
  const model = await startModel(plan.modelSeconds);
  const service = await startDaybook(stage.daybookd, ['--database-url', stage.url], 'ignore', model.modelEnv());
  let reflecting;
  const stop = async () => {
    await reflecting?.stop();
    reflecting = null;
  };
  try {
    await ready(service);
    const ids = await newDeployments(stage, ASKERS);
    await fillTrades(stage.query, ids, TRADES);
    const begin = async () => {
      reflecting ??= startReflecting(service.base, ids, model);
      await reflecting.ready();
    };
    const all = [readsWhile(stage, 'alone', service, model, stop), readsWhile(stage, 'beside', service, model, begin)];
    return await rounds(all, plan.rounds, plan.seconds, (contender) => contender.before());
  } finally {
    await stop();
    many.destroy();
    await service.stop();
    await model.close();
  }
}
