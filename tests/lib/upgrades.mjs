// Shared by the tests that run binaries of two releases on one database.
import { makeClient } from './client.mjs';
import { createEpisode } from './episodes.mjs';
import { create } from './lessons.mjs';
import { deploy, post, tickOf } from './ticks.mjs';

/** Uses the main resources through the service at `base`; `query` runs SQL on its database. `check`: its answers follow today's contract. */
export async function use(query, base, { check = true } = {}) {
  const api = makeClient(base, { check });
  const { id } = await create(api);
  await api.get(`/v1/lessons/${id}`, { status: 200 });
  await api.post(`/v1/lessons/${id}/retire`, { reason: 'x' }, { headers: { 'idempotency-key': id }, status: 200 });
  await createEpisode(api);
  const deployment = await deploy(query);
  await post(api, deployment, tickOf(1));
  await api.get(`/v1/deployments/${deployment}/context`, { status: 200 });
  api.close();
}
