-- Text that embed.awk must leave alone, and text that it must not.

-- A part may use parts above it, and comments in it are removed.
-- part: key
t.owner = :owner and t.id = :id::uuid
-- part: filter
{key} -- the primary key
and (
    t.kind = 'a:b' or t.kind = ':id' -- :not_a_parameter 'nor a string
)

-- name: quotes :slow :list
select 'a:b', ':id', 'it''s :id', '', E'\':id\\', e'{key}', U&'d\0061t:id', '{key}', "x:id", "{key}", "a""b:id", '-- :id', '/* :id', '$1'
from t
where {filter}

-- name: casts :slow :list
select t.a::text, :id::uuid::text, t.list[1:2], t.list[1 : n], t.list[n:m], t.list[:from], (t.list)[1 : t.dim]::text, array[:from::int, :to::int],
    -:from::int, a<:to, f(x => :to), '1'::int

    from t where t.owner=:owner

-- name: bodies :slow :list
select $$ :id {key} ' " -- $$, $x$ $$ :id $x$, $_1$:id$_1$, price$, 1 /* :id ' /* nested {key} */ " */ + 2
from t -- 'a comment :id
where owner = :owner /* {nothing} */

-- name: lines :slow :list
select 'two
-- lines, :id

of {text}', E'\x1f'
from t where t.owner = :owner

-- name: together :read :one
select '$1', 'q.p1', :b::int, :c, :d, :e, :f, :g, :h, :i, :j, :k
from (select 1
      where {filter}) t
where :owner <> ''

-- name: nobody :read :list :unowned
select 1

-- name: group :write :one :together
with given as (
    select :owner as owner, :id::uuid as id, coalesce(:tags::text[], '{}') as tags -- each request: :x
), stored as (
    insert into t (owner, id, tags)
    select owner, id, tags
    from given
    returning *
)
select g.id, exists (
    select from stored s where s.id = g.id) as stored
from given g
