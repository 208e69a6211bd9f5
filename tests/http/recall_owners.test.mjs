// Recall by owner and role.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeClient } from '../lib/client.mjs';
import { deploy, putVersion } from '../lib/ledger.mjs';
import { createKey } from '../lib/service.mjs';
import { postTrades, recallAll as recall } from '../lib/situations.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const as = {};
const ids = {};
const ALL = { text: 'breakout', min_similarity: 0, k: 50, scope: 'skill' };

async function prepare() {
  for (const [name, owner, role] of [['ann', 'ann', 'agent'], ['bob', 'bob', 'agent'], ['reader', 'ann', 'reader']]) as[name] = (await createKey(s.url, owner, role, name)).key;
  await s.service.stop();
  s.service = await s.another(); // started after the keys were created
  for (const name of Object.keys(as)) as[name] = makeClient(s.service.base).as(as[name]);
  for (const name of ['ann', 'bob']) {
    const { skill_id, version } = await putVersion(as[name], { skill_id: 'same-name' });
    ids[name] = (await deploy(as[name], { skill_id, version, mode: 'sim' })).id;
    await postTrades(as[name], ids[name], [{ reason: `breakout of ${name}` }]);
  }
}

test('owners find only their own situations, also in skills of the same name', async () => {
  for (const name of ['ann', 'bob']) {
    const { items, compared, pending } = await recall(as[name], ids[name], ALL);
    assert.deepEqual([compared, pending, items.map(({ summary }) => summary.split('Reason: ')[1])], [1, 0, [`breakout of ${name}`]]);
  }
  await as.bob.post(`/v1/deployments/${ids.ann}/recall`, ALL, { status: 404 });
});

test('a reader may recall; without a key it is 401', async () => {
  assert.equal((await recall(as.reader, ids.ann, ALL)).items.length, 1);
  await makeClient(s.service.base).post(`/v1/deployments/${ids.ann}/recall`, ALL, { status: 401 });
});

test('vectors are counted and rebuilt for one owner only', async () => {
  await s.query("update daybook.situations set model = 'former', dim = 1, vector = '[1]'");
  const state = async (name) => (await as[name].get('/v1/embeddings', { status: 200 })).json.situations;
  const { text } = await as.ann.post('/v1/embeddings/rebuild', {}, { status: 200 });
  assert.deepEqual(JSON.parse(text.trimEnd().split('\n').at(-1)), { done: true, embedded: 1, refused: 0, remaining: 0 });
  assert.deepEqual(await state('ann'), { embedded: 1, pending: 0, outdated: 0 });
  assert.deepEqual(await state('bob'), { embedded: 0, pending: 0, outdated: 1 });
});
