/* A trade as JSON: every member of every form, in one table. A new column of a trade is one row here.
 *
 * A form is one way to write a trade: a row of the ledger, an op of the materializer, a trade in the context,
 * a record for the database. Members are written in the order of the table, so a member that a form has at
 * another position has a second row. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_MEMBERS_H
#define DAYBOOK_CORE_LEDGER_TRADE_MEMBERS_H

#include "core/ledger/materialize.h"

enum trade_form {
    FORM_OPEN_ROW = 1 << 0, /* an open trade in the response to a tick, and in its snapshot */
    FORM_OP_OPEN = 1 << 1,
    FORM_OP_UPDATE = 1 << 2,
    FORM_OP_CLOSE = 1 << 3,
    FORM_CONTEXT_OPEN = 1 << 4,
    FORM_CONTEXT_CLOSED = 1 << 5,
    FORM_STORE = 1 << 6,          /* what any tick may change in a stored trade */
    FORM_STORE_ENTRY = 1 << 7,    /* in addition, for a new trade */
    FORM_STORE_EXIT = 1 << 8,     /* in addition, for a closed trade */
    FORM_READ = 1 << 9,           /* read by trade_members_take; its names are unique */
    FORM_READ_REQUIRED = 1 << 10, /* rows of the service always have it */
};

enum trade_member_kind {
    MEMBER_TEXT,     /* const char * */
    MEMBER_TIME,     /* int64_t, microseconds */
    MEMBER_QUANTITY, /* struct quantity */
    MEMBER_DECIMAL,  /* struct decimal */
    MEMBER_ENUM,     /* an enum, by its `names` */
    MEMBER_BOOL,     /* bool */
    MEMBER_COMPUTED, /* not in the struct: `compute` */
};

/* What to write: a trade, its op (in forms of ops) and, in contexts, the current time. */
struct trade_source {
    const struct trade *trade;
    const struct trade_op *op;
    int64_t now_us;
};

struct trade_member {
    const char *name, *key; /* symbol; ,"symbol": */
    size_t name_len;
    enum trade_member_kind kind;
    size_t offset;  /* in struct trade, or `of_op` in struct trade_op */
    unsigned forms; /* of enum trade_form */
    bool of_op;
    bool leave_out;           /* not written if it is NULL */
    bool yields;              /* read only if no other member has set the same value */
    const char *const *names; /* NULL-terminated */
    struct decimal (*compute)(const struct trade_source *source);
};

enum { TRADE_MEMBERS_MAX = 64 };
extern const struct trade_member trade_members[];
extern const size_t trade_members_count; /* at most TRADE_MEMBERS_MAX */

/* Appends the members of all these forms, inside an object that the caller opens and closes. */
void trade_members_json(struct buf *out, unsigned forms, const struct trade_source *source);

/* The FORM_READ row of this name, or NULL. */
const struct trade_member *trade_members_find(const char *name);
/* True for the kinds that are numbers in JSON; all others are texts. */
bool trade_members_is_number(const struct trade_member *m);
/* Reads one member into the trade. `text` and `arena` must live as long as the trade. False: the text is not
 * a value of that kind, or a number that is too large. */
bool trade_members_take(const struct trade_member *m, const char *text, struct arena *arena,
                        struct trade *out);

#endif
