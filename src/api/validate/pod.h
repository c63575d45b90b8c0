/* The containers of a pod, for pod.c. Layer: services, pure. */
#pragma once

#include "job/check/context.h"

/* `c` is at a container, and `pod` is its pod's spec. `host_ports` is an object with the host ports
 * of the containers before it; NULL: the container shares its ports with no other container. */
void validate_container(struct check *c, const json_t *pod, const json_t *container, bool init,
                        json_t *host_ports);

/* `c` is at a container. Checks its probes and hooks (probe.c). `lasts`: the container runs beside
 * the others. */
void validate_probes(struct check *c, const json_t *container, bool lasts);
