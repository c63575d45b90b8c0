/* See node.h. */
#include "daemon/machine/node.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void node_name(char ret_name[NODE_NAME_BYTES])
{
    struct utsname system;
    const char *host = uname(&system) == 0 && system.nodename[0] ? system.nodename : "localhost";
    size_t used = 0;
    for (; *host && *host != '.' && used < NODE_NAME_BYTES - 1; host++) {
        ret_name[used++] =
            isalnum((unsigned char)*host) ? (char)tolower((unsigned char)*host) : '-';
    }
    ret_name[used] = '\0';
}

int64_t node_memory_bytes(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

int64_t node_cpu_milli(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? 1000 * (int64_t)CPU_COUNT(&set) : 1000;
}

static json_t *make(const struct gpus *gpus)
{
    char name[NODE_NAME_BYTES], cpu[24], memory[32], gpu[24], stamp[TIMESTAMP_BYTES];
    node_name(name);
    snprintf(cpu, sizeof cpu, "%lld", (long long)node_cpu_milli() / 1000);
    snprintf(memory, sizeof memory, "%lldKi", (long long)node_memory_bytes() / 1024);
    snprintf(gpu, sizeof gpu, "%zu", gpus->count);
    timestamp_seconds(clock_unix_ms(), stamp);
    json_t *capacity = json_pack("{s:s, s:s, s:s, s:s}", "cpu", cpu, "memory", memory, "pods",
                                 "1000", "nvidia.com/gpu", gpu);
    if (capacity && gpus->count == 0) {
        json_object_del(capacity, "nvidia.com/gpu");
    }
    return json_pack(
        "{s:s, s:s, s:{s:s, s:{s:s, s:s}}, s:{}, s:{s:O, s:o, s:[{s:s, s:s, s:s, s:s, s:s, s:s}], "
        "s:[{s:s, s:s}, {s:s, s:s}], s:{s:s, s:s, s:s}}}",
        "apiVersion", "v1", "kind", "Node", "metadata", "name", name, "labels",
        "kubernetes.io/hostname", name, "kubernetes.io/os", "linux", "spec", "status", "capacity",
        capacity, "allocatable", capacity, "conditions", "type", "Ready", "status", "True",
        "reason", "AgentReady", "message", "muster runs pods as processes", "lastHeartbeatTime",
        stamp, "lastTransitionTime", stamp, "addresses", "type", "InternalIP", "address",
        "127.0.0.1", "type", "Hostname", "address", name, "nodeInfo", "kubeletVersion",
        "muster-" MUSTER_VERSION, "operatingSystem", "linux", "containerRuntimeVersion",
        "process://" MUSTER_VERSION);
}

int node_register(struct store *store, const struct gpus *gpus, struct muster_err *err)
{
    muster_auto(doc) json_t *node = make(gpus);
    if (!node) {
        return err_no_memory(err);
    }
    const struct store_key key = {"nodes", "", doc_text(node, "metadata.name", "")};
    muster_auto(doc) json_t *old = NULL;
    int r = store_get(store, key, &old, err);
    return r == MUSTER_ENOENT ? store_create(store, "nodes", node, NULL, err)
           : r < 0            ? r
                              : store_update(store, "nodes", node, STORE_ALL, NULL, err);
}
