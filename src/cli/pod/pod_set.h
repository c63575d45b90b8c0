/* The pods that a verb reads from: those that exist, and the remains of deleted ones.
 *
 * A job whose pods were cleaned up still has its logs and files; the controller knows which pods
 * they belonged to (docs/api.md).
 *
 * Layer: cli. Ownership: pod_set_get/pod_set_done.
 */
#pragma once

#include "cli/command/cli.h"

struct pod_set_query {
    const char *labels; /* a label selector, or NULL */
    const char *name;   /* the name of one pod, or NULL */
    bool earlier;       /* also earlier pods with the name of a present one */
};

struct pod_set {
    json_t *pods; /* sorted by rank; pods of one name from oldest to newest */
    json_t *gone; /* uid → true */
};

int pod_set_get(struct cli *cli, const char *namespace, const struct pod_set_query *query,
                struct pod_set *ret);
bool pod_set_is_gone(const struct pod_set *set, const json_t *pod);
void pod_set_done(struct pod_set *set);

/* Finds the pods that WORD means, the name of a job or of a pod, which may be deleted. *ret_job is
 * a new reference to the job, NULL if WORD is a pod. MUSTER_EINVAL: WORD is an object of another
 * kind. */
int pod_set_find(struct cli *cli, const char *word, bool earlier, struct pod_set *ret,
                 json_t **ret_job);
