/* The containers of a pod, for pod.c. Layer: services, pure. */
#pragma once

#include "job/check/context.h"

/* `c` is at a container, `pod` its pod's spec. host_ports: those that containers before it have, an
 * object; NULL: it shares them with none. */
void validate_container(struct check *c, const json_t *pod, const json_t *container, bool init,
                        json_t *host_ports);

/* `c` is at a container: its probes and hooks (probe.c). `lasts`: it runs beside the others. */
void validate_probes(struct check *c, const json_t *container, bool lasts);
