-- The effect of a skill's lessons: its closed trades, and the notes that their lessons came from.

-- The versions of a skill known at as_of. A trade proves that its version existed, even if the version was
-- stored later.
-- name: ab_versions :slow :list
select v.version,
    (select true from trade_history t
     where t.owner = :owner and t.skill_id = v.skill_id and t.version = v.version and t.status = 'closed'
       and t.exit_tick_at <= :as_of::timestamptz
     order by t.exit_tick_at desc, t.id desc
     limit 1) is not null as _traded
from skill_versions v
where v.owner = :owner and v.skill_id = :skill_id
  and (v.created_at <= :as_of::timestamptz
       or exists (select from skill_versions_replaced r
                  where r.owner = :owner and r.skill_id = v.skill_id and r.version = v.version
                    and r.created_at <= :as_of::timestamptz)
       or (select true from trade_history t
           where t.owner = :owner and t.skill_id = v.skill_id and t.version = v.version
             and t.entry_tick_at <= :as_of::timestamptz
           order by t.entry_tick_at desc, t.id desc
           limit 1))
order by v.version

-- The closed trades of one version, page by page along the index by exit. The caller does not
-- depend on the order.
-- name: ab_trades :slow :list
select t.entry_lessons_hash, t.entry_regime_tag, t.symbol,
    (t.realized_pnl_usd - t.fees_usd)::float8 as net_usd, t.realized_pnl_usd::float8 as realized_pnl_usd,
    100 * (t.realized_pnl_usd - t.fees_usd)::float8 / nullif(t.entry_size_usd, 0)::float8 as return_pct,
    (extract(epoch from t.entry_tick_at) * 1000000)::bigint as entry_us,
    t.exit_tick_at as _cursor_1, t.id as _cursor_2
from trade_history t
where t.owner = :owner and t.skill_id = :skill_id and t.version = :version::text and t.status = 'closed'
  and (t.exit_tick_at, t.id) < (
      coalesce(:cursor_1::timestamptz, :as_of::timestamptz + interval '1 microsecond'),
      coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
  and (:deployment_id::uuid is null or t.deployment_id = :deployment_id::uuid)
  and (:mode::text is null or exists (
      select from deployments d where d.owner = :owner and d.id = t.deployment_id and d.mode = :mode::text))
  and (:symbol::text is null or t.symbol = :symbol::text)
  and (:regime::text is null or t.entry_regime_tag is not distinct from nullif(:regime::text, 'none'))
  and (:since::timestamptz is null or t.entry_tick_at >= :since::timestamptz)
  and (:until::timestamptz is null or t.entry_tick_at < :until::timestamptz)
order by t.exit_tick_at desc, t.id desc
limit :limit::int + 1

-- part: note_columns
array_to_string(n.suppressed, ',') as suppressed, n.generated_at as _cursor_1, n.id as _cursor_2
-- part: after_cursor
(n.generated_at, n.id) > (
    coalesce(:cursor_1::timestamptz, '-infinity'),
    coalesce(:cursor_2::uuid, '00000000-0000-0000-0000-000000000000'))
order by n.generated_at, n.id
limit :limit::int + 1

-- The notes whose text has one of the hashes.
-- name: ab_notes :slow :list
select n.content_hash, n.id, {note_columns}
from reflection_notes n
where n.owner = :owner and n.skill_id = :skill_id and n.generated_at <= :as_of::timestamptz
  and n.content_hash = any (:hashes::text[])
  and {after_cursor}

-- The newest notes with their texts.
-- name: ab_texts :slow :list
select n.content_hash, n.id, n.lessons_text, {note_columns}
from (select * from reflection_notes x
      where x.owner = :owner and x.skill_id = :skill_id and x.generated_at <= :as_of::timestamptz
      order by x.generated_at desc, x.id desc
      limit :max_texts::int) n
where {after_cursor}
