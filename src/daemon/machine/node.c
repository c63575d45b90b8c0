/* See node.h. */
#include "daemon/machine/node.h"

#include "api/architecture.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SYSTEM_FILE_BYTES_MAX = 65536 };

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

/* Returns the value after `key` in a small system file, up to the end of its line; "" if there is
 * none. */
static char *system_text(const char *path, const char *key)
{
    muster_auto(free) char *text = NULL;
    if (file_read(path, SYSTEM_FILE_BYTES_MAX, &text, NULL, NULL) < 0) {
        return strdup("");
    }
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    at += *at == '"';
    return strndup(at, strcspn(at, "\"\n"));
}

/* Makes nodeInfo with all its fields, because clients of typed languages need each of them. */
static json_t *info(void)
{
    char architecture[ARCHITECTURE_BYTES];
    struct utsname system = {0};
    muster_auto(free) char *machine = system_text("/etc/machine-id", "");
    muster_auto(free) char *boot = system_text("/proc/sys/kernel/random/boot_id", "");
    muster_auto(free) char *image = system_text("/etc/os-release", "PRETTY_NAME=");
    architecture_name(architecture);
    (void)uname(&system);
    /* jansson reports a NULL text (out of memory) as an error. */
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "architecture", architecture,
        "bootID", boot, "containerRuntimeVersion", "process://" MUSTER_VERSION, "kernelVersion",
        system.release, "kubeProxyVersion", "", "kubeletVersion", "muster-" MUSTER_VERSION,
        "machineID", machine, "operatingSystem", "linux", "osImage", image, "systemUUID", machine);
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
        "s:[{s:s, s:s}, {s:s, s:s}], s:o}}",
        "apiVersion", "v1", "kind", "Node", "metadata", "name", name, "labels",
        "kubernetes.io/hostname", name, "kubernetes.io/os", "linux", "spec", "status", "capacity",
        capacity, "allocatable", capacity, "conditions", "type", "Ready", "status", "True",
        "reason", "AgentReady", "message", "muster runs pods as processes", "lastHeartbeatTime",
        stamp, "lastTransitionTime", stamp, "addresses", "type", "InternalIP", "address",
        "127.0.0.1", "type", "Hostname", "address", name, "nodeInfo", info());
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
    if (json_is_true(doc_at(old, "spec.unschedulable"))) {
        json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    }
    return r == MUSTER_ENOENT ? store_create(store, "nodes", node, NULL, err)
           : r < 0            ? r
                              : store_update(store, "nodes", node, STORE_ALL, NULL, err);
}

static bool was_placed(const json_t *pod)
{
    const json_t *placed = doc_find(doc_at(pod, "status.conditions"), "type", "PodScheduled");
    return strcmp(doc_text(placed, "status", ""), "True") == 0;
}

static bool tolerates_cordon(const json_t *pod)
{
    size_t i;
    json_t *each;
    json_array_foreach (doc_at(pod, "spec.tolerations"), i, each) {
        const char *key = doc_text(each, "key", ""), *effect = doc_text(each, "effect", "");
        bool exists = strcmp(doc_text(each, "operator", ""), "Exists") == 0;
        bool is_it = strcmp(key, "node.kubernetes.io/unschedulable") == 0;
        if (((!*key && exists) || is_it) && (!*effect || strcmp(effect, "NoSchedule") == 0)) {
            return true;
        }
    }
    return false;
}

int node_takes(struct store *store, const json_t *pod, struct muster_err *err)
{
    char name[NODE_NAME_BYTES];
    node_name(name);
    const struct store_key key = {"nodes", "", name};
    muster_auto(doc) json_t *node = NULL;
    int r = store_get(store, key, &node, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? 0 : r; /* somebody deleted the node: pods are accepted */
    }
    if (!json_is_true(doc_at(node, "spec.unschedulable")) || was_placed(pod) ||
        tolerates_cordon(pod)) {
        return 0;
    }
    return muster_fail(err, MUSTER_EAGAIN,
                       "node %s is cordoned and takes no pods until kubectl uncordon %s", name,
                       name);
}
