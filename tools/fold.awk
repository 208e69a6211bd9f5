# Turns core/guard/fold.txt into C: with -v out=FILE, a header of const tables that core/guard/fold.c reads. Run it with LC_ALL=C.
# A character finds its row in two steps: the block of 64 that it is in, and its position in that block.

BEGIN {
    for (i = 1; i < 256; i++)
        code[sprintf("%c", i)] = i
    rows = 1
    blocks = 1
}

function fail(text) {
    print "fold.awk: line " NR ": " text > "/dev/stderr"
    failed = 1
    exit 1
}

# Reads the character at position `at`; `width` is its length in bytes.
function character(text,   c, i, value) {
    c = code[substr(text, at, 1)]
    width = c < 128 ? 1 : c < 224 ? 2 : c < 240 ? 3 : 4
    value = width == 1 ? c : c % (width == 2 ? 32 : width == 3 ? 16 : 8)
    for (i = 1; i < width; i++)
        value = value * 64 + code[substr(text, at + i, 1)] % 64
    at += width
    return value
}

function hex(text,   i, value) {
    value = 0
    for (i = 1; i <= length(text); i++)
        value = value * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
    return value
}

function set(c, kind, to) {
    if (kind == "like") {
        like[c] = to
    } else {
        if (length(to) > width && width)
            fail("longer than what it replaces: " to)
        if (c in folded)
            fail("a character twice: " to)
        folded[c] = to
        is_form[c] = kind == "form"
    }
    known[c] = 1
}

/^#/ || /^$/ { next }

$1 == "pairs" {
    at = 1
    there = 1
    while (at <= length($3)) {
        c = character($3)
        here = at
        at = there
        first = at
        character($2)
        there = at
        set(c, "accent", substr($2, first, at - first))
        at = here
    }
    next
}

$1 == "accent" || $1 == "form" || $1 == "like" {
    to = $2
    sub(/_$/, " ", to)
    if (to == "space")
        to = " "
    for (i = 3; i <= NF; i++) {
        if ($i ~ /^U\+/) {
            width = 0
            set(hex(substr($i, 3)), $1, to)
            continue
        }
        at = 1
        while (at <= length($i)) {
            c = character($i)
            set(c, $1, to)
        }
    }
    next
}

{ fail("neither accent, pairs, form nor like") }

END {
    if (failed)
        exit 1
    print "/* Written by tools/fold.awk from core/guard/fold.txt. */" > out
    print "static const struct fold_row fold_rows[] = {\n    { \"\", 0, 0 }," > out
    for (c in known) {
        text = (c in folded) ? folded[c] : ""
        gsub(/[\\"]/, "\\\\&", text)
        row = "{ \"" text "\", " ((c in is_form) ? is_form[c] : 0) ", " ((c in like) ? "'" like[c] "'" : 0) " }"
        if (!(row in row_id)) {
            row_id[row] = rows++
            print "    " row "," > out
        }
        block = int(c / 64)
        if (!(block in block_id)) {
            block_id[block] = blocks++
            block_of[blocks - 1] = block
        }
        cell[block, c % 64] = row_id[row]
        if (block > last)
            last = block
    }
    print "};\nstatic const uint8_t fold_block[] = {" > out
    for (i = 0; i <= last; i++)
        printf "%d,%s", (i in block_id) ? block_id[i] : 0, i % 32 == 31 ? "\n" : " " > out
    print "\n};\nstatic const uint16_t fold_cell[][64] = {\n    { 0 }," > out
    for (i = 1; i < blocks; i++) {
        printf "    {" > out
        for (j = 0; j < 64; j++)
            printf " %d,", cell[block_of[i], j] > out
        print " }," > out
    }
    printf "};\nenum { FOLD_LAST = %d };\n", last * 64 + 63 > out
}
