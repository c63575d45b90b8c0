/* The progress thread sleeps on the sockets of every communicator that has work, not on those of
 * one of them. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { COMMS = 3 };

int __real_poll(struct pollfd *fds, nfds_t num, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t num, int timeout_ms);
/* This is what poll becomes when the compiler knows the array's size. */
int __real___poll_chk(struct pollfd *fds, nfds_t num, int timeout_ms, size_t bytes);
int __wrap___poll_chk(struct pollfd *fds, nfds_t num, int timeout_ms, size_t bytes);

static _Thread_local bool is_ours;
static _Atomic nfds_t most; /* how many sockets the progress thread waited for at once */

static void note(nfds_t num)
{
    if (!is_ours && num > atomic_load(&most)) {
        atomic_store(&most, num);
    }
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t num, int timeout_ms, size_t bytes)
{
    note(num);
    return __real___poll_chk(fds, num, timeout_ms, bytes);
}

int __wrap_poll(struct pollfd *fds, nfds_t num, int timeout_ms)
{
    note(num);
    return __real_poll(fds, num, timeout_ms);
}

static int receives_on_all(struct muster_comm *const *comms, struct muster_err *err)
{
    struct muster_request *requests[COMMS];
    char words[COMMS];
    for (int i = 0; i < COMMS; i++) {
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = MUSTER_RECV,
                                   .type = MUSTER_U8,
                                   .out = &words[i],
                                   .count = 1,
                                   .peer = 1};
        WORLD_CHECK(muster_start(comms[i], &call, &requests[i], err) == 0, "%s", err->text);
    }
    for (int64_t end = 0; atomic_load(&most) < COMMS && test_turn(&end);) {
    }
    WORLD_CHECK(atomic_load(&most) == COMMS, "%d of %d sockets", (int)most, COMMS);
    for (int i = 0; i < COMMS; i++) {
        WORLD_CHECK(muster_send(comms[i], "x", 1, MUSTER_U8, 1, 0, err) == 0, "%s", err->text);
        WORLD_CHECK(muster_request_wait(requests[i], -1, err) == 0, "%s", err->text);
        muster_request_free(requests[i]);
    }
    return 0;
}

static int answers_on_all(struct muster_comm *const *comms, struct muster_err *err)
{
    char word;
    for (int i = 0; i < COMMS; i++) {
        int r = muster_recv(comms[i], &word, 1, MUSTER_U8, 0, 0, NULL, err);
        r = r < 0 ? r : muster_send(comms[i], &word, 1, MUSTER_U8, 0, 0, err);
        WORLD_CHECK(r == 0, "%s", err->text);
    }
    return 0;
}

static int has_several(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comms[COMMS];
    is_ours = true;
    for (int i = 0; i < COMMS; i++) {
        WORLD_CHECK(muster_comm_split(comm, 0, 0, &comms[i], &err) == 0, "%s", err.text);
    }
    int r =
        muster_comm_rank(comm) == 0 ? receives_on_all(comms, &err) : answers_on_all(comms, &err);
    for (int i = 0; i < COMMS; i++) {
        muster_comm_free(comms[i]);
    }
    return r;
}

static void all_communicators_wake_the_progress_thread(void **state)
{
    (void)state;
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = "tcp"};
    assert_int_equal(world_run(&w, has_several, NULL), 0);
}

int main(void)
{
    (void)setenv("MUSTER_TRANSPORT", "tcp", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_communicators_wake_the_progress_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
