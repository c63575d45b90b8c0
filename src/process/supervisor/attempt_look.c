/* Answers questions about a running attempt. See attempt.h. */
#include "process/supervisor/attempt_state.h"

#include "base/time/clock.h"

#include <stdlib.h>
#include <string.h>

bool attempt_fits(const struct attempt *attempt, const char *id)
{
    size_t length = strlen(id);
    bool prefix = length == 0 || id[length - 1] == '/';
    return prefix ? strncmp(attempt->id, id, length) == 0 : strcmp(attempt->id, id) == 0;
}

/* Reads the rank from the attempt's environment; -1: it has none. */
static long rank_of(const struct attempt *attempt)
{
    for (char *const *entry = attempt->spec.env; entry && *entry; entry++) {
        if (strncmp(*entry, "RANK=", 5) == 0 && (*entry)[5] >= '0' && (*entry)[5] <= '9') {
            return strtol(*entry + 5, NULL, 10);
        }
    }
    return -1;
}

const char *attempt_pod_name(const struct attempt *attempt)
{
    for (char *const *entry = attempt->spec.env; entry && *entry; entry++) {
        if (strncmp(*entry, "MUSTER_POD=", strlen("MUSTER_POD=")) == 0) {
            return *entry + strlen("MUSTER_POD=");
        }
    }
    return attempt->id;
}

pid_t attempt_root(const struct attempt *attempt)
{
    return attempt->monitor;
}

void attempt_explain(struct attempt *attempt, const char *lines)
{
    attempt->explained = true;
    attempt_drain(attempt);
    log_writer_add(&attempt->log, lines, strlen(lines), clock_unix_ms());
}

struct stacks_root attempt_stacks_root(const struct attempt *attempt)
{
    return (struct stacks_root){.id = attempt->id,
                                .rank = rank_of(attempt),
                                .contained = attempt->spec.contained,
                                .pid = attempt->monitor,
                                .main_pid = (pid_t)strtol(attempt->identity, NULL, 10)};
}

bool attempt_is_explained(const struct attempt *attempt)
{
    return attempt->explained;
}

struct stall *attempt_stall(struct attempt *attempt)
{
    return &attempt->stall;
}

uint64_t attempt_output_bytes(const struct attempt *attempt)
{
    return attempt->log.base + attempt->log.used + attempt->log.lost_bytes;
}
