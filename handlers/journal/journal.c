/* What memories, theses and orders share. */
#include "handlers/journal/journal.h"

enum err journal_no_deployment(struct call *c, const char *deployment_id)
{
    return problem_set(&c->problem, ERR_NOT_FOUND, "there is no deployment %s", deployment_id);
}

enum err journal_check_reference(struct call *c, const struct journal_reference *r)
{
    enum err err = OK;
    if (!r->id)
        return OK;
    if (!r->known)
        return problem_field(&c->problem, r->field, FAULT_UNKNOWN_REFERENCE,
                             "there is no %s %s, or it is dated later", r->what, r->id);
    if (r->symbol)
        err = problem_field(&c->problem, "symbol", FAULT_NOT_TOGETHER, "the %s %s is about %s", r->what,
                            r->id, r->symbol);
    if (r->deployment_id)
        err = problem_field(&c->problem, "deployment_id", FAULT_NOT_TOGETHER,
                            "the %s %s belongs to the deployment %s", r->what, r->id, r->deployment_id);
    return err;
}

void journal_stored(struct call *c, bool text)
{
    c->left_pending |= text;
    c->left_unsealed = true;
}
