# Turns SQL files into C: statements (db/*.sql) with -v what=statements, migrations and the list of what they create with
# -v what=migrations.
# For statements it also writes `text`, a file of SQL with every statement as the service sends it.
#
# A statement file holds statements, each under a line
#   -- name: lesson_get :read :one
# with its lane (:read, :write, :slow) and its shape (:one, :list, :none). Parameters are written :name and become $1, $2, ...
# The first one is always the owner, unless the line says :unowned. PostgreSQL refuses a statement that takes a parameter and
# does not use it, so a statement cannot forget its owner.
# A :read :one statement gets a second form that answers many requests at once: `.together` in db/statement.h. So does a :write :one
# statement that is marked :together: all its parameters are in its first WITH query, `given`, a row for each request, and the
# last SELECT returns a row for each.
#
# Lines under "-- part: columns" replace {columns} in the statements and parts below it, up to the end of the file. That is the
# whole template language: what two files share is a view or a function of a migration.
# Quoted text is left alone: 'strings', E'strings', "names" and $$bodies$$. Comments are removed.

BEGIN { count = 0 }

function fail(text) {
    print "embed.awk: " place ": " text > "/dev/stderr"
    failed = 1
    exit 1
}

function c_string(text) {
    if (what == "statements") # migrations are copied verbatim: their checksums must not change
        gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    return "    \"" text "\\n\"\n"
}

function c_lines(text,    lines, n, i, out) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++)
        out = out c_string(lines[i])
    return out
}

# ---- quoted text ----

# The length of the quoted text or comment that `text` starts with. `before` is the code in front of it: an E makes backslashes
# escape. Two quotes in a row, 'it''s', read as two strings, which is the same here.
function quote_length(text, before,    tag, at) {
    if (text ~ /^'/ && before ~ /(^|[^A-Za-z0-9_$])[eE]$/)
        return match(text, /^'([^'\\]|\\(.|\n))*'/) ? RLENGTH : 0
    if (text ~ /^'/)
        return match(text, /^'[^']*'/) ? RLENGTH : 0
    if (text ~ /^"/)
        return match(text, /^"[^"]*"/) ? RLENGTH : 0
    if (text ~ /^--/)
        return match(text, /\n/) ? RSTART - 1 : length(text)
    if (text ~ /^\/[*]/)
        return comment_length(text)
    match(text, /^\$[A-Za-z0-9_]*\$/)
    tag = substr(text, 1, RLENGTH)
    at = index(substr(text, RLENGTH + 1), tag)
    return at ? 2 * length(tag) + at - 1 : 0
}

# Comments between /* and */ nest.
function comment_length(text,    depth, at) {
    at = 1
    do {
        depth += substr(text, at, 2) == "/*" ? 1 : -1
        at += 2
        if (depth > 0 && !match(substr(text, at), /\/[*]|[*]\//))
            return 0
        at += depth > 0 ? RSTART - 1 : 0
    } while (depth > 0)
    return at - 1
}

# `text` without comments, and with a mark, \001number\002, for each quoted piece, so that later steps see only code.
function hide_quotes(text,    out, len, before) {
    while (match(text, /'|"|--|\/[*]|\$([A-Za-z_][A-Za-z0-9_]*)?\$/)) {
        before = substr(text, 1, RSTART - 1)
        text = substr(text, RSTART)
        len = quote_length(text, before)
        if (!len)
            fail("a quote or a comment has no end")
        out = out before
        if (text ~ /^--/ || text ~ /^\/[*]/) {
            out = out " "
        } else {
            hidden[++hidden_count] = substr(text, 1, len)
            out = out "\001" hidden_count "\002"
        }
        text = substr(text, len + 1)
    }
    return out text
}

function show_quotes(text,    out) {
    while (match(text, /\001[0-9]+\002/)) {
        out = out substr(text, 1, RSTART - 1) hidden[substr(text, RSTART + 1, RLENGTH - 2)]
        text = substr(text, RSTART + RLENGTH)
    }
    return out text
}

# ---- statements ----

# Inserts the parts with the indentation of their line, and drops the blanks and empty lines left by comments.
function expand(text,    out, word, indent, lines) {
    text = hide_quotes(text)
    while (match(text, /[{][a-z0-9_.]+[}]/)) {
        word = substr(text, RSTART + 1, RLENGTH - 2)
        if (!(word in parts))
            fail("there is no part " word " above")
        out = out substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        indent = out
        sub(/.*\n/, "", indent)
        sub(/[^ ].*/, "", indent)
        lines = parts[word]
        gsub(/\n/, "\n" indent, lines)
        out = out lines
    }
    text = out text
    gsub(/[ \t]+\n/, "\n", text)
    gsub(/\n\n+/, "\n", text)
    sub(/^\n/, "", text)
    sub(/[ \t\n]+$/, "", text)
    return text
}

function param_number(word) {
    if (!(word in numbers)) {
        numbers[word] = ++params
        names[params] = word
    }
    return numbers[word]
}

# Replaces :name by prefix and number. A colon after a colon belongs to a ::type, one after a value to an array's [from:to].
function number_params(text, prefix,    out, before, word) {
    while (match(text, /:[a-z_][a-z0-9_]*/)) {
        before = substr(text, 1, RSTART - 1)
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        out = out before (before ~ /[:A-Za-z0-9_)\]\002]$/ ? word : prefix param_number(substr(word, 2)))
    }
    return out text
}

# The statement for several requests at once: each parameter becomes an array, and a hidden first column has the request's number.
function together(    i, arrays, columns) {
    for (i = 1; i <= params; i++) {
        arrays = arrays (i > 1 ? ", " : "") "$" i "::text[]"
        columns = columns "p" i ", "
    }
    return "select q.n as _n, r.* from unnest(" arrays ") with ordinality as q (" columns "n) cross join lateral (\n" \
        show_quotes(number_params(body, "q.p")) "\n) as r"
}

# The same for a statement that writes. Only its first WITH query has parameters.
function write_together(    i, arrays, columns, given, rest, at, last) {
    for (i = 1; i <= params; i++) {
        arrays = arrays (i > 1 ? ", " : "") "$" i "::text[]"
        columns = columns "p" i ", "
    }
    at = index(body, "\n), ")
    if (body !~ /^with given as \(\n    select / || !at)
        fail("a :together statement begins with given as (select ...)")
    given = substr(body, 1, at - 1)
    rest = substr(body, at)
    if (number_params(rest, "$") != rest)
        fail("all parameters of a :together statement are in `given`")
    sub(/\n    select /, "&q.n as _n, ", given)
    for (i = 1; match(substr(rest, i), /\nselect /); i += RSTART + RLENGTH - 1)
        last = i + RSTART + RLENGTH - 1
    rest = substr(rest, 1, last - 1) "_n, " substr(rest, last)
    return show_quotes(number_params(given, "q.p") "\n    from unnest(" arrays ") with ordinality as q (" columns "n)" rest)
}

function emit(form, sql,    i, list) {
    for (i = 1; i <= params; i++)
        list = list (i > 1 ? ", " : "") "$" i " " names[i]
    readable = readable "-- " form heading (list == "" ? "" : ": " list) "\n" sql ";\n\n"
    return c_lines(sql)
}

function finish_statement(    i, list, code) {
    for (i in numbers)
        delete numbers[i]
    params = 0
    if (owned)
        param_number("owner")
    body = expand(body)
    code = number_params(body, "$")
    for (i = 1; i <= params; i++)
        list = list (i > 1 ? ", " : "") "\"" names[i] "\""
    declarations = declarations "extern const struct statement " toupper(name) ";\n"
    definitions = definitions "static const char *const " name "_params[] = { " (params ? list : "NULL") " };\n" \
        "const struct statement " toupper(name) " = {\n    .name = \"" name "\",\n    .index = " count \
        ",\n    .lane = " lane ",\n    .shape = " shape ",\n    .owned = " (owned ? "true" : "false") \
        ",\n    .param_count = " params ",\n    .params = " name "_params,\n    .sql =\n" emit(name, show_quotes(code))
    if (lane == "LANE_READ" && shape == "SHAPE_ONE" || grouped)
        definitions = definitions "    ,\n    .together_name = \"" name "_together\",\n    .together =\n" \
            emit(name "_together", grouped ? write_together() : together())
    definitions = definitions "};\n\n"
    all = all "    &" toupper(name) ",\n"
    count++
}

# Finishes the current statement or part.
function finish() {
    if (part != "") {
        body = expand(body) # before the part is registered: a part must not contain itself
        parts[part] = body
    } else if (name != "")
        finish_statement()
    part = name = body = ""
}

function start_statement(    i) {
    name = $3
    if (name !~ /^[a-z][a-z0-9_]*$/)
        fail("bad statement name")
    lane = shape = heading = ""
    owned = 1
    grouped = 0
    for (i = 4; i <= NF; i++) {
        if ($i == ":read" || $i == ":write" || $i == ":slow")
            lane = "LANE_" toupper(substr($i, 2))
        else if ($i == ":one" || $i == ":list" || $i == ":none")
            shape = "SHAPE_" toupper(substr($i, 2))
        else if ($i == ":unowned")
            owned = 0
        else if ($i == ":together")
            grouped = 1
        else
            fail("unknown word " $i)
        if ($i != ":together")
            heading = heading " " $i
    }
    if (lane == "" || shape == "")
        fail("statement " name " needs a lane and a shape")
    if (grouped && (lane != "LANE_WRITE" || shape != "SHAPE_ONE"))
        fail("only a :write :one statement is marked :together")
}

what == "statements" && FNR == 1 {
    finish()
    for (part in parts)
        delete parts[part]
    part = ""
}
what == "statements" && /^-- (name|part): / {
    finish()
    place = FILENAME ":" FNR
    if ($2 == "part:")
        part = $3
    else
        start_statement()
    next
}
what == "statements" {
    if (name == "" && part == "") {
        place = FILENAME ":" FNR
        if ($0 !~ /^[ \t]*(--.*)?$/)
            fail("text before the first statement")
    }
    body = body $0 "\n"
}

# ---- migrations ----

function finish_migration() {
    if (number != "")
        definitions = definitions "    { .number = " (number + 0) ", .compatible_from = " compatible \
            ", .name = \"" name "\", .sql =\n" sql "    },\n"
    number = ""
}

what == "migrations" && FILENAME ~ /objects[.]txt$/ { # comes last
    if ($0 !~ /^#/)
        objects = objects c_string($0)
    next
}
what == "migrations" && FNR == 1 {
    finish_migration()
    place = FILENAME
    file = FILENAME
    sub(/.*\//, "", file)
    if (file !~ /^[0-9][0-9][0-9][0-9]_[a-z0-9_]+\.sql$/)
        fail("a migration is called 0001_name.sql")
    number = substr(file, 1, 4)
    name = substr(file, 6, length(file) - 9)
    sql = ""
    if (number + 0 != ++count)
        fail("migrations are numbered without a gap")
    compatible = number + 0
}
what == "migrations" && /^-- compatible-from: / {
    if ($3 !~ /^[0-9]+$/ || $3 + 0 < 1 || $3 + 0 > number + 0)
        fail("compatible-from is the number of this migration or of an earlier one")
    compatible = $3 + 0
}
what == "migrations" { sql = sql c_string($0) }

END {
    if (failed)
        exit 1
    if (what == "statements") {
        finish()
        if (failed)
            exit 1
        printf "/* Generated by tools/embed.awk. */\n#ifndef DAYBOOK_STATEMENTS_GEN_H\n#define DAYBOOK_STATEMENTS_GEN_H\n%s#endif\n", declarations > header
        printf "/* Generated by tools/embed.awk. */\n#include \"db/statement.h\"\n\n%sconst struct statement *const statements[] = {\n%s};\nconst int statements_count = %d;\n", definitions, all, count > source
        if (text != "")
            printf "-- Every statement as the service sends it. Made by tools/embed.awk from db/*.sql.\n\n%s", readable > text
    } else {
        finish_migration()
        printf "/* Generated by tools/embed.awk. */\n#include \"db/migrations.h\"\n\nconst struct migration migrations[] = {\n%s};\nconst int migrations_count = %d;\n\nconst char migrations_objects[] =\n%s    \"\";\n", definitions, count, objects > source
    }
}
