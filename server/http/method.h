/* HTTP methods. */
#ifndef DAYBOOK_SERVER_HTTP_METHOD_H
#define DAYBOOK_SERVER_HTTP_METHOD_H

enum method { GET, POST, PUT, PATCH, DELETE, METHOD_COUNT, HEAD = METHOD_COUNT, OPTIONS, METHOD_OTHER };

enum method method_parse(const char *name);
const char *method_name(enum method m);

#endif
