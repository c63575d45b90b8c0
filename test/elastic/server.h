/* A coordinator inside the test's process: arbiter_step behind a Unix socket, with its journal in
 * memory. The rest of `muster coordinator` is tested with the real program; here members and
 * coordinator run as threads of one process, so that the sanitizers see all of it.
 *
 * Memory: server_start/stop. Thread: its own.
 */
#pragma once

#include <stdint.h>

struct server;

struct server_options {
    uint32_t min_size;
    uint32_t first_size; /* members that the first generation waits for */
    uint32_t max_size;
};

struct server *server_start(const struct server_options *options);
/* Ends all connections, also those of members. */
void server_stop(struct server *server);
/* Returns "unix:PATH", which is valid until the server is stopped. */
const char *server_address(const struct server *server);
/* Returns the token for the options of a worker; all servers have the same. */
const char *server_token(void);
/* Returns the version of the last step in the log. Any thread may call it. */
uint64_t server_version(const struct server *server);
/* Whether the job is done. */
int server_is_done(const struct server *server);
/* Hangs up on all members, once. */
void server_hang_up(struct server *server);
