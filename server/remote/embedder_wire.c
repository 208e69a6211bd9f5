/* The wire protocol of embedding endpoints. */
#include "server/remote/embedder_wire.h"

#include <string.h>

#include "core/base/utf8.h"
#include "core/base/vector.h"

const char *const embedder_wire_faults[] = {
    [EMBEDDINGS_OK] = "",
    [EMBEDDINGS_NOT_JSON] = "the response is not JSON with a list of vectors",
    [EMBEDDINGS_NUMBER] = "the response does not have one vector for each text",
    [EMBEDDINGS_DIMENSION] = "a vector does not have the configured dimension",
    [EMBEDDINGS_VECTOR] = "a vector is zero, or contains a value that is not a finite number",
};

void embedder_wire_write(struct buf *b, const struct embedder_wire_request *r)
{
    buf_char(b, '{');
    buf_json_key(b, "model");
    buf_json_string(b, r->model);
    buf_json_key(b, "input");
    buf_char(b, '[');
    for (size_t i = 0; i < r->count; i++) {
        size_t len = strlen(r->texts[i]);
        if (i)
            buf_char(b, ',');
        buf_json_text(b, r->texts[i], utf8_cut(r->texts[i], len, r->most_bytes));
    }
    buf_char(b, ']');
    buf_json_key(b, "encoding_format");
    buf_text(b, "\"float\"");
    if (r->shorten_to) {
        buf_json_key(b, "dimensions");
        buf_fmt(b, "%zu", r->shorten_to);
    }
    buf_char(b, '}');
}

/* ---- responses ---- */

static bool fail(struct embedder_wire *w, enum embedder_wire_fault fault)
{
    if (w->fault == EMBEDDINGS_OK)
        w->fault = fault;
    return false;
}

/* Skips members up to `data`, which holds the list. */
void embedder_wire_begin(struct embedder_wire *w, char *body, size_t len, struct arena *arena)
{
    w->r = reader_begin(body, len, READER_DEPTH);
    w->seen = arena_zero(arena, w->count ? w->count : 1);
    w->found = 0;
    w->inside = false;
    w->fault = EMBEDDINGS_OK;
    if (!reader_object(&w->r)) {
        fail(w, EMBEDDINGS_NOT_JSON);
        return;
    }
    for (const char *name; (name = reader_name(&w->r));) {
        if (strcmp(name, "data") == 0) {
            w->inside = reader_list(&w->r);
            break;
        }
        reader_skip(&w->r);
    }
    if (!w->inside)
        fail(w, EMBEDDINGS_NOT_JSON);
}

static bool read_vector(struct embedder_wire *w, float *out)
{
    size_t n = 0;
    if (!reader_list(&w->r))
        return fail(w, EMBEDDINGS_NOT_JSON);
    for (; reader_item(&w->r); n++) {
        double number;
        if (!reader_number(&w->r, &number))
            return fail(w, EMBEDDINGS_VECTOR);
        if (n == w->dim)
            return fail(w, EMBEDDINGS_DIMENSION);
        out[n] = (float)number;
    }
    return n == w->dim || fail(w, w->r.fault != READER_OK ? EMBEDDINGS_NOT_JSON : EMBEDDINGS_DIMENSION);
}

/* Reads into `vector` first, because `index` may come after the vector. */
static bool read_item(struct embedder_wire *w, float *vector)
{
    bool has_vector = false, has_index = false;
    double index = (double)w->found; /* default, because some endpoints omit it */
    if (!reader_object(&w->r))
        return fail(w, EMBEDDINGS_NOT_JSON);
    for (const char *name; (name = reader_name(&w->r));) {
        if (strcmp(name, "embedding") == 0 && !has_vector) {
            if (!read_vector(w, vector))
                return false;
            has_vector = true;
        } else if (strcmp(name, "index") == 0 && !has_index) {
            if (!reader_number(&w->r, &index))
                return fail(w, EMBEDDINGS_NUMBER);
            has_index = true;
        } else {
            reader_skip(&w->r);
        }
    }
    if (w->r.fault != READER_OK || !has_vector)
        return fail(w, EMBEDDINGS_NOT_JSON);
    if (!(index >= 0 && index < (double)w->count) || w->seen[(size_t)index])
        return fail(w, EMBEDDINGS_NUMBER);
    w->seen[(size_t)index] = true;
    memcpy(w->out + (size_t)index * w->dim, vector, w->dim * sizeof *vector);
    return vector_normalise(w->out + (size_t)index * w->dim, w->dim) || fail(w, EMBEDDINGS_VECTOR);
}

static bool finish(struct embedder_wire *w)
{
    w->inside = false;
    for (const char *name; (name = reader_name(&w->r));)
        reader_skip(&w->r);
    if (!reader_ended(&w->r))
        return fail(w, EMBEDDINGS_NOT_JSON);
    return w->found == w->count ? false : fail(w, EMBEDDINGS_NUMBER);
}

bool embedder_wire_next(struct embedder_wire *w)
{
    float vector[VECTOR_MAX];
    if (w->fault != EMBEDDINGS_OK || !w->inside)
        return false;
    if (!reader_item(&w->r))
        return finish(w);
    if (w->found == w->count)
        return fail(w, EMBEDDINGS_NUMBER);
    if (!read_item(w, vector))
        return false;
    w->found++;
    return true;
}
