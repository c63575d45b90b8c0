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
    const json_t *container; /* of its spec */
    const json_t *env;       /* the container's: {"NAME":"value"} */
    char *const *shell;    /* of the submitter: podman runs with it, and the container has what does
                              not say where things lie on this machine; NULL-terminated, or NULL */
    char *const *given;    /* by name: the container's, over env */
    const json_t *command; /* the container's command, expanded; NULL: the image's ENTRYPOINT */
    const json_t *args;    /* expanded; may be NULL */
    const json_t *mounts;  /* as volumes_mount gives them */
    const json_t *limits;  /* {"memoryBytes"?,"cpuMillis"?} */
    const json_t *services; /* {"namespace","names"}: names of this machine; NULL: none */
    bool interactive;       /* its standard input is ours */
    bool host_ipc;          /* the host has /dev/mqueue: its IPC namespace can be shared whole */
    const char *name;       /* of the container, unique on this machine */
    const char *auth_file;  /* registry credentials; NULL: none */
    const char *flags;      /* MUSTER_PODMAN_FLAGS; NULL: none */
};

/* The words to execute; new reference. `outer` ({"NAME":"value"}) is what podman itself runs with,
 * over shell and given: there a container's variables are added that can be passed by name alone.
 */
int podman_words(const struct podman_container *c, json_t *outer, json_t **ret,
                 struct muster_err *err);

/* The words that run a command in a container which runs; new reference, NULL when out of memory.
 */
json_t *podman_exec_words(const char *name, bool input, bool tty, const json_t *command);

/* How a job's supervisor may keep podman's processes together (process_job_options.isolation).
 * Rootless podman makes a user namespace of many ids, which is not possible inside one of ours that
 * holds a single user: no namespaces then. */
const char *podman_isolation(void);

/* "muster-POD-UID-CONTAINER". */
enum { PODMAN_NAME_BYTES = 128 };
void podman_name(const char *pod_uid, const char *container, char ret_name[PODMAN_NAME_BYTES]);

/* Makes podman forget a container whose processes were killed over its head (it would list it as
 * running for ever). In the background, without a word. */
void podman_remove(uv_loop_t *loop, const char *name);
