/* Forming ends as soon as a listed member is gone, and reports which one; it also ends when it is
 * cancelled. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <muster/comm.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 6, GENERATION = 5 };

/* Members that are in this process. */
struct scene {
    int size;
    struct muster_endpoint *endpoints[MOST];
    struct muster_member members[MOST];
};

static struct muster_endpoint *open_endpoint(const char *transport, int rank)
{
    struct muster_endpoint *endpoint = NULL;
    char group[32];
    (void)setenv("MUSTER_TRANSPORT", world_transport(transport, rank, group, sizeof group), 1);
    assert_int_equal(muster_endpoint_open("127.0.0.1", &endpoint, NULL), 0);
    (void)unsetenv("MUSTER_TRANSPORT");
    return endpoint;
}

static void open_scene(struct scene *s, const char *transport, int size)
{
    *s = (struct scene){.size = size};
    for (int r = 0; r < size; r++) {
        s->endpoints[r] = open_endpoint(transport, r);
        muster_endpoint_member(s->endpoints[r], &s->members[r]);
    }
}

static void close_one(struct scene *s, int rank)
{
    muster_endpoint_close(s->endpoints[rank]);
    s->endpoints[rank] = NULL;
}

static void close_scene(struct scene *s)
{
    for (int r = 0; r < s->size; r++) {
        close_one(s, r);
    }
}

struct former {
    struct scene *scene;
    int rank;
    uint64_t generation;
    atomic_int turns; /* how often it has asked, while it waited, whether it should continue */
    int code;
    struct muster_err err;
    pthread_t thread;
};

static int note_turn(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
    return 0;
}

static void *form(void *context)
{
    struct former *f = context;
    struct scene *s = f->scene;
    struct muster_comm *comm = NULL;
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    options.interrupted = note_turn;
    options.interrupted_context = &f->turns;
    f->err = (struct muster_err)MUSTER_ERR_INIT;
    f->code = muster_comm_form(s->endpoints[f->rank], s->members, s->size, f->rank, f->generation,
                               test_limit_ms(), &options, &comm, &f->err);
    if (f->code == 0) {
        muster_comm_free(comm);
    }
    return NULL;
}

static void start(struct former *f, struct scene *scene, int rank, uint64_t generation)
{
    *f = (struct former){.scene = scene, .rank = rank, .generation = generation};
    assert_int_equal(pthread_create(&f->thread, NULL, form, f), 0);
}

/* From the second call on it watches the others. */
static void wait_until_entered(struct former *f)
{
    for (int64_t end = 0; atomic_load(&f->turns) < 2;) {
        assert_true(test_turn(&end));
    }
}

/* All except `gone` and `absent` (-1: none). */
static void all_learn_who_is_gone(struct scene *s, int gone, int absent)
{
    struct former formers[MOST];
    for (int r = 0; r < s->size; r++) {
        if (r != gone && r != absent) {
            start(&formers[r], s, r, GENERATION);
        }
    }
    for (int r = 0; r < s->size; r++) {
        if (r == gone || r == absent) {
            continue;
        }
        (void)pthread_join(formers[r].thread, NULL);
        if (formers[r].code != MUSTER_EUNAVAIL || formers[r].err.rank != gone) {
            fail_msg("rank %d, %d gone: %d about rank %d: %s", r, gone, formers[r].code,
                     formers[r].err.rank, formers[r].err.text);
        }
    }
}

static void who_is_gone_is_named(void **state)
{
    for (int size = 2; size <= MOST; size += 2) {
        for (int gone = 0; gone < size; gone++) {
            struct scene s;
            open_scene(&s, *state, size);
            close_one(&s, gone);
            all_learn_who_is_gone(&s, gone, -1);
            close_scene(&s);
        }
    }
}

/* Another member lives and has not come either: waiting for it must not hide the one that is
 * gone. */
static void who_is_gone_is_named_while_another_is_awaited(void **state)
{
    enum { SIZE = 4 };
    for (int gone = 0; gone < SIZE; gone++) {
        for (int absent = 0; absent < SIZE; absent++) {
            struct scene s;
            if (absent != gone) {
                open_scene(&s, *state, SIZE);
                close_one(&s, gone);
                all_learn_who_is_gone(&s, gone, absent);
                close_scene(&s);
            }
        }
    }
}

/* Starts a process with an endpoint, which does not form. */
static pid_t start_member(const char *transport, int rank, struct muster_member *ret)
{
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct muster_member self;
        test_alarm();
        muster_endpoint_member(open_endpoint(transport, rank), &self);
        _exit(write(told[1], &self, sizeof self) != sizeof self || pause() == 0);
    }
    assert_int_equal(read(told[0], ret, sizeof *ret), sizeof *ret);
    close(told[0]);
    close(told[1]);
    return pid;
}

static void end_member(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* The member is killed while the others wait for it. For those whose connections its kernel has
 * accepted, it counts as having come. */
static void who_dies_is_named(void **state)
{
    enum { SIZE = 4 };
    for (int victim = 0; victim < SIZE; victim++) {
        struct former formers[SIZE];
        struct scene s;
        open_scene(&s, *state, SIZE);
        close_one(&s, victim);
        pid_t pid = start_member(*state, victim, &s.members[victim]);
        for (int r = 0; r < SIZE; r++) {
            if (r != victim) {
                start(&formers[r], &s, r, GENERATION);
            }
        }
        for (int r = 0; r < SIZE; r++) {
            if (r != victim) {
                wait_until_entered(&formers[r]);
            }
        }
        end_member(pid);
        for (int r = 0; r < SIZE; r++) {
            if (r != victim) {
                (void)pthread_join(formers[r].thread, NULL);
                assert_true(formers[r].code == MUSTER_EUNAVAIL ||
                            formers[r].code == MUSTER_EPEERDEAD);
                assert_int_equal(formers[r].err.rank, victim);
            }
        }
        close_scene(&s);
    }
}

static void forming_is_cancelled(void **state)
{
    struct former waits, other;
    struct scene s;
    open_scene(&s, *state, 2);
    for (int rank = 0; rank < 2; rank++) {
        uint64_t generation = GENERATION + 10 * (uint64_t)rank;
        start(&waits, &s, rank, generation);
        wait_until_entered(&waits);
        muster_endpoint_cancel(s.endpoints[rank], generation - 1);
        muster_endpoint_cancel(s.endpoints[rank], generation);
        (void)pthread_join(waits.thread, NULL);
        assert_int_equal(waits.code, MUSTER_EABORTED);
        assert_int_equal(waits.err.rank, -1);
        /* This call comes after the cancellation. */
        start(&waits, &s, rank, generation);
        (void)pthread_join(waits.thread, NULL);
        assert_int_equal(waits.code, MUSTER_EABORTED);
        /* The next generation is not affected. */
        start(&waits, &s, rank, generation + 1);
        start(&other, &s, 1 - rank, generation + 1);
        (void)pthread_join(waits.thread, NULL);
        (void)pthread_join(other.thread, NULL);
        assert_int_equal(waits.code, 0);
        assert_int_equal(other.code, 0);
    }
    close_scene(&s);
}

static int count_descriptors(void)
{
    int num = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir)) {
        num++;
    }
    closedir(dir);
    return num;
}

/* Forms the endpoint's next communicator, of itself alone. */
static void form_alone(struct muster_endpoint *endpoint)
{
    struct muster_member self;
    struct muster_comm *comm;
    muster_endpoint_member(endpoint, &self);
    assert_int_equal(muster_comm_form(endpoint, &self, 1, 0, 0, test_limit_ms(), NULL, &comm, NULL),
                     0);
    muster_comm_free(comm);
}

/* The higher ranks wait for the lowest, and watch it by connections to its endpoint: the endpoint
 * accepts them, and drops them when they are closed. */
static void no_connection_is_left(void **state)
{
    enum { SIZE = 4 };
    struct former formers[SIZE];
    struct scene s;
    open_scene(&s, *state, SIZE);
    int before = count_descriptors();
    for (int r = SIZE - 1; r >= 0; r--) {
        start(&formers[r], &s, r, GENERATION);
        if (r > 0) {
            wait_until_entered(&formers[r]);
        }
    }
    for (int r = 0; r < SIZE; r++) {
        (void)pthread_join(formers[r].thread, NULL);
        assert_int_equal(formers[r].code, 0);
    }
    for (int64_t end = 0; count_descriptors() != before;) {
        assert_true(test_turn(&end)); /* over TCP the end of a connection takes some time */
        for (int r = 0; r < SIZE; r++) {
            form_alone(s.endpoints[r]);
        }
    }
    close_scene(&s);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(who_is_gone_is_named, transport),
        cmocka_unit_test_prestate(who_is_gone_is_named_while_another_is_awaited, transport),
        cmocka_unit_test_prestate(who_dies_is_named, transport),
        cmocka_unit_test_prestate(forming_is_cancelled, transport),
        cmocka_unit_test_prestate(no_connection_is_left, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
