/* A trade as JSON: every member of every form, in one table. A new column of a trade is one row here.
 *
 * A form is what one place shows of a trade: a row of the ledger, an op of the materializer, a trade in the
 * context, a record for the database. The rows stand in the order in which they are written, so a member that
 * a form has in another place has a second row. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_MEMBERS_H
#define DAYBOOK_CORE_LEDGER_TRADE_MEMBERS_H

#include "core/ledger/materialize.h"

enum trade_form {
    FORM_OPEN_ROW = 1 << 0, /* an open trade in the reply to a tick, and in its snapshot */
    FORM_OP_OPEN = 1 << 1,
    FORM_OP_UPDATE = 1 << 2,
    FORM_OP_CLOSE = 1 << 3,
    FORM_CONTEXT_OPEN = 1 << 4,
    FORM_CONTEXT_CLOSED = 1 << 5,
    FORM_STORE = 1 << 6,          /* what every tick may change of a stored trade */
    FORM_STORE_ENTRY = 1 << 7,    /* of a new trade also this */
    FORM_STORE_EXIT = 1 << 8,     /* of a closed trade also this */
    FORM_READ = 1 << 9,           /* read by trade_members_take; its names are unique */
    FORM_READ_REQUIRED = 1 << 10, /* a row without it is not one of ours */
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

/* What is written: a trade, with its op where there is one, at an instant where the form depends on it. */
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
    bool leave_out;           /* not written at all when it is NULL */
    bool yields;              /* read only while no other member has set the same place */
    const char *const *names; /* NULL-terminated */
    struct decimal (*compute)(const struct trade_source *source);
};

enum { TRADE_MEMBERS_MOST = 64 };
extern const struct trade_member trade_members[];
extern const size_t trade_members_count; /* at most TRADE_MEMBERS_MOST */

/* Appends the members that any of these forms has, inside an object that the caller opens and closes. */
void trade_members_json(struct buf *out, unsigned forms, const struct trade_source *source);

/* The row that FORM_READ has under this name; NULL: a trade has no such member. */
const struct trade_member *trade_members_find(const char *name);
/* True for the kinds that are numbers in JSON; all others are texts. */
bool trade_members_is_number(const struct trade_member *m);
/* Reads one member into the trade; `text` must live as long as the trade. What the text means must fit the
 * kind: false if it does not. */
bool trade_members_take(const struct trade_member *m, const char *text, struct trade *out);

#endif
