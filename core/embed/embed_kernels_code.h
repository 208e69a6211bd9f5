/* The arithmetic of the encoder, compiled once per instruction set; KERNELS is the name of the result. It
 * uses the vector types of the compiler; only the widening of int8 needs intrinsics. */
#include <math.h>
#include <string.h>

#include "core/embed/embed_file.h"
#include "core/embed/embed_kernels.h"

#if defined __AVX2__
#include <immintrin.h>
enum { LANES = 8 };
#else
#if defined __SSE2__
#include <emmintrin.h>
#endif
enum { LANES = 4 };
#endif

/* Inputs have the alignment of floats, not of vectors. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

enum { ROWS_MAX = 6, WIDE = 2 }; /* rows and vectors per block: 12 of 16 registers */

#if defined __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE lanes load(const float *from)
{
    return *(const lanes *)from;
}

INLINE void store(float *to, lanes v)
{
    *(lanes *)to = v;
}

INLINE lanes all(float x)
{
    return x - (lanes){ 0 };
}

INLINE float sum_of(lanes v)
{
    float sum = 0;
    UNROLL
    for (int i = 0; i < LANES; i++)
        sum += v[i];
    return sum;
}

INLINE lanes widen(const int8_t *from)
{
#if defined __AVX2__
    return (lanes)_mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from)));
#elif defined __SSE2__
    int four;
    memcpy(&four, from, sizeof four);
    __m128i bytes = _mm_cvtsi32_si128(four);
    __m128i high = _mm_unpacklo_epi8(bytes, bytes); /* repeat each byte twice, then four times; */
    return (lanes)_mm_cvtepi32_ps(
        _mm_srai_epi32(_mm_unpacklo_epi16(high, high), 24)); /* the shift keeps the top one, signed */
#else
    return (lanes){ from[0], from[1], from[2], from[3] };
#endif
}

/* ---- dense layers ---- */

INLINE void finish(lanes sum, const float *scale, const float *bias, float *y, enum embed_then then)
{
    sum = sum * load(scale) + load(bias);
    if (then == EMBED_ADD)
        sum += load(y);
    if (then == EMBED_RELU)
        sum = (lanes)((typeof(sum > 0))sum & (sum > 0));
    store(y, sum);
}

/* `count` rows by WIDE * LANES outputs. Every caller passes a constant count, so the loops unroll. */
INLINE void block(const struct embed_dense *d, size_t output, const float *x, size_t count, float *y,
                  enum embed_then then)
{
    const int8_t *w = d->panels + output / EMBED_PANEL * EMBED_PANEL * d->inputs + output % EMBED_PANEL;
    lanes sums[ROWS_MAX][WIDE] = { 0 };
    for (size_t i = 0; i < d->inputs; i++, w += EMBED_PANEL) {
        lanes weights[WIDE];
        UNROLL
        for (int v = 0; v < WIDE; v++)
            weights[v] = widen(w + v * LANES);
        UNROLL
        for (size_t r = 0; r < count; r++) {
            lanes input = all(x[r * d->inputs + i]);
            UNROLL
            for (int v = 0; v < WIDE; v++)
                sums[r][v] += input * weights[v];
        }
    }
    UNROLL
    for (size_t r = 0; r < count; r++)
        UNROLL
    for (size_t v = 0; v < WIDE; v++) {
        size_t o = output + v * LANES;
        finish(sums[r][v], d->scales + o, d->bias + o, y + r * d->outputs + o, then);
    }
}

static void dense(const struct embed_dense *d, const float *x, size_t rows, float *y, enum embed_then then)
{
    for (size_t o = 0; o < d->outputs; o += WIDE * LANES)
        for (size_t r = 0; r < rows;) {
            const float *from = x + r * d->inputs;
            float *to = y + r * d->outputs;
            size_t left = rows - r, count = left < ROWS_MAX ? left : ROWS_MAX;
            switch (count) {
            case 1:
                block(d, o, from, 1, to, then);
                break;
            case 2:
                block(d, o, from, 2, to, then);
                break;
            case 3:
                block(d, o, from, 3, to, then);
                break;
            case 4:
                block(d, o, from, 4, to, then);
                break;
            case 5:
                block(d, o, from, 5, to, then);
                break;
            default:
                block(d, o, from, ROWS_MAX, to, then);
            }
            r += count;
        }
}

/* ---- layer norm ---- */

static void norm(const float *x, size_t rows, size_t width, const float *scale, const float *bias, float *y)
{
    for (size_t r = 0; r < rows; r++, x += width, y += width) {
        lanes sum = { 0 }, squares = { 0 };
        for (size_t i = 0; i < width; i += LANES)
            sum += load(x + i);
        const float mean = sum_of(sum) / (float)width;
        for (size_t i = 0; i < width; i += LANES) {
            lanes off = load(x + i) - mean;
            squares += off * off;
        }
        const float by = 1 / sqrtf(sum_of(squares) / (float)width + 1e-6f);
        for (size_t i = 0; i < width; i += LANES)
            store(y + i, (load(x + i) - mean) * by * load(scale + i) + load(bias + i));
    }
}

/* ---- attention ---- */

INLINE float dot(const float *a, const float *b, size_t n)
{
    lanes one = { 0 }, two = { 0 };
    for (size_t i = 0; i < n; i += 2 * LANES) {
        one += load(a + i) * load(b + i);
        two += load(a + i + LANES) * load(b + i + LANES);
    }
    return sum_of(one + two);
}

INLINE void softmax(float *x, size_t n)
{
    float most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - most);
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* y = the sum of the rows of `values`, weighted by `shares`; computes 4 vectors of y at a time. */
INLINE void mix(const float *values, size_t stride, const float *shares, size_t rows, size_t n, float *y)
{
    enum { AT_ONCE = 4 };
    for (size_t i = 0; i < n; i += AT_ONCE * LANES) {
        lanes sums[AT_ONCE] = { 0 };
        for (size_t r = 0; r < rows; r++)
            UNROLL
        for (size_t v = 0; v < AT_ONCE; v++)
            sums[v] += shares[r] * load(values + r * stride + i + v * LANES);
        UNROLL
        for (size_t v = 0; v < AT_ONCE; v++)
            store(y + i + v * LANES, sums[v]);
    }
}

static void attend(const float *qkv, size_t rows, size_t width, float *shares, float *y)
{
    const size_t head = width / EMBED_HEADS, stride = 3 * width;
    const float scale = 1 / sqrtf((float)head);
    for (size_t h = 0; h < EMBED_HEADS; h++) {
        const float *q = qkv + h * head, *k = q + width, *v = k + width;
        for (size_t r = 0; r < rows; r++) {
            for (size_t other = 0; other < rows; other++)
                shares[other] = dot(q + r * stride, k + other * stride, head) * scale;
            softmax(shares, rows);
            mix(v, stride, shares, rows, head, y + r * width + h * head);
        }
    }
}

const struct embed_kernels KERNELS = { dense, norm, attend };
