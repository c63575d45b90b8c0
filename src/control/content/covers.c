/* See covers.h. */
#include "control/content/covers.h"

#include "base/quantity.h"

/* Reads a quantity: "500m", 0.5 and "0.5" are equal. Returns false if the value is not a
 * quantity. */
static bool read_quantity(const json_t *value, double *ret)
{
    const char *text = json_string_value(value);
    *ret = json_number_value(value);
    return json_is_number(value) || (text && quantity_read(text, ret));
}

static bool same_value(const json_t *a, const json_t *b)
{
    double one, other;
    return json_equal(a, b) || (read_quantity(a, &one) && read_quantity(b, &other) && one == other);
}

static bool covers_list(const json_t *whole, const json_t *part)
{
    size_t index;
    json_t *each;
    json_array_foreach (part, index, each) {
        if (!control_covers(json_array_get(whole, index), each)) {
            return false;
        }
    }
    return json_array_size(whole) == json_array_size(part);
}

bool control_covers(const json_t *whole, const json_t *part)
{
    const char *key;
    json_t *value;
    if (json_is_array(part)) {
        return covers_list(whole, part);
    }
    if (!json_is_object(part)) {
        return whole && same_value(whole, part);
    }
    json_object_foreach ((json_t *)part, key, value) {
        if (!control_covers(json_object_get(whole, key), value)) {
            return false;
        }
    }
    return json_is_object(whole);
}
