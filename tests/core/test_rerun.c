/* Rerun decisions: every reason alone and combined, and the comparison of regimes. */
#include "core/base/buf.h"
#include "core/episodic/rerun.h"
#include "tests/core/unit.h"

/* "rates=\"cutting\",vix=18.5" */
static struct regime_tags tags_of(struct arena *arena, const char *text)
{
    struct regime_tag *items = arena_alloc(arena, 32 * sizeof *items);
    size_t count = 0;
    if (strcmp(text, "-") == 0)
        return (struct regime_tags){ 0 };
    for (char *part = strtok(arena_text(arena, text), ","); part; part = strtok(NULL, ",")) {
        char *value = strchr(part, '=');
        *value++ = '\0';
        struct regime_tag *tag = &items[count++];
        tag->name = part;
        tag->kind = *value == '"'                    ? REGIME_TAG_TEXT
                    : *value == 't' || *value == 'f' ? REGIME_TAG_BOOL
                                                     : REGIME_TAG_NUMBER;
        tag->text = *value == '"' ? arena_copy(arena, value + 1, strlen(value) - 2) : value;
    }
    return (struct regime_tags){ count, items };
}

static const char *list_of(struct arena *arena, const char *const *names, size_t count)
{
    struct buf out = { .arena = arena };
    for (size_t i = 0; i < count; i++)
        buf_fmt(&out, "%s%s", i ? "," : "", names[i]);
    return count ? buf_string(&out) : "-";
}

static const char *reasons_of(struct arena *arena, const struct rerun *r)
{
    const char *names[RERUN_REASONS];
    size_t count = 0;
    for (int i = 0; i < RERUN_REASONS; i++)
        if (r->reasons & 1U << i)
            names[count++] = rerun_reason_names[i];
    return list_of(arena, names, count);
}

START_TEST(every_decision_matches_the_table)
{
    struct arena arena = { 0 };
    char *text = unit_file(&arena, "rerun/decisions.tsv"), *line;
    int cases = 0;
    while ((line = unit_line(&text))) {
        char *col[7];
        const char *what = arena_text(&arena, line);
        unit_columns(line, col, 7);
        struct rerun_prior prior = { .regime = tags_of(&arena, col[1]) };
        (void)decimal_parse(col[0], &prior.confidence);
        struct rerun_signals signals = { .regime = tags_of(&arena, col[2]),
                                         .new_filing = strchr(col[3], 'f') != NULL,
                                         .guidance_update = strchr(col[3], 'g') != NULL };
        struct rerun r = rerun_decide(strcmp(col[0], "none") == 0 ? NULL : &prior, &signals);
        ck_assert_msg(strcmp(reasons_of(&arena, &r), col[4]) == 0, "%s: %s", what, reasons_of(&arena, &r));
        ck_assert_msg(strcmp(list_of(&arena, r.changed, r.changed_count), col[5]) == 0, "%s", what);
        ck_assert_msg(strcmp(list_of(&arena, r.unknown, r.unknown_count), col[6]) == 0, "%s", what);
        cases++;
    }
    ck_assert_int_gt(cases, 25);
    arena_release(&arena);
}
END_TEST

START_TEST(numbers_compare_by_their_value)
{
    struct arena arena = { 0 };
    char *text = unit_file(&arena, "rerun/numbers.tsv"), *line;
    int cases = 0;
    while ((line = unit_line(&text))) {
        char *col[3];
        unit_columns(line, col, 3);
        const struct regime_tag a = { "x", REGIME_TAG_NUMBER, col[0] },
                                b = { "x", REGIME_TAG_NUMBER, col[1] };
        bool same = strcmp(col[2], "same") == 0;
        ck_assert_msg(regime_tag_same(&a, &b) == same, "%s and %s", col[0], col[1]);
        ck_assert_msg(regime_tag_same(&b, &a) == same, "%s and %s", col[1], col[0]);
        cases++;
    }
    ck_assert_int_gt(cases, 20);
    arena_release(&arena);
}
END_TEST

START_TEST(only_a_complete_name_matches)
{
    static const struct regime_tag items[] = { { "rates_us", REGIME_TAG_TEXT, "a" },
                                               { "rates", REGIME_TAG_TEXT, "b" } };
    const struct regime_tags tags = { 2, items };
    ck_assert_str_eq(regime_tag_find(&tags, "rates")->text, "b");
    ck_assert_ptr_null(regime_tag_find(&tags, "rate"));
    ck_assert_ptr_null(regime_tag_find(&tags, "Rates"));
}
END_TEST

START_TEST(the_reasons_have_the_names_of_the_contract)
{
    static const char *const names[] = { "no_prior",       "new_filing",     "guidance_update",
                                         "regime_changed", "regime_unknown", "low_confidence" };
    for (int i = 0; i < RERUN_REASONS; i++)
        ck_assert_str_eq(rerun_reason_names[i], names[i]);
    ck_assert_ptr_null(rerun_reason_names[RERUN_REASONS]);
}
END_TEST

UNIT_MAIN("rerun", every_decision_matches_the_table, numbers_compare_by_their_value,
          only_a_complete_name_matches, the_reasons_have_the_names_of_the_contract)
