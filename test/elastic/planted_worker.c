/* The point at which a fault hits a worker, behind the barrier of a step: there the step is
 * committed, and nobody else has heard of it yet. MUSTER_TEST_PASSED: "VERSION hold FILE": the
 * worker waits until FILE exists; FILE.held exists meanwhile. "VERSION fail FILE": after that wait
 * it takes another worker for dead. */
#include "base/testing/test_wait.h"

#include <muster/comm.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern uint64_t planted_version;

int __real_muster_barrier(struct muster_comm *comm, struct muster_err *err);
int __wrap_muster_barrier(struct muster_comm *comm, struct muster_err *err);

static void hold(const char *path)
{
    char held[512];
    (void)snprintf(held, sizeof held, "%s.held", path);
    int fd = open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    while (access(path, F_OK) != 0) {
        test_let_pass(1);
    }
    (void)unlink(held);
}

int __wrap_muster_barrier(struct muster_comm *comm, struct muster_err *err)
{
    static bool struck;
    unsigned long long version;
    char how[8], path[400];
    const char *point = getenv("MUSTER_TEST_PASSED");
    int r = __real_muster_barrier(comm, err);
    if (r < 0 || struck || !point || sscanf(point, "%llu %7s %399s", &version, how, path) != 3 ||
        version != planted_version) {
        return r;
    }
    struck = true;
    hold(path);
    return strcmp(how, "fail") == 0 ? muster_fail(err, MUSTER_EPEERDEAD, "a worker is dead") : r;
}
