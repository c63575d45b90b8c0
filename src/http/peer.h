/* Finds out which user's connection it is.
 *
 * Layer: services (asks the kernel). Thread: any.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* Finds the user at the client's end of a TCP connection within this machine. Returns false if the
 * kernel does not tell, if that end is closed already, or if it is on another machine. */
bool peer_uid(const struct sockaddr_in *client, const struct sockaddr_in *server, uid_t *ret);
