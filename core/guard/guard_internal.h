/* Between the parts of the guard: reading words (guard_words.c), marks (guard_marks.c), and matching them
 * against the rules (guard_match.c). */
#ifndef DAYBOOK_CORE_GUARD_GUARD_INTERNAL_H
#define DAYBOOK_CORE_GUARD_GUARD_INTERNAL_H

#include <stdint.h>

#include "core/guard/guard.h"

/* A word, or a mark that counts as one, in folded text. */
struct guard_token {
    size_t start, end; /* bytes of the folded text */
};

struct guard_match;

/* Reports that a rule applies to folded bytes. False: stop looking. */
typedef bool guard_found(void *context, const struct guard_rule *rule, size_t start, size_t end);

/* The state of matching one folded text. */
struct guard_match *guard_match_begin(struct arena *arena, guard_found *found, void *context);
bool guard_match_stopped(const struct guard_match *m);

/* The next word, with the entries of the word lists that it is (guard_match_look). */
struct guard_entries {
    uint16_t entry[2]; /* a whole word and a beginning; 0: none */
};
/* Looks a folded word up; apostrophes are ignored. */
struct guard_entries guard_match_look(const char *word, size_t len);
/* The length of the longest listed word, of two bytes and more, at the start of the text; 0 without one. */
size_t guard_match_longest(const char *text, size_t len, struct guard_entries *entries);
void guard_match_word(struct guard_match *m, struct guard_token t, struct guard_entries entries);

/* A word of a list that has no words of its own, because marks stand for it. */
enum guard_mark {
    MARK_URL,
    MARK_MAIL,
    MARK_WALLET,
    MARK_JSON_TOOL,
    MARK_JSON_NAME,
    MARK_JSON_ARGUMENTS,
    MARK_JSON_PARAMETERS,
    MARK_COLON,
    GUARD_MARKS
};
void guard_match_mark(struct guard_match *m, struct guard_token t, enum guard_mark mark);
/* A sentence ends; or so it seems, after few words. */
void guard_match_stop_sentence(struct guard_match *m);
/* A rule that is not about words applies. */
enum guard_direct {
    DIRECT_CHAT_TEMPLATE,
    DIRECT_DELIMITER,
    DIRECT_TOOL_CALL,
    DIRECT_FAKE_DIALOGUE,
    DIRECT_HIDDEN_TEXT,
    DIRECT_ENCODED_TEXT,
    DIRECT_PLACEHOLDER,
    DIRECT_ROLE_LINE,
    DIRECT_SIGNS,
    GUARD_DIRECTS
};
void guard_match_direct(struct guard_match *m, enum guard_direct rule, size_t start, size_t end);

const struct guard_rule *guard_match_rule(enum guard_direct rule);
/* The highest sum of weak rules so far. */
int guard_match_points(const struct guard_match *m);

/* Looks up a word that may be a misspelled one. */
struct guard_entries guard_typo_look(const char *word, size_t len);

/* Reads folded text from its start to its end into the matcher; returns enum fold_disguise that it met. */
unsigned guard_words_read(struct guard_match *m, const char *text, size_t len);

/* What the marks of a text said so far. */
struct guard_marks {
    unsigned roles;    /* of lines that start with "user:" and the like */
    size_t first_role; /* where the first of them starts */
    size_t summaries;  /* <summary> tags that are open */
    size_t json_role;  /* the end of the last "role": "system" or the like; 0: none */
};
/* Looks at the first line. */
void guard_marks_begin(struct guard_marks *marks, struct guard_match *m, const char *text, size_t len);
/* Looks at the mark at `at`, which is no letter or digit. */
void guard_marks_look(struct guard_marks *marks, struct guard_match *m, const char *text, size_t len,
                      size_t at);

#endif
