/* Tells API servers which authorities may have signed the webhooks' certificate: by the field
 * caBundle of the webhook configurations, and of the conversion clause of the definition of
 * PyTorchJobs.
 *
 * Objects that do not exist are left out, and so are those that belong to another Service. No other
 * field is changed, and a write fails if the object has changed since it was read
 * (resourceVersion).
 *
 * Layer: program. Thread: the loop's. Ownership: open/close.
 */
#pragma once

#include "controller/cluster.h"

struct publish;

struct publish_options {
    struct cluster *cluster;
    const char *service, *namespace; /* of the webhooks; borrowed */
    const char *const *names;        /* of the server, for configurations with a url; borrowed */
    /* All objects were looked at: `sentence` is NULL if every object has the list, or says what is
     * wrong. */
    void (*done)(void *arg, const char *sentence);
    void *arg;
};

int publish_open(const struct publish_options *options, struct publish **ret,
                 struct muster_err *err);
/* NULL is allowed; `done` is not called any more. */
void publish_close(struct publish *publish);

/* Looks at all objects, one after the other; must not be called while that is in progress. */
void publish_begin(struct publish *publish, const char *authorities);
