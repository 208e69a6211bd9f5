/* A hash of the content of a tick. */
#include "core/ledger/tick_hash.h"

#include <stdlib.h>

#include "core/base/sha256.h"

static const char *digits_of(struct arena *arena, struct quantity q)
{
    char text[DECIMAL_TEXT_SIZE];
    if (!q.given)
        return "-";
    decimal_text(q.value, text);
    return arena_text(arena, text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the lines in byte order, each as a JSON string, so that no line can be mistaken for two. U+001F
 * separates the parts of a line, which cannot contain it. */
static void put_sorted(struct buf *out, const char *name, const char **lines, size_t count)
{
    if (count > 1)
        qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++) {
        buf_text(out, name);
        buf_json_string(out, lines[i]);
        buf_char(out, '\n');
    }
}

static void put_positions(struct buf *out, const struct tick *tick)
{
    struct arena *arena = out->arena;
    const char **lines = arena_alloc(arena, (tick->position_count + 1) * sizeof *lines);
    for (size_t i = 0; i < tick->position_count; i++) {
        const struct position *p = &tick->positions[i];
        lines[i] = arena_fmt(arena, "%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%s", p->symbol,
                             trade_side_names[p->side], digits_of(arena, p->size_base),
                             digits_of(arena, p->mark_price), digits_of(arena, p->leverage),
                             digits_of(arena, p->entry_price), digits_of(arena, p->realized_pnl_usd));
    }
    put_sorted(out, "position", lines, tick->position_count);
}

static void put_amounts(struct buf *out, const char *name, const struct symbol_amount *amounts, size_t count)
{
    const char **lines = arena_alloc(out->arena, (count + 1) * sizeof *lines);
    for (size_t i = 0; i < count; i++)
        lines[i] =
            arena_fmt(out->arena, "%s\x1f%s", amounts[i].symbol, digits_of(out->arena, amounts[i].amount));
    put_sorted(out, name, lines, count);
}

const char *tick_hash(struct arena *arena, const struct tick *tick, struct quantity equity,
                      const char *lessons_hash)
{
    const struct trade_intent *intent = &tick->intent;
    const char *const texts[] = { intent->kind, intent->symbol, intent->reason, intent->engine_kind,
                                  intent->engine_rule };
    struct buf out = { .arena = arena };
    buf_text(&out, digits_of(arena, equity));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_char(&out, '\n');
        buf_json_string(&out, texts[i]);
    }
    buf_char(&out, '\n');
    put_positions(&out, tick);
    put_amounts(&out, "mark", tick->marks, tick->mark_count);
    put_amounts(&out, "fee", tick->fees, tick->fee_count);
    if (lessons_hash)
        buf_fmt(&out, "lessons\"%s\"\n", lessons_hash);
    char *hex = arena_alloc(arena, SHA256_HEX_SIZE);
    sha256_hex(out.data, out.len, hex);
    return hex;
}
