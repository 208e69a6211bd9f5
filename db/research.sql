-- The research step: similar cases for its prompt, and what reuse has saved.

-- part: case_columns
e.id, score, e.ticker, e.created_at, e.question, e.answer, e.probability, e.confidence
-- The newest usable entries: enough to include old cases, and few enough to compare all. A search by the vector index could give another
-- result once more entries are stored.
-- part: candidates
select m.id, m.created_at, m.words, m.embedding_status
from episodic_memory m
where m.owner = :owner and m.task_type = :task_type and m.ticker <> :other_than
  and episode_is_usable(m.created_at, m.away, m.expires_at, :as_of::timestamptz)
order by m.created_at desc, m.id desc
limit 5000

-- The count of candidates that have no vector yet is in every row; without a case there is one row with the count alone. For
-- `v.model || ''` see embeddings_store.
-- name: research_cases :slow :list
with candidates as materialized (
    select c.id, c.created_at, c.embedding_status from ({candidates}) c
)
select w.pending, {case_columns}
from (select count(*) filter (where embedding_status = 'pending') as pending from candidates) w
left join (select c.id, round(-(case :width::int
                   when 384 then v.v384 <#> :query_halfvec::halfvec
                   when 768 then v.v768 <#> :query_halfvec::halfvec
                   when 1024 then v.v1024 <#> :query_halfvec::halfvec
                   when 1536 then v.v1536 <#> :query_halfvec::halfvec
                   when 3072 then v.v3072 <#> :query_halfvec::halfvec
                   else v.v4000 <#> :query_halfvec::halfvec
               end)::numeric, 6) as score
           from candidates c
           join episodic_vectors v on v.owner = :owner and v.episode_id = c.id and v.model || '' = :query_model and v.dim = :query_dim::int
           order by score desc, c.created_at desc, c.id limit :k::int) s on true
left join episodic_memory e on e.owner = :owner and e.id = s.id
order by score desc, e.created_at desc, e.id

-- Without a vector of the question: entries that contain any of its words. None is left out.
-- name: research_cases_by_words :slow :list
select 0 as pending, {case_columns}
from (select c.id, round(ts_rank(c.words, q.any_word, 1)::numeric, 6) as score
      from ({candidates}) c, (select replace(plainto_tsquery('english', :query_text)::text, '&', '|')::tsquery as any_word) q
      where c.words @@ q.any_word
      order by score desc, c.created_at desc, c.id limit :k::int) s
join episodic_memory e on e.owner = :owner and e.id = s.id
order by score desc, e.created_at desc, e.id

-- Reads are calls saved; entries, archived ones included, are calls made.
-- name: research_savings :slow :list
with saved as (
    select task_type, count(*) as calls_saved, count(cost_usd) as calls_priced, sum(cost_usd) as saved_usd
    from episodic_reads
    where owner = :owner and read_at <= :as_of::timestamptz
      and (:since::timestamptz is null or read_at >= :since::timestamptz) and (:until::timestamptz is null or read_at < :until::timestamptz)
      and (:only_task::text is null or task_type = :only_task::text)
    group by task_type
), made as (
    select task_type, count(*) as calls_made
    from episodic_memory
    where owner = :owner and created_at <= :as_of::timestamptz
      and (:since::timestamptz is null or created_at >= :since::timestamptz)
      and (:until::timestamptz is null or created_at < :until::timestamptz)
      and (:only_task::text is null or task_type = :only_task::text)
    group by task_type
), kinds as (
    select task_type, coalesce(calls_saved, 0) as calls_saved, coalesce(calls_made, 0) as calls_made, coalesce(calls_priced, 0) as calls_priced,
        saved_usd
    from saved full join made using (task_type)
)
select task_type, calls_saved, calls_made, round(calls_saved::numeric / (calls_saved + calls_made), 6) as reuse_rate, calls_priced, saved_usd,
    sum(calls_saved) over () as _calls_saved, sum(calls_made) over () as _calls_made,
    round(sum(calls_saved) over () / sum(calls_saved + calls_made) over (), 6) as _reuse_rate,
    sum(calls_priced) over () as _calls_priced, sum(saved_usd) over () as _saved_usd
from kinds
order by calls_saved desc, calls_made desc, task_type
limit :limit::int + 1
