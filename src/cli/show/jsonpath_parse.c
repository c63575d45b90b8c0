/* See jsonpath.h: a template becomes nodes. */
#include "cli/show/jsonpath_parser.h"

#include "base/err.h"
#include "cli/show/go_escape.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 << 10, DEPTH_MAX = 16, NUMBER_BYTES = 64 };

static int parse_action(struct jsonpath_parser *p, struct jsonpath_node *list);

static void free_node(struct jsonpath_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        free_node(&node->nodes[i]);
    }
    free(node->nodes);
    free(node->text);
    json_decref(node->value);
}

void jsonpath_free(struct jsonpath *path)
{
    if (path) {
        free_node(&path->root);
        free(path);
    }
}

static bool starts(const struct jsonpath_parser *p, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(p->end - p->at) >= length && memcmp(p->at, word, length) == 0;
}

/* Whether a name can begin with this character; a name may be in any script. */
static bool starts_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Parses a part of the text as an expression of its own: a side of a filter. */
static int parse_part(struct jsonpath_parser *p, const char *from, const char *to,
                      struct jsonpath_node *list)
{
    struct jsonpath_parser part = *p;
    if (++part.depth > DEPTH_MAX) {
        return jsonpath_fault(p, from, "nested too deep");
    }
    part.at = from;
    part.end = to;
    int r = parse_action(&part, list);
    p->nodes = part.nodes;
    return r;
}

/* --- fields --- */

static int parse_recursive(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    if (list->count > 0 && list->nodes[list->count - 1].kind == JSONPATH_RECURSIVE) {
        return jsonpath_fault(p, p->at, "one .. after another");
    }
    p->at += strlen("..");
    if (!jsonpath_append(p, list, JSONPATH_RECURSIVE)) {
        return MUSTER_ETOOBIG;
    }
    return p->at < p->end && starts_name(*p->at) ? jsonpath_parse_name(p, list) : 0;
}

/* Parses range, end, true or false. */
static int parse_word(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    const char *from = p->at;
    while (p->at < p->end && !jsonpath_ends_word(*p->at)) {
        p->at++;
    }
    size_t length = (size_t)(p->at - from);
    static const struct {
        const char *word;
        enum jsonpath_kind kind;
    } words[] = {{"range", JSONPATH_RANGE},
                 {"end", JSONPATH_END},
                 {"true", JSONPATH_VALUE},
                 {"false", JSONPATH_VALUE}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) == length && memcmp(from, words[i].word, length) == 0) {
            struct jsonpath_node *node = jsonpath_append(p, list, words[i].kind);
            if (node && words[i].kind == JSONPATH_VALUE) {
                node->value = json_boolean(*from == 't');
            }
            return node ? 0 : MUSTER_ETOOBIG;
        }
    }
    return jsonpath_fault(p, from, "unknown word; a field begins with a dot: {.metadata.name}");
}

static int parse_number(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    const char *from = p->at;
    p->at += *p->at == '+' || *p->at == '-';
    while (p->at < p->end && (isdigit((unsigned char)*p->at) || *p->at == '.')) {
        p->at++;
    }
    char text[NUMBER_BYTES];
    size_t length = (size_t)(p->at - from);
    if (length >= sizeof text) {
        return jsonpath_fault(p, from, "the number is too long");
    }
    memcpy(text, from, length);
    text[length] = '\0';
    char *after;
    errno = 0;
    long long whole = strtoll(text, &after, 10);
    bool is_whole = after != text && !*after && !errno;
    double number = strtod(text, &after);
    if (after == text || *after) {
        return jsonpath_fault(p, from, "this is no number");
    }
    struct jsonpath_node *node = jsonpath_append(p, list, JSONPATH_VALUE);
    if (node) {
        node->value = is_whole ? json_integer(whole) : json_real(number);
    }
    return node ? 0 : MUSTER_ETOOBIG;
}

/* --- quoted text --- */

static int parse_quote(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    const char *from = p->at;
    char quote = *p->at++;
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    int r = 0;
    while (r == 0 && !jsonpath_at_end(p) && *p->at != quote) {
        if (*p->at != '\\') {
            buf_add(&text, p->at++, 1);
            continue;
        }
        p->at++;
        if (p->at >= p->end || !go_unescape(&p->at, p->end, quote, &text)) {
            r = jsonpath_fault(p, p->at - 1, "no such escape; \\n, \\t, \\\\ and \\\" are");
        }
    }
    if (r == 0 && jsonpath_at_end(p)) {
        r = jsonpath_fault(p, from, "the quote is not closed");
    }
    p->at++;
    r = r < 0 ? r : jsonpath_append_text(p, list, JSONPATH_TEXT, buf_str(&text), text.used);
    buf_done(&text);
    return r;
}

/* The end of a filter: the first ) outside of quotes. */
static const char *find_close(const struct jsonpath_parser *p)
{
    char quote = '\0';
    for (const char *at = p->at; at < p->end && *at != '\n'; at++) {
        if (quote) {
            quote = *at == quote && at[-1] != '\\' ? '\0' : quote;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == ')') {
            return at;
        }
    }
    return NULL;
}

static int parse_filter(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    static const char signs[] = "!<>=";
    const char *from = p->at;
    p->at += strlen("[?(");
    const char *left = p->at;
    const char *close = find_close(p);
    if (!close || close + 1 >= p->end || close[1] != ']') {
        return jsonpath_fault(p, from, "the filter is not closed: [?(@.name==\"x\")]");
    }
    size_t operand = 0;
    while (left + operand < close && !strchr(signs, left[operand])) {
        operand++;
    }
    const char *sign = left + operand;
    const char *right = sign;
    while (right < close && strchr(signs, *right)) {
        right++;
    }
    bool compares = sign > left && right > sign && right < close;
    struct jsonpath_node made = {.kind = JSONPATH_FILTER};
    struct jsonpath_node *first = jsonpath_append(p, &made, JSONPATH_LIST);
    int r = first ? parse_part(p, left, compares ? sign : close, first) : MUSTER_ETOOBIG;
    if (r == 0 && compares) {
        made.text = strndup(sign, (size_t)(right - sign));
        struct jsonpath_node *second = jsonpath_append(p, &made, JSONPATH_LIST);
        r = second && made.text ? parse_part(p, right, close, second) : MUSTER_ETOOBIG;
    }
    p->at = close + 2;
    struct jsonpath_node *node = r == 0 ? jsonpath_append(p, list, JSONPATH_FILTER) : NULL;
    if (!node) {
        free_node(&made);
        return r < 0 ? r : MUSTER_ETOOBIG;
    }
    *node = made;
    return 0;
}

/* --- an expression --- */

static int parse_next(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    char c = *p->at;
    if (starts(p, "[?(")) {
        return parse_filter(p, list);
    }
    if (starts(p, "..")) {
        return parse_recursive(p, list);
    }
    if (c == ' ' || c == '@' || c == '$') {
        p->at++;
        return 0;
    }
    if (c == '[') {
        return jsonpath_parse_array(p, list);
    }
    if (c == '"' || c == '\'') {
        return parse_quote(p, list);
    }
    if (c == '.') {
        p->at++;
        return jsonpath_parse_name(p, list);
    }
    if (c == '+' || c == '-' || isdigit((unsigned char)c)) {
        return parse_number(p, list);
    }
    return starts_name(c) ? parse_word(p, list)
                          : jsonpath_fault(p, p->at, "this sign has no meaning in an expression");
}

static int parse_action(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    int r = 0;
    while (r == 0 && p->at < p->end && *p->at != '}') {
        r = jsonpath_at_end(p) ? jsonpath_fault(p, p->at, "an expression ends with } in its line")
                               : parse_next(p, list);
    }
    return r;
}

static int parse_template(struct jsonpath_parser *p, struct jsonpath_node *root)
{
    int r = 0;
    while (r == 0 && p->at < p->end) {
        size_t text = strcspn(p->at, "{");
        if (text > 0) {
            r = jsonpath_append_text(p, root, JSONPATH_TEXT, p->at, text);
            p->at += text;
            continue;
        }
        const char *open = p->at++;
        struct jsonpath_node made = {.kind = JSONPATH_LIST};
        r = parse_action(p, &made);
        if (r == 0 && p->at >= p->end) {
            r = jsonpath_fault(p, open, "the { is not closed");
        }
        p->at++;
        struct jsonpath_node *node = r == 0 ? jsonpath_append(p, root, JSONPATH_LIST) : NULL;
        if (!node) {
            free_node(&made);
            return r < 0 ? r : MUSTER_ETOOBIG;
        }
        *node = made;
    }
    return r;
}

int jsonpath_parse(const char *text, struct jsonpath **ret, struct muster_err *err)
{
    size_t length = strlen(text);
    if (length > TEXT_BYTES_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "jsonpath: longer than %d bytes", TEXT_BYTES_MAX);
    }
    struct jsonpath *path = calloc(1, sizeof *path);
    if (!path) {
        return err_no_memory(err);
    }
    struct jsonpath_parser p = {.start = text, .at = text, .end = text + length, .err = err};
    path->root.kind = JSONPATH_LIST;
    int r = parse_template(&p, &path->root);
    if (r < 0) {
        jsonpath_free(path);
        return r;
    }
    *ret = path;
    return 0;
}

int jsonpath_parse_field(const char *text, struct jsonpath **ret, struct muster_err *err)
{
    size_t length = strlen(text);
    if (length == 0) { /* as in kubectl: <none> in each row */
        return jsonpath_parse("", ret, err);
    }
    bool braces = length >= 2 && text[0] == '{' && text[length - 1] == '}';
    const char *from = text + braces;
    length -= 2 * (size_t)braces;
    if (length > 0 && *from == '.') {
        from++;
        length--;
    }
    if (length == 0 || memchr(from, '{', length) || memchr(from, '}', length)) {
        return muster_fail(err, MUSTER_EINVAL,
                           "'%s' is not a field; x.y, .x.y, {x.y} and {.x.y} are", text);
    }
    struct buf template;
    buf_init(&template, TEXT_BYTES_MAX);
    buf_format(&template, "{.%.*s}", (int)length, from);
    int r = buf_failed(&template) ? muster_fail(err, MUSTER_ETOOBIG, "a field is too long")
                                  : jsonpath_parse(buf_str(&template), ret, err);
    buf_done(&template);
    return r;
}
