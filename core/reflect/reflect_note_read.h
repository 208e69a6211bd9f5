/* Reading a note: whatever marks it came with, its slots and their bullets. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_NOTE_READ_H
#define DAYBOOK_CORE_REFLECT_REFLECT_NOTE_READ_H

#include "core/reflect/reflect_note.h"

struct note_bullet {
    const char *text; /* one line, without its mark */
    struct note_bullet *next;
};

struct note_slot {
    bool seen; /* its heading was there */
    size_t count;
    struct note_bullet *bullets;
};

struct note {
    struct note_slot slots[REFLECT_SLOTS];
};

/* Bullets that say nothing (no words, a heading, reflect_no_pattern) are left out. */
struct note reflect_note_read(struct arena *arena, const char *text);

/* True for what would be left out. */
bool reflect_note_read_is_empty(struct arena *arena, const char *bullet);

#endif
