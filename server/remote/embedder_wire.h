/* The wire protocol of embedding endpoints: texts as the body of a request, vectors out of the body of the
 * answer. No I/O. */
#ifndef DAYBOOK_SERVER_REMOTE_EMBEDDER_WIRE_H
#define DAYBOOK_SERVER_REMOTE_EMBEDDER_WIRE_H

#include "core/base/buf.h"
#include "server/json/reader.h"

struct embedder_wire_request {
    const char *model;
    const char *const *texts;
    size_t count;
    size_t most_bytes; /* a longer text is cut */
    size_t shorten_to; /* the dimension to ask for; 0: that of the model */
};
void embedder_wire_write(struct buf *body, const struct embedder_wire_request *request);

enum embedder_wire_fault {
    EMBEDDINGS_OK,
    EMBEDDINGS_NOT_JSON,
    EMBEDDINGS_NUMBER,    /* more vectors than texts, or fewer, or one twice */
    EMBEDDINGS_DIMENSION, /* a vector of another length */
    EMBEDDINGS_VECTOR,    /* one of zeros, or with something that is no finite number */
};
extern const char *const embedder_wire_faults[]; /* in words */

/* Reads one vector after the other, so that whoever reads can let others work in between. */
struct embedder_wire {
    struct json_reader r;
    size_t count, dim;
    float *out; /* count * dim: each vector at the place of its text, with length 1 */
    bool *seen;
    size_t found;
    bool inside; /* of the list of vectors */
    enum embedder_wire_fault fault;
};
/* `body` is overwritten and must have a NUL behind it. */
void embedder_wire_begin(struct embedder_wire *w, char *body, size_t len, struct arena *arena);
/* False: it is done, well or (`fault`) not. */
bool embedder_wire_next(struct embedder_wire *w);

#endif
