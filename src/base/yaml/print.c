/* See yaml.h: documents to YAML text, as kubectl -o yaml prints them. What is printed reads back as
 * the same document, in YAML 1.1 and in 1.2. */
#include "base/buf.h"
#include "base/yaml/scalar.h"
#include "base/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

enum { PRINT_BYTES_MAX = 256 * 1024 * 1024, INDENT = 2 };

static void print_value(struct buf *out, const json_t *value, int indent);

/* Whether the text can be printed plain: it needs no escapes, has no indicator at the start, and
 * nothing in it ends a scalar early. */
static bool plain_is_safe(const char *text, size_t length)
{
    if (length == 0 || strchr("-?:,[]{}#&*!|>'\"%@` ", text[0]) || text[length - 1] == ' ' ||
        text[length - 1] == ':') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c >= 0x7f || (c == ':' && text[i + 1] == ' ') ||
            (c == ' ' && text[i + 1] == '#')) {
            return false;
        }
    }
    return true;
}

/* Whether another reader might take the text for something else: a number, a date, .inf, a
 * sexagesimal. Text of only letters and digits (1Gi, 500m) has the meaning that the resolver gives
 * it. */
static bool has_other_meaning(const char *text, size_t length)
{
    json_t *meaning = yaml_resolve(text, length);
    bool other = !json_is_string(meaning);
    json_decref(meaning);
    size_t word = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return other || (word != length && strchr("0123456789.+-=<", text[0]) != NULL);
}

static bool needs_quotes(const char *text, size_t length)
{
    return !plain_is_safe(text, length) || has_other_meaning(text, length);
}

/* Returns the code point at `text`, which is UTF-8, and the number of its bytes. */
static unsigned decode(const char *text, size_t *ret_length)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80) {
        *ret_length = 1;
        return at[0];
    }
    size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned code = at[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | (at[i] & 0x3fu);
    }
    *ret_length = length;
    return code;
}

/* Whether a code must be escaped: line ends of YAML 1.1, byte order marks and codes that are not
 * characters. */
static bool must_escape(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

static void print_quoted(struct buf *out, const char *text, size_t length)
{
    static const char names[] = {
        ['\n'] = 'n', ['\t'] = 't', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    buf_text(out, "\"");
    for (size_t i = 0, step; i < length; i += step) {
        unsigned code = decode(text + i, &step);
        if (code < sizeof names && names[code]) {
            buf_format(out, "\\%c", names[code]);
        } else if (must_escape(code)) {
            buf_format(out, "\\u%04x", code);
        } else {
            buf_add(out, text + i, step);
        }
    }
    buf_text(out, "\"");
}

static void new_line(struct buf *out, int indent)
{
    buf_format(out, "\n%*s", indent, "");
}

/* Whether a literal block is possible: it is best to read for several lines of ordinary text. Tabs
 * and leading blanks would need an indentation indicator, and non-printable bytes would need
 * escapes. */
static bool literal_is_safe(const char *text, size_t length)
{
    if (!memchr(text, '\n', length) || text[0] == ' ' || text[0] == '\n') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool blank_before_end = c == ' ' && (text[i + 1] == '\n' || text[i + 1] == '\0');
        if ((c < 0x20 && c != '\n') || c >= 0x7f || blank_before_end) {
            return false;
        }
    }
    return true;
}

static void print_literal(struct buf *out, const char *text, size_t length, int indent)
{
    bool ends_line = text[length - 1] == '\n';
    bool ends_twice = ends_line && length > 1 && text[length - 2] == '\n';
    buf_text(out, ends_twice ? "|+" : ends_line ? "|" : "|-");
    size_t stop = ends_line ? length - 1 : length;
    for (size_t start = 0; start <= stop;) {
        const char *end = memchr(text + start, '\n', stop - start);
        size_t line = (size_t)((end ? end : text + stop) - (text + start));
        if (line == 0) {
            buf_text(out, "\n");
        } else {
            new_line(out, indent);
            buf_add(out, text + start, line);
        }
        start += line + 1;
    }
}

static void print_text(struct buf *out, const json_t *value, int indent)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (literal_is_safe(text, length)) {
        print_literal(out, text, length, indent);
    } else if (needs_quotes(text, length)) {
        print_quoted(out, text, length);
    } else {
        buf_add(out, text, length);
    }
}

static void print_key(struct buf *out, const char *key)
{
    size_t length = strlen(key);
    if (needs_quotes(key, length)) {
        print_quoted(out, key, length);
    } else {
        buf_text(out, key);
    }
    buf_text(out, ":");
}

static bool empty(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) == 0
                                : !json_is_object(value) || json_object_size(value) == 0;
}

/* Prints a mapping, whose first line starts where the cursor is. */
static void print_mapping(struct buf *out, const json_t *object, int indent)
{
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach ((json_t *)object, key, value) {
        if (!first) {
            new_line(out, indent);
        }
        first = false;
        print_key(out, key);
        if (empty(value)) {
            buf_text(out, " ");
            print_value(out, value, indent + INDENT);
        } else if (json_is_object(value)) {
            new_line(out, indent + INDENT);
            print_value(out, value, indent + INDENT);
        } else { /* kubectl does not indent a list under its key */
            new_line(out, indent);
            print_value(out, value, indent);
        }
    }
}

static void print_list(struct buf *out, const json_t *array, int indent)
{
    size_t index;
    json_t *value;
    json_array_foreach (array, index, value) {
        if (index > 0) {
            new_line(out, indent);
        }
        buf_text(out, "- ");
        print_value(out, value, indent + INDENT);
    }
}

static void print_scalar(struct buf *out, const json_t *value, int indent)
{
    if (json_is_string(value)) {
        print_text(out, value, indent);
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    buf_text(out, text ? text : "null");
    free(text);
}

static void print_value(struct buf *out, const json_t *value, int indent)
{
    if (json_is_object(value) && !empty(value)) {
        print_mapping(out, value, indent);
    } else if (json_is_array(value) && !empty(value)) {
        print_list(out, value, indent);
    } else {
        print_scalar(out, value, indent);
    }
}

char *yaml_print(const json_t *doc)
{
    struct buf out;
    buf_init(&out, PRINT_BYTES_MAX);
    print_value(&out, doc, json_is_string(doc) ? INDENT : 0);
    buf_text(&out, "\n");
    char *text = buf_steal(&out);
    buf_done(&out);
    return text;
}
