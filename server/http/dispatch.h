/* The way of every request, in one order: match, authenticate, read, parse, call, answer. */
#ifndef DAYBOOK_SERVER_HTTP_DISPATCH_H
#define DAYBOOK_SERVER_HTTP_DISPATCH_H

#include "server/call.h"

/* With the headers: match and refuse what can be refused before the body is read. */
enum err call_begin(struct call *c, const char *target, const char *method) must_check;
/* A body follows the headers. */
bool call_has_body(const struct call *c);
/* The most bytes that its body may have. */
size_t call_body_limit(const struct call *c);
/* With the body: the rest. The answer comes through call_answer, now or later. */
void call_run(struct call *c);

/* The edge of dispatch to the HTTP daemon: the call's answer is complete, or its stream begins. */
void exchange_answered(struct call *c);
/* Waits, when the answer has been given, until the loop has had nothing else to do for a while. False: it
 * never had, the service stops, or another call waits for that already. */
bool exchange_is_quiet(struct call *c);
/* A call that waits has ended for good: its memory may go. */
void exchange_finished(struct call *c);

#endif
