/* Fuzzes the guard: no input breaks it, and folding, decoding and reports meet the contracts of their
 * headers. */
#include "core/guard/decode.h"
#include "core/guard/guard.h"
#include "tests/fuzz/fuzz.h"

static bool on_boundary(const char *text, size_t len, size_t at)
{
    return at <= len && utf8_cut(text, len, at) == at;
}

static void check_fold(struct arena *arena, const char *text, size_t len)
{
    struct folded f;
    fold_text(arena, text, len, &f);
    HOLDS(f.len <= len && f.text[f.len] == '\0' && strlen(f.text) == f.len &&
          utf8_check(f.text, f.len) == f.len);
    HOLDS(f.disguises < 1u << FOLD_DISGUISES && f.original_len == len);
    HOLDS(!f.hidden || (f.hidden_start < f.hidden_end && f.hidden_end <= len));
    size_t before = 0;
    for (size_t at = 0; at <= f.len; at++) {
        const size_t origin = fold_origin(&f, at);
        HOLDS(origin >= before && origin <= len);
        before = origin;
    }
    HOLDS(before == len);
}

static void check_decode(struct arena *arena, const char *text, size_t len)
{
    struct decoded d;
    decode_runs(arena, text, len, &d);
    HOLDS(d.len <= len && utf8_check(d.text, d.len) == d.len);
    for (size_t i = 0; i < d.count; i++) {
        const struct decode_piece *p = &d.pieces[i];
        HOLDS(p->start < p->end && p->end <= len && p->at < d.len);
        HOLDS(i == 0 || (p[-1].end <= p->start && p[-1].at < p->at));
        HOLDS(decode_piece_of(&d, p->at) == p);
    }
}

static void check_report(const char *text, size_t len, const struct guard_report *r)
{
    HOLDS(r->hit_count <= GUARD_HITS_MAX && r->more == (r->hit_count == GUARD_HITS_MAX));
    HOLDS((r->verdict == GUARD_REFUSED) == (r->hit_count > 0));
    for (size_t i = 0; i < r->hit_count; i++) {
        const struct guard_hit *h = &r->hits[i];
        HOLDS(h->rule && h->len > 0 && h->start + h->len <= len);
        HOLDS(on_boundary(text, len, h->start) && on_boundary(text, len, h->start + h->len));
        HOLDS(i == 0 || h[-1].start <= h->start);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    const char *text = arena_copy(&arena, data, size);
    if (utf8_check(text, size) == size) {
        struct guard_report report, again;
        check_fold(&arena, text, size);
        check_decode(&arena, text, size);
        guard_check(&arena, text, size, &report);
        check_report(text, size, &report);
        guard_check(&arena, text, size, &again);
        HOLDS(memcmp(&report, &again, sizeof report) == 0);
    }
    arena_release(&arena);
    return 0;
}
