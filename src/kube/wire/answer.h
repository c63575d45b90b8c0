/* Interprets an API server's answer: HTTP status and body become a cluster_answer, or an error.
 *
 * Layer: services, room kube/wire. Pure.
 */
#pragma once

#include "controller/cluster.h"

/* Reads an answer that is complete. ret->object is a new reference or NULL; reason and message are
 * borrowed from it or static. A success that is no JSON object is MUSTER_EPROTO. `writes`: a
 * failure of a gateway leaves open whether it was carried out. */
void wire_answer(long http_status, const char *body, size_t bytes, bool writes,
                 struct cluster_answer *ret);
