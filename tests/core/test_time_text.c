/* Instants as text. */
#include "core/base/time_text.h"
#include "tests/core/unit.h"

#define DAY_US INT64_C(86400000000)

static struct arena arena;

START_TEST(valid_times_are_read_and_written_as_in_the_data_file)
{
    char *text = unit_file(&arena, "time_text/valid.tsv");
    int cases = 0;
    for (char *line; (line = unit_line(&text)); cases++) {
        char *column[4], out[TIME_TEXT_SIZE];
        unit_columns(line, column, 4);
        int64_t us = 0;
        ck_assert_msg(time_text_parse(column[0], &us), "refused: %s", column[0]);
        ck_assert_msg(us == strtoll(column[1], NULL, 10), "%s is %lld", column[0], (long long)us);
        time_text_full(us, out);
        ck_assert_str_eq(out, column[2]);
        time_text_short(us, out);
        ck_assert_str_eq(out, column[3]);
    }
    ck_assert_int_gt(cases, 300);
    arena_release(&arena);
}
END_TEST

START_TEST(invalid_times_are_rejected)
{
    char *text = unit_file(&arena, "time_text/invalid.txt");
    int cases = 0;
    int64_t us;
    for (char *line; (line = unit_line(&text)); cases++)
        ck_assert_msg(!time_text_parse(line, &us), "taken: %s", line);
    ck_assert_int_gt(cases, 90);
    arena_release(&arena);
}
END_TEST

START_TEST(a_changed_byte_never_reads_as_the_same_instant)
{
    const char good[] = "2026-06-04T10:11:12.345678Z";
    int64_t expected, us;
    ck_assert(time_text_parse(good, &expected));
    for (size_t at = 0; at < sizeof good - 1; at++)
        for (int c = 0; c < 256; c++) {
            char changed[sizeof good];
            memcpy(changed, good, sizeof good);
            if (changed[at] == (char)c || (at == 10 && c == 't') || (at == 26 && c == 'z'))
                continue;
            changed[at] = (char)c;
            ck_assert_msg(!time_text_parse(changed, &us) || us != expected, "%s", changed);
        }
}
END_TEST

static int month_days(int year, int month)
{
    if (month == 2)
        return year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* Every day of the 400 years that start with `year`, one of 1, 401, 801 and so on. */
static void check_days(int year)
{
    int64_t us = TIME_FIRST_US + year / 400 * 146097 * DAY_US;
    int end = year + 400 < 10000 ? year + 400 : 10000, month = 1, day = 1;
    for (; year < end; us += DAY_US) {
        char expected[48], out[TIME_TEXT_SIZE];
        int64_t back;
        snprintf(expected, sizeof expected, "%04d-%02d-%02dT00:00:00Z", year, month, day);
        time_text_short(us, out);
        HOLDS(strcmp(out, expected) == 0);
        HOLDS(time_text_parse(out, &back) && back == us);
        if (++day > month_days(year, month)) {
            day = 1;
            year += month == 12;
            month = month % 12 + 1;
        }
    }
    HOLDS(year < 10000 || us == TIME_LAST_US + 1);
}

START_TEST(every_day_of_the_calendar_follows_the_day_before_it)
{
    check_days(1);
    check_days(1601);
    check_days(2001);
    check_days(9601);
}
END_TEST

START_TEST(full_texts_sort_as_the_instants_do)
{
    char before[TIME_TEXT_SIZE], now[TIME_TEXT_SIZE];
    time_text_full(TIME_FIRST_US, before);
    uint64_t random = 42;
    for (int64_t us = TIME_FIRST_US + 1; us < TIME_LAST_US;) {
        time_text_full(us, now);
        HOLDS(strcmp(before, now) < 0);
        memcpy(before, now, sizeof now);
        random = random * UINT64_C(6364136223846793005) + 1;
        us += 1 + (int64_t)(random >> 24);
    }
}
END_TEST

START_TEST(an_instant_out_of_range_is_clamped)
{
    char out[TIME_TEXT_SIZE];
    time_text_full(INT64_MIN, out);
    ck_assert_str_eq(out, "0001-01-01T00:00:00.000000Z");
    time_text_full(INT64_MAX, out);
    ck_assert_str_eq(out, "9999-12-31T23:59:59.999999Z");
}
END_TEST

START_TEST(a_day_is_that_of_utc)
{
    const int64_t day = INT64_C(86400000000);
    ck_assert_int_eq(time_text_day(0), 0);
    ck_assert_int_eq(time_text_day(day - 1), 0);
    ck_assert_int_eq(time_text_day(day), 1);
    ck_assert_int_eq(time_text_day(-1), -1);
    ck_assert_int_eq(time_text_day(-day), -1);
    ck_assert_int_eq(time_text_day(-day - 1), -2);
}
END_TEST

UNIT_MAIN("time_text", a_day_is_that_of_utc, valid_times_are_read_and_written_as_in_the_data_file,
          invalid_times_are_rejected, a_changed_byte_never_reads_as_the_same_instant,
          every_day_of_the_calendar_follows_the_day_before_it, full_texts_sort_as_the_instants_do,
          an_instant_out_of_range_is_clamped)
