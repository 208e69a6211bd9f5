/* Matching words against the rules: each pattern is a chain of states, and a word moves those that wait for
 * it. */
#include <string.h>

#include "core/guard/guard_internal.h"

enum { FREE = 1, FIRST = 2 }; /* flags of a state: an order, and the start of a clause */
enum { NEGATES = 1, UNNEGATES = 2, IS_SUBJECT = 4, IS_MODAL = 8 }; /* what a word does to those after it */

/* A step of a pattern. */
struct state {
    int16_t before; /* the state that must have been reached, or -1 */
    int16_t rule;   /* that applies when this one is reached, or -1 */
    int16_t emits;  /* the list that it counts as a word of, or -1 */
    uint8_t gap;    /* words that may stand between */
    uint8_t flags;
};

struct word {
    const char *text;
    uint32_t hash;
    uint8_t len;
    bool beginning; /* matches all words that start so */
    uint8_t mood;
};

#include "core/guard/guard.gen.h"

enum {
    NEGATED_WORDS = 3, /* a negation reaches so far */
    SENTENCE_MIN = 2,  /* words of a sentence: "Ignore. All. Previous. Instructions." is one */
    EVENTS_MAX = 64,   /* phrases that end with the same word */
};

/* Where a state was reached. Words are counted from 1. */
struct reached {
    uint32_t first, last; /* words */
    uint32_t start;       /* of the first word, in bytes */
};

struct event {
    int class;
    uint32_t first, start;
};

struct weak_hit {
    uint32_t word; /* 0: none */
    size_t start, end;
};

struct guard_match {
    guard_found *found;
    void *context;
    bool stopped;
    uint32_t word;             /* the number of the current word */
    uint32_t sentence;         /* the number of its sentence's first word */
    uint32_t since_stop;       /* words since the last mark that may end a sentence */
    uint32_t negated, subject; /* the last such words */
    struct weak_hit weak[GUARD_RULES];
    bool signs_found;
    int points;
    size_t event_count;
    struct reached now[GUARD_STATES];
    /* The rest is not cleared: an entry is written before it is read. */
    struct reached before[GUARD_STATES]; /* by an earlier word than `now` */
    struct event events[EVENTS_MAX];
};

static const int mark_lists[GUARD_MARKS] = {
    [MARK_URL] = GUARD_LIST_MARK_URL,
    [MARK_MAIL] = GUARD_LIST_MARK_MAIL,
    [MARK_WALLET] = GUARD_LIST_MARK_WALLET,
    [MARK_JSON_TOOL] = GUARD_LIST_MARK_JSON_TOOL,
    [MARK_JSON_NAME] = GUARD_LIST_MARK_JSON_NAME,
    [MARK_JSON_ARGUMENTS] = GUARD_LIST_MARK_JSON_ARGUMENTS,
    [MARK_JSON_PARAMETERS] = GUARD_LIST_MARK_JSON_PARAMETERS,
    [MARK_COLON] = GUARD_LIST_MARK_COLON,
};

static const int direct_rules[GUARD_DIRECTS] = {
    [DIRECT_CHAT_TEMPLATE] = GUARD_RULE_CHAT_TEMPLATE,
    [DIRECT_DELIMITER] = GUARD_RULE_DELIMITER_BREAKOUT,
    [DIRECT_TOOL_CALL] = GUARD_RULE_TOOL_CALL,
    [DIRECT_FAKE_DIALOGUE] = GUARD_RULE_FAKE_DIALOGUE,
    [DIRECT_HIDDEN_TEXT] = GUARD_RULE_HIDDEN_TEXT,
    [DIRECT_ENCODED_TEXT] = GUARD_RULE_ENCODED_TEXT,
    [DIRECT_PLACEHOLDER] = GUARD_RULE_PROMPT_PLACEHOLDER,
    [DIRECT_ROLE_LINE] = GUARD_RULE_ROLE_LINE,
    [DIRECT_SIGNS] = GUARD_RULE_JAILBREAK_SIGNS,
};

const struct guard_rule *guard_rules(size_t *count)
{
    *count = GUARD_RULES;
    return guard_rule_table;
}

/* ---- the word lists ---- */

static uint32_t hash_next(uint32_t hash, char c)
{
    return (hash * 65599 + (unsigned char)c) & 0xffffff;
}

static bool has_bit(const uint8_t *bits, uint32_t hash)
{
    const uint32_t bit = hash % GUARD_BITS;
    return bits[bit >> 3] >> (bit & 7) & 1;
}

/* Whether the letters of `text` up to `len` are those of the word, apostrophes left out. */
static bool same_letters(const struct word *w, const char *text, size_t len)
{
    size_t at = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'')
            continue;
        if (at == w->len || w->text[at] != text[i])
            return false;
        at++;
    }
    return at == w->len;
}

static uint16_t find_word(uint32_t hash, bool beginning, const char *text, size_t len)
{
    for (uint32_t slot = hash % GUARD_SLOTS; guard_slots[slot]; slot = (slot + 1) % GUARD_SLOTS) {
        const struct word *w = &guard_words[guard_slots[slot]];
        if (w->hash == hash && w->beginning == beginning && same_letters(w, text, len))
            return guard_slots[slot];
    }
    return 0;
}

struct guard_entries guard_match_look(const char *word, size_t len)
{
    struct guard_entries found = { { 0, 0 } };
    uint32_t hash = 0;
    if (len > 2 * GUARD_WORD_MAX)
        len = 2 * GUARD_WORD_MAX;
    for (size_t i = 0; i < len; i++) {
        if (word[i] == '\'')
            continue;
        hash = hash_next(hash, word[i]);
        if (has_bit(guard_prefix_bits, hash)) {
            const uint16_t entry = find_word(hash, true, word, i + 1);
            if (entry)
                found.entry[1] = entry;
        }
    }
    if (has_bit(guard_whole_bits, hash))
        found.entry[0] = find_word(hash, false, word, len);
    return found;
}

size_t guard_match_longest(const char *text, size_t len, struct guard_entries *entries)
{
    uint32_t hash = 0;
    size_t longest = 0;
    *entries = (struct guard_entries){ { 0, 0 } };
    for (size_t i = 0; i < len && i < GUARD_WORD_MAX; i++) {
        hash = hash_next(hash, text[i]);
        if (i == 0 || !has_bit(guard_whole_bits, hash))
            continue;
        const uint16_t entry = find_word(hash, false, text, i + 1);
        if (entry) {
            entries->entry[0] = entry;
            longest = i + 1;
        }
    }
    return longest;
}

/* ---- rules ---- */

static void report(struct guard_match *m, int rule, size_t start, size_t end)
{
    if (!m->stopped)
        m->stopped = !m->found(m->context, &guard_rule_table[rule], start, end);
}

/* Reports the weak rules of the window, and the rule that stands for their sum. */
static void report_signs(struct guard_match *m)
{
    size_t start = SIZE_MAX, end = 0;
    for (int i = 0; i < GUARD_RULES; i++)
        if (m->weak[i].word && m->weak[i].word + GUARD_WINDOW >= m->word) {
            start = m->weak[i].start < start ? m->weak[i].start : start;
            end = m->weak[i].end > end ? m->weak[i].end : end;
        }
    m->signs_found = true;
    report(m, GUARD_RULE_JAILBREAK_SIGNS, start, end);
    for (int i = 0; i < GUARD_RULES; i++)
        if (m->weak[i].word && m->weak[i].word + GUARD_WINDOW >= m->word)
            report(m, i, m->weak[i].start, m->weak[i].end);
}

static void add_weak(struct guard_match *m, int rule, size_t start, size_t end)
{
    if (m->signs_found)
        return;
    const bool counts_already = m->weak[rule].word && m->weak[rule].word + GUARD_WINDOW >= m->word;
    m->weak[rule] = (struct weak_hit){ m->word ? m->word : 1, start, end };
    if (counts_already) /* the sum cannot rise */
        return;
    int points = 0;
    for (int i = 0; i < GUARD_RULES; i++)
        if (m->weak[i].word && m->weak[i].word + GUARD_WINDOW >= m->word)
            points += guard_rule_table[i].points;
    m->points = points > m->points ? points : m->points;
    if (points >= GUARD_POINTS)
        report_signs(m);
}

static void apply(struct guard_match *m, int rule, size_t start, size_t end)
{
    if (guard_rule_table[rule].grade == GUARD_WEAK)
        add_weak(m, rule, start, end);
    else
        report(m, rule, start, end);
}

void guard_match_direct(struct guard_match *m, enum guard_direct rule, size_t start, size_t end)
{
    apply(m, direct_rules[rule], start, end);
}

const struct guard_rule *guard_match_rule(enum guard_direct rule)
{
    return &guard_rule_table[direct_rules[rule]];
}

int guard_match_points(const struct guard_match *m)
{
    return m->points;
}

/* ---- states ---- */

static bool is_free(const struct guard_match *m, uint32_t word)
{
    const bool negated = m->negated >= m->sentence && m->negated && word - m->negated <= NEGATED_WORDS;
    return !negated && !(m->subject && m->subject + 1 == word);
}

/* What is read at once: a word, a mark, or a phrase that began at an earlier word. */
struct unit {
    uint32_t first, start; /* the number of its first word, and where it starts */
    size_t end;
};

static void reach(struct guard_match *m, int state, uint32_t first, uint32_t start, size_t end)
{
    const struct state *s = &guard_states[state];
    if (s->rule >= 0)
        apply(m, s->rule, start, end);
    if (s->emits >= 0 && m->event_count < EVENTS_MAX)
        m->events[m->event_count++] = (struct event){ s->emits, first, start };
    if (m->now[state].last != m->word)
        m->before[state] = m->now[state];
    m->now[state] = (struct reached){ first, m->word, start };
}

static void try_first(struct guard_match *m, int state, const struct unit *u)
{
    const uint8_t flags = guard_states[state].flags;
    if (((flags & FREE) && !is_free(m, u->first)) || ((flags & FIRST) && u->first != m->sentence))
        return;
    reach(m, state, u->first, u->start, u->end);
}

/* The state before must have been reached in this sentence, before the unit and near enough. */
static void try_next(struct guard_match *m, int state, const struct unit *u)
{
    const struct state *s = &guard_states[state];
    const struct reached *r = &m->now[s->before];
    if (r->last + s->gap + 1 < u->first) /* the usual case */
        return;
    if (r->last >= u->first)
        r = &m->before[s->before];
    if (!r->last || r->last >= u->first || r->first < m->sentence || u->first - r->last - 1 > s->gap)
        return;
    if ((s->flags & FREE) && !is_free(m, u->first))
        return;
    reach(m, state, r->first, r->start, u->end);
}

static void kill(struct guard_match *m, const uint16_t *states, const uint16_t *end)
{
    for (; states < end; states++)
        m->now[*states].last = m->before[*states].last = 0;
}

static void listen(struct guard_match *m, const uint16_t *states, const uint16_t *end, const struct unit *u)
{
    for (; states < end; states++)
        if (guard_states[*states].before < 0)
            try_first(m, *states, u);
        else
            try_next(m, *states, u);
}

/* Phrases that end here are words of their lists in turn. */
static void run_events(struct guard_match *m, size_t end)
{
    for (size_t i = 0; i < m->event_count && !m->stopped; i++) {
        const struct event e = m->events[i];
        const struct unit u = { e.first, e.start, end };
        kill(m, guard_class_kills + guard_class_kills_at[e.class],
             guard_class_kills + guard_class_kills_at[e.class + 1]);
        listen(m, guard_class_states + guard_class_states_at[e.class],
               guard_class_states + guard_class_states_at[e.class + 1], &u);
    }
    m->event_count = 0;
}

/* Negations and subjects matter to the words after them. */
static void note_mood(struct guard_match *m, uint8_t mood)
{
    if (mood & NEGATES)
        m->negated = m->word;
    else if ((mood & UNNEGATES) && m->negated && m->word - m->negated <= 2)
        m->negated = 0;
    if (mood & IS_SUBJECT)
        m->subject = m->word;
    else if ((mood & IS_MODAL) && m->subject && m->subject + 1 == m->word)
        m->subject = m->word;
}

static void run_word(struct guard_match *m, uint16_t word, const struct unit *u)
{
    kill(m, guard_word_kills + guard_word_kills_at[word], guard_word_kills + guard_word_kills_at[word + 1]);
    listen(m, guard_word_states + guard_word_states_at[word],
           guard_word_states + guard_word_states_at[word + 1], u);
    if (m->event_count)
        run_events(m, u->end);
    if (guard_words[word].mood)
        note_mood(m, guard_words[word].mood);
}

struct guard_match *guard_match_begin(struct arena *arena, guard_found *found, void *context)
{
    struct guard_match *m = arena_alloc(arena, sizeof *m);
    memset(m, 0, offsetof(struct guard_match, before));
    m->found = found;
    m->context = context;
    m->sentence = 1;
    return m;
}

bool guard_match_stopped(const struct guard_match *m)
{
    return m->stopped;
}

void guard_match_word(struct guard_match *m, struct guard_token t, struct guard_entries entries)
{
    m->word++;
    m->since_stop++;
    const struct unit u = { m->word, (uint32_t)t.start, t.end };
    for (int i = 0; i < 2 && !m->stopped; i++)
        if (entries.entry[i])
            run_word(m, entries.entry[i], &u);
}

void guard_match_mark(struct guard_match *m, struct guard_token t, enum guard_mark mark)
{
    m->word++;
    m->events[m->event_count++] = (struct event){ mark_lists[mark], m->word, (uint32_t)t.start };
    run_events(m, t.end);
}

void guard_match_stop_sentence(struct guard_match *m)
{
    if (m->since_stop >= SENTENCE_MIN)
        m->sentence = m->word + 1;
    m->since_stop = 0;
}
