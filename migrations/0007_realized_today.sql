-- What is realized on a day is realized by partial closes too. No row changes: what trades that are open now have realized before counts on
-- no day.
comment on column agent_state.realized_today_usd is 'PnL realized on that UTC day, by closes and by partial closes, without fees';
comment on column decision_snapshots.realized_today_usd is
    'PnL realized on its UTC day up to it, by closes and by partial closes, without fees';
