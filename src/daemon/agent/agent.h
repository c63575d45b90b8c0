/* The node agent: runs the pods that the store holds as processes of this machine.
 *
 * For each pod one pure machine (pod/pod.h) says what to do next; for each job one supervisor
 * (process/process.h) does it and survives this program. The agent is the wire between them: it
 * makes volumes and environments, leases ports and GPUs, writes pod status and events.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "base/home.h"
#include "http/http.h"
#include "process/machine/gpus.h"
#include "store/store.h"

#include <uv.h>

struct agent;

struct agent_options {
    uv_loop_t *loop;
    struct store *store;
    const struct home *home;
    struct gpus *gpus;
    const char *node_name;
};

/* Makes the agent, which also adopts the processes that already run. */
int agent_new(const struct agent_options *options, struct agent **ret, struct muster_err *err);

/* Frees the agent; supervisors and their processes go on. Run the loop once more after this. */
struct agent *agent_free(struct agent *agent);

/* Answers with the stacks of a job's running attempts: {"attempts": […]} (process/stack/stacks.h).
 * job_uid is the jobs_folder_uid of one of its pods. */
void agent_stacks(struct agent *agent, const char *job_uid, struct http_reply *reply);

/* The number of pods that may still have processes. */
size_t agent_live_pods(const struct agent *agent);
