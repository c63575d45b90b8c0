/* Interprets an API server's answer: HTTP status and body become a cluster_answer, or an error.
 *
 * Layer: services, room kube/wire. Pure.
 */
#pragma once

#include "controller/cluster.h"

/* Reads a complete answer. ret->object is a new reference or NULL; reason and message are borrowed
 * from it or static. A success that is not a JSON object is MUSTER_EPROTO. `writes`: after a
 * gateway's failure it is unknown whether the write was carried out. */
void wire_answer(long http_status, const char *body, size_t bytes, bool writes,
                 struct cluster_answer *ret);
