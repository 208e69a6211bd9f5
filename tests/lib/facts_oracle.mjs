// An independent model of facts, written from the description of the memory that Daybook follows: a key-value store with expiry, provenance,
// corrections, decay by calls, a write policy, and the merge at the start of a session. Names and behaviour are those of the description, with
// its faults. `Mended` changes only what the service does otherwise on purpose, each with its reason.

const DAY = 86400;

export const PROVENANCE_LEVELS = { user_stated: 1.0, tool_verified: 0.9, agent_inferred: 0.6, recalled: 0.5 };

const WRITE_CRITERIA = {
  user_stated_preference: true,
  tool_result_verified: true,
  task_completion_strategy: true,
  intermediate_reasoning: false,
  failed_tool_call: false,
  speculative_inference: false,
};
const TTL_MAP = { user_stated_preference: null, task_completion_strategy: DAY * 90, tool_result_verified: DAY * 7, session_summary: DAY * 30 };

export class MemoryWritePolicy {
  should_write({ type }) {
    if (!(type in WRITE_CRITERIA)) return false;
    return WRITE_CRITERIA[type];
  }
  ttl_for({ type }) {
    return TTL_MAP[type] ?? null;
  }
}

/** The store: expire() counts from now, and set() ends an earlier expiry. */
class Store {
  constructor(clock) {
    this.clock = clock;
    this.rows = new Map();
  }
  set(key, text) {
    this.rows.set(key, { text, until: Infinity });
  }
  expire(key, seconds) {
    this.rows.get(key).until = this.clock.now + seconds;
  }
  get(key) {
    const row = this.rows.get(key);
    return row && row.until > this.clock.now ? row.text : undefined;
  }
  delete(key) {
    this.rows.delete(key);
  }
  keys() {
    return [...this.rows.keys()].filter((key) => this.get(key) !== undefined);
  }
}

export class KeyValueMemory {
  /** `clock`: {now} in seconds. */
  constructor(clock) {
    this.clock = clock;
    this.store = new Store(clock);
  }
  write(key, value, source, ttl_seconds = null, confidence = 1.0) {
    this.store.set(key, JSON.stringify({ value, source, written_at: this.clock.now, confidence, ttl: ttl_seconds }));
    if (ttl_seconds) this.store.expire(key, ttl_seconds);
  }
  read(key) {
    const raw = this.store.get(key);
    if (!raw) return undefined;
    const entry = JSON.parse(raw);
    if (this.clock.now - entry.written_at > DAY * 7 && entry.confidence < 0.8) entry._stale_warning = true;
    return entry;
  }
  correct(key, value, source = 'user_correction') {
    const existing = this.read(key);
    if (existing) this.store.set(`${key}:prev:${Math.floor(this.clock.now)}`, JSON.stringify(existing));
    this.write(key, value, source, null, 1.0);
  }
  delete(key) {
    this.store.delete(key);
  }
  list_keys() {
    return this.store.keys();
  }
}

export function store_with_provenance(memory, key, value, source, ttl_seconds) {
  const confidence = PROVENANCE_LEVELS[source] ?? 0.5;
  memory.write(key, value, source, ttl_seconds, confidence);
  if (confidence < 0.7) memory.write(`${key}:needs_verification`, 'true', 'system', 3600);
}

export function decay_confidences(memory, decay_rate = 0.05) {
  for (const key of memory.list_keys()) {
    const entry = memory.read(key);
    if (!entry || entry.source !== 'agent_inferred') continue;
    const confidence = entry.confidence - decay_rate;
    if (confidence < 0.3) memory.delete(key);
    else memory.write(key, entry.value, entry.source, null, confidence);
  }
}

/** `corrections`: [{key, new_value}]. */
export function load_session_memory(memory, corrections) {
  const merged = {};
  for (const key of memory.list_keys()) merged[key] = memory.read(key);
  for (const { key, new_value } of corrections)
    if (key in merged) {
      merged[key].value = new_value;
      merged[key].source = 'in_session_correction';
    }
  return merged;
}

/**
 * The same memory without the faults of the description. Each is a difference of the service on purpose:
 *   decay resets written_at: an inference would look fresh after each run, and never become stale
 *   decay drops the time to live: an inference that was about to expire would stay
 *   a correction drops the time to live: a corrected price would be believed for ever
 *   decay counts in binary: 0.6 is below 0.3 after six steps of 0.05, not at it
 *   copies for the audit and flags are keys like facts: decay deletes the copies, and a session loads both as facts
 */
export class Mended extends KeyValueMemory {
  #put(key, entry) {
    this.store.set(key, JSON.stringify(entry));
    if (entry.ttl) this.store.rows.get(key).until = entry.written_at + entry.ttl;
  }
  correct(key, value) {
    const ttl = this.read(key)?.ttl ?? null;
    super.correct(key, value);
    this.#put(key, { value, source: 'user_correction', written_at: this.clock.now, confidence: 1.0, ttl });
  }
  list_keys() {
    return super.list_keys().filter((key) => !key.includes(':prev:') && !key.endsWith(':needs_verification'));
  }
  decay(rate = 0.05) {
    for (const key of this.list_keys()) {
      const { _stale_warning, ...entry } = this.read(key);
      if (entry.source !== 'agent_inferred') continue;
      const confidence = Number((entry.confidence - rate).toFixed(9));
      if (confidence < 0.3) this.delete(key);
      else this.#put(key, { ...entry, confidence });
    }
  }
}
