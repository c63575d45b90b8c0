/* Keeps the webhooks' certificates in a Secret that all replicas share: makes them where there are
 * none, reads what another replica has made, renews them before their time (rotation.h), and has
 * the list of authorities published (publish.h).
 *
 * Each change is of the Secret as it was read: of two replicas that change it at once one is
 * refused, and reads what the other has written.
 *
 * Layer: program. Thread: the loop's. Ownership: open/close; the loop must run once more.
 */
#pragma once

#include "certificate/certificate.h"
#include "controller/cluster.h"

#include <uv.h>

struct keeper;

struct keeper_options {
    struct cluster *cluster;
    const char *namespace, *secret, *service; /* borrowed */
    const char *const *names;                 /* of the server, NULL-terminated; borrowed */
    int64_t life_ms;                          /* of a certificate */
    /* Called with the certificate that the server must use from now on. A failure is reported, and
     * the call is repeated later. */
    int (*use)(void *arg, const struct certificate_pair *serving, struct muster_err *err);
    void *arg;
};

int keeper_open(uv_loop_t *loop, const struct keeper_options *options, struct keeper **ret,
                struct muster_err *err);
/* NULL is allowed. */
void keeper_close(struct keeper *keeper);

/* Returns why API servers cannot rely on the webhooks; NULL: they can. */
const char *keeper_trouble(const struct keeper *keeper);
