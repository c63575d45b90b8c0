/* Checks what the schema cannot say about a container's resources: their names, and amounts that
 * exclude each other. */
#include "base/doc.h"
#include "base/quantity.h"
#include "job/check/context.h"
#include "job/text.h"

#include <stdio.h>
#include <string.h>

enum { HINT_BYTES_MAX = 128, BYTES_TOO_FEW = 1024 };

static bool quantity_of(const json_t *value, double *ret)
{
    *ret = json_number_value(value);
    return json_is_number(value) ||
           (json_is_string(value) && quantity_read(json_string_value(value), ret));
}

/* --- names --- */

/* Whether the resource is one of Kubernetes itself. */
static bool is_native(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
           strcmp(name, "ephemeral-storage") == 0 || strncmp(name, "hugepages-", 10) == 0;
}

/* Devices that device plugins of a cluster assign, by the prefix of their names. `variable` chooses
 * among them in a process; NULL: no variable does. */
static const struct device {
    const char *prefix;
    const char *what;
    const char *variable;
} devices[] = {
    {"amd.com/gpu", "AMD GPUs", "HIP_VISIBLE_DEVICES"},
    {"gpu.intel.com/", "Intel GPUs", "ZE_AFFINITY_MASK"},
    {"intel.com/gpu", "Intel GPUs", "ZE_AFFINITY_MASK"},
    {"habana.ai/gaudi", "Gaudi accelerators", "HABANA_VISIBLE_MODULES"},
    {"aws.amazon.com/neuron", "Neuron devices", "NEURON_RT_VISIBLE_CORES"},
    {"huawei.com/", "Ascend accelerators", "ASCEND_RT_VISIBLE_DEVICES"},
    {"google.com/tpu", "TPUs", NULL},
    {"cloud-tpus.google.com/", "TPUs", NULL},
    {"nvidia.com/mig-", "MIG instances", "CUDA_VISIBLE_DEVICES"},
    {"nvidia.com/gpu.shared", "NVIDIA GPUs", "CUDA_VISIBLE_DEVICES"},
    {"rdma/", "RDMA devices", NULL},
    {"vpc.amazonaws.com/efa", "EFA devices", NULL},
};

/* Warns of a resource that muster does not assign: its ranks see all such devices. */
static void say_unassigned(struct check *c, const char *name)
{
    const struct device *device = NULL;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0] && !device; i++) {
        bool is = strncmp(name, devices[i].prefix, strlen(devices[i].prefix)) == 0;
        device = is ? &devices[i] : NULL;
    }
    char hint[HINT_BYTES_MAX];
    if (device && device->variable) {
        snprintf(hint, sizeof hint, "let the script choose, for example with %s", device->variable);
    } else {
        snprintf(hint, sizeof hint, "muster assigns cpu, memory and nvidia.com/gpu");
    }
    check_say(c, JOB_WARNING, name, hint, "has no effect on this machine: every rank sees all %s",
              device ? device->what : "devices of this kind");
}

static void say_unknown(struct check *c, const char *name)
{
    static const struct {
        const char *part;
        const char *hint;
    } near[] = {
        {"gpu", "did you mean nvidia.com/gpu?"},
        {"cuda", "did you mean nvidia.com/gpu?"},
        {"mem", "did you mean memory?"},
        {"ram", "did you mean memory?"},
        {"cpu", "did you mean cpu?"},
        {"core", "did you mean cpu?"},
        {"storage", "did you mean ephemeral-storage?"},
        {"disk", "did you mean ephemeral-storage?"},
    };
    const char *hint = NULL;
    for (size_t i = 0; i < sizeof near / sizeof near[0] && !hint; i++) {
        hint = strcasestr(name, near[i].part) ? near[i].hint : NULL;
    }
    check_say(c, JOB_ERROR, name, hint, "unknown resource; use cpu, memory, nvidia.com/gpu");
}

static void check_name(struct check *c, const char *name)
{
    if (strcmp(name, "nvidia.com/gpu") == 0 || is_native(name)) {
        return;
    }
    bool misspelt = strcasecmp(name, "nvidia.com/gpu") == 0 ||
                    strcasecmp(name, "nvidia.com/gpus") == 0 ||
                    strcmp(name, "alpha.kubernetes.io/nvidia-gpu") == 0;
    if (misspelt) {
        check_say(c, JOB_ERROR, name, "did you mean nvidia.com/gpu?",
                  "unknown resource; use cpu, memory, nvidia.com/gpu");
    } else if (!strchr(name, '/')) {
        say_unknown(c, name);
    } else if (!c->problems->cluster) {
        say_unassigned(c, name);
    }
}

/* --- amounts --- */

/* "512m" is half a byte: Mi was meant. The API server only warns about it. */
static void check_memory(struct check *c, const char *name, const json_t *value, double amount)
{
    if (strcmp(name, "memory") == 0 && amount > 0 && amount < BYTES_TOO_FEW) {
        char hint[HINT_BYTES_MAX];
        const char *text = json_string_value(value);
        size_t digits = text ? strspn(text, "0123456789.") : 0;
        snprintf(hint, sizeof hint, "did you mean %.*s%s?", (int)digits, text ? text : "",
                 text && strcmp(text + digits, "m") == 0 ? "Mi" : "Gi");
        check_say(c, JOB_WARNING, name, digits > 0 && digits < 20 ? hint : "write 4Gi or 512Mi",
                  "means %g bytes", amount);
    }
}

static void check_resource(struct check *c, const char *name, const json_t *value,
                           const json_t *limits, bool is_limit)
{
    double amount, limit;
    if (is_limit || !json_object_get(limits, name)) {
        check_name(c, name);
    }
    if (!quantity_of(value, &amount)) {
        return;
    }
    if (strchr(name, '/') && amount != (double)(int64_t)amount) {
        check_say(c, JOB_ERROR, name, NULL, "must be a whole number");
    }
    check_memory(c, name, value, amount);
    const json_t *cap = json_object_get(limits, name);
    if (!is_limit && cap && quantity_of(cap, &limit) && amount > limit) {
        check_say(c, JOB_ERROR, name, NULL, "the request is more than the limit");
    }
}

void check_resources(struct check *c, const json_t *container)
{
    static const char *const sections[] = {"limits", "requests"};
    const json_t *limits = doc_at(container, "resources.limits");
    size_t top = check_enter(c, "resources");
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        json_t *value;
        size_t mark = check_enter(c, sections[i]);
        json_object_foreach (json_object_get(doc_at(container, "resources"), sections[i]), name,
                             value) {
            check_resource(c, name, value, limits, i == 0);
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}
