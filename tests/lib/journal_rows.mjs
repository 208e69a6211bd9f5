// Inserts rows of the journal as its writes would store them, for tests of reads.
import { createHash, randomUUID } from 'node:crypto';

let made = 0;
const uuid = () => `0191${(made++).toString(16).padStart(4, '0')}-0000-7000-8000-${randomUUID().slice(-12)}`;

/** Inserts rows with `query(sql, values)`. */
export function journalRows(query) {
  const stored = (value) => {
    const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
    return value !== null && typeof value === 'object' && !isTexts ? JSON.stringify(value) : value;
  };
  const insert = (table, row) => {
    const names = Object.keys(row);
    const values = Object.values(row).map(stored);
    return query(`insert into daybook.${table} (${names}) values (${names.map((_, i) => `$${i + 1}`)})`, values);
  };
  /** Ends the current version and inserts the next one. */
  const change = async (id, at, changes) => {
    const names = Object.keys(changes);
    const values = Object.values(changes).map(stored);
    const kept = ['owner', 'id', 'kind', 'status', 'status_reason', 'at', 'text_id', 'text', 'symbol', 'action', 'side', 'invalidation', 'target', 'horizon',
      'evidence', 'tags', 'deployment_id', 'thesis_id', 'parallel', 'outcome', 'validates'].filter((name) => !names.includes(name));
    await query(
      `with old as (update daybook.memories set known_until = $2 where id = $1 and known_until = 'infinity' returning *)
       insert into daybook.memories (version, known_from, embedding_status, ${[...kept, ...names]})
       select version + 1, $2::timestamptz, 'none', ${[...kept, ...names.map((_, i) => `$${i + 3}`)]} from old`,
      [id, at, ...values],
    );
  };
  return {
    change,
    /** A note, proposal, risk note, decision or thesis; returns its id. */
    async memory({ owner = 'local', at, kind = 'note', ...changes }) {
      const id = uuid();
      const more = kind === 'decision' ? { action: 'buy' } : {};
      const status = kind === 'thesis' ? 'open' : 'active';
      await insert('memories', { owner, id, version: 1, known_from: at, kind, status, at, text_id: id, text: `A ${kind}`, ...more, ...changes });
      return id;
    },
    thesis({ symbol = 'ETH', text = `Thesis of ${symbol}`, ...changes }) {
      return this.memory({ kind: 'thesis', symbol, text, ...changes });
    },
    close: (id, at, { reason = null, outcome = null, validates = [] } = {}) => change(id, at, { status: 'closed', status_reason: reason, outcome, validates }),
    retract: (id, at) => change(id, at, { status: 'retracted', status_reason: 'wrong' }),
    /** A lesson that was learned at `at`, and validated at `validated`; returns its id. */
    async lesson({ owner = 'local', at, validated, takeaway = `Takeaway ${made}`, evidence = ['a log'] }) {
      const id = uuid();
      const keys = `{${parseInt(createHash('sha256').update(id).digest('hex').slice(0, 7), 16)}}`;
      const row = { owner, id, at, context: 'c', outcome: 'o', takeaway, tags: ['all'], evidence, similar_keys: keys };
      await insert('lessons', { ...row, version: 1, known_from: at, known_until: validated ?? 'infinity', status: 'proposed', status_at: at });
      if (validated)
        await insert('lessons', { ...row, version: 2, known_from: validated, status: 'validated', status_at: validated, validation: { metric: 'm', value: 1, sample_size: 3 } });
      return id;
    },
    async retrieval(deployment_id, { owner = 'local', at, symbol = null, text = 'what do I know', selection = [] }) {
      const id = uuid();
      await insert('memory_retrievals', { owner, id, kind: 'memories', at, query: { text }, filters: {}, candidates: '[]', selection, deployment_id, symbol, rendered: 'x', tokens: 1 });
      return id;
    },
    async order(deployment_id, { owner = 'local', at, symbol = 'BTC', action = 'buy', side = 'long', ...changes }) {
      const id = uuid();
      await insert('orders', { owner, id, deployment_id, at, symbol, action, side, ...changes });
      return id;
    },
    async event(deployment_id, { owner = 'local', kind, at, symbol = 'BTC', subject_id, data = {} }) {
      const id = uuid();
      await insert('memory_events', { owner, id, journal_id: deployment_id, kind, at, symbol, subject_id, data });
      return id;
    },
    async note(deployment_id, { owner = 'local', at, hash = '0123456789abcdef', from = at, to = at, text = '### Sizing\n- Wait' }) {
      const id = uuid();
      const [{ skill_id, version }] = await query('select skill_id, version from daybook.deployments where owner = $1 and id = $2', [owner, deployment_id]);
      await query("update daybook.reflection_notes set status = 'superseded', superseded_at = $2 where deployment_id = $1 and status = 'active'", [deployment_id, at]);
      await insert('reflection_notes', { owner, id, skill_id, version, deployment_id, status: 'active', generated_at: at, window_start: from, window_end: to, lessons_text: text, content_hash: hash, model_used: 'builtin', created_at: '2020-01-01' });
      return id;
    },
  };
}
