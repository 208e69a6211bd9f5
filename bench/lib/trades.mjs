// Closed trades created by SQL: eight symbols, four regimes, gains that are mostly noise.

const SYMBOLS = ['BTC', 'ETH', 'SOL', 'XRP', 'DOGE', 'ADA', 'LINK', 'AVAX'];
const REGIMES = ['trend_up_lowvol', 'trend_down_hivol', 'chop_lowvol', 'chop_hivol'];
const EACH_MINUTES = 20; // between entries
const HELD_MINUTES = 15;

/**
 * Inserts `each` closed trades per deployment, the last one an hour ago, the same in every run. They are spread evenly over `revisions`, the
 * hashes of consecutive lessons. The mean gain rises by one cent per revision, around 0.
 */
export async function fillTrades(query, deployments, each, revisions = []) {
  await query('select setseed(0.5)');
  await query('set session_replication_role = replica'); // skips foreign key checks
  await query(
    `insert into daybook.trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, entry_tick_at, entry_price, entry_size_usd,
       entry_leverage, entry_reason, entry_lessons_hash, entry_regime_tag, exit_tick_at, exit_price, exit_reason, holding_minutes, realized_pnl_usd,
       fees_usd, mfe_usd, mae_usd, size_base, average_entry_price, mark_price, last_tick_at)
     select d.owner, overlay(gen_random_uuid()::text placing '7' from 15)::uuid, d.id, d.skill_id, d.version, ($3::text[])[1 + n % ${SYMBOLS.length}],
       case when n % 3 = 0 then 'short' else 'long' end, 'closed', t.entry, 100, 200 + n % 7 * 50, 1 + n % 3, 'breakout above the prior swing high on volume',
       t.lessons, ($4::text[])[1 + (n / 11) % ${REGIMES.length}], t.entry + interval '${HELD_MINUTES} minutes', 101, 'target', ${HELD_MINUTES}, g.gain, 0,
       greatest(g.gain, 0) * 1.4, least(g.gain, 0) * 1.2, 0, 100, 101, t.entry + interval '${HELD_MINUTES} minutes'
     from daybook.deployments d, generate_series(0, $2::int - 1) n,
       lateral (select date_trunc('second', now()) - interval '1 hour' - ($2 - n) * interval '${EACH_MINUTES} minutes' as entry,
                       (n::bigint * cardinality($5::text[]) / $2)::int as revision, ($5::text[])[1 + (n::bigint * cardinality($5::text[]) / $2)::int] as lessons) t,
       lateral (select round(((random() + random() + random() - 1.5) * 20 + 0.01 * (t.revision - cardinality($5::text[]) / 2))::numeric, 2) as gain where n >= 0) g
     where d.owner = 'local' and d.id = any ($1::uuid[])`,
    [deployments, each, SYMBOLS, REGIMES, revisions],
  );
  await query('set session_replication_role = origin');
  await query('vacuum analyze daybook.trade_history');
}
