/* Sets of the slots of a note. */
#ifndef DAYBOOK_CORE_REFLECT_SLOT_SET_H
#define DAYBOOK_CORE_REFLECT_SLOT_SET_H

#include "core/reflect/reflect.h"

typedef unsigned slot_set; /* 1u << SLOT_SIZING | … */

/* The set of the one slot of that name; empty when there is none. */
slot_set slot_set_of(const char *name);
/* The slots of a list of names that are known to be right: "sizing,regime_fit". */
slot_set slot_set_listed(const char *names);
/* The names of a set, in the order of a note; returns how many. */
size_t slot_set_names(slot_set slots, const char *names[REFLECT_SLOTS]);

#endif
