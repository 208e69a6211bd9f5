-- Labels. A version is known from known_from until known_until.

-- Ends the current version and starts a new one. No row: the new one would not be the last.
-- name: label_put :write :list
with ended as (
    update labels set known_until = :at::timestamptz
    where owner = :owner and label = :label and known_until = 'infinity' and known_from < :at::timestamptz
    returning 1
)
insert into labels (owner, label, known_from, caption)
select :owner, :label, :at::timestamptz, :caption from (select count(*) from ended) as after_that
where not exists (
    select from labels l
    where l.owner = :owner and l.label = :label
      and (l.known_from >= :at::timestamptz or l.known_until > :at::timestamptz and l.known_until < 'infinity'))
on conflict do nothing
returning label, caption, known_from

-- name: label_get :read :one
select label, caption, known_from
from labels
where owner = :owner and label = :label and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz

-- name: label_delete :write :one
update labels set known_until = :at::timestamptz
where owner = :owner and label = :label and known_until = 'infinity' and known_from < :at::timestamptz
returning label

-- name: label_history :read :list
select label, caption, known_from, nullif(known_until, 'infinity') as known_until,
    known_from as _cursor_1, label as _cursor_2
from labels
where owner = :owner and label = :label and known_from <= :as_of::timestamptz
  and (known_from, label) > (coalesce(:cursor_1::timestamptz, '-infinity'), coalesce(:cursor_2::text, ''))
order by known_from, label
limit :limit::int + 1
