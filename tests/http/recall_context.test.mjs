// Similar past situations as the last section of the context.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy, position, postTick, putVersion } from '../lib/ledger.mjs';
import { faults, UNKNOWN_ID } from '../lib/lessons.mjs';
import { hour, postTrades, recallAll as recall } from '../lib/situations.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite({ prepare });
const TEXT = 'price pushed through the previous peak with strong volume';
let id;

async function prepare() {
  id = (await deploy(s.api, { mode: 'sim' })).id;
  await postTrades(s.api, id, [
    { reason: 'breakout above the prior swing high on rising volume', percent: 2 },
    { symbol: 'ETH', side: 'short', reason: 'funding rate is extreme, expecting mean reversion', percent: -1 },
  ]);
  await postTick(s.api, id, hour(9), { positions: [position('SOL', 10)] });
  await recall(s.api, id, { text: TEXT });
}
const path = (query = {}) => `/v1/deployments/${id}/context?${new URLSearchParams(query)}`;
const context = async (query, options) => (await s.api.get(path(query), { status: 200, ...options })).json;

test('similar situations are the last section of the context, with the facts of a recall', async () => {
  const plain = await context();
  assert.equal(plain.recall, null);
  const { markdown, tokens, recall: found, ...rest } = await context({ recall: TEXT });
  const own = await recall(s.api, id, { text: TEXT });
  assert.equal(markdown, `${plain.markdown}\n${own.markdown}`);
  assert.equal(tokens, plain.tokens + 1 + own.tokens);
  const { deployment_id, as_of, enabled, markdown: text, tokens: cost, ...facts } = own;
  assert.deepEqual(found, facts);
  assert.ok(found.shown > 0 && deployment_id === id && as_of === rest.as_of && enabled && text && cost);
  const { markdown: m, tokens: t, recall: r, ...others } = plain;
  assert.deepEqual(rest, others);
});

test('the text form has the section too, with an ETag that yields 304', async () => {
  const headers = { accept: 'text/markdown' };
  const { text, headers: got } = await s.api.get(path({ recall: TEXT }), { status: 200, headers });
  assert.match(text, /\n\n## Similar past situations\nSignal, not strategy: /);
  await s.api.get(path({ recall: TEXT }), { status: 304, headers: { ...headers, 'if-none-match': got.etag } });
});

test('a short budget drops the section first and leaves the others unchanged', async () => {
  const full = await context({ recall: TEXT });
  let shown = full.recall.shown;
  for (let max_tokens = full.tokens + 1; max_tokens > 1; max_tokens -= 7) {
    const plain = await context({ max_tokens });
    const { markdown, tokens, recall: found } = await context({ max_tokens, recall: TEXT });
    assert.ok(tokens <= max_tokens && found.shown <= shown);
    assert.ok(markdown.startsWith(plain.markdown));
    if (!found.shown) assert.deepEqual([markdown, tokens], [plain.markdown, plain.tokens]);
    shown = found.shown;
  }
  assert.equal(shown, 0);
});

test('the section respects as_of', async () => {
  const at = async (as_of) => (await context({ recall: TEXT, as_of })).recall.items.length;
  assert.deepEqual([await at(hour(0.5)), await at(hour(1)), await at(hour(3))], [0, 1, 2]);
});

test('the section is shown alone if there is nothing else', async () => {
  const { skill_id, version } = await putVersion(s.api, { memory: { recent_trades_k: 0 } });
  const { id: other } = await deploy(s.api, { skill_id, version, mode: 'sim' });
  await postTrades(s.api, other, [{ reason: 'breakout', percent: 1 }]);
  const as_of = hour(48); // a day without any activity
  const own = await recall(s.api, other, { text: 'breakout', as_of });
  const { markdown, tokens } = (await s.api.get(`/v1/deployments/${other}/context?recall=breakout&as_of=${as_of}`, { status: 200 })).json;
  assert.deepEqual([markdown, tokens], [own.markdown, own.tokens]);
  assert.match(markdown, /^## Similar/);
});

test('with memory disabled nothing is recalled', async () => {
  const { skill_id, version } = await putVersion(s.api, { memory: { enabled: false } });
  const { id: off } = await deploy(s.api, { skill_id, version, mode: 'sim' });
  const { enabled, recall: found, markdown } = (await s.api.get(`/v1/deployments/${off}/context?recall=breakout`, { status: 200 })).json;
  assert.deepEqual({ enabled, found, markdown }, { enabled: false, found: null, markdown: '' });
});

test('an unknown deployment is 404, and an invalid recall text is rejected', async () => {
  await s.api.get(`/v1/deployments/${UNKNOWN_ID}/context?recall=a`, { status: 404 });
  assert.deepEqual(faults(await s.api.get(path({ recall: '' }), { status: 422 })), ['recall: too_short']);
  assert.deepEqual(faults(await s.api.get(path({ recall: 'x'.repeat(2001) }), { status: 422 })), ['recall: too_long']);
});
