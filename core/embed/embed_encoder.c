/* The sentence encoder: two transformer layers that turn pieces into one vector. */
#include "core/embed/embed_internal.h"

#include <math.h>
#include <string.h>

#include "core/base/vector.h"

/* The sections of a layer. */
struct layer {
    enum embed_section norm, qkv, qkv_fine, out, ffn_norm, ffn_in, ffn_out; /* qkv_fine: 0 for none */
    size_t in; /* input width; the output width is EMBED_WIDTH */
};

static const struct layer layers[] = {
    { SECTION_NORM_0_SCALE, SECTION_QKV_0, SECTION_QKV_0_FINE, SECTION_OUT_0, SECTION_FFN_NORM_0_SCALE,
      SECTION_FFN_IN_0, SECTION_FFN_OUT_0, EMBED_IN },
    { SECTION_NORM_1_SCALE, SECTION_QKV_1, 0, SECTION_OUT_1, SECTION_FFN_NORM_1_SCALE, SECTION_FFN_IN_1,
      SECTION_FFN_OUT_1, EMBED_WIDTH },
};

static void dense(const struct embed *e, enum embed_section which, size_t inputs, const float *x, size_t rows,
                  float *y, enum embed_then then)
{
    const struct embed_dense d = {
        .panels = embed_section(e, which),
        .scales = embed_section(e, which + 1),
        .bias = embed_section(e, which + 2),
        .inputs = inputs,
        .outputs = e->bytes[which] / inputs,
    };
    e->kernels->dense(&d, x, rows, y, then);
}

static void norm(const struct embed *e, enum embed_section which, const float *x, size_t rows, size_t width,
                 float *y)
{
    e->kernels->norm(x, rows, width, embed_section(e, which), embed_section(e, which + 1), y);
}

/* The input row of a piece: twice its vector plus the sinusoidal encoding of its position. */
static void encode_piece(const struct embed *e, size_t at, uint16_t piece, float *x)
{
    const float *timescales = embed_section(e, SECTION_TIMESCALES);
    const float scale = 2 * ((const float *)embed_section(e, SECTION_PIECE_SCALES))[piece];
    const int8_t *row = (const int8_t *)embed_section(e, SECTION_PIECE_ROWS) + (size_t)piece * EMBED_IN;
    for (size_t i = 0; i < EMBED_IN; i++) {
        float angle = (float)at * timescales[i % (EMBED_IN / 2)];
        x[i] = scale * (float)row[i] + (i < EMBED_IN / 2 ? sinf(angle) : cosf(angle));
    }
}

/* h += attention(norm(x)), then h += ffn(norm(h)). */
static void run_layer(const struct embed *e, const struct layer *l, struct embed_scratch *s, const float *x,
                      size_t rows)
{
    norm(e, l->norm, x, rows, l->in, s->normed);
    dense(e, l->qkv, l->in, s->normed, rows, s->wide, EMBED_SET);
    if (l->qkv_fine)
        dense(e, l->qkv_fine, l->in, s->normed, rows, s->wide, EMBED_ADD);
    e->kernels->attend(s->wide, rows, l->in, s->shares, s->mixed);
    dense(e, l->out, l->in, s->mixed, rows, s->h, EMBED_ADD);
    norm(e, l->ffn_norm, s->h, rows, EMBED_WIDTH, s->normed);
    dense(e, l->ffn_in, EMBED_WIDTH, s->normed, rows, s->wide, EMBED_RELU);
    dense(e, l->ffn_out, EMBED_INNER, s->wide, rows, s->h, EMBED_ADD);
}

void embed_encoder_run(const struct embed *e, struct embed_scratch *s, size_t count, float out[EMBED_WIDTH])
{
    for (size_t i = 0; i < count; i++)
        encode_piece(e, i, s->pieces[i], s->x + i * EMBED_IN);
    dense(e, SECTION_WIDEN, EMBED_IN, s->x, count, s->h, EMBED_SET);
    dense(e, SECTION_WIDEN_FINE, EMBED_IN, s->x, count, s->h, EMBED_ADD);
    run_layer(e, &layers[0], s, s->x, count);
    run_layer(e, &layers[1], s, s->h, count);

    float mean[EMBED_WIDTH] = { 0 };
    for (size_t i = 0; i < count * EMBED_WIDTH; i++)
        mean[i % EMBED_WIDTH] += s->h[i] / (float)count;
    dense(e, SECTION_LAST, EMBED_WIDTH, mean, 1, out, EMBED_SET);
    for (size_t i = 0; i < EMBED_WIDTH; i++)
        out[i] = tanhf(out[i]);
    (void)vector_normalise(out, EMBED_WIDTH);
}
