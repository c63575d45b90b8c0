/* See copy.h. */
#include "base/yaml/copy.h"

#include "base/cleanup.h"
#include "base/doc.h"

int yaml_budget_spend(struct yaml_budget *budget, struct muster_err *err)
{
    if (budget->nodes == 0) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "more than %zu values (those of an alias count each time it is used)",
                           budget->nodes_max);
    }
    budget->nodes--;
    return 0;
}

int yaml_height(const json_t *value)
{
    int below = 0;
    size_t index;
    const char *key;
    json_t *child;
    json_array_foreach (value, index, child) {
        int of_child = yaml_height(child);
        below = of_child > below ? of_child : below;
    }
    json_object_foreach ((json_t *)value, key, child) {
        int of_child = yaml_height(child);
        below = of_child > below ? of_child : below;
    }
    return below + (json_is_object(value) || json_is_array(value));
}

int yaml_budget_check_depth(const struct yaml_budget *budget, int levels, struct muster_err *err)
{
    return levels <= budget->depth_max
               ? 0
               : muster_fail(err, MUSTER_ETOOBIG, "nested deeper than %d levels",
                             budget->depth_max);
}

int yaml_copy(struct yaml_budget *budget, const json_t *value, json_t **ret, struct muster_err *err)
{
    int r = yaml_budget_spend(budget, err);
    if (r != 0) {
        return r;
    }
    size_t bytes = json_string_length(value);
    if (bytes > budget->text_bytes) {
        return muster_fail(err, MUSTER_ETOOBIG, "aliases repeat more text than allowed");
    }
    budget->text_bytes -= bytes;
    if (!json_is_object(value) && !json_is_array(value)) {
        *ret = json_incref((json_t *)value);
        return 0;
    }
    muster_auto(doc) json_t *copy = json_is_object(value) ? json_object() : json_array();
    if (!copy) {
        return MUSTER_ENOMEM;
    }
    size_t index;
    const char *key;
    json_t *child;
    json_t *child_copy = NULL;
    json_array_foreach (value, index, child) {
        r = yaml_copy(budget, child, &child_copy, err);
        if (r != 0 || json_array_append_new(copy, child_copy) != 0) {
            return r != 0 ? r : MUSTER_ENOMEM;
        }
    }
    json_object_foreach ((json_t *)value, key, child) {
        r = yaml_copy(budget, child, &child_copy, err);
        if (r != 0 || json_object_set_new(copy, key, child_copy) != 0) {
            return r != 0 ? r : MUSTER_ENOMEM;
        }
    }
    *ret = muster_take(copy);
    return 0;
}
