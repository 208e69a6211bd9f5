// Inserts reflection notes as reflections would store them.
import { createHash, randomUUID } from 'node:crypto';
import { at } from './ledger_rows.mjs';

const HEADINGS = {
  entry_timing: '### Entry timing',
  sizing: '### Sizing',
  symbol_selection: '### Symbol selection',
  exit_timing: '### Exit timing',
  regime_fit: '### Regime fit',
};
export const SLOTS = Object.keys(HEADINGS);
export const NO_PATTERN = '(no clear pattern yet)';

/** The text of a note in its stored form: bullets by slot, without the slots of `suppressed`. */
export const noteText = (bullets = {}, suppressed = []) =>
  SLOTS.filter((slot) => !suppressed.includes(slot))
    .map((slot) => `${HEADINGS[slot]}\n${bullets[slot]?.map((bullet) => `- ${bullet}`).join('\n') ?? NO_PATTERN}\n`)
    .join('\n');

/** As docs/reflection.md describes it. */
export const lessonsHash = (text) => createHash('sha256').update(text.replace(/\p{White_Space}+/gu, ' ').trim()).digest('hex').slice(0, 16);

let made = 0;

/** A note of a deployment, or (`scope: 'skill'`) of its skill, that supersedes the previous one; returns its id. */
export async function addNote(query, deployment_id, { owner = 'local', scope = 'deployment', generated_at = at(0), text = noteText({ sizing: [`Half the size won ${++made} times (n=41).`] }), ...more } = {}) {
  const [{ skill_id, version }] = await query('select skill_id, version from daybook.deployments where owner = $1 and id = $2', [owner, deployment_id]);
  const own = scope === 'deployment';
  await query(
    `update daybook.reflection_notes set status = 'superseded', superseded_at = $2
     where owner = $1 and skill_id = $3 and version = $4 and deployment_id is not distinct from $5 and status = 'active'`,
    [owner, generated_at, skill_id, version, own ? deployment_id : null],
  );
  const row = { owner, id: `0190${randomUUID().slice(4, 14)}7${randomUUID().slice(15)}`, skill_id, version, deployment_id: own ? deployment_id : null };
  Object.assign(row, { status: 'active', generated_at, lessons_text: text, content_hash: lessonsHash(text), model_used: 'builtin', ...more });
  const names = Object.keys(row);
  await query(`insert into daybook.reflection_notes (${names}) values (${names.map((_, i) => `$${i + 1}`)})`, Object.values(row));
  return row.id;
}
