# Turns SQL files into C: statements (db/*.sql) with -v what=statements, migrations with -v what=migrations.
#
# A statement file holds statements, each under a line
#   -- name: lesson_get :read :one
# with its lane (:read, :write, :slow) and its shape (:one, :list, :none). Parameters are written :name and become $1, $2, ...
# The first one is always the owner, unless the line says :unowned. PostgreSQL refuses a statement that takes a parameter and
# does not use it, so a statement cannot forget its owner.
# A :read :one statement gets a second text that answers many requests at once: `.together` in db/statement.h.
# Lines under "-- part: columns" are put wherever a later line of the file says {columns}, and where one of a later file says
# {lessons.columns}, after the name of the file that has them.
# A line "-- for: width in 384 768" above a statement makes it a family, one statement for each value: its name and its lines say {width}.

BEGIN { count = 0 }

function c_string(text) {
    if (what == "statements") # in migrations it is C's: those that were applied must keep the text that they had
        gsub(/\\/, "&&", text)
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

# The parts of another file are known by its name alone.
function start_file(    p) {
    finish_now($0)
    for (p in parts)
        if (index(p, ".") == 0)
            delete parts[p]
    part = ""
    file = FILENAME
    sub(/.*\//, "", file)
    sub(/\.sql$/, "", file)
}

function start_part() {
    finish_now($0)
    part = $3
    parts[part] = parts[file "." part] = ""
}

# A line of a part as another file sees it: the parts in it are still those of its own file.
function qualified(line,    out, word) {
    out = ""
    while (match(line, /\{[a-z_]+\}/)) {
        word = substr(line, RSTART + 1, RLENGTH - 2)
        out = out substr(line, 1, RSTART) (word in parts ? file "." : "") word "}"
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

function add_line(line,    at, word, i, split_lines) {
    if (part != "") {
        parts[part] = parts[part] line "\n"
        parts[file "." part] = parts[file "." part] qualified(line) "\n"
        return
    }
    if (family != "") {
        family_lines[++family_count] = line
        return
    }
    while (match(line, /\{([a-z_]+\.)?[a-z_]+\}/)) {
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

# The values that the next statement is made for.
function start_family(    i) {
    finish_now($0)
    if (NF < 5 || $4 != "in")
        fail("a family is written -- for: word in value value")
    family_word = $3
    for (i = 5; i <= NF; i++)
        family_values[++family_size] = $i
}

# The statement or the family that has come to its end.
function finish(    i, j, head) {
    finish_statement()
    if (family == "" && family_size)
        fail("there is no statement behind -- for:")
    head = family
    family = ""
    for (i = 1; i <= family_size; i++) {
        parts[family_word] = family_values[i]
        $0 = head
        if (!sub("[{]" family_word "[}]", family_values[i]))
            fail("the name of a family must hold {" family_word "}")
        start_statement()
        for (j = 1; j <= family_count; j++)
            add_line(family_lines[j])
        finish_statement()
    }
    delete parts[family_word]
    family_size = family_count = 0
}

function start() {
    if (family_size && family == "") {
        part = ""
        family = $0
    } else {
        finish_now($0)
        start_statement()
    }
}

# Ends what came before, and reads the line again that began something new.
function finish_now(line) {
    finish()
    $0 = line
}

function start_statement(    i) {
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

what == "statements" && FNR == 1 { start_file() }
what == "statements" && /^-- for: / { start_family(); next }
what == "statements" && /^-- name: / { start(); next }
what == "statements" && /^-- part: / { start_part(); next }
what == "statements" && /^[ \t]*--/ { next }
what == "statements" && /^[ \t]*$/ { next }
what == "statements" {
    if (name == "" && part == "" && family == "")
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
        finish()
        printf "/* Made by tools/embed.awk. */\n#ifndef DAYBOOK_STATEMENTS_GEN_H\n#define DAYBOOK_STATEMENTS_GEN_H\n%s#endif\n", declarations > header
        printf "/* Made by tools/embed.awk. */\n#include \"db/statement.h\"\n\n%sconst struct statement *const statements[] = {\n%s};\nconst int statements_count = %d;\n", definitions, list, count > source
    } else {
        finish_migration()
        printf "/* Made by tools/embed.awk. */\n#include \"db/migrations.h\"\n\nconst struct migration migrations[] = {\n%s};\nconst int migrations_count = %d;\n", definitions, count > source
    }
}
