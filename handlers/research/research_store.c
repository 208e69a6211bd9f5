/* Stores the answer of a research step, and a lesson if the answer was a surprise. */
#include "handlers/lesson.h"
#include "handlers/research/research.h"

static struct texts text_pair(struct arena *arena, const char *a, const char *b)
{
    const char **items = arena_alloc(arena, 2 * sizeof *items);
    items[0] = a;
    items[1] = b;
    return (struct texts){ strcmp(a, b) == 0 ? 1 : 2, items };
}

static enum err add_lesson(struct call *c, const struct research_in *in, struct decimal shift,
                           struct research_outcome *o)
{
    const struct research_surprise surprise = {
        .ticker = in->entry.ticker,
        .task_type = in->entry.task_type,
        .signals = in->signals_json,
        .prior = rows_text(in->prior, 0, &prior_row.probability),
        .probability = in->entry.probability,
        .shift = shift,
        .age_days = rows_text(in->prior, 0, &prior_row._age_days),
        .new_filing = in->signals.new_filing,
        .guidance_update = in->signals.guidance_update,
        .changed = in->rerun.changed,
        .changed_count = in->rerun.changed_count,
    };
    const struct research_lesson texts = research_lesson(&c->arena, &surprise);
    const struct lesson_new lesson = {
        .at = in->entry.created_at,
        .context = texts.context,
        .outcome = texts.outcome,
        .takeaway = texts.takeaway,
        .tags = text_pair(&c->arena, research_tag(&c->arena, in->entry.task_type), "regime-shift"),
        .evidence = text_pair(&c->arena, arena_fmt(&c->arena, "episode:%s", episodic_id(&in->episode)),
                              arena_fmt(&c->arena, "episode:%s", o->prior_id)),
    };
    struct rows *row;
    TRY(lesson_store(c, &lesson, &row));
    o->lesson = row;
    return OK;
}

/* Compares with the prior. An entry that existed already gave its lesson when it was new. */
static enum err learn_from_shift(struct call *c, const struct research_in *in, struct research_outcome *o)
{
    if (!episodic_prior_exists(in->prior) || in->episode.known)
        return OK;
    struct decimal shift;
    char *text = arena_alloc(&c->arena, DECIMAL_TEXT_SIZE);
    bool surprises =
        research_shift(rows_text(in->prior, 0, &prior_row.probability), in->entry.probability, &shift);
    decimal_text(shift, text);
    o->shift = text;
    o->prior_id = rows_text(in->prior, 0, &prior_row.id);
    return surprises ? add_lesson(c, in, shift, o) : OK;
}

static enum err store_tx(struct call *c, void *arg)
{
    struct research_in *in = arg;
    struct research_outcome outcome = { 0 };
    TRY(episodic_store(c, &c->arena, &in->episode, 1));
    TRY(learn_from_shift(c, in, &outcome));
    in->reply(c, in, &outcome);
    return OK;
}

enum err research_store(struct call *c, struct research_in *in)
{
    TRY(episodic_check(c, &in->entry, &c->arena, &in->episode));
    TRY(episodic_prepare(c, &c->arena, &in->episode, 1));
    return query_tx(c, store_tx, in);
}
