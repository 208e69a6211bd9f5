// The journal as a section of the context: only if requested, within its budget, and reproduced for every tick.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { journalRows } from '../lib/journal_rows.mjs';
import { at, ledgerRows, openTrade } from '../lib/ledger_rows.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const ledger = ledgerRows((...q) => s.query(...q));
const journal = journalRows((...q) => s.query(...q));
const context = async (id, query = '') => (await s.api.get(`/v1/deployments/${id}/context${query}`, { status: 200 })).json;
const snapshot = async (id, query = '') => (await s.api.get(`/v1/decision_snapshots/${id}/context${query}`, { status: 200 })).json;

async function trading() {
  const id = await ledger.deployment();
  await ledger.trade(id, { exit_tick_at: at(5), entry_reason: 'an old trade' });
  await ledger.tick(id, at(10), { open: [openTrade({ symbol: 'BTC', entry_reason: 'breakout' })] });
  const thesis = await journal.thesis({ deployment_id: id, symbol: 'BTC', at: at(11), text: 'Breakout holds' });
  const tick = await ledger.tick(id, at(20), { open: [openTrade({ symbol: 'BTC', entry_reason: 'breakout' })] });
  return { id, thesis, tick };
}

test('the section is there only if requested, and nothing else changes', async () => {
  const { id, thesis } = await trading();
  const without = await context(id);
  const withJournal = await context(id, '?journal=true');
  assert.equal('journal' in without, false);
  assert.deepEqual(await context(id, '?journal=false'), without);
  assert.ok(withJournal.markdown.startsWith(`${without.markdown}\n<memory_state>\n`));
  assert.equal(withJournal.journal.positions[0].rationale.id, thesis);
  assert.equal(withJournal.tokens, without.tokens + 1 + withJournal.journal.tokens);
  const { journal: section, ...rest } = withJournal;
  assert.deepEqual({ ...rest, markdown: without.markdown, tokens: without.tokens }, without);
  const state = (await s.api.get(`/v1/memory_state?deployment_id=${id}`, { status: 200 })).json;
  assert.ok(withJournal.markdown.endsWith(state.markdown));
  assert.deepEqual(section.theses, state.theses);
  const plain = await s.api.get(`/v1/deployments/${id}/context?journal=true`, { headers: { accept: 'text/markdown' }, status: 200 });
  assert.equal(plain.text, withJournal.markdown);
});

test('an empty journal is no section', async () => {
  const id = await ledger.deployment();
  const got = await context(id, '?journal=true');
  assert.equal(got.markdown, '');
  assert.deepEqual([got.journal.tokens, got.journal.positions, got.journal.theses], [0, [], []]);
});

test('every budget is met: trades are dropped before the journal, and the journal before the positions', async () => {
  const { id } = await trading();
  const whole = await context(id, '?journal=true');
  for (let max = 1; max <= whole.tokens; max += 7) {
    const got = await context(id, `?journal=true&max_tokens=${max}`);
    assert.ok(got.tokens <= max, `${got.tokens} of ${max}`);
    assert.equal(got.journal.tokens > 0, got.markdown.includes('<memory_state>'));
    assert.equal(got.markdown.includes('<memory_state>'), got.markdown.endsWith('</memory_state>\n'));
    if (got.journal.tokens) assert.equal(got.open_positions_omitted, 0);
    assert.equal(got.journal.positions.length + got.journal.positions_omitted, 1);
  }
  const tight = await context(id, `?journal=true&max_tokens=${whole.tokens - 1}`);
  assert.deepEqual([tight.recent_trades.length, tight.journal.tokens], [0, whole.journal.tokens]);
});

test('the context of a tick has the journal as it was before the tick', async () => {
  const { id, thesis } = await trading();
  const before = await context(id, `?journal=true&as_of=${at(30)}`);
  await journal.thesis({ deployment_id: id, symbol: 'ETH', at: at(30), text: 'Came with the tick' });
  const tick = await ledger.tick(id, at(30), { open: [openTrade({ symbol: 'BTC', entry_reason: 'breakout' })] });
  await journal.close(thesis, at(40));
  await journal.thesis({ deployment_id: id, symbol: 'BTC', at: at(41), text: 'Later' });
  const again = await snapshot(tick, '?journal=true');
  assert.deepEqual(again, before);
  assert.equal(again.journal.positions[0].rationale.id, thesis);
  assert.equal('journal' in (await snapshot(tick)), false);
});

test('a version without memory has no journal in its context', async () => {
  const id = await ledger.deployment({ enabled: false });
  await ledger.tick(id, at(10), { open: [openTrade({ symbol: 'BTC' })] });
  await journal.thesis({ deployment_id: id, symbol: 'BTC', at: at(5) });
  const got = await context(id, '?journal=true');
  assert.deepEqual([got.enabled, got.markdown, got.journal.positions.length], [false, '', 0]);
});
