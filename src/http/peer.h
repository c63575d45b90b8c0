/* Finds out whose connection it is.
 *
 * Layer: services (asks the kernel). Thread: any.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* The user at the other end of a TCP connection within this machine, whose two ends are these.
 * False: the kernel does not tell, the other end is closed already, or it is another machine's. */
bool peer_uid(const struct sockaddr_in *client, const struct sockaddr_in *server, uid_t *ret);
