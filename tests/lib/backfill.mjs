// Waits for the vectors that the service makes in the background.
import { until } from './processes.mjs';

/** The state of the owner's embeddings. */
export const embeddings = async (api) => (await api.get('/v1/embeddings', { status: 200 })).json;

/** Waits until no entry, memory or situation of the owner is pending. */
export const allEmbedded = (api) =>
  until(async () => {
    const { pending, situations, memories } = await embeddings(api);
    return pending + situations.pending + memories.pending === 0;
  }, 'nothing is pending');
