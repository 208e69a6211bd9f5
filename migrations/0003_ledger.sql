-- The trade ledger: skills and their versions, deployments, the state of each agent, one snapshot a tick, and one row a round trip.
-- A tick is never rewritten: a snapshot holds what the ledger was after it, so that a read at any instant is a look at the last one.

create table skills (
    owner      text        collate "C" not null,
    skill_id   text        collate "C" not null check (skill_id ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$'),
    created_at timestamptz not null default now(),
    primary key (owner, skill_id)
);
comment on table skills is 'Trading skills; what they do is in their versions';
comment on column skills.owner is 'Whose skill it is';
comment on column skills.skill_id is 'The name that its owner gave it';
comment on column skills.created_at is 'When the version came that was its first, on the caller''s clock';
select protect_owned('skills');

create table skill_versions (
    owner                text        collate "C" not null,
    skill_id             text        collate "C" not null,
    version              text        collate "C" not null check (version ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$'),
    strategy             text        not null check (char_length(strategy) <= 20000),
    avoid                text[]      not null default '{}',
    memory_enabled       boolean     not null default true,
    recent_trades_k      integer     not null default 10 check (recent_trades_k between 0 and 30),
    reflection_cadence   text        not null default 'off' check (reflection_cadence in ('off', 'per_n_trades', 'daily')),
    every_n_trades       integer     not null default 10 check (every_n_trades between 1 and 1000),
    created_at           timestamptz not null default now(),
    primary key (owner, skill_id, version),
    foreign key (owner, skill_id) references skills on delete cascade
);
create index skill_versions_newest on skill_versions (owner, skill_id, created_at desc, version desc);
comment on table skill_versions is 'What a skill does, never changed once it is deployed';
comment on column skill_versions.owner is 'Whose skill it is';
comment on column skill_versions.skill_id is 'The skill';
comment on column skill_versions.version is 'The name of this version, its owner''s';
comment on column skill_versions.strategy is 'The strategy in the trader''s words';
comment on column skill_versions.avoid is 'The trader''s rules for what never to do: no memory outranks them';
comment on column skill_versions.memory_enabled is 'Whether the agent is shown its track record';
comment on column skill_versions.recent_trades_k is 'How many closed trades it is shown';
comment on column skill_versions.reflection_cadence is 'When lessons are distilled from the ledger';
comment on column skill_versions.every_n_trades is 'Of the cadence per_n_trades: after how many closed trades';
comment on column skill_versions.created_at is 'Since when it is what it is, on the caller''s clock';
select protect_owned('skill_versions');

create table deployments (
    owner              text        collate "C" not null,
    id                 uuid        not null,
    skill_id           text        collate "C" not null,
    version            text        collate "C" not null,
    mode               text        not null check (mode in ('live', 'paper', 'sim')),
    name               text        check (char_length(name) between 1 and 200),
    reflection_cadence text        not null check (reflection_cadence in ('off', 'per_n_trades', 'daily')),
    every_n_trades     integer     not null check (every_n_trades between 1 and 1000),
    created_at         timestamptz not null,
    primary key (owner, id),
    foreign key (owner, skill_id, version) references skill_versions on delete cascade
);
create index deployments_newest on deployments (owner, created_at desc, id desc);
create index deployments_version on deployments (owner, skill_id, version);
comment on table deployments is 'A version of a skill that runs: live, on paper or in a simulation';
comment on column deployments.owner is 'Whose deployment it is';
comment on column deployments.id is 'UUIDv7';
comment on column deployments.skill_id is 'The skill that runs';
comment on column deployments.version is 'The version of it';
comment on column deployments.mode is 'live, paper or sim';
comment on column deployments.name is 'A label for people';
comment on column deployments.reflection_cadence is 'The version''s, unless the deployment said otherwise; a sim''s is off unless it did';
comment on column deployments.every_n_trades is 'Of the cadence per_n_trades: after how many closed trades';
comment on column deployments.created_at is 'When it began, on the caller''s clock';
select protect_owned('deployments');

create table agent_state (
    owner                   text        collate "C" not null,
    deployment_id           uuid        not null,
    ticks                   bigint      not null default 0,
    last_tick_at            timestamptz,
    last_snapshot_id        uuid,
    day_start_equity_usd    numeric,
    executed_today          integer     not null default 0,
    realized_today_usd      numeric     not null default 0,
    losing_closes           integer     not null default 0,
    closed_trades           bigint      not null default 0,
    closed_since_reflection bigint      not null default 0,
    updated_at              timestamptz not null default now(),
    primary key (owner, deployment_id),
    foreign key (owner, deployment_id) references deployments on delete cascade
) with (fillfactor = 50);
comment on table agent_state is 'Where each deployment is: one row, replaced by every tick';
comment on column agent_state.owner is 'Whose deployment it is';
comment on column agent_state.deployment_id is 'The deployment';
comment on column agent_state.ticks is 'How many there were; a tick that was computed from another number is not stored';
comment on column agent_state.last_tick_at is 'The last tick, on the runner''s clock; it is also the day of the figures of today';
comment on column agent_state.last_snapshot_id is 'The snapshot of that tick';
comment on column agent_state.day_start_equity_usd is 'Equity at the first tick of that UTC day';
comment on column agent_state.executed_today is 'Orders executed on that UTC day';
comment on column agent_state.realized_today_usd is 'PnL of the trades closed on that UTC day, without fees';
comment on column agent_state.losing_closes is 'Trades in a row that were closed with a loss, up to now';
comment on column agent_state.closed_trades is 'Trades closed so far';
comment on column agent_state.closed_since_reflection is 'Of them, those since the last reflection';
comment on column agent_state.updated_at is 'When the last tick came, on the server''s clock';
select protect_owned('agent_state');

create table decision_snapshots (
    owner                text        collate "C" not null,
    id                   uuid        not null,
    deployment_id        uuid        not null,
    tick_at              timestamptz not null,
    equity_usd           numeric     not null,
    action_kind          text,
    engine_kind          text,
    engine_rule          text,
    input                json        not null,
    content_hash         text        collate "C" not null default '',
    ops                  json        not null,
    open                 json        not null,
    unmatched_fees       json        not null default '[]',
    reflection_due       boolean     not null,
    day_start_equity_usd numeric     not null,
    executed_today       integer     not null,
    realized_today_usd   numeric     not null,
    losing_closes        integer     not null,
    created_at           timestamptz not null default now(),
    primary key (owner, id),
    foreign key (owner, deployment_id) references deployments on delete cascade
);
create unique index decision_snapshots_tick on decision_snapshots (owner, deployment_id, tick_at);
create index decision_snapshots_newest on decision_snapshots (owner, tick_at desc, id desc);
create index decision_snapshots_rejected on decision_snapshots (owner, deployment_id, tick_at) include (engine_rule)
    where engine_kind = 'rejected';
-- The rows of a deployment count as few among its owner's, also while it is the only one: else the planner may take the index that has all of
-- the owner's rows in order, and another deployment that joins later is searched for among them.
alter table decision_snapshots alter column deployment_id set (n_distinct = 1000);
comment on table decision_snapshots is 'Every tick as it was posted, and what the ledger was after it';
comment on column decision_snapshots.owner is 'Whose deployment it is';
comment on column decision_snapshots.id is 'UUIDv7';
comment on column decision_snapshots.deployment_id is 'The deployment that ticked';
comment on column decision_snapshots.tick_at is 'When, on the runner''s clock; a deployment has one tick at an instant';
comment on column decision_snapshots.equity_usd is 'Equity of the portfolio after the tick';
comment on column decision_snapshots.action_kind is 'What the agent proposed';
comment on column decision_snapshots.engine_kind is 'What the engine made of it: executed, rejected, …';
comment on column decision_snapshots.engine_rule is 'The rule that rejected it';
comment on column decision_snapshots.input is 'The tick: portfolio, marks, proposed_action, engine, fees; without the bars';
comment on column decision_snapshots.content_hash is 'Of what the tick says, however it was spelled: the same tick again has the same';
comment on column decision_snapshots.ops is 'What it changed in the ledger, as answered';
comment on column decision_snapshots.open is 'The trades that were open after it, as answered';
comment on column decision_snapshots.unmatched_fees is 'Fees of symbols that had no open trade, as answered';
comment on column decision_snapshots.reflection_due is 'Whether a reflection was due after it';
comment on column decision_snapshots.day_start_equity_usd is 'Equity at the first tick of its UTC day';
comment on column decision_snapshots.executed_today is 'Orders executed on its UTC day up to it';
comment on column decision_snapshots.realized_today_usd is 'PnL of the trades closed on its UTC day up to it, without fees';
comment on column decision_snapshots.losing_closes is 'Trades in a row that were closed with a loss, up to it';
comment on column decision_snapshots.created_at is 'When it came, on the server''s clock';
select protect_owned('decision_snapshots');

create table trade_history (
    owner               text        collate "C" not null,
    id                  uuid        not null,
    deployment_id       uuid        not null,
    skill_id            text        collate "C" not null,
    version             text        collate "C" not null,
    symbol              text        collate "C" not null check (char_length(symbol) between 1 and 64),
    side                text        not null check (side in ('long', 'short')),
    status              text        not null check (status in ('open', 'closed')),
    entry_tick_at       timestamptz not null,
    entry_price         numeric     not null check (entry_price > 0),
    entry_size_usd      numeric     not null,
    entry_leverage      numeric,
    entry_reason        text,
    entry_snapshot_id   uuid,
    entry_lessons_hash  text        collate "C",
    entry_regime_tag    text        collate "C",
    exit_tick_at        timestamptz,
    exit_price          numeric,
    exit_reason         text,
    exit_snapshot_id    uuid,
    holding_minutes     numeric,
    realized_pnl_usd    numeric,
    fees_usd            numeric     not null default 0,
    mfe_usd             numeric,
    mae_usd             numeric,
    size_base           numeric     not null check (size_base >= 0),
    average_entry_price numeric     not null,
    realized_so_far_usd numeric     not null default 0,
    mark_price          numeric     not null,
    last_tick_at        timestamptz not null,
    created_at          timestamptz not null default now(),
    updated_at          timestamptz not null default now(),
    primary key (owner, id),
    foreign key (owner, deployment_id) references deployments on delete cascade,
    check ((status = 'closed') = (exit_tick_at is not null)),
    check (status = 'open' or (exit_price is not null and exit_reason is not null and realized_pnl_usd is not null
        and holding_minutes is not null and size_base = 0)),
    check (exit_tick_at >= entry_tick_at)
) with (fillfactor = 85);
create unique index trade_history_one_open on trade_history (owner, deployment_id, symbol) where status = 'open';
create index trade_history_deployment on trade_history (owner, deployment_id, entry_tick_at desc, id desc);
create index trade_history_skill on trade_history (owner, skill_id, version, entry_tick_at desc, id desc);
create index trade_history_entry on trade_history (owner, entry_tick_at desc, id desc);
create index trade_history_exit on trade_history (owner, exit_tick_at desc, id desc) where status = 'closed';
create index trade_history_deployment_exit on trade_history (owner, deployment_id, exit_tick_at desc, id desc) where status = 'closed';
create index trade_history_skill_exit on trade_history (owner, skill_id, version, exit_tick_at desc, id desc) where status = 'closed';
alter table trade_history alter column deployment_id set (n_distinct = 1000); -- as above
comment on table trade_history is 'The ledger: one row a round trip, from the tick that opened it to the tick that closed it';
comment on column trade_history.owner is 'Whose trade it is';
comment on column trade_history.id is 'UUIDv7';
comment on column trade_history.deployment_id is 'The deployment that traded';
comment on column trade_history.skill_id is 'Its skill';
comment on column trade_history.version is 'The version of the skill';
comment on column trade_history.symbol is 'What was traded';
comment on column trade_history.side is 'long or short';
comment on column trade_history.status is 'open or closed; a deployment has at most one open trade of a symbol';
comment on column trade_history.entry_tick_at is 'The tick that opened it';
comment on column trade_history.entry_price is 'The broker''s entry price where it states one, else the mark at that tick';
comment on column trade_history.entry_size_usd is 'Size at the entry times entry_price';
comment on column trade_history.entry_leverage is 'As the broker stated it';
comment on column trade_history.entry_reason is 'Why the agent opened it; null when it did not';
comment on column trade_history.entry_snapshot_id is 'The snapshot of that tick, stored with the row and deleted only with the deployment: so no foreign key, which would look for trades at each snapshot that goes';
comment on column trade_history.entry_lessons_hash is 'The lessons that the agent had then; joins to reflection_notes.content_hash';
comment on column trade_history.entry_regime_tag is 'The market then; null when it was not classified';
comment on column trade_history.exit_tick_at is 'The tick that closed it';
comment on column trade_history.exit_price is 'The mark at that tick';
comment on column trade_history.exit_reason is 'Why the agent closed it, liquidated or external_flatten';
comment on column trade_history.exit_snapshot_id is 'The snapshot of that tick';
comment on column trade_history.holding_minutes is 'From entry to exit';
comment on column trade_history.realized_pnl_usd is 'Of the whole trade, without fees; the broker''s where it states one';
comment on column trade_history.fees_usd is 'Paid so far, not part of the PnL';
comment on column trade_history.mfe_usd is 'The best that it was worth at a tick, with the size of that moment; never below zero';
comment on column trade_history.mae_usd is 'The worst, never above zero';
comment on column trade_history.size_base is 'The size now; 0 when closed';
comment on column trade_history.average_entry_price is 'The average entry of what is held, after adds';
comment on column trade_history.realized_so_far_usd is 'PnL that partial closes realized; when closed, of the whole trade';
comment on column trade_history.mark_price is 'The last mark that was known';
comment on column trade_history.last_tick_at is 'The tick that this row is from';
comment on column trade_history.created_at is 'When the row was made, on the server''s clock';
comment on column trade_history.updated_at is 'When it was last changed, on the server''s clock';
select protect_owned('trade_history');

create table reflection_notes (
    owner             text        collate "C" not null,
    id                uuid        not null,
    skill_id          text        collate "C" not null,
    version           text        collate "C" not null,
    deployment_id     uuid,
    status            text        not null check (status in ('active', 'superseded')),
    generated_at      timestamptz not null,
    superseded_at     timestamptz,
    window_start      timestamptz,
    window_end        timestamptz,
    trades_considered integer     not null default 0,
    lessons_text      text        not null check (char_length(lessons_text) between 1 and 2000),
    content_hash      text        collate "C" not null check (content_hash ~ '^[0-9a-f]{16}$'),
    model_used        text        not null,
    input_tokens      integer     not null default 0,
    output_tokens     integer     not null default 0,
    cost_usd          numeric     not null default 0,
    created_at        timestamptz not null default now(),
    primary key (owner, id),
    foreign key (owner, skill_id, version) references skill_versions on delete cascade,
    foreign key (owner, deployment_id) references deployments on delete cascade,
    check ((status = 'superseded') = (superseded_at is not null))
);
create unique index reflection_notes_active on reflection_notes (owner, deployment_id) where status = 'active' and deployment_id is not null;
create index reflection_notes_newest on reflection_notes (owner, deployment_id, generated_at desc, id desc);
create index reflection_notes_skill on reflection_notes (owner, skill_id, version, generated_at desc, id desc);
comment on table reflection_notes is 'Lessons that were distilled from the ledger; at most one active note a deployment';
comment on column reflection_notes.owner is 'Whose note it is';
comment on column reflection_notes.id is 'UUIDv7';
comment on column reflection_notes.skill_id is 'The skill that it is about';
comment on column reflection_notes.version is 'The version of the skill';
comment on column reflection_notes.deployment_id is 'The deployment that it is for; null when it was promoted to the skill';
comment on column reflection_notes.status is 'active, or superseded by a later note';
comment on column reflection_notes.generated_at is 'When it was made, on the caller''s clock';
comment on column reflection_notes.superseded_at is 'When a later note took its place, on the caller''s clock';
comment on column reflection_notes.window_start is 'The first trade that it considers';
comment on column reflection_notes.window_end is 'The last trade that it considers';
comment on column reflection_notes.trades_considered is 'How many trades it is distilled from';
comment on column reflection_notes.lessons_text is 'The lessons, in five slots';
comment on column reflection_notes.content_hash is 'Names the text: see trade_history.entry_lessons_hash';
comment on column reflection_notes.model_used is 'The model that wrote it, or builtin';
comment on column reflection_notes.input_tokens is 'Tokens that the model read';
comment on column reflection_notes.output_tokens is 'Tokens that it wrote';
comment on column reflection_notes.cost_usd is 'What that cost';
comment on column reflection_notes.created_at is 'When the row was made, on the server''s clock';
select protect_owned('reflection_notes');
