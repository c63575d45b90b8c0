/* Tells API servers which authorities the webhooks' certificate may be of: the field caBundle of
 * the webhook configurations, and of the conversion clause of the definition of PyTorchJobs.
 *
 * What is not there is left out, and so is what belongs to another Service. Nothing else of an
 * object is changed, and it is written only as it was read (its resourceVersion).
 *
 * Layer: program. Thread: the loop's. Ownership: open/close.
 */
#pragma once

#include "controller/cluster.h"

struct publish;

struct publish_options {
    struct cluster *cluster;
    const char *service, *namespace; /* of the webhooks; borrowed */
    const char *const *names;        /* of the server, where a configuration has a url; borrowed */
    /* All was looked at: `sentence` NULL, and every object has the list; or what is wrong. */
    void (*done)(void *arg, const char *sentence);
    void *arg;
};

int publish_open(const struct publish_options *options, struct publish **ret,
                 struct muster_err *err);
/* NULL is fine; `done` does not come any more. */
void publish_close(struct publish *publish);

/* Looks at all of them, one after the other; not while that is under way. */
void publish_begin(struct publish *publish, const char *authorities);

/* Puts the list into an object's clauses that are ours; was one of them different? Pure.
 * MUSTER_ENOMEM. */
int publish_put(json_t *object, const struct publish_options *options, const char *authorities,
                bool *ret_changed);
