/* PUT /muster/v1/environments/ID: the answer comes once the environment is on the disk.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "daemon/machine/environments.h"
#include "http/http.h"

/* Completes the reply, now or later. */
void environment_routes_put(struct environments *environments, const char *id,
                            const struct http_request *request, struct http_reply *reply);
