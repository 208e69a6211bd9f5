/* The in-memory API keys of a loop. */
#include "db/keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "db/lanes.h"

struct load {
    void (*done)(void *user, struct key_set *keys, enum err err);
    void *user;
};

static int by_hash(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->hash, ((const struct key *)b)->hash);
}

/* Columns: token_hash, owner, role, revoked. */
static struct key_set *read_keys(const PGresult *r)
{
    int rows = PQntuples(r);
    struct key_set *set = memory_zero(1, sizeof *set + (size_t)rows * sizeof set->keys[0]);
    set->any = rows > 0;
    for (int i = 0; i < rows; i++) {
        if (PQgetvalue(r, i, 3)[0] == 't')
            continue;
        struct key *k = &set->keys[set->count++];
        strncpy(k->hash, PQgetvalue(r, i, 0), sizeof k->hash - 1);
        strncpy(k->owner, PQgetvalue(r, i, 1), sizeof k->owner - 1);
        k->role = role_parse(PQgetvalue(r, i, 2));
    }
    qsort(set->keys, (size_t)set->count, sizeof set->keys[0], by_hash);
    return set;
}

static void loaded(struct op *op, PGresult *result, enum err err)
{
    struct load load = *(struct load *)op->user;
    free(op->user);
    struct key_set *set = err == OK ? read_keys(result) : NULL;
    if (result)
        PQclear(result);
    load.done(load.user, set, err);
}

void keys_load(struct db *db, void (*done)(void *user, struct key_set *keys, enum err err), void *user)
{
    struct load *load = memory_alloc(sizeof *load);
    *load = (struct load){ done, user };
    struct op *op = lanes_op_new(db);
    op->statement = &KEY_LIST;
    op->done = loaded;
    op->user = load;
    enum err err = lanes_send(db, op);
    if (err != OK) {
        lanes_op_free(db, op);
        free(load);
        done(user, NULL, err);
    }
}

const struct key *keys_find(const struct key_set *set, const char *hash)
{
    return bsearch(hash, set->keys, (size_t)set->count, sizeof set->keys[0], by_hash);
}
