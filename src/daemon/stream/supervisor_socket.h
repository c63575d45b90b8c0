/* Makes a socket pair and gives one end to the supervisor of a pod's job. Layer: program (daemon).
 */
#pragma once

#include "base/home.h"
#include "process/supervisor/handover.h"

#include <jansson.h>

/* Makes a socket pair. packet: what the supervisor must do with its end. type: SOCK_STREAM or
 * SOCK_SEQPACKET. *ret_fd is the caller's end, which the caller closes. */
int supervisor_socket(const struct home *home, const json_t *pod,
                      const struct handover_packet *packet, int type, int *ret_fd,
                      struct muster_err *err);
