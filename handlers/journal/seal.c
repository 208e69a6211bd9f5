/* Seals the events of the journals before they are read. */
#include "handlers/journal/journal.h"
#include "server/dispatch/query.h"

/* A read seals as many events as fit into its time. More than that are left to the background. */
enum {
    MOST = 1000, /* events in one statement */
    ROUNDS = 10, /* statements of one journal */
};

#define OWN_JOURNAL "00000000-0000-0000-0000-000000000000" /* of what belongs to no deployment */

struct seal_in {
    const char *journal_id;
    int64_t most;
};

/* clang-format off */
#define S(kind, member) FIELD(COMPUTED, kind, struct seal_in, member)
static const struct field seal_fields[] = { S(KIND_UUID, journal_id), S(KIND_INT, most), END_FIELDS };
/* clang-format on */

COLUMNS(listed, journal_id);
COLUMNS(result, sealed);
QUERY(unsealed, JOURNALS_UNSEALED, seal_fields, READS(listed));
QUERY(seal_one, JOURNAL_SEAL, seal_fields, READS(result));

enum err journal_choose(struct call *c, const char *deployment_id, const char *journal,
                        const char **journal_id)
{
    if (deployment_id && journal)
        return problem_field(&c->problem, "journal", FAULT_NOT_TOGETHER,
                             "is the journal of no deployment; leave out one of the two");
    *journal_id = journal ? OWN_JOURNAL : deployment_id;
    return OK;
}

static enum err seal_once(struct call *c, const struct seal_in *in, int64_t *sealed)
{
    struct arena step = { 0 };
    struct rows *r;
    enum err err = query_rows(c, &seal_one, in, &step, &r);
    *sealed = err == OK ? row_int(r, 0, &result.sealed, 0) : 0;
    arena_release(&step);
    return err;
}

static enum err seal_journal(struct call *c, const char *journal_id)
{
    const struct seal_in in = { journal_id, MOST };
    int64_t sealed = MOST;
    for (int i = 0; i < ROUNDS && sealed == MOST; i++)
        TRY(seal_once(c, &in, &sealed));
    return OK;
}

static enum err seal_journals(struct call *c)
{
    struct rows *r;
    TRY(query_rows(c, &unsealed, &(struct seal_in){ 0 }, NULL, &r));
    for (int i = 0; i < rows_count(r); i++)
        TRY(seal_journal(c, rows_text(r, i, &listed.journal_id)));
    return OK;
}

/* What cannot be sealed now, because the server takes no writes or its disk is full, is left to the
 * background. */
enum err journal_seal(struct call *c, const char *journal_id)
{
    enum err err = journal_id ? seal_journal(c, journal_id) : seal_journals(c);
    if (err != ERR_DATABASE_UNAVAILABLE && err != ERR_STORAGE_FULL)
        return err;
    problem_clear(&c->problem);
    return OK;
}
