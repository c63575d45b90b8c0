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

/* What all attempts of a job have in common. */
struct attempt_place {
    uv_loop_t *loop;
    const char *job_folder;
    const char *staging;
    bool namespaces;
    int lock_fd;
    const struct cgroup_job *cgroups;

    /* Gets an event: "started", "exited", "start_failed", "note" (docs/processes.md); borrowed. */
    void (*on_event)(void *data, const json_t *event);
    /* No process of it is left and its record is written: the hook must free it. */
    void (*on_over)(void *data, struct attempt *attempt);
    void *data;
};

/* Starts an attempt. MUSTER_EEXIST: it was started before; nothing was done. If it fails after its
 * record was made, this is recorded and reported as an event: 0 with *ret NULL. `err` must not be
 * NULL. */
int attempt_start(const struct attempt_place *place, const char *id, const json_t *spec,
                  struct attempt **ret, struct muster_err *err);

const char *attempt_id(const struct attempt *attempt);
/* Whether `id` names the attempt: "POD/CONTAINER/ATTEMPT"; "POD/": any attempt of the pod; "":
 * any. */
bool attempt_fits(const struct attempt *attempt, const char *id);
/* Returns the process below which the attempt's processes are. */
pid_t attempt_root(const struct attempt *attempt);
/* Returns what is needed to read the attempt's stacks; borrows the attempt's texts. */
struct stacks_root attempt_stacks_root(const struct attempt *attempt);
struct stall *attempt_stall(struct attempt *attempt);
uint64_t attempt_output_bytes(const struct attempt *attempt);
/* Adds lines of muster to the log, after what the container has written until now: where its
 * processes were when it was ended. Only the first call has an effect. */
void attempt_explain(struct attempt *attempt, const char *lines);
/* Returns "mnist-worker-0", the value of MUSTER_POD; its id if that is not set. */
const char *attempt_pod_name(const struct attempt *attempt);
bool attempt_is_explained(const struct attempt *attempt);

/* Signals the attempt's process group; SIGKILL is sent to all its descendants. SIGINT and SIGTERM
 * are sent only once. */
void attempt_signal(struct attempt *attempt, int number);

/* Starts a further command in the container, for a client (session.h): the client's socket and a
 * file with what to run. The caller's descriptors stay open. */
void attempt_exec(struct attempt *attempt, int socket_fd, int open_fd);
/* Makes the bytes from this socket the container's standard input, if its spec says so. */
void attempt_stdin(struct attempt *attempt, int socket_fd);
/* Sends TCP sockets of the container's network to this socket (handover.h). */
void attempt_network(struct attempt *attempt, int socket_fd);

void attempt_free(struct attempt *attempt);

/* Returns the entry of the environment that marks an attempt's processes; the caller frees. */
char *attempt_mark(const char *attempt_folder);

/* Returns the events of an attempt, read from its record; new references. *ret_end is NULL while it
 * runs. */
void attempt_events(const char *id, const char *folder, json_t **ret_started, json_t **ret_end);
