/* The quality-of-service class that an API server gives a pod; it decides which pod is killed
 * first when memory is short. See machine.h. (Kubernetes: "Pod Quality of Service Classes".) */
#include "base/doc.h"
#include "pod/machine.h"

#include <string.h>

static const char *const resources[] = {"cpu", "memory"};

static const json_t *amount(const json_t *container, const char *list, const char *resource)
{
    return json_object_get(doc_at(doc_at(container, "resources"), list), resource);
}

/* A request that is not set counts as equal to the limit. */
static bool is_guaranteed(const json_t *container)
{
    for (size_t i = 0; i < 2; i++) {
        const json_t *limit = amount(container, "limits", resources[i]);
        const json_t *request = amount(container, "requests", resources[i]);
        if (!limit || (request && !json_equal((json_t *)limit, (json_t *)request))) {
            return false;
        }
    }
    return true;
}

static bool asks_for_any(const json_t *container)
{
    for (size_t i = 0; i < 2; i++) {
        if (amount(container, "limits", resources[i]) ||
            amount(container, "requests", resources[i])) {
            return true;
        }
    }
    return false;
}

const char *pod_qos_class(const struct pod *pod)
{
    bool guaranteed = true;
    bool any = false;
    for (size_t i = 0; i < pod->count; i++) {
        guaranteed = guaranteed && is_guaranteed(pod->containers[i].spec);
        any = any || asks_for_any(pod->containers[i].spec);
    }
    return guaranteed ? "Guaranteed" : any ? "Burstable" : "BestEffort";
}
