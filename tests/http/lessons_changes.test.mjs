// Status changes: the complete transition table, append-only history, and atomic merges.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, day, everyItem, faults, OUTCOME, UNKNOWN_ID } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const post = (path, body, options) => s.api.post(`/v1/lessons/${path}`, body, options);
const read = async (id, query = '') => (await s.api.get(`/v1/lessons/${id}${query}`, { status: 200 })).json;

/** The changes by name; each takes the day it is dated. */
const CHANGES = {
  validate: (id, n) => post(`${id}/validate`, { outcome: OUTCOME, reason: 'held up', at: day(n) }),
  retire: (id, n) => post(`${id}/retire`, { reason: 'no effect', at: day(n) }),
  supersede: async (id, n) => post(`${id}/supersede`, { by: (await create(s.api, { at: day(1) })).id, reason: 'sharper', at: day(n) }),
  merge: async (id, n) => post('merge', { into: (await create(s.api, { at: day(1) })).id, ids: [id], at: day(n) }),
};
const RESULT = { validate: 'validated', retire: 'retired', supersede: 'superseded', merge: 'superseded' };
const START = { proposed: null, validated: 'validate', retired: 'retire', superseded: 'supersede' };

for (const [from, first] of Object.entries(START))
  for (const [change, apply] of Object.entries(CHANGES)) {
    const allowed = from === 'proposed' || from === 'validated';
    test(`${change} of a ${from} lesson ${allowed ? `makes it ${RESULT[change]}` : 'is 409 and changes nothing'}`, async () => {
      const { id } = await create(s.api, { at: day(1) });
      if (first) assert.equal((await CHANGES[first](id, 2)).status, 200);
      const before = await read(id);
      const answer = await apply(id, 3);
      if (allowed) {
        assert.equal(answer.status, 200, answer.text);
        const after = await read(id);
        assert.equal(after.status, RESULT[change]);
        assert.equal(after.active, change === 'validate');
        assert.equal(after.status_at, day(3));
        if (change !== 'merge') assert.deepEqual(answer.json, after);
      } else {
        assert.equal(answer.status, 409);
        assert.equal(answer.json.code, 'invalid_transition');
        assert.deepEqual(await read(id), before);
      }
    });
  }

test('a validation stores its outcome data, and the next one replaces it', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const first = (await post(`${id}/validate`, { outcome: OUTCOME, reason: 'first', at: day(2) }, { status: 200 })).json;
  assert.deepEqual(first.validation, OUTCOME);
  assert.equal(first.status_reason, 'first');
  const second = (await post(`${id}/validate`, { outcome: { metric: 'win_rate', value: -3, sample_size: 1 }, at: day(3) }, { status: 200 }))
    .json;
  assert.deepEqual(second.validation, { metric: 'win_rate', value: -3, baseline: null, sample_size: 1, note: null });
  assert.equal(second.status_reason, null);
});

test('numbers keep every digit', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const body = '{"outcome":{"metric":"pnl","value":1234567890123456.123456789,"baseline":0.10,"sample_size":1000000000}}';
  const { text } = await post(`${id}/validate`, body, { status: 200 });
  for (const number of ['"value":1234567890123456.123456789', '"baseline":0.10', '"sample_size":1000000000'])
    assert.ok(text.includes(number), text);
});

test('a validation requires outcome data', async () => {
  const { id } = await create(s.api);
  const refused = async (body) => faults(await post(`${id}/validate`, body, { status: 422 }));
  assert.deepEqual(await refused({}), ['outcome: required']);
  assert.deepEqual(await refused({ outcome: {} }), [
    'outcome.metric: required',
    'outcome.sample_size: required',
    'outcome.value: required',
  ]);
  assert.deepEqual(await refused({ outcome: { ...OUTCOME, value: '1', sample_size: 0, metric: 'x'.repeat(101), p: 1 } }), [
    'outcome.metric: too_long',
    'outcome.p: unknown_field',
    'outcome.sample_size: out_of_range',
    'outcome.value: wrong_type',
  ]);
  assert.deepEqual(await refused({ outcome: { ...OUTCOME, sample_size: 1.5 } }), ['outcome.sample_size: wrong_type']);
  assert.deepEqual(await refused({ outcome: { ...OUTCOME, sample_size: 1_000_000_001 } }), ['outcome.sample_size: out_of_range']);
  assert.deepEqual(await refused({ outcome: [] }), ['outcome: wrong_type']);
  assert.equal((await read(id)).status, 'proposed');
});

test('retiring a lesson requires a reason', async () => {
  const { id } = await create(s.api);
  assert.deepEqual(faults(await post(`${id}/retire`, {}, { status: 422 })), ['reason: required']);
  assert.deepEqual(faults(await post(`${id}/retire`, { reason: 'x'.repeat(501) }, { status: 422 })), ['reason: too_long']);
  assert.equal((await post(`${id}/retire`, { reason: 'x'.repeat(500) }, { status: 200 })).json.status_reason, 'x'.repeat(500));
});

test('a superseded lesson names its successor, which does not change', async () => {
  const [a, b] = [await create(s.api, { at: day(1) }), await create(s.api, { at: day(1) })];
  const after = (await post(`${a.id}/supersede`, { by: b.id, at: day(2) }, { status: 200 })).json;
  assert.equal(after.superseded_by, b.id);
  const { similar, ...same } = b;
  assert.deepEqual(await read(b.id), same);
});

test('a lesson cannot be superseded by itself or by an unknown lesson', async () => {
  const { id } = await create(s.api);
  const self = await post(`${id}/supersede`, { by: id }, { status: 422 });
  assert.equal(self.json.errors[0].field, 'by');
  await post(`${id}/supersede`, { by: UNKNOWN_ID }, { status: 404 });
  await post(`${UNKNOWN_ID}/supersede`, { by: id }, { status: 404 });
  assert.deepEqual(faults(await post(`${id}/supersede`, { by: 'x' }, { status: 422 })), ['by: invalid_uuid']);
  for (const change of ['validate', 'retire']) assert.equal((await CHANGES[change](UNKNOWN_ID, 2)).status, 404);
  assert.equal((await read(id)).status, 'proposed');
});

test('only an active lesson can supersede another', async () => {
  const [a, b] = [await create(s.api, { at: day(1) }), await create(s.api, { at: day(1) })];
  await CHANGES.retire(b.id, 2);
  assert.equal((await post(`${a.id}/supersede`, { by: b.id, at: day(3) }, { status: 409 })).json.code, 'invalid_transition');
  assert.equal((await read(a.id)).status, 'proposed');
});

test('a change dated before the current state is 409 time_order and changes nothing', async () => {
  const { id } = await create(s.api, { at: day(10) });
  const early = (await CHANGES.retire(id, 9)).json;
  assert.equal(early.code, 'time_order');
  assert.ok(early.detail.includes(day(10)), early.detail);
  assert.equal((await CHANGES.validate(id, 12)).status, 200);
  for (const change of ['validate', 'retire', 'supersede', 'merge']) {
    const answer = await CHANGES[change](id, 11);
    assert.equal(answer.status, 409, change);
    assert.equal(answer.json.code, 'time_order', change);
  }
  assert.equal((await everyItem(s.api, `/v1/lessons/${id}/history`)).length, 2);
});

test('history lists every state, oldest first, page by page', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const by = (await create(s.api, { at: day(1) })).id;
  for (let n = 2; n < 8; n++)
    await post(`${id}/validate`, { outcome: { ...OUTCOME, value: n }, reason: `run ${n}`, at: day(n) }, { status: 200 });
  await post(`${id}/supersede`, { by, reason: 'sharper', at: day(9) }, { status: 200 });
  const items = await everyItem(s.api, `/v1/lessons/${id}/history?limit=3`);
  assert.deepEqual(
    items.map((x) => x.at),
    [1, 2, 3, 4, 5, 6, 7, 9].map((n) => day(n)),
  );
  assert.deepEqual(items[0], { status: 'proposed', at: day(1), reason: null, validation: null, superseded_by: null });
  assert.deepEqual(items[3], {
    status: 'validated',
    at: day(4),
    reason: 'run 4',
    validation: { ...OUTCOME, value: 4 },
    superseded_by: null,
  });
  assert.deepEqual(items[7].superseded_by, by);
  assert.equal(items[7].reason, 'sharper');
});

test('a merge combines tags and evidence and supersedes the other lessons', async () => {
  const make = (tags, evidence) => create(s.api, { tags, evidence, at: day(1) });
  const [into, b, c] = [await make(['x', 'y'], ['1']), await make(['y', 'z'], ['2', '1']), await make(['w'], ['3'])];
  const { lesson, merged } = (await post('merge', { into: into.id, ids: [b.id, c.id], reason: 'same claim', at: day(2) }, { status: 200 }))
    .json;
  assert.deepEqual(merged, [b.id, c.id]);
  assert.deepEqual(lesson.tags, ['x', 'y', 'z', 'w']);
  assert.deepEqual(lesson.evidence, ['1', '2', '3']);
  assert.equal(lesson.status, 'proposed');
  assert.deepEqual(await read(into.id), lesson);
  for (const { id } of [b, c]) {
    const after = await read(id);
    assert.deepEqual([after.status, after.superseded_by, after.status_reason], ['superseded', into.id, 'same claim']);
  }
});

test('a merge with one invalid lesson changes none', async () => {
  const [into, good, retired] = [
    await create(s.api, { at: day(1) }),
    await create(s.api, { at: day(1), tags: ['new'] }),
    await create(s.api, { at: day(1) }),
  ];
  await CHANGES.retire(retired.id, 2);
  const merge = (ids, target = into.id) => post('merge', { into: target, ids, at: day(3) });
  assert.equal((await merge([good.id, retired.id])).json.code, 'invalid_transition');
  assert.equal((await merge([good.id, UNKNOWN_ID])).status, 404);
  assert.equal((await merge([good.id], UNKNOWN_ID)).status, 404);
  assert.equal((await merge([good.id], retired.id)).json.code, 'invalid_transition');
  assert.equal((await merge([good.id, into.id])).status, 422);
  assert.equal((await merge([])).status, 422);
  assert.equal((await merge([good.id, good.id])).status, 422);
  assert.equal((await merge(Array.from({ length: 32 }, (_, i) => UNKNOWN_ID.slice(0, -2) + (10 + i)))).json.errors[0].code, 'too_many');
  assert.equal((await read(good.id)).status, 'proposed');
  assert.deepEqual((await read(into.id)).tags, ['all']);
});

test('of many conflicting concurrent changes, one succeeds', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const answers = await Promise.all(Array.from({ length: 8 }, () => CHANGES.retire(id, 2)));
  assert.deepEqual(answers.map((a) => a.status).sort(), [200, 409, 409, 409, 409, 409, 409, 409]);
  assert.equal((await everyItem(s.api, `/v1/lessons/${id}/history`)).length, 2);
});

test('many compatible concurrent changes all succeed', async () => {
  const { id } = await create(s.api, { at: day(1) });
  const answers = await Promise.all(Array.from({ length: 8 }, () => CHANGES.validate(id, 2)));
  assert.deepEqual(
    answers.map((a) => a.status),
    Array(8).fill(200),
  );
  assert.equal((await everyItem(s.api, `/v1/lessons/${id}/history`)).length, 9);
});

test('two lessons that supersede each other concurrently do not both disappear', async () => {
  for (let round = 0; round < 5; round++) {
    const [a, b] = [await create(s.api, { at: day(1) }), await create(s.api, { at: day(1) })];
    const answers = await Promise.all([
      post(`${a.id}/supersede`, { by: b.id, at: day(2) }),
      post(`${b.id}/supersede`, { by: a.id, at: day(2) }),
    ]);
    for (const { status } of answers) assert.ok(status === 200 || status === 409, `status ${status}`);
    assert.ok((await read(a.id)).active || (await read(b.id)).active, 'both lessons were superseded');
  }
});
