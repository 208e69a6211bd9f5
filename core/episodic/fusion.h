/* Scores search hits by vector similarity, by the words they share with the query, and by a penalty for a
 * different market regime. */
#ifndef DAYBOOK_CORE_EPISODIC_FUSION_H
#define DAYBOOK_CORE_EPISODIC_FUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word of the query. */
struct fusion_lexeme {
    const char *text;
    int64_t frequency; /* sampled entries that contain it */
    double idf;        /* set by fusion_choose, as is the next one */
    bool selective;    /* entries that contain it become candidates */
};

/* Sorts the lexemes from rare to common (ties by text) and returns how many to weigh, at most `max`. The
 * sample has `sampled` entries; `complete`: these are all entries. A word that more than a fifth of the
 * entries contain is weighed but yields no candidates, unless the sample is complete or no rarer word occurs
 * in it. */
size_t fusion_choose(struct fusion_lexeme *lexemes, size_t count, int64_t sampled, bool complete, size_t max);

/* A hit. The caller sets the members up to `row`, fusion_rank sets the others. Scores are in millionths, so
 * that the displayed parts add up exactly and equal scores look equal. */
struct fusion_hit {
    const char *id;
    int64_t created_us;
    bool has_cosine; /* it has a vector of the query's model */
    double cosine;
    double weight;         /* sum over the lexemes of idf * ts_rank(words, lexeme, 1) */
    double coverage;       /* idf of the lexemes it contains, as a share of the idf of all lexemes */
    int shared, differing; /* tags in both regimes, and how many of them differ in value */
    size_t row;            /* for the caller */
    int64_t cosine_part, text_part, regime_part, score; /* score = cosine_part + text_part - regime_part */
};

/* Scores the hits and sorts them: best first, ties newest first, then by id. */
void fusion_rank(struct fusion_hit *hits, size_t count, double regime_penalty);

#endif
