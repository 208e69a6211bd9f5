/* Parses a note into slots and bullets, whatever markup it has. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_NOTE_READ_H
#define DAYBOOK_CORE_REFLECT_REFLECT_NOTE_READ_H

#include "core/reflect/reflect_note.h"

struct note_bullet {
    const char *text; /* one line, without its mark */
    struct note_bullet *next;
};

struct note_slot {
    bool seen; /* it has a heading */
    size_t count;
    struct note_bullet *bullets;
};

struct note {
    struct note_slot slots[REFLECT_SLOTS];
};

/* Empty bullets (no words, only a heading, or reflect_no_pattern) are left out. */
struct note reflect_note_read(struct arena *arena, const char *text);

/* Whether the bullet is empty in that sense. */
bool reflect_note_read_is_empty(struct arena *arena, const char *bullet);

#endif
