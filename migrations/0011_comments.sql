-- compatible-from: 9
-- The comments of tables, columns and functions in plain English. Nothing else changes.

comment on table api_keys is
    'API keys. Rows are never deleted: as soon as there is one, callers without a key are rejected';
comment on column api_keys.id is 'Identifies the key in lists and logs; UUIDv7';
comment on column api_keys.owner is 'Owner of the rows that the key reads and writes';
comment on column api_keys.role is 'Role: reader, researcher, agent or admin';
comment on column api_keys.name is 'Label for people';
comment on column api_keys.token_hash is 'SHA-256 of the token, in hex; the token itself is not stored';
comment on column api_keys.created_at is 'Creation time';
comment on column api_keys.revoked_at is 'Revocation time; null while the key is valid';
comment on table idempotency_keys is
    'Stored responses: a retry with the same Idempotency-Key gets the first response';
comment on column idempotency_keys.owner is 'Owner of the request';
comment on column idempotency_keys.key is 'Value of the Idempotency-Key header';
comment on column idempotency_keys.request_hash is
    'SHA-256 of method, path and body; another request with the same key is a conflict';
comment on column idempotency_keys.status is 'HTTP status of the response; 0 while the request is running';
comment on column idempotency_keys.content_type is 'Content-Type of the response';
comment on column idempotency_keys.location is 'Location of the response; null if it had none';
comment on column idempotency_keys.body is 'Body of the response, byte for byte';
comment on column idempotency_keys.created_at is 'Time of the first response';
comment on column idempotency_keys.expires_at is 'Expiry; the key may be used again afterwards';
comment on column idempotency_keys.claim is
    'Id of the running request (status 0); the claim ends at expires_at';
comment on column idempotency_keys.claim_pid is 'Backend process of the connection that wrote the claim';
comment on column idempotency_keys.claim_started is
    'Start time of that process, because process ids are used again';
comment on table reader_owners is 'Owner whose rows a role may read with SQL';
comment on column reader_owners.role_name is 'Role that logs in; a member of daybook_reader';
comment on column reader_owners.owner is 'Owner whose rows the role sees';
comment on column lessons.owner is 'Owner of the lesson';
comment on column lessons.id is 'Id of the lesson, the same in all versions';
comment on column lessons.version is 'Number of this version; 1 is the proposal';
comment on column lessons.known_from is 'Start of this version, on the caller''s clock';
comment on column lessons.known_until is 'End of this version; infinity for the current one';
comment on column lessons.at is 'Time at which the lesson was learned, on the caller''s clock';
comment on column lessons.context is 'Situation that the lesson comes from';
comment on column lessons.outcome is 'Outcome of that situation';
comment on column lessons.takeaway is 'Claim in one line, as shown in prompts';
comment on column lessons.tags is 'Tags for filters';
comment on column lessons.evidence is
    'Evidence: ids of decisions or episodes, calibration ranges, counts of failures';
comment on column lessons.status_at is 'Time of the last status change';
comment on column lessons.status_reason is 'Reason of the last status change';
comment on column lessons.validation is 'Outcome data of the last validation';
comment on column lessons.superseded_by is 'Id of the lesson that replaced this one';
comment on column lessons.similar_keys is
    'Keys for the search of near duplicates: takeaways that read nearly the same share one; never changed';
comment on column lessons.search is 'Full text of takeaway, context and outcome';
comment on table skills is 'Trading skills; their content is in skill_versions';
comment on column skills.owner is 'Owner of the skill';
comment on column skills.skill_id is 'Name of the skill, chosen by the owner';
comment on column skills.created_at is 'Creation time of the first version, on the caller''s clock';
comment on table skill_versions is 'Versions of skills; never changed after the first deployment';
comment on column skill_versions.owner is 'Owner of the skill';
comment on column skill_versions.skill_id is 'Skill';
comment on column skill_versions.version is 'Name of the version, chosen by the owner';
comment on column skill_versions.strategy is 'Strategy in the trader''s words';
comment on column skill_versions.avoid is
    'Rules of the trader against certain actions; they take precedence over all lessons';
comment on column skill_versions.memory_enabled is 'True if the agent is shown its track record';
comment on column skill_versions.recent_trades_k is 'Number of closed trades in the context';
comment on column skill_versions.reflection_cadence is
    'Default reflection cadence of deployments: off, per_n_trades or daily';
comment on column skill_versions.every_n_trades is
    'Closed trades between two reflections, for the cadence per_n_trades';
comment on column skill_versions.created_at is 'Start of the current content, on the caller''s clock';
comment on table deployments is 'Running versions of skills: live, on paper or in a simulation';
comment on column deployments.owner is 'Owner of the deployment';
comment on column deployments.skill_id is 'Skill that runs';
comment on column deployments.version is 'Version that runs';
comment on column deployments.name is 'Label for people';
comment on column deployments.reflection_cadence is
    'Reflection cadence: that of the request, else that of the version; else off for a simulation';
comment on column deployments.every_n_trades is
    'Closed trades between two reflections, for the cadence per_n_trades';
comment on column deployments.created_at is 'Start of the deployment, on the caller''s clock';
comment on column deployments.reflection_model is
    'Model that writes the reflections; null: the model of the settings';
comment on table agent_state is 'Current state of each deployment: one row, updated by every tick';
comment on column agent_state.owner is 'Owner of the deployment';
comment on column agent_state.deployment_id is 'Deployment';
comment on column agent_state.ticks is
    'Number of stored ticks; a tick computed from another number is not stored';
comment on column agent_state.last_tick_at is
    'Time of the last tick, on the runner''s clock; its UTC day is the day of the daily figures';
comment on column agent_state.last_snapshot_id is 'Snapshot of the last tick';
comment on column agent_state.losing_closes is 'Consecutive trades closed with a loss, up to now';
comment on column agent_state.closed_trades is 'Number of closed trades';
comment on column agent_state.closed_since_reflection is 'Trades closed since the last reflection';
comment on column agent_state.updated_at is 'Time of the last change, on the server''s clock';
comment on table decision_snapshots is 'Every tick as it was sent, with the state of the ledger after it';
comment on column decision_snapshots.owner is 'Owner of the deployment';
comment on column decision_snapshots.deployment_id is 'Deployment of the tick';
comment on column decision_snapshots.tick_at is
    'Time of the tick, on the runner''s clock; unique in a deployment';
comment on column decision_snapshots.action_kind is 'Kind of the action that the agent proposed';
comment on column decision_snapshots.engine_kind is 'Decision of the engine: executed, rejected, …';
comment on column decision_snapshots.engine_rule is 'Rule by which the engine rejected the action';
comment on column decision_snapshots.input is
    'Body of the tick without the bars: portfolio, marks, proposed_action, engine, fees';
comment on column decision_snapshots.content_hash is
    'Hash of the content, independent of notation; a retry of the tick has the same hash';
comment on column decision_snapshots.ops is 'Changes of the ledger, as in the response';
comment on column decision_snapshots.open is 'Open trades after the tick, as in the response';
comment on column decision_snapshots.unmatched_fees is
    'Fees of symbols without an open trade, as in the response';
comment on column decision_snapshots.reflection_due is 'True if a reflection was due after the tick';
comment on column decision_snapshots.created_at is 'Storage time, on the server''s clock';
comment on table trade_history is
    'Ledger: one row per trade, from the tick that opened it to the tick that closed it';
comment on column trade_history.owner is 'Owner of the trade';
comment on column trade_history.deployment_id is 'Deployment of the trade';
comment on column trade_history.skill_id is 'Skill of the deployment';
comment on column trade_history.version is 'Version of the skill';
comment on column trade_history.symbol is 'Symbol that was traded';
comment on column trade_history.entry_tick_at is 'Time of the tick that opened the trade';
comment on column trade_history.entry_price is
    'Entry price of the broker if given, else the mark at the entry';
comment on column trade_history.entry_leverage is 'Leverage, as given by the broker';
comment on column trade_history.entry_reason is
    'Reason of the agent for the entry; null if the position appeared without the agent';
comment on column trade_history.entry_snapshot_id is
    'Snapshot of the entry tick. No foreign key: both rows are stored and deleted together';
comment on column trade_history.entry_lessons_hash is
    'Hash of the lessons that the agent had at the entry; see reflection_notes.content_hash';
comment on column trade_history.entry_regime_tag is
    'Market regime at the entry; null if it was not classified';
comment on column trade_history.exit_tick_at is 'Time of the tick that closed the trade';
comment on column trade_history.exit_price is 'Mark at the exit';
comment on column trade_history.exit_reason is
    'Reason of the agent for the exit; or liquidated or external_flatten';
comment on column trade_history.exit_snapshot_id is 'Snapshot of the exit tick';
comment on column trade_history.holding_minutes is 'Minutes from entry to exit';
comment on column trade_history.realized_pnl_usd is
    'PnL of the whole trade before fees; the broker''s figure if given';
comment on column trade_history.fees_usd is 'Fees so far; not part of the PnL';
comment on column trade_history.mfe_usd is
    'Maximum favorable excursion: highest value at a tick, with the size held then; at least 0';
comment on column trade_history.mae_usd is
    'Maximum adverse excursion: lowest value at a tick, with the size held then; at most 0';
comment on column trade_history.size_base is 'Current size; 0 when closed';
comment on column trade_history.average_entry_price is
    'Average entry price of the current size, adds included';
comment on column trade_history.realized_so_far_usd is
    'PnL of partial closes so far; of the whole trade when closed';
comment on column trade_history.mark_price is 'Last known mark';
comment on column trade_history.last_tick_at is 'Time of the last tick that changed this row';
comment on column trade_history.created_at is 'Creation time of the row, on the server''s clock';
comment on column trade_history.updated_at is 'Time of the last change, on the server''s clock';
comment on table reflection_notes is
    'Notes: lessons distilled from the ledger; at most one active note per deployment';
comment on column reflection_notes.owner is 'Owner of the note';
comment on column reflection_notes.skill_id is 'Skill';
comment on column reflection_notes.version is 'Version of the skill';
comment on column reflection_notes.deployment_id is
    'Deployment of the note; null if it was promoted to the skill';
comment on column reflection_notes.status is 'active, or superseded by a later note';
comment on column reflection_notes.generated_at is 'Creation time, on the caller''s clock';
comment on column reflection_notes.superseded_at is
    'Time at which a later note superseded this one, on the caller''s clock';
comment on column reflection_notes.window_start is 'Entry time of the first trade considered';
comment on column reflection_notes.window_end is 'Exit time of the last trade considered';
comment on column reflection_notes.trades_considered is 'Number of trades considered';
comment on column reflection_notes.lessons_text is 'Lessons, in five slots';
comment on column reflection_notes.content_hash is 'Hash of the text; see trade_history.entry_lessons_hash';
comment on column reflection_notes.model_used is 'Model that wrote the note, or builtin';
comment on column reflection_notes.input_tokens is 'Tokens sent to the model';
comment on column reflection_notes.output_tokens is 'Tokens received from the model';
comment on column reflection_notes.cost_usd is 'Cost of the model call; null if the price is not known';
comment on column reflection_notes.created_at is 'Creation time of the row, on the server''s clock';
comment on column reflection_notes.suppressed is 'Slots that were left out on request';
comment on column reflection_notes.promoted_from is
    'Note of a deployment that this note of a skill was copied from';
comment on table episodic_memory is 'Past research: questions and answers, with their confidence';
comment on column episodic_memory.owner is 'Owner of the entry';
comment on column episodic_memory.ticker is 'Ticker that was researched';
comment on column episodic_memory.task_type is 'Kind of research';
comment on column episodic_memory.created_at is 'Time from which the entry is known, on the caller''s clock';
comment on column episodic_memory.question is 'Question';
comment on column episodic_memory.answer is 'Answer';
comment on column episodic_memory.probability is 'Probability that the answer states; null if it states none';
comment on column episodic_memory.confidence is
    'Confidence of the answer: given by the caller, else derived from the source';
comment on column episodic_memory.source is 'Kind of source';
comment on column episodic_memory.source_citations is 'Filings, pages and timestamps that support the answer';
comment on column episodic_memory.regime_tag is
    'Market regime of the answer, under names chosen by the caller';
comment on column episodic_memory.ttl_seconds is 'Lifetime in seconds';
comment on column episodic_memory.expires_at is 'Expiry: searches find the entry only before this time';
comment on column episodic_memory.read_count is
    'Number of times that the entry was reused instead of asking a model';
comment on column episodic_memory.last_read_at is 'Time of the last reuse';
comment on column episodic_memory.embedding_status is
    'pending (no vector yet), embedded (vector of the service) or supplied (vector of the caller)';
comment on column episodic_memory.embedding_model is 'Model of the newest vector';
comment on column episodic_memory.embedding_dim is 'Dimension of the newest vector';
comment on column episodic_memory.content_hash is
    'Hash of ticker, task type, question, answer and time; the same content is stored once';
comment on column episodic_memory.evicted_at is
    'Time at which the entry moved to the archive; null if it is not there';
comment on column episodic_memory.eviction_id is 'Eviction run that archived the entry';
comment on column episodic_memory.away is
    'Time ranges in the archive; the last one is open while the entry is there';
comment on column episodic_memory.words is 'Text for full-text search';
comment on table episodic_vectors is 'Vectors of entries, per model, for the search by meaning';
comment on column episodic_vectors.owner is 'Owner of the entry';
comment on column episodic_vectors.episode_id is 'Entry';
comment on column episodic_vectors.model is 'Model that made the vector';
comment on column episodic_vectors.dim is 'Dimension of the vector, without padding';
comment on table episodic_reads is 'Reuses of entries: each one saved a call of a model';
comment on column episodic_reads.owner is 'Owner of the entry';
comment on column episodic_reads.episode_id is 'Entry';
comment on column episodic_reads.task_type is 'Kind of research of the entry';
comment on column episodic_reads.read_at is 'Time of the reuse, on the caller''s clock';
comment on column episodic_reads.cost_usd is 'Cost of the call that was saved; null if the caller gave none';
comment on column episodic_evictions.owner is 'Owner of the entries';
comment on column episodic_evictions.at is 'Time of the run, on the caller''s clock';
comment on column episodic_evictions.policies is 'Policies that were applied';
comment on column episodic_evictions.parameters is 'Parameters of the request';
comment on column episodic_evictions.evicted is 'Number of entries that moved to the archive';
comment on table memory_retrievals is 'Recorded searches: query, candidates and result';
comment on column memory_retrievals.owner is 'Owner of the search';
comment on column memory_retrievals.kind is 'Memory that was searched';
comment on column memory_retrievals.at is 'as_of of the search';
comment on column memory_retrievals.query is 'Query';
comment on column memory_retrievals.filters is 'Filters';
comment on column memory_retrievals.candidates is 'Candidates with their scores';
comment on column memory_retrievals.selection is 'Result, best first';
comment on table reflections is 'Attempts to distill lessons, with their outcome';
comment on column reflections.owner is 'Owner of the deployment';
comment on column reflections.deployment_id is 'Deployment';
comment on column reflections.at is 'as_of of the attempt';
comment on column reflections.reason is
    'Reason of an outcome other than ran: cadence_off, not_due, …; null if it ran';
comment on column reflections.detail is 'Reason in words';
comment on column reflections.forced is 'True if the request overrode the cadence';
comment on column reflections.suppressed is 'Slots that were left out on request';
comment on column reflections.note_id is 'Note of the attempt; null if it made none';
comment on column reflections.trades_considered is 'Number of trades considered';
comment on column reflections.window_start is 'Entry time of the first trade considered';
comment on column reflections.window_end is 'Exit time of the last trade considered';
comment on column reflections.model_used is 'Model that was asked, or builtin';
comment on column reflections.input_tokens is 'Tokens sent to the model';
comment on column reflections.output_tokens is 'Tokens received from the model';
comment on column reflections.cost_usd is 'Cost of the model call; null if the price is not known';
comment on column reflections.created_at is 'Creation time of the row, on the server''s clock';
comment on table reflection_claims is 'Claims: at most one reflection of a deployment runs at a time';
comment on column reflection_claims.owner is 'Owner of the deployment';
comment on column reflection_claims.deployment_id is 'Deployment';
comment on column reflection_claims.claim is 'Id of the attempt that has the claim';
comment on column reflection_claims.claim_pid is 'Backend process of the connection that wrote the claim';
comment on column reflection_claims.claim_started is
    'Start time of that process, because process ids are used again';
comment on column reflection_claims.expires_at is 'Latest end of the claim';
comment on table situations is 'Situations in which trades were opened, for the search of similar ones';
comment on column situations.owner is 'Owner of the trade';
comment on column situations.trade_id is 'Trade';
comment on column situations.deployment_id is 'Deployment of the trade';
comment on column situations.skill_id is 'Skill of the deployment';
comment on column situations.version is 'Version of the skill';
comment on column situations.entry_tick_at is 'Time of the tick that opened the trade';
comment on column situations.summary is 'Situation in words; contains nothing that was known only later';
comment on column situations.model is 'Model of the vector; null while the vector is pending';
comment on column situations.dim is 'Dimension of the vector';
comment on column situations.vector is
    'Vector of the summary, of length 1. No index: it is compared with all of a deployment';
comment on column situations.created_at is 'Creation time of the row, on the server''s clock';
comment on table skill_versions_replaced is 'Earlier content of skill versions that were replaced';
comment on column skill_versions_replaced.owner is 'Owner of the skill';
comment on column skill_versions_replaced.skill_id is 'Skill';
comment on column skill_versions_replaced.version is 'Name of the version';
comment on column skill_versions_replaced.created_at is 'Start of this content, on the caller''s clock';
comment on column skill_versions_replaced.replaced_at is 'End of this content, on the caller''s clock';
comment on function reader_owner() is
    'Owner whose rows the logged-in role may see; null without a row in reader_owners, so that it sees none';
comment on function deployment_now(timestamptz, text, timestamptz, timestamptz, timestamptz) is
    'as_of if given; else the current time of a deployment: the last tick of a simulation, or its start before the first tick; for others the server''s clock in whole minutes, but not before the last tick';
comment on function note_in_force(text, uuid, text, text, timestamptz, timestamptz, timestamptz) is
    'Note whose lessons a deployment has: generated by known_at, stored before stored_before and not superseded by in_force_at. The deployment''s own note, else that of its skill. Always one row, with nulls if there is none';
comment on function episode_is_visible(timestamptz, tstzmultirange, timestamptz) is
    'True if an entry was stored and not in the archive at as_of';
comment on function episode_is_usable(timestamptz, tstzmultirange, timestamptz, timestamptz) is
    'True if an entry was visible and not expired at as_of; searches and reuse find only these';
comment on function vector_columns(int, text) is
    'The six vector columns of episodic_vectors for a vector of that width: one is set, the others are null';
comment on function padded_vector(real[], int) is
    'The vector, padded with zeros to the width; padding does not change an inner product';
