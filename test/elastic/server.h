/* A coordinator inside of the test's process: arbiter_step behind a Unix socket, its journal in
 * memory. What `muster coordinator` adds is tested with the real one; here members and coordinator
 * run as threads of one process, so that the sanitizers see all of it.
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
/* Ends all connections, also of members that are there. */
void server_stop(struct server *server);
/* "unix:PATH", until it is stopped. */
const char *server_address(const struct server *server);
/* As the options of a worker need it: that of all servers. */
const char *server_token(void);
/* The version of the last step in the log. From any thread. */
uint64_t server_version(const struct server *server);
/* The job is done. */
int server_is_done(const struct server *server);
/* Hangs up on all members, once. */
void server_hang_up(struct server *server);
