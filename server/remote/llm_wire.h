/* The wire protocols of language models: writes request bodies and reads answers from responses. No I/O. */
#ifndef DAYBOOK_SERVER_REMOTE_LLM_WIRE_H
#define DAYBOOK_SERVER_REMOTE_LLM_WIRE_H

#include "core/base/buf.h"
#include "core/base/decimal.h"
#include "server/remote/llm.h"

struct llm_options {
    const char *temperature; /* a number; NULL: omitted */
    const char *tokens_name; /* the API's name of the token limit */
};

struct llm_wire {
    const char *api; /* a value of the setting model_api */
    const char *url, *tail, *key_header;
    const char *const *headers; /* additional headers */
    void (*write)(struct buf *body, const struct llm_question *question, const struct llm_options *options);
};

/* NULL: unknown. */
const struct llm_wire *llm_wire_find(const char *api);

/* A parsed response of either protocol. Strings point into the body or the arena. */
struct llm_reading {
    const char *text;  /* NULL: none */
    const char *model; /* NULL: not in the response */
    const char *error; /* the error type, a short identifier; NULL: none */
    bool truncated;    /* the answer reached max_tokens */
    int64_t tokens_in, tokens_out;
    int64_t cache_written, cache_read; /* included in tokens_in; 0 if the protocol does not report them */
};

/* Returns false if the body is not valid JSON. Overwrites `body`. */
bool llm_wire_read(char *body, size_t len, struct arena *arena, struct llm_reading *out);

/* In USD, with prices in USD per million tokens. Tokens written to the prompt cache cost 125 %, tokens read
 * from it 10 % of the input price. */
struct decimal llm_wire_cost(const struct llm_reading *reading, struct decimal price_in,
                             struct decimal price_out);

#endif
