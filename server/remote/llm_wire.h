/* The wire protocols of language models: a question as the body of a request, an answer out of the body of
 * theirs. No I/O. */
#ifndef DAYBOOK_SERVER_REMOTE_LLM_WIRE_H
#define DAYBOOK_SERVER_REMOTE_LLM_WIRE_H

#include "core/base/buf.h"
#include "core/base/decimal.h"
#include "server/remote/llm.h"

struct llm_options {
    const char *temperature; /* a number; NULL: not said */
    const char *tokens_name; /* what the limit of tokens is called there */
};

struct llm_wire {
    const char *api; /* as the setting model_api names it */
    const char *url, *tail, *key_header;
    const char *const *headers; /* more of them */
    void (*write)(struct buf *body, const struct llm_question *question, const struct llm_options *options);
};

/* NULL: no such. */
const struct llm_wire *llm_wire_find(const char *api);

/* What an answer says, of either protocol. Texts point into the body or the arena. */
struct llm_reading {
    const char *text;  /* NULL: none */
    const char *model; /* NULL: it does not say */
    const char *error; /* the type of a failure, a short word; NULL: none */
    bool truncated;    /* it ended because it had reached max_tokens */
    int64_t tokens_in, tokens_out;
    int64_t cache_written, cache_read; /* of tokens_in, where the protocol has prices for them */
};

/* False: not JSON, or not valid. `body` is overwritten. */
bool llm_wire_read(char *body, size_t len, struct arena *arena, struct llm_reading *out);

/* In USD, with prices in USD per million tokens. What was written to the prompt cache costs a quarter more,
 * what was read from it a tenth. */
struct decimal llm_wire_cost(const struct llm_reading *reading, struct decimal price_in,
                             struct decimal price_out);

#endif
