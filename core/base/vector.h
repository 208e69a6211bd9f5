/* Embedding vectors: normalisation, and the text that the database reads. */
#ifndef DAYBOOK_CORE_BASE_VECTOR_H
#define DAYBOOK_CORE_BASE_VECTOR_H

#include <stdbool.h>

#include "core/base/buf.h"

enum { VECTOR_MAX = 4000 };

/* Scales the vector to length 1; false when its length is zero or not finite. */
bool vector_normalise(float *v, size_t dim);

/* The dimension of the narrowest column that holds the vector (migrations/0004), 0 when none does. */
int vector_column(size_t dim);

/* "[0.1,0.2,0,0]": the text that pgvector reads, padded with zeros to the dimension of the column. */
void vector_text(struct buf *out, const float *v, size_t dim, size_t column);

/* "{0.1,0.2}": an array of real numbers for a statement. */
void vector_array(struct buf *out, const float *v, size_t dim);

/* Appends {id, width, vector} to a JSON list that is open, "[" or longer: how statements take new vectors. */
void vector_record(struct buf *list, const char *id, const float *v, size_t dim);

#endif
