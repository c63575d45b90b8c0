/* See jsonpath_nodes.h: two values of a filter are compared as Go's text/template compares them. */
#include "cli/show/jsonpath_nodes.h"

#include "base/err.h"

#include <string.h>

const char *jsonpath_kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: break;
    }
    return "null";
}

/* Returns -1 for below, 0 for equal, 1 for above; 2 if the values cannot be compared. */
static int compare(const json_t *a, const json_t *b)
{
    if (json_is_string(a) && json_is_string(b)) {
        int order = strcmp(json_string_value(a), json_string_value(b));
        return (order > 0) - (order < 0);
    }
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a);
        json_int_t y = json_integer_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_real(a) && json_is_real(b)) {
        double x = json_real_value(a);
        double y = json_real_value(b);
        return (x > y) - (x < y);
    }
    bool truths = json_is_boolean(a) && json_is_boolean(b);
    return truths ? json_is_true(a) - json_is_true(b) : 2;
}

int jsonpath_compare(const char *sign, const json_t *left, const json_t *right, bool *ret,
                     struct muster_err *err)
{
    static const struct {
        const char *sign;
        int orders; /* bits: 1 below, 2 equal, 4 above */
    } signs[] = {{"==", 2}, {"!=", 5}, {"<", 1}, {"<=", 3}, {">", 4}, {">=", 6}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strcmp(sign, signs[i].sign) != 0) {
            continue;
        }
        int order = compare(left, right);
        bool ordered = strchr(sign, '<') || strchr(sign, '>');
        if (order == 2 || (ordered && json_is_boolean(left))) {
            return muster_fail(err, MUSTER_EINVAL,
                               "jsonpath: a filter cannot compare %s with %s by %s",
                               jsonpath_kind_of(left), jsonpath_kind_of(right), sign);
        }
        *ret = (signs[i].orders & (1 << (order + 1))) != 0;
        return 0;
    }
    return muster_fail(err, MUSTER_EINVAL,
                       "jsonpath: a filter has no operator %s; ==, !=, <, <=, > and >= are", sign);
}
