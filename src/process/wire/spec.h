/* What one attempt of a container is to run, as the controller sends it. spec.json has the same
 * fields without argv and env, whose values stay private after the start.
 *
 *     {"argv": ["python3", "train.py"],        the first is looked up in env's PATH
 *      "env": {"PATH": "…", "RANK": "0"},      nothing is inherited; wins over the next
 *      "environmentFile": "/…",                a list as base/variables.h has it
 *      "prepend": {"PYTHONPATH": "/…/python"}, put before what the variable has, with a ':'
 *      "cwd": "/home/me/work",
 *      "mounts": [{"name": "data", "hostPath": "/…/volumes/default/data", "mountPath": "/data",
 *                  "readOnly": false, "subPath": "run1"}],
 *      "limits": {"memoryBytes": 67108864, "cpuMillis": 500},
 *      "log": {"segmentBytes": 10485760, "segments": 5},
 *      "stallMs": 60000,                          after which a stall is reported; 0: never
 *      "podName": "mnist-worker-0",               a name that resolves to this machine
 *      "services": {"namespace": "default", "names": ["mnist-master-0"]},  names that do, too
 *      "runAsUser": 1000, "runAsGroup": 1000, "umask": 18,
 *      "softLimits": {"core": 0, "stack": -1},
 *      "contained": true,                         the words are podman's: see machine/container.h
 *      "stdin": true}                             what a client writes is its standard input
 *
 * Everything but argv and cwd may be missing.
 *
 * Layer: services; pure. Ownership: process_spec_done; the strings belong to the document that the
 * spec holds.
 */
#pragma once

#include "base/variables.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESS_MOUNTS_MAX = 64,
    PROCESS_OWN_MOUNTS_MAX = 1,  /* added with process_spec_mount */
    PROCESS_WORDS_MAX = 1 << 19, /* more than the kernel takes */
};

struct process_mount {
    const char *name; /* name of the volume; "" when not given */
    const char *host_path;
    const char *mount_path;
    const char *sub_path; /* "" for none */
    bool read_only;
};

struct process_spec {
    json_t *doc;
    const char **argv; /* NULL-terminated */
    char **own_env;    /* the `env` of the document; NULL-terminated "NAME=value" */
    char **env;        /* all variables: own_env until environment_load; does not own the entries */
    char **prepended;
    struct variables from_file;
    const char *cwd;
    const char *pod_name;   /* "" when not given */
    const json_t *services; /* NULL when not given */
    struct process_mount *mounts;
    size_t mount_count;
    int64_t memory_bytes; /* 0: no limit */
    int64_t cpu_millis;   /* 0: no limit */
    int64_t log_segment_bytes;
    int64_t log_segments;
    int64_t stall_ms; /* a stall of this length is reported; 0: never */
    int64_t user;     /* -1: the supervisor's */
    int64_t group;
    int64_t umask;  /* -1: 022 */
    bool contained; /* it runs podman, and the container's processes are below podman */
    bool input;     /* its standard input comes from a client; else it is empty */
};

/* Takes a reference to `doc`. MUSTER_EDATA names the field that is wrong. */
int process_spec_read(json_t *doc, struct process_spec *ret, struct muster_err *err);
/* Adds a mount that the document does not have; its strings are the caller's and must outlive the
 * spec. */
void process_spec_mount(struct process_spec *spec, const struct process_mount *mount);
void process_spec_done(struct process_spec *spec);
