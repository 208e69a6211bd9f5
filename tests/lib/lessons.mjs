// Lessons for tests, and the times they are dated.
import { createHash } from 'node:crypto';

const SUBJECTS = [
  'footnote tables',
  'guidance tone',
  'macro odds',
  'order slippage',
  'earnings drift',
  'funding rates',
  'spread decay',
  'filing lag',
];
const FINDINGS = [
  'needs two passes',
  'overcalls weakness',
  'runs too confident',
  'doubles at the open',
  'fades by day three',
  'flips on weekends',
];

let made = 0;

/** A valid body with a unique takeaway and the tag `all`. */
export function newLesson(changes = {}) {
  const n = made++;
  return {
    context: `Case ${n}`,
    outcome: `Seen ${n + 1} times`,
    takeaway: `${SUBJECTS[n % SUBJECTS.length]} ${FINDINGS[n % FINDINGS.length]} (${n})`,
    tags: ['all'],
    evidence: [`decision-log ${n}`],
    ...changes,
  };
}

/** A takeaway dissimilar to those of all other numbers. */
export const distinctTakeaway = (n) => `Lesson ${n}: ${createHash('sha256').update(String(n)).digest('hex').replace(/.{5}/g, '$& ')}`;

/** Midnight of the nth day of 2026, in the service's format. */
export const day = (n, time = '00:00:00') => new Date(Date.UTC(2026, 0, n)).toISOString().slice(0, 11) + time + 'Z';

/** Outcome data for a validation. */
export const OUTCOME = { metric: 'brier_score', value: 0.171, baseline: 0.214, sample_size: 42, note: 'second quarter' };

/** Creates a lesson; returns the response body. */
export async function create(api, changes, options) {
  return (await api.post('/v1/lessons', newLesson(changes), { status: 201, ...options })).json;
}

/** Every item of a list, page by page, from the start or after a cursor. */
export async function everyItem(api, path, cursor = '') {
  const items = [];
  while (cursor !== null) {
    const query = cursor && `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`;
    const page = (await api.get(path + query, { status: 200 })).json;
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

/** The invalid fields of a problem as "field: code", sorted. */
export const faults = (answer) => answer.json.errors.map((e) => `${e.field}: ${e.code}`).sort();

export const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000';
