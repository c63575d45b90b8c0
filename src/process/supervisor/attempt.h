/* One attempt of a container, as its supervisor sees it: record, log, control group, monitor.
 *
 * Layer: services; private to the supervisor. Thread: the loop's. Ownership: attempt_start makes
 * it, attempt_free (after on_over) takes it.
 */
#pragma once

#include "process/machine/cgroup.h"
#include "process/stack/stacks.h"
#include "process/stack/stall.h"
#include "process/wire/record.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct attempt;

/* What all attempts of a job share. */
struct attempt_place {
    uv_loop_t *loop;
    const char *job_folder;
    const char *staging;
    bool namespaces;
    int lock_fd;
    const struct cgroup_job *cgroups;

    /* What happened: "started", "exited", "start_failed", "note" (docs/processes.md); borrowed. */
    void (*on_event)(void *data, const json_t *event);
    /* Nothing of it is left and its record is written: free it. */
    void (*on_over)(void *data, struct attempt *attempt);
    void *data;
};

/* Starts it. MUSTER_EEXIST: it was started before; nothing happened. A failure after its record was
 * made is recorded and told as one: 0 with *ret NULL. `err` must not be NULL. */
int attempt_start(const struct attempt_place *place, const char *id, const json_t *spec,
                  struct attempt **ret, struct muster_err *err);

const char *attempt_id(const struct attempt *attempt);
/* Whether the attempt is "POD/CONTAINER/ATTEMPT"; "POD/": any of the pod; "": any. */
bool attempt_fits(const struct attempt *attempt, const char *id);
/* Its processes are below this one. */
pid_t attempt_root(const struct attempt *attempt);
/* For a caller that reads its stacks; borrows the attempt's texts. */
struct stacks_root attempt_stacks_root(const struct attempt *attempt);
struct stall *attempt_stall(struct attempt *attempt);
uint64_t attempt_output_bytes(const struct attempt *attempt);
/* Adds lines of ours to the log, after what the container has written until now: what it was in
 * when it was ended. Once. */
void attempt_explain(struct attempt *attempt, const char *lines);
/* "mnist-worker-0", of MUSTER_POD; else its id. */
const char *attempt_pod_name(const struct attempt *attempt);
bool attempt_is_explained(const struct attempt *attempt);

/* Signals its process group; SIGKILL goes to all its descendants. SIGINT and SIGTERM are sent once.
 */
void attempt_signal(struct attempt *attempt, int number);

/* A further command in the container, for a client (session.h): its socket and a file with what to
 * run. The caller's descriptors stay open. */
void attempt_exec(struct attempt *attempt, int socket_fd, int open_fd);
/* What comes from this socket is the container's standard input, where its spec says so. */
void attempt_stdin(struct attempt *attempt, int socket_fd);
/* TCP sockets of the container's network are sent there (handover.h). */
void attempt_network(struct attempt *attempt, int socket_fd);

void attempt_free(struct attempt *attempt);

/* The entry of the environment that marks an attempt's processes; the caller frees. */
char *attempt_mark(const char *attempt_folder);

/* The events of an attempt, from its record; new references. *ret_end is NULL while it runs. */
void attempt_events(const char *id, const char *folder, json_t **ret_started, json_t **ret_end);
