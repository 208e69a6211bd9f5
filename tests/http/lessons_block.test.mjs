// The prompt block: exact text, stable bytes, and a token budget that is never exceeded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, faults, OUTCOME } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const block = async (query = '') => (await s.api.get(`/v1/lessons/block${query}`, { status: 200 })).json;
const render = (takeaways) =>
  `<learned_patterns>\nSignal, not strategy: avoid rules outrank these lessons.\n${takeaways.map((t) => `- ${t}\n`).join('')}</learned_patterns>\n`;

test('an empty library says so', async () => {
  const { text, count, omitted, lesson_ids, tokens } = await block();
  assert.equal(
    text,
    '<learned_patterns>\nSignal, not strategy: avoid rules outrank these lessons.\n(no lessons yet)\n</learned_patterns>\n',
  );
  assert.deepEqual({ count, omitted, lesson_ids }, { count: 0, omitted: 0, lesson_ids: [] });
  assert.ok(tokens > 0);
});

test('the block has one line per lesson, newest last, and the same bytes each time', async () => {
  const made = [];
  for (const n of [3, 1, 2]) made.push(await create(s.api, { tags: ['order'], at: day(n), takeaway: `Lesson of day ${n}` }));
  const answer = await s.api.get('/v1/lessons/block?tags=order', { status: 200 });
  assert.equal(answer.json.text, render(['Lesson of day 1', 'Lesson of day 2', 'Lesson of day 3']));
  assert.deepEqual(answer.json.lesson_ids, [made[1].id, made[2].id, made[0].id]);
  for (let i = 0; i < 5; i++) assert.deepEqual((await s.api.get('/v1/lessons/block?tags=order')).bytes, answer.bytes);
});

test('two services return the same bytes', async () => {
  const { text, headers } = await s.api.get('/v1/lessons/block?tags=order', { status: 200 });
  const other = await s.another();
  try {
    const answer = await fetch(`${other.base}/v1/lessons/block?tags=order`);
    assert.equal(await answer.text(), text);
    assert.equal(answer.headers.get('etag'), headers.etag);
  } finally {
    await other.stop();
  }
});

test('Accept: text/plain returns only the text', async () => {
  const { text } = await block('?tags=order');
  const plain = await s.api.get('/v1/lessons/block?tags=order', { headers: { accept: 'text/plain' }, status: 200 });
  assert.equal(plain.text, text);
  assert.match(plain.headers['content-type'], /^text\/plain; charset=utf-8$/i);
  assert.match(plain.headers.vary ?? '', /accept/i);
  for (const accept of ['*/*', 'application/json, text/plain;q=0.5', 'text/html, */*;q=0.1']) {
    const json = await s.api.get('/v1/lessons/block?tags=order', { headers: { accept }, status: 200 });
    assert.match(json.headers['content-type'], /^application\/json/, accept);
  }
});

test('only active lessons are in the block', async () => {
  const make = async (name, change) => {
    const lesson = await create(s.api, { tags: ['use'], at: day(1), takeaway: name });
    if (change) await s.api.post(`/v1/lessons/${lesson.id}/${change[0]}`, { ...change[1], at: day(2) }, { status: 200 });
    return lesson;
  };
  const kept = await make('proposed');
  await make('validated', ['validate', { outcome: OUTCOME }]);
  await make('retired', ['retire', { reason: 'over' }]);
  await make('superseded', ['supersede', { by: kept.id }]);
  assert.equal((await block('?tags=use')).text, render(['proposed', 'validated']));
  assert.equal((await block('?tags=use&status=validated')).text, render(['validated']));
  assert.equal((await block('?tags=use&status=proposed')).text, render(['proposed']));
  assert.equal((await block('?tags=use&status=retired')).count, 0);
});

test('tags selects lessons with any of the given tags', async () => {
  await create(s.api, { tags: ['t1', 'x'], at: day(1), takeaway: 'first' });
  await create(s.api, { tags: ['t2'], at: day(2), takeaway: 'second' });
  assert.equal((await block('?tags=t1,t2')).text, render(['first', 'second']));
  assert.equal((await block('?tags=t2')).text, render(['second']));
});

test('limit keeps the newest lessons, 30 by default, and omitted counts the rest', async () => {
  for (let n = 1; n <= 40; n++) await create(s.api, { tags: ['many'], at: day(n), takeaway: `Number ${n}` });
  const numbers = (from) => Array.from({ length: 41 - from }, (_, i) => `Number ${from + i}`);
  const thirty = await block('?tags=many');
  assert.equal(thirty.text, render(numbers(11)));
  assert.deepEqual([thirty.count, thirty.omitted, thirty.lesson_ids.length], [30, 10, 30]);
  const two = await block('?tags=many&limit=2');
  assert.equal(two.text, render(['Number 39', 'Number 40']));
  assert.equal(two.omitted, 38);
  assert.deepEqual([(await block('?tags=many&limit=150')).count, (await block('?tags=many&limit=150')).omitted], [40, 0]);
});

test('the text fits every token budget, and the newest lessons come first', async () => {
  const whole = await block('?tags=many&limit=150&max_tokens=20000');
  let last = 0;
  for (const budget of [20, 30, 50, 80, 130, 200, whole.tokens - 1, whole.tokens].filter((n) => n <= whole.tokens).sort((a, b) => a - b)) {
    const cut = await block(`?tags=many&limit=150&max_tokens=${budget}`);
    assert.ok(cut.tokens <= budget, `${cut.tokens} of ${budget}`);
    assert.equal(cut.count + cut.omitted, 40);
    assert.ok(cut.count >= last);
    last = cut.count;
    assert.deepEqual(cut.lesson_ids, whole.lesson_ids.slice(40 - cut.count));
    if (cut.count) assert.equal(cut.text, render(Array.from({ length: cut.count }, (_, i) => `Number ${41 - cut.count + i}`)));
  }
  assert.equal(last, 40, 'a text that fits exactly is included');
});

test('the estimate grows with the text and is at least one token per ten characters', async () => {
  await create(s.api, { tags: ['dense'], at: day(1), takeaway: '東京'.repeat(150) });
  const dense = await block('?tags=dense');
  assert.ok(dense.tokens >= 300, `${dense.tokens} tokens for 300 ideographs`);
  const plain = await block('?tags=many');
  assert.ok(plain.tokens >= plain.text.length / 10 && plain.tokens <= plain.text.length);
});

test('a budget too small for a single line is not exceeded either', async () => {
  const none = await block('?tags=many&max_tokens=1');
  assert.ok(none.tokens <= 1);
  assert.deepEqual([none.count, none.lesson_ids], [0, []]);
  assert.equal(none.omitted, 40);
});

test('invalid limits are rejected by name', async () => {
  const answer = await s.api.get('/v1/lessons/block?limit=151&max_tokens=20001&status=dead&cursor=x', { status: 422 });
  assert.deepEqual(faults(answer), ['cursor: unknown_field', 'limit: out_of_range', 'max_tokens: out_of_range', 'status: not_a_choice']);
  assert.deepEqual(faults(await s.api.get('/v1/lessons/block?limit=0&max_tokens=0', { status: 422 })), [
    'limit: out_of_range',
    'max_tokens: out_of_range',
  ]);
});
