# Turns core/guard/guard_rules.txt into C: with -v out=FILE, a header of const tables that core/guard/guard_match.c reads.
#
#   list NAME word ...          a list of words; "word/v" adds the -ing form, "word/n" the plural, "word*" is any word that
#                               starts so, and "two_words" is a phrase. Words are written folded (core/guard/fold.txt).
#   phrase NAME pattern         adds what the pattern matches to the list, as if it were one word
#   rule NAME refuse text       a rule, with its description; the indented lines below are its patterns
#   rule NAME weak:POINTS text  a rule that only adds points
#
# A pattern is a sequence of steps within one clause: LIST, word or (one|of|these). A number before a step is how many other
# words may stand before it (none without one); 3-LIST means up to three, none of them in LIST. A step marked ? may be absent,
# ^ stands at the start of a clause, ! is an order: neither negated ("do not ignore") nor said of somebody ("they ignore").
#
# Patterns become states that follow each other, and patterns with the same beginning share its states.

BEGIN {
    for (i = 1; i < 256; i++)
        code[sprintf("%c", i)] = i
    classes = states = rules = words = 0
}

function fail(text) {
    print "guard.awk: line " NR ": " text > "/dev/stderr"
    failed = 1
    exit 1
}

function class_of(name) {
    if (!(name in class_id))
        class_id[name] = classes++
    return class_id[name]
}

function add_word(text, class,   key) {
    if ((text, class) in has_class)
        return
    has_class[text, class] = 1
    if (!(text in word_id)) {
        word_id[text] = ++words
        word_text[words] = text
    }
    key = word_id[text]
    word_classes[key] = word_classes[key] " " class
    word_count[key]++
}

function ing(word) {
    if (word ~ /[^eoy]e$/)
        sub(/e$/, "", word)
    return word "ing"
}

function plural(word) {
    if (word ~ /[^aeiou]y$/) {
        sub(/y$/, "ies", word)
        return word
    }
    return word (word ~ /(s|x|ch|sh)$/ ? "es" : "s")
}

# Adds one entry of a list; a phrase of several words becomes a pattern.
function add_entry(entry, class,   n, part, i, pattern) {
    if (entry ~ /_/) {
        n = split(entry, part, "_")
        pattern = part[1]
        for (i = 2; i <= n; i++)
            pattern = pattern " " part[i]
        add_pattern(pattern, -1, class)
    } else if (sub(/\/v$/, "", entry)) {
        add_word(entry, class)
        add_word(ing(entry), class)
    } else if (sub(/\/n$/, "", entry)) {
        add_word(entry, class)
        add_word(plural(entry), class)
    } else {
        add_word(entry, class)
    }
}

# The class of a step: a list, or an unnamed class of one word or of alternatives.
function step_class(step,   n, part, i, class) {
    if (step ~ /^[A-Z][A-Z0-9_]*$/) {
        if (!(step in is_list))
            fail("no list " step)
        return class_of(step)
    }
    if (step in class_id)
        return class_id[step]
    class = class_of(step)
    if (step ~ /^\(.*\)$/) {
        n = split(substr(step, 2, length(step) - 2), part, "|")
        for (i = 1; i <= n; i++)
            if (part[i] ~ /^[A-Z]/)
                fail("a list among alternatives: " step)
            else
                add_entry(part[i], class)
    } else {
        add_entry(step, class)
    }
    return class
}

function add_listener(class, state, depth) {
    if (depth > deepest)
        deepest = depth
    listeners[class, depth] = listeners[class, depth] " " state
    listener_count[class]++
}

function add_pattern(pattern, rule, emits,   n, part, i) {
    n = split(pattern, part, " ")
    for (i = 1; i <= n; i++)
        if (part[i] ~ /\?$/) {
            add_pattern(joined(part, n, i, substr(part[i], 1, length(part[i]) - 1)), rule, emits)
            add_pattern(joined(part, n, i, ""), rule, emits)
            return
        }
    add_states(part, n, rule, emits)
}

# Without an optional step, the words that may stand before and after it add up.
function joined(part, n, at, text,   i, out, before, gap) {
    for (i = 1; i <= n; i++) {
        if (i == at)
            out = out " " text
        else
            out = out " " part[i]
    }
    if (text == "")
        while (match(out, / [0-9]+[-A-Z]* +[0-9]+[-A-Z]* /)) {
            split(substr(out, RSTART, RLENGTH), gap, " ")
            before = (gap[1] + 0) + (gap[2] + 0)
            sub(/^[0-9]+/, "", gap[2])
            sub(/^[0-9]+/, "", gap[1])
            out = substr(out, 1, RSTART) before (gap[2] != "" ? gap[2] : gap[1]) " " substr(out, RSTART + RLENGTH)
        }
    return out
}

function add_states(part, n, rule, emits,   i, gap, kill, path, before, step, flags, class, last, state, depth) {
    before = -1
    gap = depth = 0
    kill = path = ""
    for (i = 1; i <= n; i++) {
        step = part[i]
        if (step ~ /^[0-9]/) {
            gap = step + 0
            kill = step
            if (!sub(/^[0-9]+-/, "", kill))
                kill = ""
            continue
        }
        flags = 0
        while (step ~ /^[!^]/) {
            flags += substr(step, 1, 1) == "!" ? 1 : 2
            step = substr(step, 2)
        }
        class = step_class(step)
        last = i == n
        # A state that a word can end is shared with no other pattern that lets the word stand.
        path = path " " gap "-" kill ":" flags ":" class (last ? ">" rule ":" emits : part[i + 1] ~ /-/ ? part[i + 1] : "")
        if (!(path in state_of)) {
            state = states++
            state_of[path] = state
            state_line[state] = sprintf("{ %d, %d, %d, %d, %d }", before, last ? rule : -1, last ? emits : -1, gap, flags)
            add_listener(class, state, ++depth)
            if (kill != "") {
                if (before < 0)
                    fail("nothing stands before " step)
                kill_count[step_class(kill)]++
                kills[step_class(kill)] = kills[step_class(kill)] " " before
            }
        } else {
            depth++
        }
        before = state_of[path]
        gap = 0
        kill = ""
    }
}

/^#/ || /^[ \t]*$/ { next }

$1 == "list" {
    is_list[$2] = 1
    class_of($2)
    for (i = 3; i <= NF; i++)
        add_entry($i, class_of($2))
    next
}

$1 == "phrase" {
    is_list[$2] = 1
    name = $2
    sub(/^phrase +[A-Z0-9_]+ +/, "")
    add_pattern($0, -1, class_of(name))
    next
}

$1 == "rule" {
    if ($2 in rule_seen)
        fail("again " $2)
    rule_seen[$2] = 1
    points = 0
    if ($3 != "refuse") {
        points = $3
        if (!sub(/^weak:/, "", points))
            fail("neither refuse nor weak: " $3)
    }
    name = $2
    sub(/^rule +[^ ]+ +[^ ]+ +/, "")
    rule_line[rules++] = sprintf("{ \"%s\", %s, %d, \"%s\" }", name, points ? "GUARD_WEAK" : "GUARD_REFUSE", points, $0)
    rule_name[rules - 1] = name
    next
}

/^  / {
    if (!rules)
        fail("a pattern before the first rule")
    add_pattern($0, rules - 1, -1)
    next
}

{ fail("neither list, phrase, rule nor pattern") }

function hash(text,   i, h) {
    h = 0
    for (i = 1; i <= length(text); i++)
        h = (h * 65599 + code[substr(text, i, 1)]) % 16777216
    return h
}

function table(type, name, n, value,   i, line) {
    printf "static const %s guard_%s[] = {\n", type, name > out
    line = "   "
    for (i = 0; i < n; i++) {
        line = line " " value[i] ","
        if (length(line) > 100) {
            print line > out
            line = "   "
        }
    }
    print line (n ? "" : " 0") "\n};" > out
}

# Lists of lists, as one array and the start of each.
function grouped(name, count, texts,   i, j, n, part, at, flat, starts) {
    at = 0
    for (i = 0; i < count; i++) {
        starts[i] = at
        n = split(texts[i], part, " ")
        for (j = 1; j <= n; j++)
            flat[at++] = part[j]
    }
    starts[count] = at
    table("uint16_t", name "_at", count + 1, starts)
    table("uint16_t", name, at, flat)
}

END {
    if (failed)
        exit 1
    print "/* Written by tools/guard.awk from core/guard/guard_rules.txt. */" > out
    printf "enum { GUARD_RULES = %d, GUARD_STATES = %d, GUARD_CLASSES = %d };\n", rules, states, classes > out
    print "enum {" > out
    for (name in is_list)
        print "    GUARD_LIST_" name " = " class_id[name] "," > out
    print "};\nenum {" > out
    for (i = 0; i < rules; i++)
        print "    GUARD_RULE_" toupper(rule_name[i]) " = " i "," > out
    print "};" > out
    table("struct guard_rule", "rule_table", rules, rule_line)
    table("struct state", "states", states, state_line)
    mood_of[class_id["NEGATION"]] = 1
    mood_of[class_id["UNNEGATION"]] = 2
    mood_of[class_id["SUBJECT"]] = 4
    mood_of[class_id["MODAL"]] = 8
    for (c = 0; c < classes; c++)
        for (d = deepest; d >= 1; d--) # a word may be two steps in a row: the later one looks at the earlier one first
            all_listeners[c] = all_listeners[c] listeners[c, d]
    grouped("class_states", classes, all_listeners)
    grouped("class_kills", classes, kills)
    # The same for whole words, which are in several lists.
    for (w = 1; w <= words; w++) {
        n = split(word_classes[w], part, " ")
        for (d = deepest; d >= 1; d--)
            for (i = 1; i <= n; i++)
                word_states[w] = word_states[w] listeners[part[i], d]
        mood[w] = 0
        for (i = 1; i <= n; i++) {
            word_kills[w] = word_kills[w] kills[part[i]]
            mood[w] += mood_of[part[i]]
        }
    }

    slots = 8192
    if (words > slots / 2)
        fail("too many words for " slots " slots")
    for (i = 0; i < slots; i++)
        slot[i] = 0
    for (i = 0; i < 32768 / 8; i++)
        whole[i] = prefix[i] = 0
    for (w = 1; w <= words; w++) {
        text = word_text[w]
        is_prefix = sub(/\*$/, "", text)
        h = hash(text)
        at = h % slots
        while (slot[at])
            at = (at + 1) % slots
        slot[at] = w
        bit = h % 32768
        key = is_prefix SUBSEP bit
        if (!(key in bits)) {
            bits[key] = 1
            if (is_prefix)
                prefix[int(bit / 8)] += 2 ^ (bit % 8)
            else
                whole[int(bit / 8)] += 2 ^ (bit % 8)
        }
        if (length(text) > longest)
            longest = length(text)
        word_line[w] = sprintf("{ \"%s\", %d, %d, %d, %d }", text, h, length(text), is_prefix, mood[w])
    }
    word_line[0] = "{ \"\", 0, 0, 0, 0 }"
    word_states[0] = word_kills[0] = ""
    table("struct word", "words", words + 1, word_line)
    grouped("word_states", words + 1, word_states)
    grouped("word_kills", words + 1, word_kills)
    table("uint16_t", "slots", slots, slot)
    table("uint8_t", "whole_bits", 32768 / 8, whole)
    table("uint8_t", "prefix_bits", 32768 / 8, prefix)
    printf "enum { GUARD_SLOTS = %d, GUARD_WORD_MAX = %d, GUARD_BITS = 32768 };\n", slots, longest > out
    printf "guard.awk: %d rules, %d words, %d classes, %d states\n", rules, words, classes, states
}
