/* Ctrl-C ends a C program inside every call that blocks. If the program handles the signal, its
 * `interrupted` reports it, and every call returns; `interrupted` may also abort the communicator.
 */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <muster/comm.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 5000000 /* more than sockets take */ };

/* Two processes; the second never enters the call. */
static struct shared {
    struct muster_member members[2];
    pthread_barrier_t ready; /* both have opened their endpoints */
    _Atomic bool inside;     /* the first is about to enter the call */
} * shared;

enum way { DIES, SAYS_SO, ABORTS };

static int over[2]; /* a pipe, which is closed when the test is over */
static float data[LARGE], more[2 * LARGE];
static atomic_bool was_interrupted;
static struct muster_comm *to_abort; /* by `ask` */

static void note_signal(int number)
{
    (void)number;
    atomic_store(&was_interrupted, true);
}

static int ask(void *context)
{
    (void)context;
    if (to_abort && atomic_load(&was_interrupted)) {
        muster_comm_abort(to_abort);
        return 0;
    }
    return atomic_load(&was_interrupted);
}

static int reduce_little(struct muster_comm *comm)
{
    return muster_all_reduce(comm, data, data, 2, MUSTER_F32, MUSTER_SUM, NULL);
}

static int reduce_much(struct muster_comm *comm)
{
    return muster_all_reduce(comm, data, data, LARGE, MUSTER_F32, MUSTER_SUM, NULL);
}

static int gather(struct muster_comm *comm)
{
    return muster_all_gather(comm, data, more, LARGE, MUSTER_F32, NULL);
}

static int barrier(struct muster_comm *comm)
{
    return muster_barrier(comm, NULL);
}

static int receive(struct muster_comm *comm)
{
    return muster_recv(comm, data, 1, MUSTER_F32, MUSTER_ANY_SOURCE, MUSTER_ANY_TAG, NULL, NULL);
}

static int send_much(struct muster_comm *comm)
{
    return muster_send(comm, data, LARGE, MUSTER_F32, 1, 0, NULL);
}

static int wait_for_request(struct muster_comm *comm)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call), .kind = MUSTER_BARRIER};
    struct muster_request *request;
    int rc = muster_start(comm, &call, &request, NULL);
    return rc < 0 ? rc : muster_request_wait(request, -1, NULL);
}

static int allocate(struct muster_comm *comm)
{
    void *memory;
    return muster_comm_alloc(comm, 4096, &memory, NULL);
}

static int sum_parts(struct muster_comm *comm)
{
    return muster_all_reduce_parts(comm, data, 0, 1, 2, more, 1, MUSTER_F32, MUSTER_SUM, NULL);
}

/* A blocking call that waits behind a started one. */
static int sum_parts_queued(struct muster_comm *comm)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_GATHER,
                               .type = MUSTER_F32,
                               .in = data,
                               .out = more,
                               .count = 1};
    struct muster_request *request;
    int rc = muster_start(comm, &call, &request, NULL);
    return rc < 0 ? rc : sum_parts(comm);
}

static int split(struct muster_comm *comm)
{
    struct muster_comm *part;
    return muster_comm_split(comm, 0, 0, &part, NULL);
}

static const struct blocking {
    const char *name;
    int (*enter)(struct muster_comm *comm); /* NULL: muster_comm_form itself */
} calls[] = {
    {"form", NULL},
    {"all_reduce, small", reduce_little},
    {"all_reduce, large", reduce_much},
    {"all_gather", gather},
    {"barrier", barrier},
    {"recv", receive},
    {"send", send_much},
    {"request_wait", wait_for_request},
    {"alloc", allocate},
    {"split", split},
    {"all_reduce_parts", sum_parts},
    {"all_reduce_parts, queued", sum_parts_queued},
};

static int form(struct muster_endpoint *endpoint, int rank, struct muster_comm **ret)
{
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    options.interrupted = ask;
    return muster_comm_form(endpoint, shared->members, 2, rank, 1, test_limit_ms(), &options, ret,
                            NULL);
}

static int be_absent(const struct blocking *call, struct muster_endpoint *endpoint)
{
    struct muster_comm *comm = NULL;
    int rc = call->enter ? form(endpoint, 1, &comm) : 0;
    char none;
    return rc < 0 || read(over[0], &none, 1) != 0;
}

static int be_inside(const struct blocking *call, enum way way, struct muster_endpoint *endpoint)
{
    struct muster_comm *comm = NULL;
    int rc = call->enter ? form(endpoint, 0, &comm) : 0;
    to_abort = way == ABORTS ? comm : NULL;
    atomic_store(&shared->inside, rc == 0);
    rc = rc < 0 ? rc : call->enter ? call->enter(comm) : form(endpoint, 0, &comm);
    return rc == (way == ABORTS ? MUSTER_EABORTED : MUSTER_EINTERRUPTED) ? 0 : 1;
}

static pid_t start(const struct blocking *call, int rank, enum way way)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    struct muster_endpoint *endpoint;
    test_alarm();
    close(over[1]);
    (void)signal(SIGINT, way == DIES ? SIG_DFL : note_signal);
    if (muster_endpoint_open("127.0.0.1", &endpoint, NULL) < 0) {
        _exit(2);
    }
    muster_endpoint_member(endpoint, &shared->members[rank]);
    (void)pthread_barrier_wait(&shared->ready);
    _exit(rank == 0 ? be_inside(call, way, endpoint) : be_absent(call, endpoint));
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *stat = fopen(path, "re");
    if (stat) {
        (void)!fscanf(stat, "%*d (%*[^)]) %c", &state);
        (void)fclose(stat);
    }
    return state;
}

static void interrupt(const struct blocking *call, enum way way)
{
    atomic_store(&shared->inside, false);
    assert_int_equal(pipe(over), 0);
    (void)fflush(NULL);
    pid_t pids[2];
    for (int r = 0; r < 2; r++) {
        pids[r] = start(call, r, r == 0 ? way : DIES);
    }
    /* The first process sleeps once it has waited for long. */
    for (char now = 0; now != 'Z' && (now != 'S' || !atomic_load(&shared->inside));) {
        (void)sched_yield();
        now = state_of(pids[0]);
    }
    (void)kill(pids[0], SIGINT);
    int inside = -1, absent = -1;
    (void)waitpid(pids[0], &inside, 0);
    close(over[1]);
    (void)waitpid(pids[1], &absent, 0);
    close(over[0]);
    bool ended = way == DIES ? WIFSIGNALED(inside) && WTERMSIG(inside) == SIGINT : inside == 0;
    if (!ended || absent != 0) {
        fail_msg("%s: status %d, of the other %d", call->name, inside, absent);
    }
}

static void ctrl_c_ends_the_program(void **state)
{
    (void)setenv("MUSTER_TRANSPORT", *state, 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        interrupt(&calls[i], DIES);
    }
}

static void a_handled_signal_ends_the_call(void **state)
{
    (void)setenv("MUSTER_TRANSPORT", *state, 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        interrupt(&calls[i], SAYS_SO);
    }
}

static void abort_in_interrupted_ends_the_call(void **state)
{
    (void)setenv("MUSTER_TRANSPORT", *state, 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].enter) { /* while it forms, there is no communicator to abort */
            interrupt(&calls[i], ABORTS);
        }
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t between_processes;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->ready, &between_processes, 2);
    char here[] = "auto", between[] = "tcp";
    const struct CMUnitTest tests[] = {
        {"ctrl_c_ends_the_program, one host", ctrl_c_ends_the_program, NULL, NULL, here},
        {"ctrl_c_ends_the_program, between hosts", ctrl_c_ends_the_program, NULL, NULL, between},
        {"a_handled_signal_ends_the_call, one host", a_handled_signal_ends_the_call, NULL, NULL,
         here},
        {"a_handled_signal_ends_the_call, between hosts", a_handled_signal_ends_the_call, NULL,
         NULL, between},
        {"abort_in_interrupted_ends_the_call, one host", abort_in_interrupted_ends_the_call, NULL,
         NULL, here},
        {"abort_in_interrupted_ends_the_call, between hosts", abort_in_interrupted_ends_the_call,
         NULL, NULL, between},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
