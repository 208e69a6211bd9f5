/* Lessons as Markdown. */
#include "core/lessons/lesson.h"

/* Whether the line starts a list item, a heading underline or a rule: not "-5%", not "0.25". */
static bool starts_block(const char *line)
{
    if (*line == '+' || *line == '-' || *line == '=')
        return strchr(" \t\n+-=", line[1]) != NULL; /* matches the end of the text too */
    size_t digits = strspn(line, "0123456789");
    return digits > 0 && (line[digits] == '.' || line[digits] == ')') && strchr(" \t\n", line[digits + 1]);
}

/* Escapes what Markdown would read as markup. A single newline stays a line break. */
static void put_text(struct buf *out, const char *text)
{
    bool line_start = true;
    for (const char *c = text; *c; c++) {
        if (*c == '\n') {
            bool breaks = !line_start && c[1] && c[1] != '\n';
            buf_text(out, breaks ? "\\\n" : "\n");
            line_start = true;
            continue;
        }
        if (line_start && (*c == ' ' || *c == '\t')) { /* an indent would make it code */
            buf_text(out, *c == ' ' ? "&#32;" : "&#9;");
            line_start = false;
            continue;
        }
        if (line_start && starts_block(c)) { /* "12." becomes "12\." */
            size_t digits = strspn(c, "0123456789");
            buf_add(out, c, digits);
            c += digits;
            buf_char(out, '\\');
        } else if (strchr("\\`*_[]<>|~&#", *c)) {
            buf_char(out, '\\');
        }
        buf_char(out, *c);
        line_start = false;
    }
}

static void put_fact(struct buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    buf_fmt(out, "- %s: ", name);
    put_text(out, value);
    buf_char(out, '\n');
}

static void put_section(struct buf *out, const char *name, const char *text)
{
    buf_fmt(out, "\n**%s**\n\n", name);
    put_text(out, text);
    buf_char(out, '\n');
}

static void put_list(struct buf *out, const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");
        buf_text(out, "- ");
        put_text(out, arena_copy(out->arena, lines, len));
        buf_char(out, '\n');
        lines += len;
        lines += *lines == '\n';
    }
}

void lesson_markdown(struct buf *out, const struct lesson_text *l)
{
    buf_text(out, "## ");
    put_text(out, l->takeaway);
    buf_text(out, "\n\n");
    put_fact(out, "id", l->id);
    put_fact(out, "at", l->at);
    put_fact(out, "status", l->status);
    put_fact(out, "since", l->status_at);
    put_fact(out, "reason", l->status_reason);
    put_fact(out, "superseded by", l->superseded_by);
    put_fact(out, "tags", l->tags);
    put_section(out, "Context", l->context);
    put_section(out, "Outcome", l->outcome);
    buf_text(out, "\n**Evidence**\n\n");
    put_list(out, l->evidence);
    if (l->metric) {
        buf_text(out, "\n**Validation**\n\n");
        put_fact(out, "metric", l->metric);
        put_fact(out, "value", l->value);
        put_fact(out, "baseline", l->baseline);
        put_fact(out, "sample size", l->sample_size);
        put_fact(out, "note", l->note);
    }
    buf_char(out, '\n');
}
