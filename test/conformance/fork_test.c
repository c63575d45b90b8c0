/* A thread may fork at any moment while another thread frees a communicator: the child must close
 * no descriptor but the communicator's. The test forks at each free() of that time, and first
 * overwrites the freed memory, as if it already had another owner. */
#include "world.h"

#include "base/testing/test.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAST_FREES = 5 };

void __real_free(void *memory);
void __wrap_free(void *memory);

static _Thread_local int innocent = -1; /* a descriptor that a child must keep; -1: no forks */
static _Thread_local int num_frees, num_bad;

static void fork_here(void)
{
    int fd = innocent, status = -1;
    innocent = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(fcntl(fd, F_GETFD) < 0);
    }
    num_bad += waitpid(child, &status, 0) != child || status != 0;
    num_frees++;
    innocent = fd;
}

void __wrap_free(void *memory)
{
    if (memory && innocent >= 0) {
        for (size_t at = 0; at + sizeof innocent <= malloc_usable_size(memory);
             at += sizeof innocent) {
            memcpy((char *)memory + at, &innocent, sizeof innocent);
        }
        fork_here();
    }
    __real_free(memory);
}

static int frees_while_somebody_forks(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *part;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    WORLD_CHECK(muster_comm_split(comm, 0, 0, &part, &err) == 0, "%s", err.text);
    innocent = fd;
    muster_comm_free(part);
    innocent = -1;
    WORLD_CHECK(num_frees >= LEAST_FREES, "%d frees", num_frees);
    WORLD_CHECK(num_bad == 0, "%d of %d children closed what is not theirs", num_bad, num_frees);
    close(fd);
    return 0;
}

static void a_child_closes_nothing_else(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 3, .transport = *state};
    assert_int_equal(world_run(&w, frees_while_somebody_forks, NULL), 0);
}

int main(int argc, char **argv)
{
    char *transport = argc > 1 ? argv[1] : "auto";
    (void)setenv("MUSTER_TRANSPORT", transport, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_child_closes_nothing_else, transport),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
