// Research requests for tests.
import { day } from './lessons.mjs';

let made = 0;

/** A valid body of /v1/research/commit with a unique answer. */
export function newResearch(changes = {}) {
  const n = made++;
  return {
    ticker: 'ACME',
    task_type: 'guidance_tone',
    question: `Will guidance be raised? (${n})`,
    answer: `Orders have grown for ${n + 1} quarters.`,
    probability: 0.6,
    confidence: 0.8,
    created_at: day(10),
    ...changes,
  };
}

/** Commits; returns the response body. */
export const commit = async (api, changes, options) =>
  (await api.post('/v1/research/commit', newResearch(changes), { status: 201, ...options })).json;

/** Prepares; returns the response body. */
export const prepare = async (api, body, options) =>
  (await api.post('/v1/research/prepare', { ticker: 'ACME', task_type: 'guidance_tone', ...body }, { status: 200, ...options })).json;

/** The text of a block of a system prompt, without its tags; undefined if there is no such block. */
export const block = (system, name) => system.match(new RegExp(`^<${name}>\\n(.*?)^</${name}>$`, 'ms'))?.[1];

/** Everything that a research request could write, as one text. */
export const written = async (query) =>
  JSON.stringify(
    await Promise.all(
      [
        'SELECT id, read_count, last_read_at, evicted_at FROM daybook.episodic_memory ORDER BY id',
        'SELECT id FROM daybook.episodic_vectors JOIN daybook.episodic_memory ON id = episode_id ORDER BY id',
        'SELECT id FROM daybook.episodic_reads ORDER BY id',
        'SELECT id, version FROM daybook.lessons ORDER BY id, version',
        'SELECT id FROM daybook.memory_retrievals ORDER BY id',
      ].map((sql) => query(sql)),
    ),
  );
