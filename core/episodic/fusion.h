/* The score of what a search found: how near it is, how many of the query's words it holds, and whether it is
 * from another market. */
#ifndef DAYBOOK_CORE_EPISODIC_FUSION_H
#define DAYBOOK_CORE_EPISODIC_FUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word of the query, and in how many entries of a sample it is. */
struct fusion_lexeme {
    const char *text;
    int64_t holding;
    double idf; /* set by fusion_choose, as is the next one */
    bool opens; /* entries that contain it become candidates */
};

/* Puts the rarest first, by text where they are equally rare, and returns how many of them are to be weighed:
 * at most `most`. `sampled` entries were counted; `all`: these are all there are. What more than a fifth of
 * the entries hold is weighed and opens nothing, unless there is nothing else to open with or so few entries
 * that all of them can be looked at. */
size_t fusion_choose(struct fusion_lexeme *lexemes, size_t count, int64_t sampled, bool all, size_t most);

/* What was found: the first members are the caller's, the others are set by fusion_rank. Scores are in
 * millionths, so that the parts make up the whole digit for digit, and what looks equal is equal. */
struct fusion_hit {
    const char *id;
    int64_t created_us;
    bool compared; /* it has a cosine */
    double cosine;
    double weight;         /* sum over the lexemes of idf * ts_rank(words, lexeme, 1) */
    double covered;        /* the share of the idf of all lexemes that belongs to those it holds */
    int shared, differing; /* names in both regimes, and how many of them have different values */
    size_t row;            /* where the caller finds it again */
    int64_t near, text, penalty, score;
};

/* Scores all and puts the best first; equal ones newest first, then by id. */
void fusion_rank(struct fusion_hit *hits, size_t count, double regime_penalty);

#endif
