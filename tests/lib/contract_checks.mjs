// Compares CHECK constraints of the database with the limits of the contract.
import { openapi } from './contract.mjs';
import { flatFields } from './contract_fields.mjs';

/** The contract schema of each table, and the columns whose names differ from their fields. */
const TABLES = {
  lessons: ['NewLesson'],
  skill_versions: [
    'PutSkillVersion',
    {
      memory_enabled: 'memory.enabled',
      recent_trades_k: 'memory.recent_trades_k',
      reflection_cadence: 'memory.reflection.cadence',
      every_n_trades: 'memory.reflection.every_n_trades',
    },
  ],
  deployments: [
    'NewDeployment',
    { reflection_cadence: 'reflection.cadence', every_n_trades: 'reflection.every_n_trades', reflection_model: 'reflection.model' },
  ],
  trade_history: ['Trade'],
  episodic_memory: ['CreateEpisode'],
};

const CONSTRAINTS = `select t.relname as table, a.attname as column, pg_get_constraintdef(c.oid) as rule
  from pg_constraint c join pg_class t on t.oid = c.conrelid
    join pg_attribute a on a.attrelid = c.conrelid and c.conkey = array[a.attnum]
  where c.contype = 'c' and t.relnamespace <> 'pg_catalog'::regnamespace`;

/** The limits of a constraint in the terms of a schema. */
function limitsOf(rule, type) {
  const text = rule.includes('char_length(');
  const bound = (sign) => Number(rule.match(new RegExp(`[a-z_)]\\)* ${sign} \\(?'?(-?\\d+)`))?.[1] ?? NaN);
  const words = [...(rule.match(/ANY \(ARRAY\[(.*)\]\)/)?.[1].matchAll(/'([^']*)'/g) ?? [])].map(([, word]) => word);
  const [min, max] = text ? ['minLength', 'maxLength'] : ['minimum', 'maximum'];
  return Object.entries({ [min]: bound('>='), [max]: bound('<='), enum: words, pattern: rule.match(/ ~ '([^']*)'/)?.[1] }).filter(
    ([, limit]) => limit !== undefined && !Number.isNaN(limit) && limit.length !== 0 && type !== 'array',
  );
}

/** {compared, wrong}: how many limits were compared, and a line for each that differs. */
export async function differences({ query }) {
  const found = { compared: 0, wrong: [] };
  for (const { table, column, rule } of await query(CONSTRAINTS)) {
    const [schema, renamed = {}] = TABLES[table] ?? [];
    const field = schema && flatFields(openapi.components.schemas[schema])[renamed[column] ?? column];
    for (const [name, limit] of field ? limitsOf(rule, field.type) : []) {
      found.compared++;
      const isSame = Array.isArray(limit) ? [...limit].sort().join() === [...(field[name] ?? [])].sort().join() : limit === field[name];
      if (!isSame) found.wrong.push(`${table}.${column}: ${name} is ${limit} in the database, ${field[name]} in the contract`);
    }
  }
  return found;
}
