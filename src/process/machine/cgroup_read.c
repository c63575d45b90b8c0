/* Reads from a control group, or from the kernel, what they tell of memory. See cgroup.h. */
#include "process/machine/cgroup.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_V1 "memory.limit_in_bytes"
#define LIMIT_V2 "memory.max"
#define NO_LIMIT (INT64_C(1) << 60) /* version 1 shows a huge number if there is no limit */

enum { FILE_BYTES_MAX = 16384, REACHED_PARTS = 64 };

static char *get(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    char *text = NULL;
    return path && file_read(path, FILE_BYTES_MAX, &text, NULL, NULL) == 0 ? text : NULL;
}

/* Returns the number after `key` in lines "key number"; -1 if there is none. With an empty key the
 * file is one number. */
static int64_t get_number(const char *folder, const char *name, const char *key)
{
    muster_auto(free) char *text = get(folder, name);
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        int64_t value;
        bool this_one = strncmp(line, key, length) == 0 && (length == 0 || line[length] == ' ');
        if (this_one && sscanf(line + length, "%" SCNd64, &value) == 1) {
            return value;
        }
    }
    return -1;
}

int64_t cgroup_machine_kills(void)
{
    int64_t kills = get_number("/proc", "vmstat", "oom_kill");
    return kills > 0 ? kills : 0;
}

static int64_t oom_kills(const char *folder, bool v2)
{
    int64_t kills = get_number(folder, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
    return kills > 0 ? kills : 0;
}

int64_t cgroup_oom_kills(const struct cgroup *group)
{
    const char *folder = group->folder[CGROUP_MEMORY];
    return folder ? oom_kills(folder, group->v2[CGROUP_MEMORY]) : 0;
}

int64_t cgroup_peak_bytes(const struct cgroup *group)
{
    const char *folder = group->folder[CGROUP_MEMORY];
    if (!folder) {
        return 0;
    }
    int64_t peak = get_number(
        folder, group->v2[CGROUP_MEMORY] ? "memory.peak" : "memory.max_usage_in_bytes", "");
    return peak > 0 ? peak : 0;
}

static bool limit_reached(const char *folder, bool v2, int64_t peak_bytes)
{
    if (v2) {
        return get_number(folder, "memory.events", "oom") > 0;
    }
    /* failcnt also counts cached files that were dropped; how near the peak came to the limit is
     * the better sign. */
    int64_t bound = get_number(folder, LIMIT_V1, "");
    return bound > 0 && peak_bytes >= bound - bound / REACHED_PARTS;
}

bool cgroup_limit_reached(const struct cgroup *group)
{
    const char *folder = group->folder[CGROUP_MEMORY];
    return folder && limit_reached(folder, group->v2[CGROUP_MEMORY], cgroup_peak_bytes(group));
}

/* Whether the path is …/muster-HASH/POD.CONTAINER.ATTEMPT, or podman's …/libpod-ID, which is cut
 * after the ID if it is longer. */
static bool is_container(char *path)
{
    char *podmans = path ? strstr(path, "/libpod-") : NULL;
    if (podmans && strncmp(podmans, "/libpod-conmon", strlen("/libpod-conmon")) != 0) {
        podmans[1 + strcspn(podmans + 1, "/")] = '\0';
        return true;
    }
    const char *last = path ? strrchr(path, '/') : NULL;
    const char *job = last && last > path ? memrchr(path, '/', (size_t)(last - path)) : NULL;
    return job && strncmp(job, "/muster-", strlen("/muster-")) == 0;
}

static int64_t at_least_0(int64_t value)
{
    return value > 0 ? value : 0;
}

static bool read_memory(const char *folder, bool v2, struct cgroup_memory *ret)
{
    int64_t used = get_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", "");
    int64_t idle = get_number(folder, "memory.stat", v2 ? "inactive_file" : "total_inactive_file");
    *ret = (struct cgroup_memory){
        .used_bytes = at_least_0(used - at_least_0(idle)),
        .peak_bytes =
            at_least_0(get_number(folder, v2 ? "memory.peak" : "memory.max_usage_in_bytes", "")),
        .limit_bytes = at_least_0(get_number(folder, v2 ? LIMIT_V2 : LIMIT_V1, "")),
        .kills = oom_kills(folder, v2),
    };
    ret->limit_bytes = ret->limit_bytes < NO_LIMIT ? ret->limit_bytes : 0;
    ret->limit_reached = limit_reached(folder, v2, ret->peak_bytes);
    return used >= 0;
}

bool cgroup_read_memory(const char *root, const char *own, struct cgroup_memory *ret)
{
    muster_auto(free) char *unified = NULL;
    muster_auto(free) char *tree = cgroup_v1_root(root, own, "memory");
    muster_auto(free) char *path1 = cgroup_own_path(own, "memory");
    muster_auto(free) char *path2 = cgroup_own_path(own, "");
    muster_auto(free) char *folder = NULL;
    bool v1 = tree && is_container(path1);
    if (!v1 && !is_container(path2)) {
        return false;
    }
    int n = v1 ? asprintf(&folder, "%s%s", tree, path1)
               : asprintf(&folder, "%s%s", cgroup_v2_root(root, &unified), path2);
    if (n < 0) {
        folder = NULL;
        return false;
    }
    return read_memory(folder, !v1, ret);
}
