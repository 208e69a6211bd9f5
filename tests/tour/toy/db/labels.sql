-- Labels. A version is known from known_from until known_until.

-- Ends the current version and starts a new one, or returns the current one if it says the same already, so
-- that a retry stores nothing. No row: the new version would not be the last.
-- name: label_put :write :list
with same as (
    select label, caption, known_from from labels
    where owner = :owner and label = :label and known_until = 'infinity' and known_from <= :at::timestamptz
      and caption = :caption
), ended as (
    update labels set known_until = :at::timestamptz
    where owner = :owner and label = :label and known_until = 'infinity' and known_from < :at::timestamptz
      and not exists (select from same)
    returning 1
), started as (
    insert into labels (owner, label, known_from, caption)
    select :owner, :label, :at::timestamptz, :caption from (select count(*) from ended) as after_that
    where not exists (select from same)
      and not exists (
        select from labels l
        where l.owner = :owner and l.label = :label
          and (l.known_from >= :at::timestamptz
               or l.known_until > :at::timestamptz and l.known_until < 'infinity'))
    on conflict do nothing
    returning label, caption, known_from
)
select label, caption, known_from from same
union all
select label, caption, known_from from started

-- name: label_get :read :one
select label, caption, known_from
from labels
where owner = :owner and label = :label
  and known_from <= :as_of::timestamptz and known_until > :as_of::timestamptz

-- A version that ends when it starts is never read, but stays in the history.
-- name: label_delete :write :one
update labels set known_until = :at::timestamptz
where owner = :owner and label = :label and known_until = 'infinity' and known_from <= :at::timestamptz
returning label

-- name: label_history :read :list
select label, caption, known_from, nullif(known_until, 'infinity') as known_until, known_from as _cursor_1
from labels
where owner = :owner and label = :label and known_from <= :as_of::timestamptz
  and known_from > coalesce(:cursor_1::timestamptz, '-infinity')
order by known_from
limit :limit::int + 1
