/* Texts of JSON, unescaped where they stand. */
#ifndef DAYBOOK_SERVER_JSON_UNESCAPE_H
#define DAYBOOK_SERVER_JSON_UNESCAPE_H

/* From the opening quote: the text with a NUL behind it, overwriting what it stood for, which is never
 * shorter; *behind is where the document goes on. NULL: not a text, or one with a NUL or half a pair. The
 * document must end with a NUL. */
const char *unescape(char *quote, char **behind);

#endif
