# Turns SQL files into C: statements (db/*.sql) with -v what=statements, migrations with -v what=migrations.
#
# A statement file holds statements, each under a line
#   -- name: lesson_get :read :one
# with its lane (:read, :write, :slow) and its shape (:one, :list, :none). Parameters are written :name and become $1, $2, ...
# The first one is always the owner, unless the line says :unowned. PostgreSQL refuses a statement that takes a parameter and
# does not use it, so a statement cannot forget its owner.
# A :read :one statement gets a second text that answers many requests at once: `.together` in db/statement.h.
# Lines under "-- part: columns" are put wherever a later line of the file says {columns}.

BEGIN { count = 0 }

function c_string(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return "    \"" text "\\n\"\n"
}

function fail(text) {
    print "embed.awk: " FILENAME ":" FNR ": " text > "/dev/stderr"
    failed = 1
    exit 1
}

# Replaces :name by $n; leaves ::type and quoted text alone.
function number_params(line,    out, rest, before, name, prev) {
    out = ""
    rest = line
    while (match(rest, /:[a-z_][a-z0-9_]*/)) {
        before = substr(rest, 1, RSTART - 1)
        name = substr(rest, RSTART + 1, RLENGTH - 1)
        prev = substr(before, length(before), 1)
        if (prev == ":") {
            out = out before ":" name
        } else {
            if (!((name) in param)) {
                param[name] = ++params
                param_list = param_list (params > 1 ? ", " : "") "\"" name "\""
            }
            out = out before "$" param[name]
        }
        rest = substr(rest, RSTART + RLENGTH)
    }
    return out rest
}

# The statement for a list of parameters at once: each becomes an array, and a hidden first column says whose row it is.
function together(    i, arrays, names, inner) {
    inner = sql
    for (i = params; i > 0; i--) {
        gsub("[$]" i, "q.p" i, inner)
        arrays = "$" i "::text[]" (arrays == "" ? "" : ", ") arrays
        names = "p" i ", " names
    }
    return c_string("select q.n as _n, r.* from unnest(" arrays ") with ordinality as q (" names "n) cross join lateral (") inner c_string(") as r")
}

function finish_statement() {
    if (name == "")
        return
    declarations = declarations "extern const struct statement " toupper(name) ";\n"
    definitions = definitions "static const char *const " name "_params[] = { " (params ? param_list : "NULL") " };\n" \
        "const struct statement " toupper(name) " = {\n    .name = \"" name "\",\n    .index = " count \
        ",\n    .lane = " lane ",\n    .shape = " shape ",\n    .owned = " (owned ? "true" : "false") ",\n    .param_count = " params ",\n    .params = " name "_params,\n    .sql =\n" sql \
        (lane == "LANE_READ" && shape == "SHAPE_ONE" ? "    ,\n    .together_name = \"" name "_together\",\n    .together =\n" together() : "") "};\n\n"
    list = list "    &" toupper(name) ",\n"
    count++
    name = ""
}

function add_line(line,    at, word) {
    if (part != "") {
        parts[part] = parts[part] line "\n"
        return
    }
    while (match(line, /\{[a-z_]+\}/)) {
        word = substr(line, RSTART + 1, RLENGTH - 2)
        if (!(word in parts))
            fail("there is no part " word)
        line = substr(line, 1, RSTART - 1) parts[word] substr(line, RSTART + RLENGTH)
    }
    at = split(line, split_lines, "\n")
    for (i = 1; i <= at; i++)
        if (split_lines[i] != "")
            sql = sql c_string(number_params(split_lines[i]))
}

function start_statement(    i) {
    finish_statement()
    part = ""
    name = $3
    if (name !~ /^[a-z][a-z0-9_]*$/)
        fail("bad statement name")
    lane = shape = sql = param_list = ""
    params = 0
    owned = 1
    delete param
    for (i = 4; i <= NF; i++) {
        if ($i == ":read" || $i == ":write" || $i == ":slow")
            lane = "LANE_" toupper(substr($i, 2))
        else if ($i == ":one" || $i == ":list" || $i == ":none")
            shape = "SHAPE_" toupper(substr($i, 2))
        else if ($i == ":unowned")
            owned = 0
        else
            fail("unknown word " $i)
    }
    if (lane == "" || shape == "")
        fail("statement " name " needs a lane and a shape")
    if (owned)
        number_params(":owner")
}

function finish_migration() {
    if (number != "")
        definitions = definitions "    { .number = " (number + 0) ", .name = \"" name "\", .sql =\n" sql "    },\n"
    number = ""
}

what == "statements" && FNR == 1 { finish_statement(); delete parts; part = "" }
what == "statements" && /^-- name: / { start_statement(); next }
what == "statements" && /^-- part: / { finish_statement(); part = $3; parts[part] = ""; next }
what == "statements" && /^[ \t]*--/ { next }
what == "statements" && /^[ \t]*$/ { next }
what == "statements" {
    if (name == "" && part == "")
        fail("text before the first statement")
    add_line($0)
}

what == "migrations" && FNR == 1 {
    finish_migration()
    file = FILENAME
    sub(/.*\//, "", file)
    if (file !~ /^[0-9][0-9][0-9][0-9]_[a-z0-9_]+\.sql$/)
        fail("a migration is called 0001_name.sql")
    number = substr(file, 1, 4)
    name = substr(file, 6, length(file) - 9)
    sql = ""
    if (number + 0 != ++count)
        fail("migrations are numbered without a gap")
}
what == "migrations" { sql = sql c_string($0) }

END {
    if (failed)
        exit 1
    if (what == "statements") {
        finish_statement()
        printf "/* Made by tools/embed.awk. */\n#ifndef DAYBOOK_STATEMENTS_GEN_H\n#define DAYBOOK_STATEMENTS_GEN_H\n%s#endif\n", declarations > header
        printf "/* Made by tools/embed.awk. */\n#include \"db/statement.h\"\n\n%sconst struct statement *const statements[] = {\n%s};\nconst int statements_count = %d;\n", definitions, list, count > source
    } else {
        finish_migration()
        printf "/* Made by tools/embed.awk. */\n#include \"db/migrations.h\"\n\nconst struct migration migrations[] = {\n%s};\nconst int migrations_count = %d;\n", definitions, count > source
    }
}
