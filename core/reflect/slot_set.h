/* Sets of the slots of a note. */
#ifndef DAYBOOK_CORE_REFLECT_SLOT_SET_H
#define DAYBOOK_CORE_REFLECT_SLOT_SET_H

#include "core/reflect/reflect.h"

typedef unsigned slot_set; /* 1u << SLOT_SIZING | … */

/* The set with the slot of that name; empty: there is no such slot. */
slot_set slot_set_of(const char *name);
/* The slots of a list of valid names: "sizing,regime_fit". */
slot_set slot_set_listed(const char *names);
/* Writes the names of a set, in the order of a note. Returns their number. */
size_t slot_set_names(slot_set slots, const char *names[REFLECT_SLOTS]);

#endif
