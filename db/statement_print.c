/* Prints statements: their names, their parameters and their text. */
#include "db/statement_print.h"

#include <string.h>

#include "db/statement.h"

static const char *const lanes[] = { [LANE_READ] = "read", [LANE_WRITE] = "write", [LANE_SLOW] = "slow" };
static const char *const shapes[] = { [SHAPE_ONE] = "one", [SHAPE_LIST] = "list", [SHAPE_NONE] = "none" };

void statement_print_list(FILE *to)
{
    int width = 0;
    for (int i = 0; i < statements_count; i++) {
        int len = (int)strlen(statements[i]->name);
        width = len > width ? len : width;
    }
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        fprintf(to, "%-*s  %-5s  %-4s  ", width, st->name, lanes[st->lane], shapes[st->shape]);
        for (int p = 0; p < st->param_count; p++)
            fprintf(to, "%s%s", p ? ", " : "", st->params[p]);
        fputs(st->param_count ? "\n" : "-\n", to);
    }
}

static void print_form(FILE *to, const struct statement *st, const char *name, const char *sql)
{
    fprintf(to, "-- %s :%s :%s%s", name, lanes[st->lane], shapes[st->shape], st->owned ? "" : " :unowned");
    for (int i = 0; i < st->param_count; i++)
        fprintf(to, "%s $%d %s", i ? "," : ":", i + 1, st->params[i]);
    fprintf(to, "\n%s", sql);
}

bool statement_print(FILE *to, const char *name)
{
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        if (strcmp(st->name, name) == 0) {
            print_form(to, st, name, st->sql);
            return true;
        }
        if (st->together && strcmp(st->together_name, name) == 0) {
            print_form(to, st, name, st->together);
            return true;
        }
    }
    return false;
}
