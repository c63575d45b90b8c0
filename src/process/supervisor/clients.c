/* See clients.h. */
#include "process/supervisor/clients.h"

#include "process/monitor/session.h"

#include <string.h>
#include <sys/socket.h>

static struct attempt *find(struct attempt *const *attempts, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(attempt_id(attempts[i]), id, strlen(id)) == 0) {
            return attempts[i];
        }
    }
    return NULL;
}

static void take_exec(struct attempt *const *attempts, size_t attempt_count, const char *id,
                      const int *fds, size_t count)
{
    struct attempt *attempt = find(attempts, attempt_count, id);
    if (attempt && count == 2) {
        attempt_exec(attempt, fds[0], fds[1]);
    } else if (count > 0) {
        session_refuse(fds[0], SESSION_GONE, "the rank does not run (any more)");
    }
}

void clients_take(struct clients *clients, struct attempt *const *attempts, size_t attempt_count,
                  const struct handover_packet *packet, const int *fds, size_t count)
{
    struct attempt *attempt = find(attempts, attempt_count, packet->id);
    if (packet->kind == HANDOVER_STDIN && packet->id[0]) {
        if (attempt && count == 1) {
            attempt_stdin(attempt, fds[0]);
        }
        passing_close(fds, count);
        return;
    }
    if (packet->kind == HANDOVER_STDIN && count == 1) {
        clients_done(clients);
        clients->stdin_fd = fds[0];
        (void)send(fds[0], "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* it was taken */
        for (size_t i = 0; i < attempt_count; i++) {
            clients_began(clients, attempts[i]);
        }
        return;
    }
    if (packet->kind == HANDOVER_NETWORK && packet->id[0] && attempt && count == 1) {
        attempt_network(attempt, fds[0]);
    }
    if (packet->kind == HANDOVER_EXEC && packet->id[0]) {
        take_exec(attempts, attempt_count, packet->id, fds, count);
    }
    passing_close(fds, count);
}

void clients_began(const struct clients *clients, struct attempt *attempt)
{
    if (clients->stdin_fd >= 0) {
        attempt_stdin(attempt, clients->stdin_fd);
    }
}

void clients_done(struct clients *clients)
{
    passing_close(&clients->stdin_fd, 1);
    clients->stdin_fd = -1;
}
