/* The pods that a verb reads from: those that are there, and what is left of those that are not.
 *
 * A job whose pods were cleaned up has its logs and files still; the controller tells whose they
 * were (docs/api.md).
 *
 * Layer: cli. Ownership: pod_set_get/pod_set_done.
 */
#pragma once

#include "cli/command/cli.h"

struct pod_set_query {
    const char *labels; /* a label selector, or NULL */
    const char *name;   /* of one pod, or NULL */
    bool earlier;       /* also the pods that had a present one's name before */
};

struct pod_set {
    json_t *pods; /* by rank, the pods of one name in their order */
    json_t *gone; /* uid → true */
};

int pod_set_get(struct cli *cli, const char *namespace, const struct pod_set_query *query,
                struct pod_set *ret);
bool pod_set_is_gone(const struct pod_set *set, const json_t *pod);
void pod_set_done(struct pod_set *set);

/* The pods that WORD means, a job's name or a pod's, also of one that is gone. *ret_job: a new
 * reference to the job, NULL when WORD is a pod. MUSTER_EINVAL: of another kind. */
int pod_set_find(struct cli *cli, const char *word, bool earlier, struct pod_set *ret,
                 json_t **ret_job);
