// The research step while the embedding endpoint is down: nothing is lost, and responses say what is missing.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allEmbedded } from '../lib/backfill.mjs';
import { day } from '../lib/lessons.mjs';
import { startModelServer } from '../lib/model_server.mjs';
import { until } from '../lib/processes.mjs';
import { commit, prepare } from '../lib/research.mjs';
import { suite } from '../lib/suite.mjs';

const models = await startModelServer();
const s = suite({ env: { ...models.embeddingEnv(), DAYBOOK_LOOPS: '1' } });
after(() => models.close());

let waiting; // the entry stored without a vector
const ask = (changes) => prepare(s.api, { ticker: 'SELF', task_type: 'away', question: 'Do fuel hedges protect the margin?', as_of: day(12), ...changes });
const ids = ({ analogous }) => analogous.map(({ id }) => id);

test('while the endpoint is down an answer and its lesson are stored without a vector, and cases are found by words', async () => {
  const at = { ticker: 'NEAR', task_type: 'away', question: 'Fuel hedges?', answer: 'Hedges protect the margin.' };
  const near = await commit(s.api, { ...at, probability: 0.2 });
  assert.deepEqual([near.episode.embedding_status, near.episode.embedding_model], ['embedded', 'test-embedding']);
  await commit(s.api, { ticker: 'FAR', task_type: 'away', question: 'Zinc?', answer: 'Smelters in drought.' });
  assert.deepEqual([(await ask()).degraded, ids(await ask())[0], ids(await ask()).length], [null, near.episode.id, 2]);

  await models.stop();
  try {
    const { episode, lesson } = await commit(s.api, { ...at, probability: 0.9, created_at: day(11) });
    assert.deepEqual([episode.embedding_status, episode.embedding_model, episode.embedding_dim], ['pending', null, null]);
    assert.ok(lesson);
    const away = await ask();
    assert.equal(away.degraded, 'embedder_unavailable');
    assert.deepEqual(ids(away).sort(), [near.episode.id, episode.id].sort(), 'those that share a word');
    assert.deepEqual(ids(await ask({ question: 'Nothing alike' })), []);
    waiting = episode.id;
  } finally {
    await models.start();
  }
});

test('pending entries are embedded once the endpoint is back, without another request', async () => {
  await allEmbedded(s.api);
  assert.equal((await s.api.get(`/v1/episodic/${waiting}`, { status: 200 })).json.embedding_status, 'embedded');
  await until(async () => (await ask()).degraded === null, 'the endpoint is called again');
});

test('if no entry has a vector of the model, cases are found by words', async () => {
  const vector = { embedding: [1, 2, 3], embedding_model: 'mine' };
  const body = { ticker: 'OWN', task_type: 'own', question: 'Fuel hedges?', answer: 'They protect the margin.', created_at: day(10), ...vector };
  const { id } = (await s.api.post('/v1/episodic', body, { status: 201 })).json;
  const found = await ask({ task_type: 'own' });
  assert.deepEqual([found.degraded, ids(found)], ['no_vector', [id]]);
});
