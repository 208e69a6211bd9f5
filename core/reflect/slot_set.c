/* Sets of the slots of a note. */
#include "core/reflect/slot_set.h"

#include <string.h>

slot_set slot_set_of(const char *name)
{
    for (int slot = 0; slot < REFLECT_SLOTS; slot++)
        if (strcmp(reflect_slot_names[slot], name) == 0)
            return 1u << slot;
    return 0;
}

slot_set slot_set_listed(const char *names)
{
    slot_set slots = 0;
    for (int slot = 0; slot < REFLECT_SLOTS; slot++)
        if (strstr(names, reflect_slot_names[slot])) /* no name is part of another */
            slots |= 1u << slot;
    return slots;
}

size_t slot_set_names(slot_set slots, const char *names[REFLECT_SLOTS])
{
    size_t count = 0;
    for (int slot = 0; slot < REFLECT_SLOTS; slot++)
        if (slots & 1u << slot)
            names[count++] = reflect_slot_names[slot];
    return count;
}
