/* See jsonpath.h: values as Go prints them. */
#include "cli/show/jsonpath_nodes.h"

#include "base/doc.h"
#include "base/err.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 40 };

/* --- numbers --- */

/* Writes the fewest digits that read as the same number again. */
static void shortest(double value, char ret[NUMBER_BYTES])
{
    for (int digits = 0; digits < 17; digits++) {
        snprintf(ret, NUMBER_BYTES, "%.*e", digits, value);
        if (strtod(ret, NULL) == value) {
            return;
        }
    }
}

/* Prints with an exponent below 10^-`least` and from 10^`most` on, else without. */
static void add_real(double value, int least, int most, bool two_digits, struct buf *out)
{
    char text[NUMBER_BYTES];
    shortest(value, text);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    int digits = (int)strcspn(text, "e") - (text[0] == '-') - 1;
    digits = digits > 0 ? digits - 1 : 0; /* behind the point */
    if (value != 0 && (exponent < least || exponent >= most)) {
        int mantissa = (int)strcspn(text, "e");
        buf_format(out, two_digits ? "%.*se%c%02d" : "%.*se%c%d", mantissa, text,
                   exponent < 0 ? '-' : '+', abs(exponent));
    } else {
        buf_format(out, "%.*f", digits > exponent ? digits - exponent : 0, value);
    }
}

/* --- JSON as Go's encoding/json writes it: keys sorted, < > & escaped --- */

static void add_json(const json_t *value, struct buf *out);

static void add_json_text(const char *text, struct buf *out)
{
    buf_text(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool line = c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9);
        const char *simple = strchr("\"\\\b\f\n\r\t", *c);
        if (line) {
            buf_format(out, "\\u202%d", c[2] - 0xA0);
            c += 2;
        } else if (simple) {
            buf_format(out, "\\%c", "\"\\bfnrt"[simple - "\"\\\b\f\n\r\t"]);
        } else if (*c < 0x20 || *c == '<' || *c == '>' || *c == '&') {
            buf_format(out, "\\u%04x", *c);
        } else {
            buf_add(out, c, 1);
        }
    }
    buf_text(out, "\"");
}

static void add_json_object(const json_t *object, struct buf *out)
{
    size_t count = 0;
    const char **keys = doc_keys(object, &count);
    buf_text(out, "{");
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i ? "," : "");
        add_json_text(keys[i], out);
        buf_text(out, ":");
        add_json(json_object_get(object, keys[i]), out);
    }
    buf_text(out, "}");
    free(keys);
}

static void add_json(const json_t *value, struct buf *out)
{
    size_t i;
    json_t *item;
    switch (json_typeof(value)) {
    case JSON_OBJECT: add_json_object(value, out); break;
    case JSON_ARRAY:
        buf_text(out, "[");
        json_array_foreach (value, i, item) {
            buf_text(out, i ? "," : "");
            add_json(item, out);
        }
        buf_text(out, "]");
        break;
    case JSON_STRING: add_json_text(json_string_value(value), out); break;
    case JSON_INTEGER: buf_format(out, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: add_real(json_real_value(value), -6, 21, false, out); break;
    case JSON_TRUE: buf_text(out, "true"); break;
    case JSON_FALSE: buf_text(out, "false"); break;
    case JSON_NULL: buf_text(out, "null"); break;
    }
}

/* --- as Go's fmt.Sprint has it --- */

static void add_words(const json_t *value, struct buf *out)
{
    size_t count = 0;
    size_t i;
    json_t *item;
    switch (json_typeof(value)) {
    case JSON_OBJECT: {
        const char **keys = doc_keys(value, &count);
        buf_text(out, "map[");
        for (i = 0; i < count; i++) {
            buf_format(out, "%s%s:", i ? " " : "", keys[i]);
            add_words(json_object_get(value, keys[i]), out);
        }
        buf_text(out, "]");
        free(keys);
        break;
    }
    case JSON_ARRAY:
        buf_text(out, "[");
        json_array_foreach (value, i, item) {
            buf_text(out, i ? " " : "");
            add_words(item, out);
        }
        buf_text(out, "]");
        break;
    case JSON_STRING: buf_text(out, json_string_value(value)); break;
    case JSON_REAL: add_real(json_real_value(value), -4, 21, true, out); break;
    case JSON_NULL: buf_text(out, "<nil>"); break;
    case JSON_INTEGER:
    case JSON_TRUE:
    case JSON_FALSE: add_json(value, out); break;
    }
}

/* --- the two forms --- */

static int add_values(void *context, json_t *const *values, size_t count)
{
    struct buf *out = context;
    for (size_t i = 0; i < count; i++) {
        const json_t *v = values[i];
        buf_text(out, i ? " " : "");
        if (json_is_object(v) || json_is_array(v) || json_is_null(v)) {
            add_json(v, out);
        } else {
            add_words(v, out);
        }
    }
    return buf_failed(out) ? MUSTER_ETOOBIG : 0;
}

static int too_long(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ETOOBIG, "jsonpath: the output is too long");
}

int jsonpath_print(const struct jsonpath *path, const json_t *doc, struct buf *out,
                   struct muster_err *err)
{
    size_t before = out->used;
    int r = jsonpath_find(path, doc, add_values, out, err);
    bool full = buf_failed(out);
    if (r < 0 || full) {
        buf_truncate(out, before);
    }
    return full ? too_long(err) : r;
}

struct cell {
    struct buf *out;
    bool first_known; /* the first expression's values were seen */
    bool none;        /* and there were none */
    size_t count;
};

static int add_cell(void *context, json_t *const *values, size_t count)
{
    struct cell *cell = context;
    if (!cell->first_known) {
        cell->first_known = true;
        cell->none = count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        buf_text(cell->out, cell->count++ ? "," : "");
        add_words(values[i], cell->out);
    }
    return buf_failed(cell->out) ? MUSTER_ETOOBIG : 0;
}

int jsonpath_print_cell(const struct jsonpath *path, const json_t *doc, struct buf *out,
                        struct muster_err *err)
{
    size_t before = out->used;
    struct cell cell = {.out = out};
    int r = jsonpath_find(path, doc, add_cell, &cell, err);
    bool full = buf_failed(out);
    if (r < 0 || full || !cell.first_known || cell.none) {
        buf_truncate(out, before);
    }
    if (full) {
        return too_long(err);
    }
    if (r == 0 && (!cell.first_known || cell.none)) {
        buf_text(out, "<none>");
    }
    return r;
}
