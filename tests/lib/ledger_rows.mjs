// Inserts ledger rows as ticks would store them, for tests of reads.
import { randomUUID } from 'node:crypto';

let made = 0;
const uuid = () => `0190${(made++).toString(16).padStart(4, '0')}-0000-7000-8000-${randomUUID().slice(-12)}`;

/** An instant in the service's format, minutes (and seconds) after 2026-06-04T10:00:00Z. */
export const at = (minutes, seconds = 0) => new Date(Date.UTC(2026, 5, 4, 10, minutes, seconds)).toISOString().replace('.000', '');

/** An open trade as in the response to a tick. */
export const openTrade = (changes = {}) => ({
  trade_id: uuid(),
  symbol: 'ETH',
  side: 'long',
  entry_tick_at: at(0),
  entry_price: 3410,
  entry_size_usd: 200,
  entry_leverage: null,
  entry_reason: 'BB lower-band bounce',
  entry_snapshot_id: null,
  entry_regime_tag: null,
  entry_lessons_hash: null,
  size_base: 0.05,
  average_entry_price: 3410,
  realized_so_far_usd: 0,
  mark_price: 3438,
  mfe_usd: 22,
  mae_usd: -8,
  fees_usd: 0,
  ...changes,
});

/** Inserts rows with `query(sql, values)`. */
export function ledgerRows(query) {
  const insert = (table, row) => {
    const names = Object.keys(row);
    const values = Object.values(row).map((v) => (v !== null && typeof v === 'object' ? JSON.stringify(v) : v));
    return query(`insert into daybook.${table} (${names}) values (${names.map((_, i) => `$${i + 1}`)})`, values);
  };
  return {
    /** A deployment of a new version; returns its id. */
    async deployment({ owner = 'local', mode = 'sim', k = 10, enabled = true, created_at = at(-600) } = {}) {
      const id = uuid();
      const skill = { owner, skill_id: `skill-${id.slice(0, 8)}` };
      await insert('skills', skill);
      await insert('skill_versions', { ...skill, version: '1', strategy: 'x', recent_trades_k: k, memory_enabled: enabled });
      await insert('deployments', { owner, id, ...skill_of(skill), mode, reflection_cadence: 'off', every_n_trades: 10, created_at });
      await insert('agent_state', { owner, deployment_id: id });
      return id;
    },
    /** A tick, the newest of its deployment; returns the id of its snapshot. */
    async tick(deployment_id, tick_at, { owner = 'local', open = [], ...figures } = {}) {
      const id = uuid();
      await insert('decision_snapshots', {
        owner,
        id,
        deployment_id,
        tick_at,
        equity_usd: 10000,
        input: { portfolio: { equity_usd: 10000, positions: [] } },
        ops: '[]',
        open: JSON.stringify(open),
        reflection_due: false,
        day_start_equity_usd: 10000,
        executed_today: 0,
        realized_today_usd: 0,
        losing_closes: 0,
        ...figures,
      });
      await query('update daybook.agent_state set last_tick_at = $3 where owner = $1 and deployment_id = $2', [owner, deployment_id, tick_at]);
      return id;
    },
    /** A trade; closed if it has an `exit_tick_at`. */
    async trade(deployment_id, { owner = 'local', ...changes } = {}) {
      const [{ skill_id, version }] = await query('select skill_id, version from daybook.deployments where owner = $1 and id = $2', [
        owner,
        deployment_id,
      ]);
      const closed = changes.exit_tick_at !== undefined;
      const row = {
        owner,
        id: uuid(),
        deployment_id,
        skill_id,
        version,
        symbol: 'BTC',
        side: 'long',
        status: closed ? 'closed' : 'open',
        entry_tick_at: at(0),
        entry_price: '65200',
        entry_size_usd: '250',
        size_base: closed ? 0 : 1,
        average_entry_price: '65200',
        mark_price: '65200',
        last_tick_at: changes.exit_tick_at ?? at(0),
        ...(closed
          ? {
              exit_price: '65940',
              exit_reason: 'target',
              realized_pnl_usd: '2.84',
              holding_minutes: (Date.parse(changes.exit_tick_at) - Date.parse(changes.entry_tick_at ?? at(0))) / 60000,
            }
          : {}),
        ...changes,
      };
      await insert('trade_history', row);
      return row.id;
    },
  };
}

const skill_of = ({ skill_id }) => ({ skill_id, version: '1' });
