/* The two finalizers by which Kubernetes records how an object is deleted: `foregroundDeletion`
 * (after all that it owns) and `orphan` (without it).
 *
 * Layer: services, pure. Source: k8s.io/apiserver registry/generic/registry (which finalizers a
 * deletion sets).
 */
#include "base/doc.h"
#include "store/internal.h"

#include <string.h>

static const char foreground[] = "foregroundDeletion";
static const char orphan[] = "orphan";

static bool is(const json_t *finalizer, const char *name)
{
    return json_is_string(finalizer) && strcmp(json_string_value(finalizer), name) == 0;
}

enum store_propagation finalizers_propagation(const json_t *object, enum store_propagation wanted)
{
    if (wanted != STORE_AS_FINALIZED) {
        return wanted;
    }
    const json_t *list = doc_at(object, "metadata.finalizers");
    return doc_has_text(list, orphan)       ? STORE_ORPHAN
           : doc_has_text(list, foreground) ? STORE_FOREGROUND
                                            : STORE_BACKGROUND;
}

bool finalizers_hold(const json_t *object)
{
    size_t i;
    json_t *each;
    json_array_foreach (doc_at(object, "metadata.finalizers"), i, each) {
        if (!is(each, foreground) && !is(each, orphan)) {
            return true;
        }
    }
    return false;
}

int finalizers_set(json_t *object, enum store_propagation how)
{
    json_t *list = doc_at(object, "metadata.finalizers");
    for (size_t i = json_array_size(list); i-- > 0;) {
        const json_t *each = json_array_get(list, i);
        if (is(each, foreground) || is(each, orphan)) {
            json_array_remove(list, i);
        }
    }
    if (how == STORE_FOREGROUND && !list) {
        return doc_set(object, "metadata.finalizers", json_pack("[s]", foreground));
    }
    if (how == STORE_FOREGROUND) {
        return json_array_append_new(list, json_string(foreground)) == 0 ? 0 : MUSTER_ENOMEM;
    }
    if (list && json_array_size(list) == 0) {
        json_object_del(json_object_get(object, "metadata"), "finalizers");
    }
    return 0;
}

bool finalizers_wait(const json_t *object)
{
    return doc_at(object, "metadata.deletionTimestamp") &&
           doc_has_text(doc_at(object, "metadata.finalizers"), foreground);
}
