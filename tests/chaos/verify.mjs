// Compares what was acknowledged with what is stored, row by row, in the database and through both services.
import { makeClient } from '../lib/client.mjs';
import { everyItem } from '../lib/lessons.mjs';
import { until } from '../lib/processes.mjs';
import { KINDS } from './writers.mjs';

/** A line for each journal whose events have a gap, a wrong hash, or no number. */
async function brokenJournals(world) {
  await until(async () => !(await world.query('SELECT FROM daybook.memory_events WHERE seq IS NULL LIMIT 1')).length, 'all events are sealed').catch(() => {});
  const journals = await world.query(
    `SELECT journal_id, count(*)::int AS events, count(DISTINCT seq)::int AS numbers, max(seq)::int AS last, coalesce(bool_and(holds), false) AS whole
     FROM (SELECT e.journal_id, e.seq, e.hash = daybook.memory_event_hash(
               coalesce(lag(e.hash) OVER (PARTITION BY e.owner, e.journal_id ORDER BY e.seq), repeat('0', 64)),
               daybook.memory_event_text(e.journal_id, e.seq, e.id, e.kind, e.at, e.recorded_at, e.symbol, e.subject_id, e.agent_name, e.model_call_id, e.data)) AS holds
           FROM daybook.memory_events e) x
     GROUP BY journal_id`,
  );
  const broken = journals.filter((j) => !j.whole || j.last !== j.events || j.numbers !== j.events);
  return broken.map((j) => `journal ${j.journal_id}: ${j.events} events, ${j.numbers} numbers up to ${j.last}, hashes ${j.whole ? 'right' : 'wrong'}`);
}

/** A line for each memory that does not have one event. */
async function memoriesWithoutEvent(world) {
  const rows = await world.query(
    `SELECT m.id, count(e.id)::int AS events FROM daybook.memories m
     LEFT JOIN daybook.memory_events e ON e.owner = m.owner AND e.subject_id = m.id AND e.kind = 'memory.created'
     GROUP BY m.id HAVING count(e.id) <> 1`,
  );
  return rows.map(({ id, events }) => `memory ${id} has ${events} events`);
}

/** Returns {acknowledged, lost, doubled}: a count, and a line for each item that is wrong. */
export async function verify(world, writers) {
  const result = { acknowledged: {}, lost: [], doubled: [] };
  const apis = world.services.map((s) => makeClient(s.base));
  for (const writer of writers) {
    const kind = KINDS[writer.kind];
    result.acknowledged[writer.kind] = (result.acknowledged[writer.kind] ?? 0) + writer.ids.length;
    const rows = await world.query(...kind.stored(writer));
    const byName = new Map(rows.map(({ name, id }) => [name, id]));
    const shown = await Promise.all(apis.map((api) => everyItem(api, `${kind.listed(writer)}&limit=200`)));
    const places = [['database', new Set(rows.map((r) => r.id))], ...shown.map((items, i) => [`service ${world.services[i].name}`, new Set(items.map((item) => item.id))])];

    for (const [n, id] of writer.ids.entries()) {
      if (byName.get(kind.name(writer, n)) !== id) result.lost.push(`${writer.kind}, writer ${writer.number}, ${n}: acknowledged as ${id}, stored as ${byName.get(kind.name(writer, n))}`);
      for (const [where, ids] of places) if (!ids.has(id)) result.lost.push(`${writer.kind}, writer ${writer.number}, ${n}: ${id} is not in the ${where}`);
    }
    if (byName.size !== rows.length) result.doubled.push(`${writer.kind}, writer ${writer.number}: ${rows.length} rows for ${byName.size} items`);
    if (new Set(writer.ids).size !== writer.ids.length) result.doubled.push(`${writer.kind}, writer ${writer.number}: one id was acknowledged for two items`);
    if (writer.deployment) {
      const [{ ticks }] = await world.query('SELECT ticks::int FROM daybook.agent_state WHERE deployment_id = $1', [writer.deployment]);
      if (ticks !== rows.length) result.doubled.push(`${writer.kind}, writer ${writer.number}: ${ticks} ticks counted, ${rows.length} stored`);
    }
  }
  for (const api of apis) api.close();
  result.lost.push(...(await brokenJournals(world)), ...(await memoriesWithoutEvent(world)));
  return result;
}
