/* A node made of pod machines and make-believe processes, which do what their script says.
 *
 * Tests only. Ownership: sim_kubelet_init/sim_kubelet_done; borrows store and script.
 */
#pragma once

#include "pod/pod.h"
#include "store.h"

enum { SIM_PODS_MAX = 64, SIM_RECORDS_MAX = 256 };

struct sim_process {
    bool live;
    int attempt;
    int64_t ends_unix_ms; /* INT64_MAX: only a signal ends it */
    int code;
    bool oom;
    bool ignores_term;
};

/* A pod that has a state machine. */
struct sim_slot {
    char uid[64];
    char name[128];
    struct pod *machine; /* NULL: the slot is free */
    struct sim_process processes[POD_CONTAINERS_MAX];
    struct pod_event records[SIM_RECORDS_MAX]; /* the records that a supervisor would have kept */
    size_t record_count;
    int64_t wake_unix_ms;
    bool delete_told;
};

struct sim_kubelet {
    struct sim_store *store;
    const json_t *script; /* {"worker-0": [{"run": 1, "exit": 3}, …]}: attempts in order, the last
                             one again and again; {"run": null} runs until a signal ends it */
    json_t *attempts;     /* {"worker-0": how many attempts were started} */
    struct sim_slot slots[SIM_PODS_MAX];
    int64_t failures;   /* ends that count for backoffLimit, each once */
    bool drop_status;   /* as if the agent crashed before it wrote a status */
    const char *broken; /* the first invariant that was violated */
};

void sim_kubelet_init(struct sim_kubelet *kubelet, struct sim_store *store, const json_t *script);
void sim_kubelet_done(struct sim_kubelet *kubelet);

/* Does everything that is due; returns true if anything happened. */
bool sim_kubelet_run(struct sim_kubelet *kubelet, int64_t now_unix_ms);
/* Returns when something is due next; INT64_MAX: never. */
int64_t sim_kubelet_next(const struct sim_kubelet *kubelet);
/* The agent dies, and a new one adopts the processes. */
void sim_kubelet_crash(struct sim_kubelet *kubelet, int64_t now_unix_ms);
bool sim_kubelet_idle(const struct sim_kubelet *kubelet);
