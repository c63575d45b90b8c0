/* Checks the digests by which workers vote: every bit of every piece changes them. */
#include "client/vote.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "client/identity.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { PIECES = 40, BYTES = 76, BITS = 8 };

static void every_bit_of_every_piece_counts(void **state)
{
    (void)state;
    static char memory[PIECES][BYTES];
    static struct muster_elastic job;
    struct muster_elastic_piece pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        memset(memory[i], i, BYTES);
        pieces[i] = (struct muster_elastic_piece){memory[i], BYTES};
    }
    job.digest_steps = 1, job.vote_due = true, job.pieces = pieces, job.num_pieces = PIECES;
    uint64_t right = vote_digest(&job, 3);
    for (int i = 0; i < PIECES * BYTES * BITS; i++) {
        char *byte = &memory[i / BITS / BYTES][i / BITS % BYTES];
        *byte = (char)(*byte ^ 1 << i % BITS);
        assert_true(vote_digest(&job, 3) != right);
        *byte = (char)(*byte ^ 1 << i % BITS);
    }
    assert_true(vote_digest(&job, 3) == right);
    assert_true(vote_digest(&job, 4) != right);
    job.digest_skip = 1;
    memory[PIECES - 1][0] = 99;
    uint64_t without = vote_digest(&job, 3);
    memory[PIECES - 1][0] = 98;
    assert_true(vote_digest(&job, 3) == without);
}

static void most_are_right_and_two_that_differ_decide_nothing(void **state)
{
    (void)state;
    static const struct {
        uint64_t digests[4];
        int size, first;
        bool alike, decided;
    } table[] = {{{7, 7, 7}, 3, -1, true, true},     {{7, 8, 7}, 3, 1, false, true},
                 {{8, 7, 7, 9}, 4, 0, false, false}, {{7, 7, 7, 9}, 4, 3, false, true},
                 {{7, 8}, 2, 1, false, false},       {{7}, 1, -1, true, true}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct vote vote;
        int r = vote_count(table[i].digests, table[i].size, &vote);
        assert_int_equal(r, table[i].alike ? 0 : VOTE_AGAIN);
        assert_int_equal(vote.decided, table[i].decided);
        assert_int_equal(vote.first, table[i].first);
    }
}

/* ---- A vote that decides nothing ---- */

struct jury {
    struct muster_elastic job;
    struct generation generation;
    _Atomic bool waits; /* the worker has reported, and waits for the end */
    int r;
};

static int note_wait(void *user)
{
    struct jury *jury = user;
    atomic_store(&jury->waits, true);
    return 0;
}

static void *take_vote(void *context)
{
    struct jury *jury = context;
    pthread_mutex_lock(&jury->job.mutex);
    jury->r = vote_take(&jury->job, NULL);
    pthread_mutex_unlock(&jury->job.mutex);
    return NULL;
}

/* Returns whether a message of that kind comes. */
static bool hears(int fd, enum wire_kind kind)
{
    uint8_t frame[4096], memory[64];
    struct wire_room room = {.memory = memory, .size_bytes = sizeof memory};
    struct wire_message m;
    ssize_t count = recv(fd, frame, sizeof frame, 0);
    int64_t first = count > 0 ? wire_frame_bytes(frame, (size_t)count, sizeof frame, NULL) : 0;
    return first > 0 && first <= count && wire_read(frame, (size_t)first, &room, &m, NULL) == 0 &&
           m.kind == kind;
}

/* All workers wait for the end of the job, so no other process reports the failure. */
static void the_failure_is_reported_to_a_coordinator_that_was_away(void **state)
{
    (void)state;
    static struct jury jury;
    struct muster_elastic *job = &jury.job;
    struct timeval limit = {.tv_sec = test_limit_ms() / 1000};
    pthread_t thread;
    int ends[2];
    identity_waiting(&job->mutex, &job->changed);
    connection_init(&job->connection);
    job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    job->mine = &jury.generation;
    job->mine->size = 2;
    job->interrupted = note_wait;
    job->user = &jury;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_vote, &jury), 0);
    for (int64_t end = 0; !atomic_load(&jury.waits);) {
        assert_true(test_turn(&end));
    }
    pthread_mutex_lock(&job->mutex);
    job->connection.fd = ends[0];
    job->phase = UPLINK_UP;
    pthread_mutex_unlock(&job->mutex);
    bool heard = hears(ends[1], WIRE_FAIL);
    pthread_mutex_lock(&job->mutex);
    worker_end(job, WORKER_FAILED, MUSTER_EFAILED, "the job has failed");
    pthread_mutex_unlock(&job->mutex);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(heard);
    assert_int_equal(jury.r, 0);
    connection_done(&job->connection);
    close(ends[1]);
    close(job->wake_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_every_piece_counts),
        cmocka_unit_test(most_are_right_and_two_that_differ_decide_nothing),
        cmocka_unit_test(the_failure_is_reported_to_a_coordinator_that_was_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
