/* Writes a cluster_request as HTTP: method, path, body.
 *
 * Layer: services, room kube/wire. Pure. Ownership: wire_request_done.
 */
#pragma once

#include "controller/cluster.h"

struct wire_request {
    const char *method;       /* static */
    const char *content_type; /* static; NULL without a body */
    char *path;               /* with its query */
    char *body;               /* NULL: none */
    size_t body_bytes;
    bool only_reads;
};

int wire_request_make(const struct cluster_request *request, struct wire_request *ret,
                      struct muster_err *err);
void wire_request_done(struct wire_request *request);

/* How a watch's next request is sent. */
enum wire_follow {
    WIRE_STREAM, /* list and watch in one answer (sendInitialEvents) */
    WIRE_PAGE,   /* a page of the list */
    WIRE_WATCH,  /* changes after a version */
};

/* Returns the path of a watch's next request; the caller frees it. `from`: the version for
 * WIRE_WATCH, the continue token for WIRE_PAGE ("" for the first page). NULL: out of memory, or too
 * long. */
char *wire_follow_path(const struct cluster_scope *scope, enum wire_follow how, const char *from,
                       int64_t timeout_s);
