/* See gpu.h. */
#include "control/projection/gpu.h"

#include "base/doc.h"

#include <string.h>

static bool names_gpu(const json_t *resources)
{
    const char *name;
    json_t *amount;
    json_object_foreach ((json_t *)resources, name, amount) {
        bool gpu = strstr(name, "gpu") || strncmp(name, "nvidia.com/", 11) == 0;
        bool none = json_is_integer(amount) ? json_integer_value(amount) == 0
                                            : strcmp(doc_text(resources, name, "0"), "0") == 0;
        if (gpu && !none) {
            return true;
        }
    }
    return false;
}

bool control_holds_gpu(const json_t *container)
{
    return names_gpu(doc_at(container, "resources.limits")) ||
           names_gpu(doc_at(container, "resources.requests"));
}
