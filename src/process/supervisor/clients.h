/* Clients of a job's attempts, whose connections came by handover: exec sessions, and the one whose
 * bytes are standard input.
 *
 * Layer: services; private to the supervisor. Thread: the loop's. Ownership: clients_done.
 */
#pragma once

#include "process/supervisor/attempt.h"
#include "process/supervisor/handover.h"

struct clients {
    int stdin_fd; /* kept for attempts that begin later; -1: no client has come */
};

/* Takes the descriptors. `attempts`: the running ones. */
void clients_take(struct clients *clients, struct attempt *const *attempts, size_t attempt_count,
                  const struct handover_packet *packet, const int *fds, size_t count);
/* Lets a new attempt read the rest of the standard input. */
void clients_began(const struct clients *clients, struct attempt *attempt);
void clients_done(struct clients *clients);
