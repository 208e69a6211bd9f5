// Does a read wait for another client's writes? Both use the single loop of a separate service.
import { setTimeout as pause } from 'node:timers/promises';
import { ready, startDaybook } from './stage.mjs';
import { daybookContender, rounds } from './throughput.mjs';
import { wrk } from './wrk.mjs';

const HEAD_START_MS = 300; // for the writer, which ends after the reader

/** {alone, beside}: runs of reads by id, one connection. */
export async function measureBeside(stage, plan) {
  const service = await startDaybook(stage.daybookd, ['--database-url', stage.url, '--loops', '1'], 'ignore');
  await ready(service);
  const alone = daybookContender(stage, 'alone', 'get', 1, { service });
  const beside = {
    name: 'beside',
    async measure(seconds) {
      const writer = wrk(stage, service.base, 'create', 1, seconds + 1);
      writer.catch(() => {}); // reported below
      await pause(HEAD_START_MS);
      const run = await alone.measure(seconds);
      const { failed } = await writer;
      return { ...run, failed: run.failed + failed };
    },
  };
  const runs = await rounds([alone, beside], plan.rounds, plan.oneConnectionSeconds);
  await service.stop();
  return runs;
}
