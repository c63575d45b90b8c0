/* Asks the kernel of a member's host whether the member's process still exists: a process listens
 * as long as it is a member, and a connection is refused when no process listens any more. If the
 * process is stopped, or busy, its kernel still accepts the connection; a host that cannot be
 * reached does not answer.
 *
 * Layer: program (coordinator). Memory: start/stop; stop returns before the loop has let go of it.
 * Thread: the loop's.
 */
#pragma once

#include "wire/wire.h"

#include <stdbool.h>
#include <uv.h>

struct server_probe;

/* Begins a connection to the address at which a member listens (struct muster_member). answered:
 * called once, never within start; the probe must be stopped then, or earlier. Returns NULL if the
 * address cannot be asked. */
struct server_probe *server_probe_start(uv_loop_t *loop, const uint8_t address[WIRE_ADDRESS_BYTES],
                                        void (*answered)(void *data, bool refused), void *data);
void server_probe_stop(struct server_probe *probe); /* the argument may be NULL */
/* Whether the address may be probed. A loopback address means a process of this host, and shows
 * nothing about one of another host. */
bool server_probe_may(const uint8_t address[WIRE_ADDRESS_BYTES]);
/* Whether the process at the other end of the connection reaches this one from this address, so
 * that nothing in between has replaced the address. */
bool server_probe_is_of_peer(const uint8_t address[WIRE_ADDRESS_BYTES], int fd);
