// Skills: versions are written by name, immutable once deployed, and readable at any instant.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy, newVersion, putVersion } from '../lib/ledger.mjs';
import { day, everyItem, faults } from '../lib/lessons.mjs';
import { suite } from '../lib/suite.mjs';

const s = suite();
const DEFAULTS = { enabled: true, recent_trades_k: 10, reflection: { cadence: 'off', every_n_trades: 10 } };
const FULL = {
  strategy: 'Buy breakouts.\n\tSell "failed" ones \\ 東京 🚀',
  avoid: ['Never average down', "Don't hold over {weekends}", 'a,b "c"'],
  memory: { enabled: false, recent_trades_k: 30, reflection: { cadence: 'daily', every_n_trades: 25 } },
};
const pathOf = (skill_id, version) => `/v1/skills/${skill_id}/versions/${version}`;
const put = (skill_id, version, body, options) => s.api('PUT', pathOf(skill_id, version), { body, ...options });
const refusedFor = async (changes) => faults(await put('refused', 'v1', newVersion(changes), { status: 422 }));

test('a version is returned as it was written', async () => {
  const answer = await put('whole', 'v1', { ...FULL, at: day(3) }, { status: 201 });
  assert.deepEqual(answer.json, { skill_id: 'whole', version: 'v1', ...FULL, created_at: day(3) });
  assert.equal((await s.api.get(pathOf('whole', 'v1'), { status: 200 })).text, answer.text);
});

test('absent and null fields get their defaults', async () => {
  const bodies = [
    {},
    { avoid: null, memory: null, at: null },
    { avoid: [], memory: {} },
    { memory: { enabled: null, recent_trades_k: null, reflection: null } },
    { memory: { reflection: {} } },
    { memory: { reflection: { cadence: null, every_n_trades: null } } },
  ];
  for (const [i, body] of bodies.entries()) {
    const { avoid, memory } = await putVersion(s.api, { skill_id: 'defaults', version: `v${i}`, ...body });
    assert.deepEqual({ avoid, memory }, { avoid: [], memory: DEFAULTS }, JSON.stringify(body));
  }
  const { memory } = await putVersion(s.api, { memory: { recent_trades_k: 0, reflection: { cadence: 'per_n_trades' } } });
  assert.deepEqual(memory, { ...DEFAULTS, recent_trades_k: 0, reflection: { cadence: 'per_n_trades', every_n_trades: 10 } });
});

test('created_at defaults to the server clock', async () => {
  const before = Date.now();
  const { created_at } = await putVersion(s.api);
  assert.ok(Date.parse(created_at) >= before - 1 && Date.parse(created_at) <= Date.now() + 1, created_at);
});

test('writing the same version again changes nothing, even under another date', async () => {
  const first = await put('again', 'v1', { ...FULL, at: day(1) }, { status: 201 });
  for (const at of [day(1), day(2), undefined]) assert.equal((await put('again', 'v1', { ...FULL, at }, { status: 200 })).text, first.text);
  const spelled = await putVersion(s.api, { skill_id: 'spelled' });
  const { created_at, ...same } = (await put('spelled', 'v1', { ...newVersion(), avoid: [], memory: DEFAULTS }, { status: 200 })).json;
  assert.deepEqual({ ...same, created_at }, spelled, 'explicit defaults are no change');
});

test('a version without deployments can be replaced; earlier as_of reads still show the old text', async () => {
  const [first, listed, skills] = [await put('draft', 'v1', newVersion({ at: day(1) }), { status: 201 }), ...(await Promise.all(['/v1/skills/draft/versions', '/v1/skills'].map((path) => s.api.get(`${path}?as_of=${day(4)}`))))];
  const changed = await put('draft', 'v1', { ...FULL, at: day(5) }, { status: 200 });
  assert.deepEqual(changed.json, { skill_id: 'draft', version: 'v1', ...FULL, created_at: day(5) });
  assert.equal((await s.api.get(pathOf('draft', 'v1'), { status: 200 })).text, changed.text);
  const then = `?as_of=${day(4)}`;
  assert.equal((await s.api.get(pathOf('draft', 'v1') + then, { status: 200 })).text, first.text);
  assert.equal((await s.api.get(`/v1/skills/draft/versions${then}`)).text, listed.text);
  assert.equal((await s.api.get(`/v1/skills${then}`)).text, skills.text);
  await s.api.get(`${pathOf('draft', 'v1')}?as_of=2025-12-31T00:00:00Z`, { status: 404 });
  await s.api.get(`/v1/skills/draft/ab${then}`, { status: 200 });
  await put('draft', 'v1', newVersion({ strategy: 'Dated back.', at: day(3) }), { status: 200 });
  assert.equal((await s.api.get(pathOf('draft', 'v1') + then)).text, first.text, 'the earlier state is unchanged');
  await put('draft', 'v1', newVersion({ strategy: 'The last.', at: day(6) }), { status: 200 });
  const strategies = [];
  for (const n of [1, 4, 5, 6]) strategies.push((await s.api.get(`${pathOf('draft', 'v1')}?as_of=${day(n)}`)).json.strategy);
  assert.deepEqual(strategies, [first.json.strategy, first.json.strategy, 'Dated back.', 'The last.']);
  assert.deepEqual((await s.api.get('/v1/skills/draft/versions')).json.items.map((v) => v.strategy), ['The last.']);
});

test('no field of a deployed version can change', async () => {
  const before = await putVersion(s.api, { skill_id: 'running', ...FULL });
  const { id } = await deploy(s.api, { skill_id: 'running', version: 'v1', mode: 'sim' });
  await put('running', 'v1', FULL, { status: 200 });
  for (const changes of [
    { strategy: `${FULL.strategy} ` },
    { avoid: FULL.avoid.toReversed() },
    { avoid: null },
    { memory: { ...FULL.memory, enabled: true } },
    { memory: { ...FULL.memory, recent_trades_k: 29 } },
    { memory: { ...FULL.memory, reflection: { cadence: 'off', every_n_trades: 25 } } },
    { memory: { ...FULL.memory, reflection: { cadence: 'daily', every_n_trades: 26 } } },
  ]) {
    const answer = await put('running', 'v1', { ...FULL, ...changes }, { status: 409 });
    assert.equal(answer.json.code, 'version_in_use', JSON.stringify(changes));
    assert.ok(answer.json.detail.includes(id), answer.json.detail);
  }
  assert.deepEqual((await s.api.get(pathOf('running', 'v1'))).json, before);
  await put('running', 'v2', newVersion(), { status: 201 });
  await s.api('DELETE', `/v1/deployments/${id}`, { status: 204 });
  await put('running', 'v1', newVersion(), { status: 200 });
});

test('of many concurrent writes of one version, one creates it', async () => {
  const answers = await Promise.all(Array.from({ length: 16 }, () => put('crowd', 'same', newVersion())));
  assert.deepEqual(answers.map((a) => a.status).sort(), [...Array(15).fill(200), 201]);
  assert.equal(new Set(answers.map((a) => a.text)).size, 1);
  const different = await Promise.all(Array.from({ length: 16 }, (_, i) => put('crowd', 'other', newVersion({ strategy: `Number ${i}` }))));
  assert.deepEqual(different.map((a) => a.status).sort(), [...Array(15).fill(200), 201]);
  for (const [i, answer] of different.entries()) assert.equal(answer.json.strategy, `Number ${i}`);
  const versions = await Promise.all(Array.from({ length: 16 }, (_, i) => put('together', `v${i}`, newVersion())));
  assert.deepEqual(new Set(versions.map((a) => a.status)), new Set([201]));
});

test('a version is never replaced while a deployment of it is being created', async () => {
  for (let round = 0; round < 12; round++) {
    const skill_id = `race-${round}`;
    await putVersion(s.api, { skill_id, memory: { reflection: { cadence: 'daily' } } });
    const body = newVersion({ memory: { reflection: { cadence: 'per_n_trades', every_n_trades: 3 } } });
    const [changed, deployed] = await Promise.all([put(skill_id, 'v1', body), deploy(s.api, { skill_id, version: 'v1' })]);
    const { reflection } = (await s.api.get(pathOf(skill_id, 'v1'))).json.memory;
    assert.deepEqual(deployed.reflection, { ...reflection, model: null }, `${changed.status}: the deployment took what the version no longer says`);
    assert.equal(reflection.cadence, changed.status === 200 ? 'per_n_trades' : 'daily');
  }
});

test('names are 1 to 64 letters, digits, _ . and -, and begin with a letter or a digit', async () => {
  for (const name of ['a', '7', 'A-b_c.9', 'x'.repeat(64), 'versions']) await putVersion(s.api, { skill_id: name, version: name });
  for (const name of ['-a', '.a', '_x', 'a b', 'a/b', 'é', 'aé', 'a\n', 'x'.repeat(65), ' ', 'a,b', "a'b"]) {
    const path = encodeURIComponent(name);
    assert.deepEqual(faults(await put(path, path, newVersion(), { status: 422 })), ['skill_id: invalid_name', 'version: invalid_name'], name);
    await s.api.get(pathOf(path, 'v1'), { status: 422 });
    await s.api.get(`/v1/skills/${path}/versions`, { status: 422 });
  }
  assert.deepEqual(await s.query("select from daybook.skills where skill_id !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$'"), []);
});

test('names are case-sensitive', async () => {
  await putVersion(s.api, { skill_id: 'Case' });
  await s.api.get(pathOf('case', 'v1'), { status: 404 });
  await s.api.get(pathOf('Case', 'V1'), { status: 404 });
});

test('every invalid field is rejected by name, and nothing is stored', async () => {
  assert.deepEqual(await refusedFor({ strategy: undefined }), ['strategy: required']);
  assert.deepEqual(await refusedFor({ strategy: '' }), ['strategy: too_short']);
  assert.deepEqual(await refusedFor({ strategy: ' \n' }), ['strategy: too_short']);
  assert.deepEqual(await refusedFor({ strategy: '🚀'.repeat(20001) }), ['strategy: too_long']);
  assert.deepEqual(await refusedFor({ strategy: 'a\u0007' }), ['strategy: control_character']);
  assert.deepEqual(await refusedFor({ strategy: 7 }), ['strategy: wrong_type']);
  assert.deepEqual(await refusedFor({ avoid: 'x' }), ['avoid: wrong_type']);
  assert.deepEqual(await refusedFor({ avoid: ['ok', ''] }), ['avoid[1]: too_short']);
  assert.deepEqual(await refusedFor({ avoid: ['x'.repeat(501)] }), ['avoid[0]: too_long']);
  assert.deepEqual(await refusedFor({ avoid: ['a\nb'] }), ['avoid[0]: several_lines']);
  assert.deepEqual(await refusedFor({ avoid: ['a', 'a'] }), ['avoid[1]: duplicate_item']);
  assert.deepEqual(await refusedFor({ avoid: [1] }), ['avoid[0]: wrong_type']);
  assert.deepEqual(await refusedFor({ avoid: Array.from({ length: 51 }, (_, i) => `rule ${i}`) }), ['avoid: too_many']);
  assert.deepEqual(await refusedFor({ memory: [] }), ['memory: wrong_type']);
  assert.deepEqual(await refusedFor({ at: 'now', colour: 'red', skill_id: 'x' }), [
    'at: invalid_time',
    'colour: unknown_field',
    'skill_id: unknown_field',
  ]);
  const reflection = { cadence: 'hourly', every_n_trades: 0, x: 1 };
  assert.deepEqual(await refusedFor({ memory: { enabled: 'yes', recent_trades_k: 31, reflection, y: 1 } }), [
    'memory.enabled: wrong_type',
    'memory.recent_trades_k: out_of_range',
    'memory.reflection.cadence: not_a_choice',
    'memory.reflection.every_n_trades: out_of_range',
    'memory.reflection.x: unknown_field',
    'memory.y: unknown_field',
  ]);
  assert.deepEqual(await refusedFor({ memory: { recent_trades_k: -1, reflection: { every_n_trades: 1001 } } }), [
    'memory.recent_trades_k: out_of_range',
    'memory.reflection.every_n_trades: out_of_range',
  ]);
  assert.deepEqual(await refusedFor({ memory: { recent_trades_k: 1.5 } }), ['memory.recent_trades_k: wrong_type']);
  assert.deepEqual(await s.query("select from daybook.skills where skill_id = 'refused'"), []);
});

test('length limits are inclusive and count characters', async () => {
  const full = {
    strategy: '🚀'.repeat(20000),
    avoid: Array.from({ length: 50 }, (_, i) => 'é'.repeat(498) + String(i).padStart(2, '0')),
    memory: { recent_trades_k: 30, reflection: { every_n_trades: 1000 } },
  };
  const made = await putVersion(s.api, { skill_id: 'limits', ...full });
  assert.equal([...made.strategy].length, 20000);
  assert.deepEqual(made.avoid, full.avoid);
});

test('an unknown skill or version is 404', async () => {
  await putVersion(s.api, { skill_id: 'exists' });
  for (const path of [pathOf('nothing', 'v1'), pathOf('exists', 'v2'), '/v1/skills/nothing/versions', '/v1/skills/exists'])
    await s.api.get(path, { status: 404 });
  await s.api('DELETE', pathOf('exists', 'v1'), { status: 405 });
});

test('versions are listed newest first, page by page', async () => {
  for (const [version, n] of [['b', 2], ['c', 1], ['a', 2], ['d', 3]])
    await putVersion(s.api, { skill_id: 'paged', version, at: day(n) });
  for (const limit of [1, 2, 3, 4]) {
    const items = await everyItem(s.api, `/v1/skills/paged/versions?limit=${limit}`);
    assert.deepEqual(items.map((x) => x.version), ['d', 'b', 'a', 'c'], `limit ${limit}`);
    assert.deepEqual(items[0], (await s.api.get(pathOf('paged', 'd'))).json);
  }
  const asOf = await everyItem(s.api, `/v1/skills/paged/versions?as_of=${day(2)}&limit=1`);
  assert.deepEqual(asOf.map((x) => x.version), ['b', 'a', 'c']);
  const { next_cursor } = (await s.api.get('/v1/skills/paged/versions?limit=1')).json;
  await s.api.get(`/v1/skills/limits/versions?limit=1&cursor=${next_cursor}`, { status: 422 });
});

test('skills are listed by name with their version count and newest version, page by page', async () => {
  const all = await everyItem(s.api, '/v1/skills');
  assert.deepEqual(all.map((x) => x.skill_id), all.map((x) => x.skill_id).toSorted());
  assert.deepEqual(all.find((x) => x.skill_id === 'paged'), { skill_id: 'paged', versions: 4, latest_version: 'd', created_at: day(1) });
  for (const limit of [1, 7]) assert.deepEqual(await everyItem(s.api, `/v1/skills?limit=${limit}`), all);
});

test('as_of shows only what was written by then', async () => {
  await putVersion(s.api, { skill_id: 'then', version: 'old', at: day(100) });
  await putVersion(s.api, { skill_id: 'then', version: 'new', at: day(102) });
  const listed = async (as) => (await everyItem(s.api, `/v1/skills?as_of=${as}`)).find((x) => x.skill_id === 'then');
  const before = day(99, '23:59:59.999999');
  await s.api.get(`${pathOf('then', 'old')}?as_of=${before}`, { status: 404 });
  await s.api.get(`/v1/skills/then/versions?as_of=${before}`, { status: 404 });
  assert.equal(await listed(before), undefined);
  await s.api.get(`${pathOf('then', 'old')}?as_of=${day(100)}`, { status: 200 });
  await s.api.get(`${pathOf('then', 'new')}?as_of=${day(101)}`, { status: 404 });
  assert.deepEqual(await listed(day(101)), { skill_id: 'then', versions: 1, latest_version: 'old', created_at: day(100) });
  assert.deepEqual(await listed(day(102)), { skill_id: 'then', versions: 2, latest_version: 'new', created_at: day(100) });
});

test('reads have an ETag and are 304 until something changes', async () => {
  await putVersion(s.api, { skill_id: 'tagged' });
  for (const path of [pathOf('tagged', 'v1'), '/v1/skills/tagged/versions', '/v1/skills']) {
    const { etag } = (await s.api.get(path, { status: 200 })).headers;
    await s.api.get(path, { headers: { 'if-none-match': etag }, status: 304 });
  }
});
