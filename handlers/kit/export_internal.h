/* Formats of exports that are no text. */
#ifndef DAYBOOK_HANDLERS_KIT_EXPORT_INTERNAL_H
#define DAYBOOK_HANDLERS_KIT_EXPORT_INTERNAL_H

#include "handlers/kit/export.h"

/* A Parquet file in the making. Released with the arena it is opened in. Any result but OK: it must not be
 * used any more. */
struct export_parquet;
struct export_parquet *export_parquet_open(const struct rows *r, struct arena *arena);
/* Adds the row, and streams what is complete. *bytes grows by the length of its values. */
enum err export_parquet_row(struct call *c, struct export_parquet *e, const struct rows *r, int row,
                            struct arena *step, int64_t *bytes) must_check;
/* Streams the rest. */
enum err export_parquet_end(struct call *c, struct export_parquet *e) must_check;

#endif
