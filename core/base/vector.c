/* Embedding vectors. */
#include "core/base/vector.h"

#include <math.h>

bool vector_normalise(float *v, size_t dim)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (double)v[i] * (double)v[i];
    const double length = sqrt(sum);
    if (!isfinite(length) || length < 1e-30)
        return false;
    for (size_t i = 0; i < dim; i++)
        v[i] = (float)((double)v[i] / length);
    return true;
}

int vector_column(size_t dim)
{
    static const int columns[] = { 384, 768, 1024, 1536, 3072, VECTOR_MAX };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (dim <= (size_t)columns[i])
            return dim ? columns[i] : 0;
    return 0;
}

void vector_text(struct buf *out, const float *v, size_t dim, size_t column)
{
    buf_char(out, '[');
    for (size_t i = 0; i < dim; i++)
        buf_fmt(out, i ? ",%.6g" : "%.6g", (double)v[i]);
    for (size_t i = dim; i < column; i++)
        buf_add(out, ",0", 2);
    buf_char(out, ']');
}

void vector_array(struct buf *out, const float *v, size_t dim)
{
    buf_char(out, '{');
    for (size_t i = 0; i < dim; i++)
        buf_fmt(out, i ? ",%.9g" : "%.9g", (double)v[i]);
    buf_char(out, '}');
}

void vector_record(struct buf *list, const char *id, const float *v, size_t dim)
{
    const size_t width = (size_t)vector_column(dim);
    buf_fmt(list, "%s{\"id\":\"%s\",\"width\":%zu,\"vector\":\"", list->len > 1 ? "," : "", id, width);
    vector_text(list, v, dim, width);
    buf_text(list, "\"}");
}
