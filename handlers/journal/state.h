/* The state of the journal, read from the columns of the SQL function journal_state. */
#ifndef DAYBOOK_HANDLERS_JOURNAL_STATE_H
#define DAYBOOK_HANDLERS_JOURNAL_STATE_H

#include "core/journal/state.h"
#include "server/dispatch/call.h"

/* The columns as text; NULL: none. */
struct state_columns {
    const char *positions, *theses, *lessons;
};

/* Texts live in `arena`. ERR_INTERNAL: the database did not return what journal_state writes. */
enum err state_read(struct arena *arena, const struct state_columns *columns, struct state *state) must_check;

#endif
