/* Whether a member's process is still there, asked of its host's kernel: a process listens for
 * others as long as it is a member, and where nobody listens any more a connection is refused. One
 * that is stopped, or busy, is connected to by its kernel; a host that cannot be reached answers
 * nothing.
 *
 * Layer: program (coordinator). Memory: start/stop; stop returns before the loop has let go of it.
 * Thread: the loop's.
 */
#pragma once

#include "wire/wire.h"

#include <stdbool.h>
#include <uv.h>

struct server_probe;

/* Begins one connection to where the member says that it listens (struct muster_member). answered:
 * once, never from within start; the probe is to be stopped then, or earlier. NULL: it cannot be
 * asked. */
struct server_probe *server_probe_start(uv_loop_t *loop, const uint8_t address[WIRE_ADDRESS_BYTES],
                                        void (*answered)(void *data, bool refused), void *data);
void server_probe_stop(struct server_probe *probe); /* NULL is fine */
/* An address of the loopback means a process of this host: of another host nothing can be learnt by
 * it. */
bool server_probe_may(const uint8_t address[WIRE_ADDRESS_BYTES]);
/* The process at the other end of the connection reaches us from this address: nothing in between
 * has put another one in its place. */
bool server_probe_is_of_peer(const uint8_t address[WIRE_ADDRESS_BYTES], int fd);
