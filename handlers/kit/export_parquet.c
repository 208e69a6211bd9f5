/* Exports as Parquet: a row group is filled by the loop, compressed by the worker, and streamed column by
 * column. */
#include "handlers/kit/export_internal.h"
#include "handlers/kit/job.h"
#include "server/zstd.h"

enum {
    /* Together with its compression this is what an export holds: larger groups compress a little better. */
    GROUP_BYTES = 1024 * 1024,
    WORKER_BYTES = 64 * 1024, /* from here on, compressing takes long enough to leave the loop */
    SLICE_BYTES = 16 * 1024,  /* of a piece, so that the stream holds no copy of all of it */
};

/* Lives in the arena of its job: a cancelled request may leave it to the worker. */
struct export_parquet {
    struct parquet *file;
    struct job *job;
};

static bool make(void *work)
{
    parquet_make(work);
    return true;
}

static void release(void *what)
{
    parquet_free(what);
}

struct export_parquet *export_parquet_open(const struct rows *r, struct arena *arena)
{
    struct export_parquet *e = arena_alloc(arena, sizeof *e);
    e->job = job_open(arena, make);
    e->file = rows_parquet_open(r, &zstd_codec, GROUP_BYTES);
    e->job->work = e->file;
    arena_on_release(e->job->arena, release, e->file);
    return e;
}

static enum err stream_piece(struct call *c, const struct export_parquet *e)
{
    size_t len;
    const char *piece = parquet_piece(e->file, &len);
    for (size_t at = 0, slice; at < len; at += slice) {
        slice = len - at < SLICE_BYTES ? len - at : SLICE_BYTES;
        TRY(call_stream_write(c, piece + at, slice));
    }
    return OK;
}

static enum err stream_due(struct call *c, const struct export_parquet *e)
{
    while (parquet_is_due(e->file)) {
        if (parquet_due_bytes(e->file) < WORKER_BYTES)
            parquet_make(e->file);
        else
            TRY(job_run(c, e->job));
        TRY(stream_piece(c, e));
    }
    return OK;
}

enum err export_parquet_row(struct call *c, struct export_parquet *e, const struct rows *r, int row,
                            struct arena *step, int64_t *bytes)
{
    const size_t before = parquet_bytes(e->file);
    rows_parquet(e->file, r, row, step);
    *bytes += (int64_t)(parquet_bytes(e->file) - before);
    return stream_due(c, e);
}

enum err export_parquet_end(struct call *c, struct export_parquet *e)
{
    parquet_end(e->file);
    return stream_due(c, e);
}
