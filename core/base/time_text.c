/* Instants as text: RFC 3339, in and out. */
#include "core/base/time_text.h"

#include <string.h>

#define US_PER_S   INT64_C(1000000)
#define US_PER_DAY (INT64_C(86400) * US_PER_S)

/* Days of the proleptic Gregorian calendar since 1970-01-01. A year that starts in March has its leap day at
 * the end, and then the month lengths follow one formula; an era is the 400 years after which the calendar
 * repeats. */
static int64_t days_from_date(int year, int month, int day)
{
    int y = month > 2 ? year : year - 1; /* never negative: the first year is 1 */
    int era = y / 400;
    int year_of_era = y % 400;
    int day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

static void date_from_days(int64_t days, int *year, int *month, int *day)
{
    int since_zero = (int)(days + 719468); /* never negative inside TIME_FIRST_US .. TIME_LAST_US */
    int era = since_zero / 146097;
    int day_of_era = since_zero % 146097;
    int year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int march_month = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * march_month + 2) / 5 + 1;
    *month = march_month < 10 ? march_month + 3 : march_month - 9;
    *year = era * 400 + year_of_era + (*month <= 2);
}

static int days_of_month(int year, int month)
{
    static const int days[13] = { 0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month];
}

/* Reads exactly `count` digits and advances past them. */
static bool digits(const char **text, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        char c = **text;
        if (c < '0' || c > '9')
            return false;
        *value = *value * 10 + (c - '0');
        ++*text;
    }
    return true;
}

static bool sign(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* The fraction, truncated to microseconds. */
static bool fraction(const char **text, int *us)
{
    *us = 0;
    if (!sign(text, '.'))
        return true;
    int count = 0;
    for (; **text >= '0' && **text <= '9'; ++*text, count++)
        if (count < 6)
            *us = *us * 10 + (**text - '0');
    for (int i = count; i < 6; i++)
        *us *= 10;
    return count >= 1 && count <= 9;
}

static bool offset(const char **text, int *minutes)
{
    *minutes = 0;
    if (sign(text, 'Z') || sign(text, 'z'))
        return true;
    bool west = **text == '-';
    int hour, minute;
    if (!(sign(text, '+') || sign(text, '-')) || !digits(text, 2, &hour) || !sign(text, ':') ||
        !digits(text, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *minutes = (west ? -1 : 1) * (hour * 60 + minute);
    return true;
}

bool time_text_parse(const char *text, int64_t *us)
{
    int year, month, day, hour, minute, second, part, shift;
    if (!digits(&text, 4, &year) || !sign(&text, '-') || !digits(&text, 2, &month) || !sign(&text, '-') ||
        !digits(&text, 2, &day) || !(sign(&text, 'T') || sign(&text, 't')) || !digits(&text, 2, &hour) ||
        !sign(&text, ':') || !digits(&text, 2, &minute) || !sign(&text, ':') || !digits(&text, 2, &second) ||
        !fraction(&text, &part) || !offset(&text, &shift) || *text)
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) || hour > 23 ||
        minute > 59 || second > 59)
        return false;
    int64_t seconds = days_from_date(year, month, day) * 86400 + hour * 3600 + (minute - shift) * 60 + second;
    *us = seconds * US_PER_S + part;
    return *us >= TIME_FIRST_US && *us <= TIME_LAST_US;
}

static char *put_two(char *to, int value)
{
    to[0] = (char)('0' + value / 10);
    to[1] = (char)('0' + value % 10);
    return to + 2;
}

static void format(int64_t us, char out[TIME_TEXT_SIZE], bool always_fraction)
{
    if (us < TIME_FIRST_US)
        us = TIME_FIRST_US;
    if (us > TIME_LAST_US)
        us = TIME_LAST_US;
    int64_t days = us / US_PER_DAY;
    int64_t rest = us % US_PER_DAY;
    if (rest < 0) {
        rest += US_PER_DAY;
        days--;
    }
    int year, month, day;
    date_from_days(days, &year, &month, &day);
    int second = (int)(rest / US_PER_S);
    int part = (int)(rest % US_PER_S);

    char *to = put_two(put_two(out, year / 100), year % 100);
    *to++ = '-';
    to = put_two(to, month);
    *to++ = '-';
    to = put_two(to, day);
    *to++ = 'T';
    to = put_two(to, second / 3600);
    *to++ = ':';
    to = put_two(to, second / 60 % 60);
    *to++ = ':';
    to = put_two(to, second % 60);
    if (part || always_fraction) {
        *to++ = '.';
        to = put_two(put_two(put_two(to, part / 10000), part / 100 % 100), part % 100);
    }
    memcpy(to, "Z", 2);
}

void time_text_full(int64_t us, char out[TIME_TEXT_SIZE])
{
    format(us, out, true);
}

void time_text_short(int64_t us, char out[TIME_TEXT_SIZE])
{
    format(us, out, false);
}

int64_t time_text_day(int64_t us)
{
    const int64_t day_us = INT64_C(86400000000);
    return us / day_us - (us % day_us < 0);
}

const char *time_text(struct arena *arena, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_short(us, text);
    return arena_text(arena, text);
}
