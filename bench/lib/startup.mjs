// From process start to the first ready response.
import { rmSync } from 'node:fs';
import { ready, startDaybook } from './stage.mjs';

/** ms of one start. */
async function once(stage, args) {
  const started = performance.now();
  const service = await startDaybook(stage.daybookd, args, 'ignore');
  try {
    await ready(service);
    return performance.now() - started;
  } finally {
    await service.stop();
  }
}

async function times(count, measure) {
  const all = [];
  for (let i = 0; i < count; i++) all.push(await measure());
  return all;
}

export async function measureStartup(stage, plan) {
  const folder = stage.file('startup');
  const database = await times(plan.starts, () => once(stage, ['--database-url', stage.url]));
  const fresh = await times(Math.min(3, plan.privateStarts), async () => {
    rmSync(folder, { recursive: true, force: true });
    return once(stage, ['--data', folder]);
  });
  const again = await times(plan.privateStarts, () => once(stage, ['--data', folder]));
  return { database, fresh, again };
}
