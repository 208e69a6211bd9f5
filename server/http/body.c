/* Reads bulk bodies line by line. */
#include "server/config.h"
#include "server/http/http_internal.h"
#include "server/http/spool.h"

enum err exchange_line(struct exchange *x, char **line, size_t *len, int64_t *number)
{
    size_t most = (size_t)x->loop->config->max_body_bytes;
    *line = NULL; /* also on the early returns */
    *number = x->spool ? x->spool->number : 0;
    for (enum spool_result result = SPOOL_MORE; result == SPOOL_MORE;) {
        task_yield(x->task);
        if (x->stream.gone)
            return ERR_BAD_REQUEST;
        if (x->http->abandoned)
            return ERR_SHUTTING_DOWN;
        if (!x->spool)
            return OK;
        result = spool_step(x->spool, most, line, len);
        *number = x->spool->number;
        if (result == SPOOL_FAILED)
            return ERR_INTERNAL;
        if (result == SPOOL_TOO_LONG)
            return problem_set(x->task->problem, ERR_LINE_TOO_LONG, "line %lld has more than %zu bytes",
                               (long long)*number, most);
    }
    return OK;
}
