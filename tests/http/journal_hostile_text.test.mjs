// Text that was written to do harm: where it is rendered, exported or searched.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openThesis, remember, searchMemories } from '../lib/journal.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();

// Marks that follow each other are sorted by their class. Of U+0344 and U+0F73 each becomes two.
const MARKS = {
  'marks that are in the wrong order': '\u0345'.repeat(10_000) + '\u0334'.repeat(9_999),
  'marks that become more': '\u0344'.repeat(9_999) + '\u0f73'.repeat(10_000),
};
for (const [name, marks] of Object.entries(MARKS))
  test(`${name} do not hold up the database`, async () => {
    const { id } = await remember(s.api, { text: `a${marks}` });
    assert.equal((await s.api.get(`/v1/memories/${id}`, { status: 200 })).json.text, `a${marks}`);
    await openThesis(s.api, { text: marks, invalidation: marks.slice(0, 2_000), target: marks.slice(-2_000) });
    await searchMemories(s.api, { text: marks.slice(8_000, 12_000) });
  });

test('accents do not matter to the words, also next to many marks', async () => {
  const { id } = await remember(s.api, { text: `Café na\u0131\u0308ve ${'\u0301'.repeat(500)} d\u00e9j\u00e0 vu` });
  for (const text of ['cafe', 'deja', 'd\u0065\u0301ja\u0300'])
    assert.ok((await searchMemories(s.api, { text })).items.some((m) => m.id === id && m.parts.text > 0), text);
});
