/* The field tables of all routes as tab-separated text: the contract test compares them with openapi/. */
#include "server/fields_print.h"

#include <inttypes.h>

#include "server/dispatch/route.h"
#include "server/json/field.h"

struct printer {
    FILE *to;
    const struct route *route;
    const char *from; /* overrides the `from` column; NULL: as in the field table */
};

static const char *const from_names[] = { [FROM_PATH] = "path",
                                          [FROM_QUERY] = "query",
                                          [FROM_BODY] = "body" };

static const char *const kind_names[] = {
    [KIND_TEXT] = "text",     [KIND_LINE] = "line",     [KIND_INT] = "int",
    [KIND_NUMBER] = "number", [KIND_BOOL] = "bool",     [KIND_TIME] = "time",
    [KIND_UUID] = "uuid",     [KIND_NAME] = "name",     [KIND_CHOICE] = "choice",
    [KIND_TEXTS] = "texts",   [KIND_TAGS] = "tags",     [KIND_NUMBERS] = "numbers",
    [KIND_UUIDS] = "uuids",   [KIND_OBJECT] = "object", [KIND_OBJECTS] = "objects",
    [KIND_MAP] = "map",       [KIND_SCALAR] = "scalar", [KIND_CURSOR] = "cursor",
    [KIND_KEY] = "key",       [KIND_JSON] = "json",
};

static void print_route(const struct printer *p)
{
    fprintf(p->to, "%s\t%s\t%s\t", method_name(p->route->method), p->route->path, role_name(p->route->role));
}

/* Prints only limits that the decoder applies: see field_has_min and field_has_max. */
static void print_limits(const struct printer *p, const struct field *f)
{
    if (field_has_min(f))
        fprintf(p->to, "%" PRId64, f->min);
    fputc('\t', p->to);
    if (field_has_max(f))
        fprintf(p->to, "%" PRId64, f->max);
    fputc('\t', p->to);
    if (f->item_max)
        fprintf(p->to, "%" PRId64, f->item_max);
    fputc('\t', p->to);
}

static void print_field(const struct printer *p, const struct field *f, const char *prefix, const char *name)
{
    print_route(p);
    fprintf(p->to, "%s%s\t%s\t%s\t%s\t%s\t", prefix, name, p->from ? p->from : from_names[f->from],
            kind_names[f->kind], f->required ? "required" : "", f->above_zero ? "above_zero" : "");
    print_limits(p, f);
    for (const char *const *choice = f->choices; choice && *choice; choice++)
        fprintf(p->to, "%s%s", choice == f->choices ? "" : ",", *choice);
    fprintf(p->to, "\t%s\n", f->fallback ? f->fallback : "");
}

static void print_table(const struct printer *p, const struct field *table, const char *prefix);

static void print_sub(const struct printer *p, const struct field *f, const char *prefix)
{
    char path[256];
    if (f->kind == KIND_OBJECT || f->kind == KIND_OBJECTS) {
        snprintf(path, sizeof path, "%s%s%s.", prefix, f->name, f->kind == KIND_OBJECT ? "" : "[]");
        print_table(p, f->sub, path);
    } else if (f->kind == KIND_MAP) {
        snprintf(path, sizeof path, "%s%s", prefix, f->name);
        print_field(p, &f->sub[0], path, "{name}");
        print_field(p, &f->sub[1], path, "{}");
    }
}

static void print_table(const struct printer *p, const struct field *table, const char *prefix)
{
    for (const struct field *f = table; f && f->name; f++) {
        if (f->from == COMPUTED || f->from == BODY_NULLS)
            continue;
        print_field(p, f, prefix, f->name);
        print_sub(p, f, prefix);
    }
}

void fields_print(FILE *to)
{
    route_init();
    fputs("method\tpath\trole\tfield\tfrom\tkind\trequired\tabove_zero\tmin\tmax\titem_"
          "max\tchoices\tfallback\n",
          to);
    for (int i = 0; i < route_count(); i++) {
        struct printer p = { .to = to, .route = route_at(i) };
        print_route(&p);
        fputs("-\t\t\t\t\t\t\t\t\t\n", to);
        print_table(&p, p.route->fields, "");
        p.from = "line";
        print_table(&p, p.route->line_fields, "");
    }
}
