/* Embeds pending entries, memories and situations in one background job per process.
 *
 * The job serves owners in turn, a few batches each, so that a large upload does not block other owners. It
 * holds no connection while it embeds. Before each batch it yields to requests, at most MAX_YIELDS times. A
 * failure is retried after a delay that doubles. A text that the embedder rejects is skipped for REJECTED_US
 * and blocks nothing else. */
#include "server/backfill.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "server/config.h"
#include "server/coro.h"
#include "server/dispatch/query.h"
#include "server/embedder.h"
#include "server/http/daemon.h"
#include "server/log.h"
#include "server/metrics.h"

enum {
    BATCH = 16,          /* texts that are embedded and stored at once */
    BATCHES = 4,         /* per owner and turn */
    MAX_YIELDS = 100,    /* pauses of YIELD_US before a batch while requests arrive */
    MAX_REJECTED = 1024, /* rejected texts that are remembered */
    MAX_ASKED = 64,      /* queued requests of recalls; beyond that, the next recall asks again */
    MAX_COUNTED = 100000,
};

#define YIELD_US       (INT64_C(10) * 1000)
#define COUNT_US       (INT64_C(10) * 1000 * 1000)  /* between two counts of pending rows in a long run */
#define LOOK_US        (INT64_C(600) * 1000 * 1000) /* between two searches for rows of other instances */
#define REJECTED_US    LOOK_US
#define FIRST_RETRY_US (INT64_C(250) * 1000)
#define MAX_RETRY_US   (INT64_C(30) * 1000 * 1000)

/* Parameters of the statements in db/backfill.sql. */
struct params {
    const char *after, *situations, *model, *vectors, *id, *skill_id, *version;
    struct texts skipped;
    int64_t limit, dim, most;
};

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct params, member)
static const struct field param_fields[] = {
    P(KIND_TEXT, after), P(KIND_BOOL, situations), P(KIND_LINE, model), P(KIND_TEXT, vectors), P(KIND_UUID, id), P(KIND_LINE, skill_id),
    P(KIND_LINE, version), P(KIND_UUIDS, skipped), P(KIND_INT, limit), P(KIND_INT, dim), P(KIND_INT, most),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(next, owner);
COLUMNS(counted, pending);
COLUMNS(waiting, id, text);
QUERY(next_owner, BACKFILL_OWNER, param_fields, READS(next));
QUERY(count_pending, BACKFILL_COUNT, param_fields, READS(counted));
QUERY(episodes, BACKFILL_EPISODES, param_fields, READS(waiting));
QUERY(episodic_store, BACKFILL_EPISODES_STORE, param_fields);
QUERY(memories, BACKFILL_MEMORIES, param_fields, READS(waiting));
QUERY(memories_store, MEMORY_VECTORS_STORE, param_fields);
QUERY(situations, BACKFILL_SITUATIONS, param_fields, READS(waiting));
QUERY(situations_asked, BACKFILL_SITUATIONS_ASKED, param_fields, READS(waiting));
QUERY(situations_store, SITUATIONS_STORE, param_fields);

/* One kind of thing to embed: the query for pending rows, and the query that stores their vectors. */
struct source {
    const struct query *pending, *store;
};
static const struct source episode_source = { &episodes, &episodic_store };
static const struct source memory_source = { &memories, &memories_store };
static const struct source situation_source = { &situations, &situations_store };
static const struct source asked_source = { &situations_asked, &situations_store };

struct rejected {
    uint64_t owner; /* hashed */
    char id[37];
    int64_t until_us;
};

/* What may end a pause before its time. */
enum pause_end { END_BY_TIME, END_BY_WORK, END_BY_EMBEDDER };

struct backfill {
    struct task task;
    struct problem problem;
    struct loop *loop;
    bool situations; /* embed all pending situations, not only those of backfill_ask */
    bool running, stopping;
    struct timer start;

    struct task_wait pause;
    struct timer timer;
    enum pause_end pause_end;
    int64_t retry_us; /* 0: nothing has failed */
    int64_t requests; /* their number when is_busy ran last */

    struct rejected rejected[MAX_REJECTED]; /* the oldest first */
    size_t rejected_count;
    int64_t counted_us;                   /* last count of pending rows; 0: none in this run */
    int64_t embedded, left_out, begun_us; /* of this run */

    /* Notifications of other loops. */
    struct watch notified; /* an eventfd */
    atomic_bool found, embedder_recovered;
    pthread_mutex_t lock;
    struct arena asked_arena; /* the rest: under the lock */
    struct backfill_situations asked[MAX_ASKED];
    size_t asked_count;
};

static struct backfill *job; /* NULL: there is none */

/* ---- notifications of other loops ---- */

static void notify(atomic_bool *what)
{
    if (!atomic_exchange(what, true))
        (void)!eventfd_write(job->notified.fd, 1);
}

void backfill_found(void)
{
    if (job)
        notify(&job->found);
}

void backfill_embedder_recovered(void)
{
    if (job)
        notify(&job->embedder_recovered);
}

static bool is_asked(const struct backfill *b, const struct backfill_situations *s)
{
    for (size_t i = 0; i < b->asked_count; i++) {
        const struct backfill_situations *a = &b->asked[i];
        if (strcmp(a->owner, s->owner) == 0 && strcmp(a->skill_id, s->skill_id) == 0 &&
            strcmp(a->version, s->version) == 0 && !a->deployment_id == !s->deployment_id &&
            (!a->deployment_id || strcmp(a->deployment_id, s->deployment_id) == 0))
            return true;
    }
    return false;
}

void backfill_ask(const struct backfill_situations *s)
{
    struct backfill *b = job;
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    if (!b->situations && b->asked_count < MAX_ASKED && !is_asked(b, s))
        b->asked[b->asked_count++] = (struct backfill_situations){
            .owner = arena_text(&b->asked_arena, s->owner),
            .skill_id = arena_text(&b->asked_arena, s->skill_id),
            .version = arena_text(&b->asked_arena, s->version),
            .deployment_id = s->deployment_id ? arena_text(&b->asked_arena, s->deployment_id) : NULL,
        };
    pthread_mutex_unlock(&b->lock);
    notify(&b->found);
}

/* ---- pauses ---- */

static void on_time(struct timer *t)
{
    task_wake(&container_of(t, struct backfill, timer)->pause, OK);
}

static bool pause_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct backfill *b = container_of(w, struct backfill, pause);
    loop_timer_off(b->loop, &b->timer);
    return true;
}

static bool is_over(struct backfill *b)
{
    return (b->pause_end == END_BY_WORK && b->found) ||
           (b->pause_end == END_BY_EMBEDDER && b->embedder_recovered);
}

static void on_notify(struct watch *w, uint32_t events)
{
    (void)events;
    struct backfill *b = container_of(w, struct backfill, notified);
    eventfd_t value;
    (void)!eventfd_read(w->fd, &value);
    if (b->task.wait == &b->pause && is_over(b)) {
        loop_timer_off(b->loop, &b->timer);
        task_wake(&b->pause, OK);
    }
}

static enum err pause_for(struct backfill *b, int64_t us, enum pause_end end)
{
    if (b->stopping)
        return ERR_SHUTTING_DOWN;
    b->pause_end = end;
    if (is_over(b))
        return OK;
    b->timer.fire = on_time;
    b->pause = (struct task_wait){ .give_up = pause_give_up };
    loop_timer(b->loop, &b->timer, us);
    return task_wait(&b->task, &b->pause);
}

/* Counting requests also detects a client that sends one after another, when none is in work right now. */
static bool is_busy(struct backfill *b)
{
    const int64_t requests = daemon_requests(b->loop->http);
    const bool busy = daemon_working(b->loop->http) || requests != b->requests;
    b->requests = requests;
    return busy;
}

/* Waits while requests arrive, for MAX_YIELDS pauses at most. */
static enum err yield_to_requests(struct backfill *b)
{
    for (int i = 0; i < MAX_YIELDS && is_busy(b); i++)
        TRY(pause_for(b, YIELD_US, END_BY_TIME));
    return b->stopping ? ERR_SHUTTING_DOWN : OK;
}

/* ---- rejected texts ---- */

static void forget_rejected(struct backfill *b)
{
    size_t gone = 0;
    while (gone < b->rejected_count && b->rejected[gone].until_us <= b->loop->now_us)
        gone++;
    b->rejected_count -= gone;
    memmove(b->rejected, b->rejected + gone, b->rejected_count * sizeof *b->rejected);
}

static uint64_t owner_hash(const struct backfill *b)
{
    return hash_bytes(b->task.owner, strlen(b->task.owner), HASH_SEED);
}

/* Rejected texts of the current owner. */
static struct texts rejected_ids(const struct backfill *b, struct arena *arena)
{
    struct texts ids = { 0, arena_alloc(arena, (b->rejected_count + 1) * sizeof *ids.items) };
    const uint64_t owner = owner_hash(b);
    for (size_t i = 0; i < b->rejected_count; i++)
        if (b->rejected[i].owner == owner)
            ids.items[ids.count++] = b->rejected[i].id;
    return ids;
}

static void remember_rejected(struct backfill *b, const char *id)
{
    b->left_out++;
    if (b->rejected_count == MAX_REJECTED)
        return;
    struct rejected *r = &b->rejected[b->rejected_count++];
    r->owner = owner_hash(b);
    snprintf(r->id, sizeof r->id, "%s", id);
    r->until_us = b->loop->now_us + REJECTED_US;
}

/* ---- one batch ---- */

/* Embeds the rows. Rejected texts are remembered. */
static enum err embed_rows(struct backfill *b, struct params *p, struct arena *arena, const struct rows *r)
{
    const size_t count = (size_t)rows_count(r);
    struct embedder_item *items = arena_zero(arena, count * sizeof *items);
    int64_t rejected = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].id = rows_text(r, (int)i, &waiting.id);
        items[i].text = rows_text(r, (int)i, &waiting.text);
    }
    TRY(embedder_embed_items(&b->task, arena, items, count, &p->vectors));
    for (size_t i = 0; i < count; i++)
        if (items[i].rejected) {
            remember_rejected(b, items[i].id);
            rejected++;
        }
    metrics_backfill(b->loop->metrics, BACKFILL_REJECTED, rejected);
    return OK;
}

static enum err fill_batch(struct backfill *b, const struct source *source, struct params *p,
                           struct arena *arena, bool *more)
{
    const struct embedder_space own = embedder_space(b->loop);
    struct rows *r, *stored;
    forget_rejected(b);
    *more = false;
    p->skipped = rejected_ids(b, arena);
    if (b->rejected_count == MAX_REJECTED && p->skipped.count)
        return OK; /* the list is full: continue with this owner when entries expire */
    p->limit = BATCH;
    p->model = own.model;
    p->dim = (int64_t)own.dim;
    TRY(query_task_rows(&b->task, source->pending, p, arena, &r));
    const size_t count = (size_t)rows_count(r);
    if (!count)
        return OK;
    TRY(embed_rows(b, p, arena, r));
    TRY(query_task_rows(&b->task, source->store, p, arena, &stored));
    b->embedded += rows_count(stored);
    metrics_backfill(b->loop->metrics, BACKFILL_EMBEDDED, rows_count(stored));
    *more = count == BATCH && (rows_count(stored) || b->rejected_count < MAX_REJECTED);
    return OK;
}

static void use_arena(struct backfill *b, struct arena *arena)
{
    b->task.arena = arena;
    b->problem = (struct problem){ .arena = arena };
}

/* Embeds up to BATCHES batches. Sets *more if rows are left. */
static enum err fill(struct backfill *b, const struct source *source, struct params *p, bool *more)
{
    bool others = true;
    struct arena *outer = b->task.arena;
    for (int i = 0; i < BATCHES && others; i++) {
        struct arena step = { 0 };
        TRY(yield_to_requests(b));
        use_arena(b, &step);
        enum err err = fill_batch(b, source, p, &step, &others);
        use_arena(b, outer);
        arena_release(&step);
        TRY(err);
    }
    *more |= others;
    return OK;
}

/* ---- all owners, once ---- */

/* Whether the next owner would fail the same way. */
static bool concerns_all(enum err err)
{
    return err == ERR_SHUTTING_DOWN || err == ERR_EMBEDDER_UNAVAILABLE || err == ERR_DATABASE_UNAVAILABLE ||
           err == ERR_STORAGE_FULL;
}

/* A failure of one owner's rows does not stop the other owners. It is reported at the end of the run. */
static enum err note_failure(enum err err, enum err *failed)
{
    if (err != OK && concerns_all(err))
        return err;
    if (err != OK)
        *failed = err;
    return OK;
}

static enum err count(struct backfill *b, struct arena *arena, bool now)
{
    struct params p = { .situations = b->situations ? "true" : "false", .most = MAX_COUNTED };
    struct rows *r;
    if (!now && b->counted_us && b->loop->now_us - b->counted_us < COUNT_US)
        return OK;
    b->counted_us = b->loop->now_us;
    TRY(query_task_rows(&b->task, &count_pending, &p, arena, &r));
    metrics_backfill(b->loop->metrics, BACKFILL_PENDING, row_int(r, 0, &counted.pending, 0));
    return OK;
}

static size_t take_asked(struct backfill *b, struct arena *arena, struct backfill_situations *out)
{
    pthread_mutex_lock(&b->lock);
    const size_t n = b->asked_count;
    for (size_t i = 0; i < n; i++) {
        const struct backfill_situations *a = &b->asked[i];
        out[i] = (struct backfill_situations){
            .owner = arena_text(arena, a->owner),
            .skill_id = arena_text(arena, a->skill_id),
            .version = arena_text(arena, a->version),
            .deployment_id = a->deployment_id ? arena_text(arena, a->deployment_id) : NULL,
        };
    }
    b->asked_count = 0;
    arena_release(&b->asked_arena);
    pthread_mutex_unlock(&b->lock);
    return n;
}

/* Queues requests again that could not be finished: they are stored nowhere else. */
static enum err fill_asked(struct backfill *b, struct arena *arena, bool *more, enum err *failed)
{
    struct backfill_situations asked[MAX_ASKED];
    const size_t n = take_asked(b, arena, asked);
    enum err err = OK;
    for (size_t i = 0; i < n; i++) {
        struct params p = { .id = asked[i].deployment_id,
                            .skill_id = asked[i].skill_id,
                            .version = asked[i].version };
        bool others = err != OK;
        b->task.owner = asked[i].owner;
        if (err == OK)
            err = note_failure(fill(b, &asked_source, &p, &others), failed);
        if (err != OK || others)
            backfill_ask(&asked[i]);
        *more |= others;
    }
    return err;
}

static enum err fill_owner(struct backfill *b, const char *owner, bool *more, enum err *failed)
{
    struct params p = { 0 };
    b->task.owner = owner;
    TRY(note_failure(fill(b, &episode_source, &p, more), failed));
    TRY(note_failure(fill(b, &memory_source, &p, more), failed));
    return b->situations ? note_failure(fill(b, &situation_source, &p, more), failed) : OK;
}

static enum err fill_owners(struct backfill *b, struct arena *arena, bool *more, enum err *failed)
{
    struct params p = { .after = "", .situations = b->situations ? "true" : "false" };
    struct rows *r;
    for (;;) {
        TRY(query_task_rows(&b->task, &next_owner, &p, arena, &r));
        p.after = rows_text(r, 0, &next.owner);
        if (!p.after)
            return OK;
        TRY(count(b, arena, false));
        TRY(fill_owner(b, p.after, more, failed));
    }
}

static enum err fill_all(struct backfill *b, bool *more)
{
    struct arena arena = { 0 };
    enum err failed = OK;
    *more = false;
    use_arena(b, &arena);
    enum err err = fill_asked(b, &arena, more, &failed);
    if (err == OK)
        err = fill_owners(b, &arena, more, &failed);
    if (err == OK && !*more && b->counted_us)
        err = count(b, &arena, true);
    b->task.owner = NULL;
    use_arena(b, NULL);
    arena_release(&arena);
    return err == OK ? failed : err;
}

/* ---- the job ---- */

static void report(struct backfill *b, enum err err)
{
    if (b->embedded || b->left_out)
        log_event(LOG_INFO, "backfill", "embedded=%lld refused=%lld ms=%lld", (long long)b->embedded,
                  (long long)b->left_out, (long long)(loop_clock_us() - b->begun_us) / 1000);
    if (err != OK && !b->retry_us) /* once, not at each retry */
        log_event(LOG_WARN, "backfill_paused", "why=%s; pending vectors are retried until this succeeds",
                  problem_code(err));
    if (err == OK && b->retry_us)
        log_event(LOG_INFO, "backfill_resumed", "pending vectors are up to date again");
    b->embedded = b->left_out = b->counted_us = 0;
}

/* Runs until nothing is pending or something fails. */
static enum err work(struct backfill *b)
{
    bool more = true;
    enum err err = OK;
    b->begun_us = loop_clock_us();
    while (err == OK && more)
        err = fill_all(b, &more);
    if (!b->stopping)
        report(b, err);
    return err;
}

static enum err wait_for_work(struct backfill *b, enum err err)
{
    if (err == OK) {
        b->retry_us = 0;
        return pause_for(b, LOOK_US, END_BY_WORK);
    }
    metrics_backfill(b->loop->metrics, BACKFILL_FAILED, 1);
    atomic_store(&b->embedder_recovered, false); /* a success before the failure does not count */
    const int64_t twice = b->retry_us ? 2 * b->retry_us : FIRST_RETRY_US;
    b->retry_us = twice < MAX_RETRY_US ? twice : MAX_RETRY_US;
    return pause_for(b, b->retry_us, END_BY_EMBEDDER);
}

static void run(void *arg)
{
    struct backfill *b = arg;
    b->running = true;
    for (enum err err = OK; err != ERR_SHUTTING_DOWN && !b->stopping;) {
        atomic_store(&b->found, false);
        err = wait_for_work(b, work(b));
    }
    b->running = false;
}

static void on_start(struct timer *t)
{
    coro_start(run, container_of(t, struct backfill, start));
}

/* An endpoint may charge for each text: the situations of ticks are embedded when a recall asks for them. */
static bool wants_situations(const struct config *config)
{
    return strcmp(config->backfill, "all") == 0 || !config->embedding_url[0];
}

bool backfill_open(struct loop *loop)
{
    if (strcmp(loop->config->backfill, "off") == 0)
        return true;
    struct backfill *b = memory_zero(1, sizeof *b);
    b->loop = loop;
    b->task = (struct task){ .loop = loop, .problem = &b->problem, .id = "backfill" };
    b->situations = wants_situations(loop->config);
    pthread_mutex_init(&b->lock, NULL);
    b->notified.ready = on_notify;
    b->notified.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->notified.fd < 0) {
        free(b);
        return false;
    }
    loop_watch(loop, &b->notified, EPOLLIN);
    b->start.fire = on_start;
    loop_timer(loop, &b->start, 1);
    job = b;
    return true;
}

void backfill_stop(struct loop *loop)
{
    struct backfill *b = job;
    if (!b || b->loop != loop)
        return;
    b->stopping = true;
    loop_timer_off(loop, &b->start);
    loop_watch(loop, &b->notified, 0);
    while (b->running)
        if (!task_resume_yielded(&b->task) && !task_cancel(&b->task, ERR_SHUTTING_DOWN, true))
            break;
}

void backfill_close(void)
{
    if (!job)
        return;
    close(job->notified.fd);
    arena_release(&job->asked_arena);
    pthread_mutex_destroy(&job->lock);
    free(job);
    job = NULL;
}
