/* The wire protocol of embedding endpoints: writes request bodies and reads vectors from responses. No I/O.
 */
#ifndef DAYBOOK_SERVER_REMOTE_EMBEDDER_WIRE_H
#define DAYBOOK_SERVER_REMOTE_EMBEDDER_WIRE_H

#include "core/base/buf.h"
#include "server/json/reader.h"

struct embedder_wire_request {
    const char *model;
    const char *const *texts;
    size_t count;
    size_t most_bytes; /* longer texts are truncated */
    size_t shorten_to; /* the dimension to request; 0: the model's own */
};
void embedder_wire_write(struct buf *body, const struct embedder_wire_request *request);

enum embedder_wire_fault {
    EMBEDDINGS_OK,
    EMBEDDINGS_NOT_JSON,
    EMBEDDINGS_NUMBER,    /* too many or too few vectors, or a duplicate */
    EMBEDDINGS_DIMENSION, /* a vector of the wrong length */
    EMBEDDINGS_VECTOR,    /* a zero vector, or a value that is not a finite number */
};
extern const char *const embedder_wire_faults[]; /* messages */

/* Reads one vector at a time, so that the caller can yield in between. */
struct embedder_wire {
    struct json_reader r;
    size_t count, dim;
    float *out; /* count * dim: unit vectors in the order of the texts */
    bool *seen;
    size_t found;
    bool inside; /* the list of vectors */
    enum embedder_wire_fault fault;
};
/* Overwrites `body`, which must be NUL-terminated. */
void embedder_wire_begin(struct embedder_wire *w, char *body, size_t len, struct arena *arena);
/* Returns false at the end or after an error (see `fault`). */
bool embedder_wire_next(struct embedder_wire *w);

#endif
