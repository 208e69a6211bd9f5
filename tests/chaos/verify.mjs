// Compares what was acknowledged with what is stored, row by row, in the database and through both services.
import { makeClient } from '../lib/client.mjs';
import { everyItem } from '../lib/lessons.mjs';
import { KINDS } from './writers.mjs';

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
  return result;
}
