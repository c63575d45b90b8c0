/* `--runtime podman`: a container attempt as a `podman run` in the foreground, under the same
 * supervisor.
 *
 * The image, its ENTRYPOINT, the pull policy and imagePullSecrets are then as on a cluster; network
 * and IPC are the host's, so that ranks reach each other as processes do. MUSTER_PODMAN_FLAGS in
 * the controller's environment (shell words) is put before the image, for machines that need
 * "--ulimit …" or "--runtime …" to themselves.
 *
 * Layer: program (daemon).
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <uv.h>

struct podman_container {
    const json_t *pod;
    const json_t *container; /* of the pod's spec */
    const json_t *env;       /* the container's variables: {"NAME":"value"} */
    char *const *shell;      /* the shell's variables: podman runs with them, and the container
                                gets those that do not say where things are on this machine;
                                NULL-terminated, or NULL */
    char *const *given;      /* variables given by name: the container gets them, over env */
    const json_t *command;   /* the container's command, expanded; NULL: the image's ENTRYPOINT */
    const json_t *args;      /* expanded; may be NULL */
    const json_t *mounts;    /* as volumes_mount gives them */
    const json_t *limits;    /* {"memoryBytes"?,"cpuMillis"?} */
    const json_t *services;  /* {"namespace","names"}: names of this machine; NULL: none */
    bool interactive;        /* its standard input comes from us */
    bool host_ipc;           /* the host has /dev/mqueue: its whole IPC namespace can be shared */
    const char *name;        /* name of the container, unique on this machine */
    const char *auth_file;   /* registry credentials; NULL: none */
    const char *flags;       /* MUSTER_PODMAN_FLAGS; NULL: none */
};

/* Makes the words to execute; new reference. `outer` ({"NAME":"value"}) is what podman itself runs
 * with, over shell and given; the container's variables that can be passed by name alone are added
 * to it. */
int podman_words(const struct podman_container *c, json_t *outer, json_t **ret,
                 struct muster_err *err);

/* Makes the words that run a command in a running container: a new reference, NULL when out of
 * memory. */
json_t *podman_exec_words(const char *name, bool input, bool tty, const json_t *command);

/* Returns how a job's supervisor may keep podman's processes together
 * (process_job_options.isolation). Rootless podman makes a user namespace with many ids, which
 * is not possible inside a namespace of ours with a single user: then it is used without
 * namespaces. */
const char *podman_isolation(void);

/* podman_name writes "muster-POD-UID-CONTAINER". */
enum { PODMAN_NAME_BYTES = 128 };
void podman_name(const char *pod_uid, const char *container, char ret_name[PODMAN_NAME_BYTES]);

/* Makes podman forget a container whose processes were killed without podman: otherwise it would
 * list the container as running for ever. Runs in the background, and reports nothing. */
void podman_remove(uv_loop_t *loop, const char *name);
