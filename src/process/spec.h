/* What one attempt of a container is to run: spec.json, written by the controller.
 *
 *     {"argv": ["python3", "train.py"],        the first is looked up in env's PATH
 *      "env": {"PATH": "…", "RANK": "0"},      all of it: nothing is inherited
 *      "cwd": "/home/me/work",
 *      "mounts": [{"name": "data", "hostPath": "/…/volumes/default/data", "mountPath": "/data",
 *                  "readOnly": false, "subPath": "run1"}],
 *      "limits": {"memoryBytes": 67108864, "cpuMillis": 500},
 *      "log": {"segmentBytes": 10485760, "segments": 5},
 *      "podName": "mnist-worker-0",               a name that resolves to this machine
 *      "runAsUser": 1000, "runAsGroup": 1000, "umask": 18}
 *
 * Everything but argv and cwd may be missing.
 *
 * Layer: services; pure. Ownership: process_spec_done; the strings belong
 * to the document the spec holds.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESS_MOUNTS_MAX = 64,
    PROCESS_OWN_MOUNTS_MAX = 1, /* besides, by process_spec_mount */
    PROCESS_WORDS_MAX = 4096,
};

struct process_mount {
    const char *name; /* the volume's; "" when not given */
    const char *host_path;
    const char *mount_path;
    const char *sub_path; /* "" for none */
    bool read_only;
};

struct process_spec {
    json_t *doc;
    const char **argv; /* NULL-terminated */
    char **env;        /* NULL-terminated "NAME=value" */
    const char *cwd;
    const char *pod_name; /* "" when not given */
    struct process_mount *mounts;
    size_t mount_count;
    int64_t memory_bytes; /* 0: no limit */
    int64_t cpu_millis;   /* 0: no limit */
    int64_t log_segment_bytes;
    int64_t log_segments;
    int64_t user; /* -1: as the supervisor */
    int64_t group;
    int64_t umask; /* -1: 022 */
};

/* Takes a reference to `doc`. MUSTER_EDATA names the field that is wrong. */
int process_spec_read(json_t *doc, struct process_spec *ret, struct muster_err *err);
/* One more mount, which the document has not; its strings are the caller's and outlive the spec. */
void process_spec_mount(struct process_spec *spec, const struct process_mount *mount);
void process_spec_done(struct process_spec *spec);
