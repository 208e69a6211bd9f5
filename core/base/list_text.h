/* Texts joined into one by U+001F, which no stored text contains: how statements return lists of texts. */
#ifndef DAYBOOK_CORE_BASE_LIST_TEXT_H
#define DAYBOOK_CORE_BASE_LIST_TEXT_H

#include "core/base/arena.h"

/* The texts, in an array that the caller may reorder. NULL is the empty list, "" a list of one empty text. */
const char **list_text_split(struct arena *arena, const char *joined, size_t *count);

#endif
