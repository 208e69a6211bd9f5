/* Marks that prompts are made of: tags, chat templates, role lines, tool calls. */
#include <string.h>

#include "core/guard/guard_internal.h"

enum {
    NAME_MAX_BYTES = 40, /* of a tag */
    NESTED_MAX = 4,      /* brackets around a name */
};

enum role {
    ROLE_LINE_USER = 1,
    ROLE_LINE_ASSISTANT = 2,
    ROLE_LINE_SYSTEM = 4,
    ROLE_LINE_ACTION = 8,
    ROLE_LINE_HUMAN = 16
};

/* What is at a mark: the text from there on. */
struct look {
    struct guard_match *match;
    const char *text;
    size_t len, at;
};

static char byte_at(const struct look *l, size_t at)
{
    return at < l->len ? l->text[at] : '\0';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t skip_spaces(const struct look *l, size_t at)
{
    const size_t limit = at + NAME_MAX_BYTES;
    while (at < limit && byte_at(l, at) == ' ')
        at++;
    return at;
}

/* Reads a name, its spaces and hyphens as underscores; returns its end. */
static size_t read_name(const struct look *l, size_t at, char name[NAME_MAX_BYTES + 1])
{
    size_t n = 0;
    while (n < NAME_MAX_BYTES &&
           (is_name_char(byte_at(l, at)) || byte_at(l, at) == ' ' || byte_at(l, at) == '-')) {
        const char c = byte_at(l, at++);
        name[n++] = is_name_char(c) ? c : '_';
    }
    while (n > 0 && name[n - 1] == '_')
        n--;
    name[n] = '\0';
    return at;
}

static bool is_in(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool starts_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* ---- tags ---- */

/* Blocks of our prompts and of those that others build: nothing that is stored may close one. */
static const char *const blocks[] = {
    "learned_patterns",
    "retrieved_memories",
    "memory_state",
    "active_lessons",
    "analogous_cases",
    "avoid_rules",
    "lessons",
    "strategy",
    "summary",
    "trades",
    "episodic_memory",
    "episodic_memories",
    "episodes",
    "episodic",
    "context",
    "working_memory",
    "retrieved_documents",
    "retrieved_context",
    "documents",
    "memories",
    "memory",
    "instructions",
    "instruction",
    "user_input",
    "user_query",
    "user_message",
    "user_data",
    "untrusted",
    "untrusted_text",
    "untrusted_content",
    "untrusted_data",
    "quoted_text",
    "facts",
    "notes",
    "prompt",
    "tool_response",
    "search_results",
    "external_content",
    "external_data",
    "data",
    NULL,
};
/* Those that are no words of HTML or of a filing: nothing may open one either. */
static const char *const openings[] = {
    "learned_patterns", "retrieved_memories",  "memory_state",      "active_lessons",
    "analogous_cases",  "avoid_rules",         "episodic_memory",   "episodic_memories",
    "working_memory",   "retrieved_documents", "retrieved_context", NULL,
};
static const char *const roles[] = {
    "system",
    "assistant",
    "user",
    "human",
    "developer",
    "system_prompt",
    "system_message",
    "system_instruction",
    "system_instructions",
    "system_note",
    "system_override",
    "admin",
    "administrator",
    "system_update",
    "system_reminder",
    "instructions",
    "new_instructions",
    "hidden_instructions",
    "important_instructions",
    "developer_message",
    "sys",
    "inst",
    "thinking",
    "im_start",
    "im_end",
    NULL,
};
static const char *const tools[] = {
    "tool_call",  "tool_calls",  "tool_use",     "function_call",    "function_calls",  "invoke",
    "tool_code",  "tool_result", "tool_results", "function_results", "function_result", "toolcall",
    "tool_input", "tool_name",   "tool_request", "use_mcp_tool",     "execute_command", "antml",
    "call_tool",  "mcp_call",    NULL,
};

static void look_at_template(struct look *l, size_t name_at)
{
    char name[NAME_MAX_BYTES + 1];
    const size_t end = read_name(l, name_at, name);
    if (*name && byte_at(l, end) == '|' && byte_at(l, end + 1) == '>')
        guard_match_direct(l->match, DIRECT_CHAT_TEMPLATE, l->at, end + 2);
}

/* <summary> is also an element of HTML: its end tag closes nothing of ours. */
static bool closes_html(struct guard_marks *marks, bool closes)
{
    if (!closes)
        marks->summaries++;
    else if (marks->summaries > 0)
        marks->summaries--;
    else
        return false;
    return true;
}

enum tag { TAG_OTHER, TAG_BLOCK, TAG_ROLE, TAG_TOOL };

static enum tag tag_of(const char *name, bool closes)
{
    return is_in(closes ? blocks : openings, name) ? TAG_BLOCK
           : is_in(tools, name) ? TAG_TOOL
           : is_in(roles, name) ? TAG_ROLE
                                : TAG_OTHER;
}

/* "<invoke name=" was read as one name. */
static enum tag tag_with_attribute(char *name, bool closes)
{
    char *last = strrchr(name, '_');
    if (!last)
        return strcmp(name, "function") == 0 ? TAG_TOOL : TAG_OTHER; /* "<function=" */
    *last = '\0';
    return strcmp(name, "parameter") == 0 ? TAG_TOOL : tag_of(name, closes);
}

/* Whether a tag may end like this; a closing one may be cut off. */
static bool ends_tag(const struct look *l, size_t at, bool closes)
{
    switch (byte_at(l, at)) {
    case '>':
    case ':':
    case '=':
    case '"':
    case '\n':
        return true;
    case '/':
        return byte_at(l, at + 1) == '>';
    default:
        return closes && at >= l->len;
    }
}

static void look_at_tag(struct guard_marks *marks, struct look *l)
{
    static const enum guard_direct rules[] = { [TAG_BLOCK] = DIRECT_DELIMITER,
                                               [TAG_ROLE] = DIRECT_CHAT_TEMPLATE,
                                               [TAG_TOOL] = DIRECT_TOOL_CALL };
    char name[NAME_MAX_BYTES + 1];
    size_t at = skip_spaces(l, l->at + 1);
    if (byte_at(l, at) == '|') {
        look_at_template(l, skip_spaces(l, at + 1));
        return;
    }
    at = skip_spaces(l, at + (byte_at(l, at) == '<')); /* "<<SYS>>" */
    const bool closes = byte_at(l, at) == '/';
    at = read_name(l, skip_spaces(l, at + closes), name);
    if (!ends_tag(l, at, closes) || (strcmp(name, "summary") == 0 && closes_html(marks, closes)))
        return;
    enum tag tag = tag_of(name, closes);
    if (tag == TAG_OTHER && byte_at(l, at) == '=')
        tag = tag_with_attribute(name, closes);
    if (tag != TAG_OTHER)
        guard_match_direct(l->match, rules[tag], l->at, at);
}

/* ---- brackets ---- */

static const char *const bracketed[] = {
    "inst",
    "sys",
    "system_prompt",
    "new_instructions",
    "end_of_instructions",
    "end_of_context",
    "end_of_prompt",
    "end_of_system_prompt",
    "system_message",
    "system_override",
    "developer_mode",
    "jailbreak",
    "tool_calls",
    "available_tools",
    "end_context",
    "end_memory",
    "end_of_memory",
    "admin_override",
    "system_instruction",
    "system_instructions",
    "hidden_instructions",
    NULL,
};
static const char *const bracketed_roles[] = {
    "system", "assistant", "developer", "admin", "system_note", "system_update", NULL,
};

/* "[INSERT PROMPT HERE]", "{{your question}}" */
static bool is_placeholder(const char *name)
{
    static const char *const asked[] = { "prompt", "question", "request", "query", "user_input", NULL };
    static const char *const starts[] = { "insert", "your", "enter", "put", "paste",
                                          "type",   "my_",  "user",  NULL };
    bool asks = false,
         inserts = strcmp(name, "prompt") == 0 || strcmp(name, "question") == 0 || strstr(name, "_here");
    for (size_t i = 0; asked[i]; i++)
        asks |= strstr(name, asked[i]) != NULL;
    for (size_t i = 0; starts[i]; i++)
        inserts |= starts_with(name, starts[i]);
    return asks && inserts;
}

static void look_at_bracket(struct look *l)
{
    char name[NAME_MAX_BYTES + 1];
    size_t at = l->at + 1;
    while (at < l->at + NESTED_MAX &&
           (byte_at(l, at) == '{' || byte_at(l, at) == '[' || byte_at(l, at) == '<'))
        at++;
    at = skip_spaces(l, at);
    at = read_name(l, at + (byte_at(l, at) == '/'), name);
    const char mark = byte_at(l, at);
    if (mark != ']' && mark != '}' && mark != '>' && mark != ')' && mark != ':')
        return;
    const bool square = byte_at(l, l->at) == '[';
    if (square && is_in(bracketed, name))
        guard_match_direct(l->match, DIRECT_CHAT_TEMPLATE, l->at, at + 1);
    else if (square && is_in(bracketed_roles, name))
        guard_match_direct(l->match, DIRECT_ROLE_LINE, l->at, at + 1);
    else if (mark != ':' && is_placeholder(name))
        guard_match_direct(l->match, DIRECT_PLACEHOLDER, l->at, at + 1);
}

/* ---- lines ---- */

static const struct {
    const char *name;
    enum role role;
} role_names[] = {
    { "user", ROLE_LINE_USER },
    { "human", ROLE_LINE_HUMAN },
    { "assistant", ROLE_LINE_ASSISTANT },
    { "ai", ROLE_LINE_ASSISTANT },
    { "chatgpt", ROLE_LINE_ASSISTANT },
    { "system", ROLE_LINE_SYSTEM },
    { "developer", ROLE_LINE_SYSTEM },
    { "action_input", ROLE_LINE_ACTION },
    { "system_prompt", ROLE_LINE_SYSTEM },
    { "system_message", ROLE_LINE_SYSTEM },
    { "system_note", ROLE_LINE_SYSTEM },
};

/* A role that speaks once may be a note about it; one that is answered is a dialogue made up for the model.
 */
static void note_role(struct guard_marks *marks, struct look *l, enum role role, size_t end)
{
    if (!marks->roles)
        marks->first_role = l->at;
    marks->roles |= role;
    if (role == ROLE_LINE_ACTION ||
        ((marks->roles & ROLE_LINE_HUMAN) && (marks->roles & ROLE_LINE_ASSISTANT)))
        guard_match_direct(l->match, DIRECT_FAKE_DIALOGUE, marks->first_role, end);
    else
        guard_match_direct(l->match, DIRECT_ROLE_LINE, l->at, end);
}

/* "### System:", "Human:", "Action Input:" */
static void look_at_line(struct guard_marks *marks, struct look *l)
{
    static const char *const headings[] = {
        "instruction", "instructions", "system",   "system_prompt",   "system_message",
        "human",       "assistant",    "response", "new_instruction", "new_instructions",
        "user",        "input",        NULL
    };
    char name[NAME_MAX_BYTES + 1];
    size_t start = skip_spaces(l, l->at), signs = 0;
    while (signs < 6 && (byte_at(l, start) == '#' || byte_at(l, start) == '*' || byte_at(l, start) == '>' ||
                         byte_at(l, start) == '"')) {
        start++;
        signs++;
    }
    start = skip_spaces(l, start);
    const size_t end = read_name(l, start, name);
    size_t colon = end;
    while (byte_at(l, colon) == '*')
        colon++;
    const char mark = byte_at(l, colon);
    if (mark != ':' && !(mark == '#' && signs >= 2))
        return;
    if (byte_at(l, l->at) == '#' && signs >= 2 && is_in(headings, name)) {
        guard_match_direct(l->match, DIRECT_CHAT_TEMPLATE, l->at, colon + 1);
        return;
    }
    for (size_t i = 0; i < sizeof role_names / sizeof *role_names; i++)
        if (strcmp(role_names[i].name, name) == 0)
            note_role(marks, l, role_names[i].role, colon + 1);
}

/* ---- JSON and function calls ---- */

static const struct {
    const char *name;
    enum guard_mark mark;
} keys[] = {
    { "tool_calls", GUARD_MARKS },
    { "tool_call", GUARD_MARKS },
    { "function_call", GUARD_MARKS },
    { "tool_use", GUARD_MARKS },
    { "action_input", GUARD_MARKS },
    { "tool_input", GUARD_MARKS },
    { "tool_call_id", GUARD_MARKS },
    { "recipient_name", GUARD_MARKS },
    { "tool", MARK_JSON_TOOL },
    { "tool_name", MARK_JSON_TOOL },
    { "function", MARK_JSON_TOOL },
    { "function_name", MARK_JSON_TOOL },
    { "action", MARK_JSON_NAME },
    { "name", MARK_JSON_NAME },
    { "command", MARK_JSON_NAME },
    { "method", MARK_JSON_NAME },
    { "arguments", MARK_JSON_ARGUMENTS },
    { "args", MARK_JSON_PARAMETERS },
    { "parameters", MARK_JSON_PARAMETERS },
    { "params", MARK_JSON_PARAMETERS },
    { "input", MARK_JSON_PARAMETERS },
    { "kwargs", MARK_JSON_PARAMETERS },
};

/* A message of a chat in JSON: a role of the chat, then its content. */
static void look_at_message(struct guard_marks *marks, struct look *l, const char *name, size_t end)
{
    static const char *const chat_roles[] = { "system", "assistant", "developer", "tool", "model", NULL };
    enum { CONTENT_WITHIN = 64 };
    if (strcmp(name, "role") == 0) {
        char value[NAME_MAX_BYTES + 1];
        size_t at = skip_spaces(l, skip_spaces(l, end + 1) + 1);
        read_name(l, at + 1, value);
        if (is_in(chat_roles, value))
            marks->json_role = end;
    } else if (strcmp(name, "content") == 0 && marks->json_role && end - marks->json_role < CONTENT_WITHIN) {
        guard_match_direct(l->match, DIRECT_CHAT_TEMPLATE, l->at, end);
    }
}

static void look_at_key(struct guard_marks *marks, struct look *l)
{
    char name[NAME_MAX_BYTES + 1];
    const char quote = byte_at(l, l->at);
    const size_t end = read_name(l, l->at + 1, name);
    if (!*name || byte_at(l, end) != quote || byte_at(l, skip_spaces(l, end + 1)) != ':')
        return;
    look_at_message(marks, l, name, end);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (keys[i].mark == GUARD_MARKS)
            guard_match_direct(l->match, DIRECT_TOOL_CALL, l->at, end + 1);
        else
            guard_match_mark(l->match, (struct guard_token){ l->at, end + 1 }, keys[i].mark);
    }
}

/* Calls that act on something else than the market, and calls in the name space of a model's tools. */
static const char *const calls[] = {
    "os_system",
    "send_email",
    "send_mail",
    "sendemail",
    "send_message",
    "email_send",
    "http_post",
    "post_request",
    "requests_post",
    "requests_get",
    "transfer_funds",
    "transferfunds",
    "wire_transfer",
    "withdraw_funds",
    "withdraw",
    "send_funds",
    "send_money",
    "send_payment",
    "make_payment",
    "delete_memory",
    "delete_memories",
    "clear_memory",
    "update_memory",
    "write_memory",
    "save_memory",
    "store_memory",
    "add_memory",
    "get_secret",
    "get_secrets",
    "get_credentials",
    "get_api_key",
    "get_api_keys",
    "read_secret",
    "reveal_prompt",
    "run_shell",
    "execute_shell",
    "execute_command",
    "shell_exec",
    "exec_shell",
    "disable_guard",
    "disable_risk_checks",
    "disable_risk",
    "override_limits",
    "add_whitelist",
    "whitelist_address",
    "approve_transfer",
    NULL,
};

static void look_at_call(struct look *l)
{
    char name[NAME_MAX_BYTES + 1];
    size_t start = l->at, n = 0;
    while (start > 0 && l->at - start < NAME_MAX_BYTES &&
           (is_name_char(l->text[start - 1]) || l->text[start - 1] == '.'))
        start--;
    for (size_t i = start; i < l->at; i++)
        name[n++] = l->text[i] == '.' ? '_' : l->text[i];
    name[n] = '\0';
    if (n == 0 || byte_at(l, skip_spaces(l, l->at + 1)) == ')')
        return;
    if (is_in(calls, name) || starts_with(name, "default_api_"))
        guard_match_direct(l->match, DIRECT_TOOL_CALL, start, l->at + 1);
}

static void look_at_fence(struct look *l)
{
    static const char *const languages[] = { "tool_code", "tool_call",     "tool_calls", "tool_use",
                                             "system",    "function_call", NULL };
    char name[NAME_MAX_BYTES + 1];
    size_t at = l->at;
    while (byte_at(l, at) == '`' && at - l->at < 3)
        at++;
    if (at - l->at < 3)
        return;
    const size_t end = read_name(l, at, name);
    if (is_in(languages, name) && byte_at(l, end) == '\n')
        guard_match_direct(l->match, DIRECT_TOOL_CALL, l->at, end);
}

void guard_marks_begin(struct guard_marks *marks, struct guard_match *m, const char *text, size_t len)
{
    struct look l = { m, text, len, 0 };
    *marks = (struct guard_marks){ 0 };
    look_at_line(marks, &l);
}

void guard_marks_look(struct guard_marks *marks, struct guard_match *m, const char *text, size_t len,
                      size_t at)
{
    struct look l = { m, text, len, at };
    switch (text[at]) {
    case '<':
        look_at_tag(marks, &l);
        look_at_bracket(&l);
        break;
    case '[':
    case '{':
        look_at_bracket(&l);
        break;
    case '\n':
        l.at = at + 1;
        look_at_line(marks, &l);
        break;
    case '"':
    case '\'':
        look_at_key(marks, &l);
        break;
    case '(':
        look_at_call(&l);
        break;
    case '`':
        look_at_fence(&l);
        break;
    case ':':
        if (at > 0 && (is_name_char(text[at - 1]) || text[at - 1] == ']' || text[at - 1] == '*'))
            guard_match_mark(m, (struct guard_token){ at, at + 1 }, MARK_COLON);
        break;
    default:
        break;
    }
}
