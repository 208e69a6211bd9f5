/* The reflection cadence: when to distill lessons from the closed trades of a deployment. */
#include "core/reflect/cadence.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/time_text.h"

const char *const cadence_names[CADENCES + 1] = {
    [CADENCE_OFF] = "off",
    [CADENCE_PER_N_TRADES] = "per_n_trades",
    [CADENCE_DAILY] = "daily",
};

const char *const cadence_reasons[SKIP_REASONS + 1] = {
    [SKIP_CADENCE_OFF] = "cadence_off",
    [SKIP_NOT_DUE] = "not_due",
    [SKIP_NO_TRADES] = "no_trades",
};

static const struct cadence_skip due = { NULL, NULL };

enum cadence cadence_find(const char *name)
{
    enum cadence c = CADENCE_OFF;
    while (c < CADENCES - 1 && strcmp(cadence_names[c], name) != 0)
        c++;
    return c;
}

enum cadence cadence_in_force(const char *name, bool memory_enabled)
{
    return memory_enabled ? cadence_find(name) : CADENCE_OFF;
}

static struct cadence_skip skip(enum cadence_reason reason, const char *detail)
{
    return (struct cadence_skip){ cadence_reasons[reason], detail };
}

static struct cadence_skip decide_off(struct arena *arena, const struct cadence_state *s)
{
    (void)arena, (void)s;
    return skip(SKIP_CADENCE_OFF, "the cadence is off, or the memory of the version is: only force reflects");
}

static struct cadence_skip decide_trades(struct arena *arena, const struct cadence_state *s)
{
    if (s->closed / s->every_n_trades > s->closed_before / s->every_n_trades)
        return due;
    return skip(SKIP_NOT_DUE,
                arena_fmt(arena, "%" PRId64 " of %" PRId64 " trades were closed since the last note",
                          s->closed, s->every_n_trades));
}

static const char *retry_detail(struct arena *arena, int64_t failed_us)
{
    char at[TIME_TEXT_SIZE];
    time_text_short(failed_us, at);
    return arena_fmt(arena, "the attempt at %s failed; the next one is due an hour later", at);
}

/* Without the wait after a failure, every tick of the day would ask the failing model again. */
static struct cadence_skip decide_day(struct arena *arena, const struct cadence_state *s)
{
    if (s->has_note && time_text_day(s->note_us) == time_text_day(s->now_us))
        return skip(SKIP_NOT_DUE, "there is a note of this day (UTC) already");
    if (s->closed == 0)
        return skip(SKIP_NOT_DUE, "no trade was closed since the last note");
    if (s->has_failed && s->now_us - s->failed_us < CADENCE_RETRY_US)
        return skip(SKIP_NOT_DUE, retry_detail(arena, s->failed_us));
    return due;
}

struct cadence_skip cadence_decide(struct arena *arena, const struct cadence_state *s)
{
    static struct cadence_skip (*const decide[CADENCES])(struct arena *, const struct cadence_state *) = {
        [CADENCE_OFF] = decide_off,
        [CADENCE_PER_N_TRADES] = decide_trades,
        [CADENCE_DAILY] = decide_day,
    };
    return decide[s->cadence](arena, s);
}

struct cadence_skip cadence_decide_request(struct arena *arena, const struct cadence_state *s,
                                           bool any_closed, bool forced)
{
    const bool is_off = !forced && s->cadence == CADENCE_OFF;
    if (!any_closed && !is_off)
        return skip(SKIP_NO_TRADES, "no trade was closed yet");
    return forced ? due : cadence_decide(arena, s);
}
