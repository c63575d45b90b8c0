/* Checks that a region is read completely and of one version, or not at all. */
#include "comm/region/region.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "comm/system/remote_read_test.h"

#include <muster/comm.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct endpoint_wait for_ever = {.deadline_ns = INT64_MAX};

/* Two threads read BYTES, one reads FEW_BYTES. */
enum { BYTES = 5000001, FEW_BYTES = 4000000, OWNERS = 3, QUEUE = 4 };

static bool threads_refused;

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context);

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context)
{
    return threads_refused ? EAGAIN : __real_pthread_create(ret, attributes, run, context);
}

struct owners {
    char *state[OWNERS];
    struct muster_region *regions[OWNERS];
    struct muster_member members[OWNERS];
    char *read;
};

static int set_up(void **ret)
{
    struct owners *o = calloc(1, sizeof *o);
    o->read = malloc(BYTES);
    for (int i = 0; i < OWNERS; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        o->state[i] = malloc(BYTES);
        for (int b = 0; b < BYTES; b++) {
            o->state[i][b] = (char)(b * 7 + b / 251);
        }
        assert_int_equal(muster_region_open("127.0.0.1", o->state[i], BYTES, &o->regions[i], &err),
                         0);
        muster_region_member(o->regions[i], &o->members[i]);
        muster_region_set(o->regions[i], 4, 17);
    }
    *ret = o;
    return 0;
}

static int tear_down(void **state)
{
    struct owners *o = *state;
    for (int i = 0; i < OWNERS; i++) {
        muster_region_close(o->regions[i]);
        free(o->state[i]);
    }
    free(o->read);
    free(o);
    return 0;
}

static int read_bytes(struct owners *o, uint64_t version, size_t bytes, struct muster_err *err)
{
    return muster_region_read(o->members, OWNERS, 4, version, o->read, bytes, test_limit_ms(), err);
}

static int read_all(struct owners *o, uint64_t version, struct muster_err *err)
{
    return read_bytes(o, version, BYTES, err);
}

static void pieces_come_from_all_owners(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(read_all(o, 17, &err), 0);
    assert_memory_equal(o->read, o->state[0], BYTES);
    assert_int_equal(muster_region_read(o->members, 1, 4, 17, o->read, 10, INT64_MAX, &err), 0);
}

static void one_owner_has_two_connections(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = muster_region_read(o->members, 1, 4, 17, o->read, BYTES, test_limit_ms(), &err);
    assert_int_equal(r, 0);
    assert_memory_equal(o->read, o->state[0], BYTES);
}

static void without_another_thread_the_callers_reads_all(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    threads_refused = true;
    int r = read_all(o, 17, &err);
    threads_refused = false;
    assert_int_equal(r, 0);
    assert_memory_equal(o->read, o->state[0], BYTES);
}

static void another_version_is_a_conflict(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(read_all(o, 18, &err), MUSTER_ECONFLICT);
    muster_region_set(o->regions[1], 4, 18);
    assert_int_equal(read_all(o, 17, &err), MUSTER_ECONFLICT);
    muster_region_set(o->regions[1], 4, 17);
    muster_region_hide(o->regions[2]);
    assert_int_equal(read_all(o, 17, &err), MUSTER_ECONFLICT);
    assert_non_null(strstr(err.text, "owner 2"));
}

static void a_closed_owner_is_named(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_region_close(o->regions[1]);
    o->regions[1] = NULL;
    assert_int_equal(read_all(o, 17, &err), MUSTER_EPEERDEAD);
    assert_int_equal(err.rank, 1);
}

/* The child of a process with threads reads with one thread, because the sanitizers allow no second
 * thread in it. */
static void a_process_outside_reads(void **state)
{
    struct owners *o = *state;
    pid_t pid = fork();
    if (pid == 0) {
        struct muster_err err = MUSTER_ERR_INIT;
        int r = read_bytes(o, 17, FEW_BYTES, &err);
        _exit(r < 0 || memcmp(o->read, o->state[0], FEW_BYTES) != 0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- pieces that the reader copies out of the owners' memory ---- */

/* If a copy from an owner's memory fails, all later pieces of this owner come through the
 * connection, and all bytes are correct. */
static void a_place_that_is_of_no_use_costs_no_byte(void **state)
{
    static const struct {
        int read, code;
        size_t missing_bytes;
    } table[] = {
        {1, EPERM, 0}, {1, ENOSYS, 0}, {2, ESRCH, 0}, {3, EFAULT, 0},
        {1, 0, 0},     {4, 0, 0},      {0, 0, 1000}, /* all reads are too short */
    };
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    remote_reads_begin(0, 0);
    assert_int_equal(read_bytes(o, 17, FEW_BYTES, &err), 0);
    int all = remote_reads.count;
    assert_true(all >= FEW_BYTES / REGION_PIECE_BYTES);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        remote_reads_begin(table[i].read, table[i].code);
        remote_reads.missing_bytes = table[i].missing_bytes;
        memset(o->read, 0, BYTES);
        assert_int_equal(read_bytes(o, 17, FEW_BYTES, &err), 0);
        assert_memory_equal(o->read, o->state[0], FEW_BYTES);
        assert_true(remote_reads.count >= table[i].read && remote_reads.count < all);
    }
    remote_reads_begin(0, 0);
    remote_reads.missing_bytes = 0;
}

/* The process ids of an owner on another host are not used, so all data comes through the
 * connection. */
static void of_an_owner_elsewhere_the_connection_brings_all(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_region *region;
    struct muster_member member;
    char memory[] = "elsewhere", read[sizeof memory] = {0};
    assert_int_equal(setenv("MUSTER_TRANSPORT", "tcp", 1), 0);
    assert_int_equal(muster_region_open("127.0.0.1", memory, sizeof memory, &region, &err), 0);
    assert_int_equal(unsetenv("MUSTER_TRANSPORT"), 0);
    muster_region_set(region, 4, 17);
    muster_region_member(region, &member);
    remote_reads_begin(0, 0);
    assert_int_equal(
        muster_region_read(&member, 1, 4, 17, read, sizeof read, test_limit_ms(), &err), 0);
    assert_string_equal(read, memory);
    assert_int_equal(remote_reads.count, 0);
    muster_region_close(region);
}

/* That this process has no descriptor left says nothing about the owners. */
static void without_descriptors_no_owner_is_blamed(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = read_all(o, 17, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, MUSTER_EOS);
    assert_non_null(strstr(err.text, "ulimit"));
}

/* A forked child may clean up when it ends, but it does not own its parent's region. */
static void a_forked_child_closes_nothing(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    pid_t pid = fork();
    if (pid == 0) {
        test_alarm();
        muster_region_close(o->regions[0]);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read_all(o, 17, &err), 0);
}

/* ---- pieces ---- */

enum { ODD_PIECES = 2000 };

/* Cuts memory into odd pieces of 0 to 4,999 bytes, so that each request spans many. */
static size_t cut(char *memory, struct muster_elastic_piece *ret, size_t factor)
{
    size_t used = 0;
    for (size_t i = 0; i < ODD_PIECES; i++) {
        ret[i] = (struct muster_elastic_piece){memory + used, i * factor % 5000};
        used += ret[i].size_bytes;
    }
    return used;
}

static struct region_read read_of_one(const struct muster_member *owner,
                                      const struct muster_elastic_piece *pieces, size_t num)
{
    return (struct region_read){.owners = owner,
                                .num_owners = 1,
                                .generation = 4,
                                .version = 17,
                                .pieces = pieces,
                                .num_pieces = num,
                                .timeout_ms = test_limit_ms()};
}

static int read_cut(struct owners *o, const struct muster_elastic_piece *pieces, size_t num,
                    struct muster_err *err)
{
    const struct region_read read = read_of_one(o->members, pieces, num);
    return region_read_pieces(&read, err);
}

static void pieces_are_one_row_of_bytes(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    static struct muster_elastic_piece theirs[ODD_PIECES], ours[2];
    size_t bytes = cut(o->state[0], theirs, 7);
    assert_true(bytes > 2 * REGION_PIECE_BYTES && bytes < BYTES);
    muster_region_hide(o->regions[0]);
    assert_int_equal(region_set_pieces(o->regions[0], theirs, ODD_PIECES, &err), 0);
    muster_region_set(o->regions[0], 4, 17);
    ours[0] = (struct muster_elastic_piece){o->read, 12345};
    ours[1] = (struct muster_elastic_piece){o->read + 12345, bytes - 12345};
    memset(o->read, 1, BYTES);
    assert_int_equal(read_cut(o, ours, 2, &err), 0);
    assert_memory_equal(o->read, o->state[0], bytes);
    assert_int_equal(o->read[bytes], 1); /* nothing is written beyond */
    memset(o->read, 1, BYTES);
    (void)cut(o->read, theirs, 7); /* many pieces on both sides */
    assert_int_equal(read_cut(o, theirs, ODD_PIECES, &err), 0);
    assert_memory_equal(o->read, o->state[0], bytes);
}

static void bytes_without_memory_are_refused(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_region *region = NULL;
    assert_int_equal(muster_region_open("127.0.0.1", NULL, 8, &region, &err), MUSTER_EINVAL);
    assert_int_equal(muster_region_open("127.0.0.1", NULL, 0, &region, &err), 0);
    muster_region_close(region);
}

static void another_size_is_said(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic_piece piece = {o->read, BYTES - 1};
    assert_int_equal(read_cut(o, &piece, 1, &err), MUSTER_EMISMATCH);
    assert_non_null(strstr(err.text, "5000001 bytes"));
    piece.size_bytes = BYTES + 1;
    assert_int_equal(read_cut(o, &piece, 1, &err), MUSTER_EMISMATCH);
    piece.size_bytes = 0;
    assert_int_equal(read_cut(o, &piece, 1, &err), MUSTER_EMISMATCH);
}

static int enough(void *context)
{
    return *(int *)context;
}

/* The owner does not answer: no thread serves its listening socket. */
static void a_read_can_be_interrupted(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *silent;
    struct muster_member member;
    struct muster_elastic_piece piece = {o->read, BYTES};
    int yes = 1;
    assert_int_equal(muster_endpoint_open("127.0.0.1", &silent, &err), 0);
    muster_endpoint_member(silent, &member);
    struct region_read read = read_of_one(&member, &piece, 1);
    read.timeout_ms = INT64_MAX;
    read.interrupted = enough;
    read.context = &yes;
    assert_int_equal(region_read_pieces(&read, &err), MUSTER_EINTERRUPTED);
    muster_endpoint_close(silent);
}

/* Fills the queue of a listening socket, so that the kernel drops the requests of other clients, as
 * if the host could not be reached. */
static void fill_queue(struct muster_endpoint *endpoint, const struct muster_member *address,
                       int ret_fds[QUEUE])
{
    struct member member = endpoint_member(address);
    assert_int_equal(listen(endpoint->tcp_fd, 0), 0);
    for (int i = 0; i < QUEUE; i++) {
        ret_fds[i] = endpoint_begin(&member, false);
        assert_true(ret_fds[i] >= 0);
    }
}

static void a_read_can_be_interrupted_while_it_connects(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *far;
    struct muster_member member;
    struct muster_elastic_piece piece = {o->read, BYTES};
    int yes = 1, fds[QUEUE];
    assert_int_equal(muster_endpoint_open("127.0.0.1", &far, &err), 0);
    muster_endpoint_member(far, &member);
    fill_queue(far, &member, fds);
    struct region_read read = read_of_one(&member, &piece, 1);
    read.timeout_ms = INT64_MAX;
    read.interrupted = enough;
    read.context = &yes;
    assert_int_equal(region_read_pieces(&read, &err), MUSTER_EINTERRUPTED);
    read.interrupted = NULL;
    read.timeout_ms = 100;
    assert_int_equal(region_read_pieces(&read, &err), MUSTER_EPEERDEAD);
    for (int i = 0; i < QUEUE; i++) {
        close(fds[i]);
    }
    muster_endpoint_close(far);
}

struct partly_silent {
    struct muster_member owners[2]; /* the second one does not answer */
    struct muster_endpoint *endpoint;
    struct muster_elastic_piece piece;
};

static struct region_read read_partly_silent(struct owners *o, struct partly_silent *p)
{
    struct muster_err err = MUSTER_ERR_INIT;
    memset(o->read, 0, BYTES);
    memset(o->state[0], 1, BYTES);
    p->owners[0] = o->members[0];
    p->piece = (struct muster_elastic_piece){o->read, BYTES};
    assert_int_equal(muster_endpoint_open("127.0.0.1", &p->endpoint, &err), 0);
    muster_endpoint_member(p->endpoint, &p->owners[1]);
    return (struct region_read){.owners = p->owners,
                                .num_owners = 2,
                                .generation = 4,
                                .version = 17,
                                .pieces = &p->piece,
                                .num_pieces = 1,
                                .timeout_ms = test_limit_ms()};
}

/* Returns whether at most one piece is missing: the one that the silent owner was asked for. */
static int is_all_but_one_read(void *context)
{
    const volatile char *read = context;
    int missing = 0;
    for (int first = 0; first < BYTES; first += REGION_PIECE_BYTES) {
        int end = first + REGION_PIECE_BYTES < BYTES ? first + REGION_PIECE_BYTES : BYTES;
        missing += read[end - 1] == 0;
    }
    return missing <= 1;
}

/* The caller's thread has read all other pieces when the user interrupts the read: it waits only
 * for the other thread. */
static void a_read_can_be_interrupted_while_the_other_thread_waits(void **state)
{
    struct owners *o = *state;
    struct partly_silent p;
    struct muster_err err = MUSTER_ERR_INIT;
    struct region_read read = read_partly_silent(o, &p);
    read.interrupted = is_all_but_one_read;
    read.context = o->read;
    assert_int_equal(region_read_pieces(&read, &err), MUSTER_EINTERRUPTED);
    muster_endpoint_close(p.endpoint);
}

static void the_owner_that_the_other_thread_waited_for_is_named(void **state)
{
    struct partly_silent p;
    struct muster_err err = MUSTER_ERR_INIT;
    struct region_read read = read_partly_silent(*state, &p);
    read.timeout_ms = 100;
    assert_int_equal(region_read_pieces(&read, &err), MUSTER_ETIMEDOUT);
    assert_non_null(strstr(err.text, "owner 1"));
    muster_endpoint_close(p.endpoint);
}

/* ---- readers that wait ---- */

static int connect_as_reader(const struct muster_member *owner)
{
    struct hello hello = {.magic = HELLO_MAGIC, .digest = REGION_DIGEST};
    struct member member = endpoint_member(owner);
    struct muster_err err = MUSTER_ERR_INIT;
    int fd = endpoint_connect(&member, false, &hello, &for_ever, &err);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0); /* blocking */
    return fd;
}

static void receive_all(int fd, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(fd, (char *)to + done, bytes - done, 0);
        assert_true(n > 0);
        done += (size_t)n;
    }
}

/* A hundred other ranks read from the only owner at the same time, as after a restore, each with
 * two connections. */
static void a_hundred_ranks_can_read_from_one_owner(void **state)
{
    enum { OTHERS = 200 };
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    static int fds[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        fds[i] = connect_as_reader(&o->members[0]);
    }
    assert_int_equal(
        muster_region_read(o->members, 1, 4, 17, o->read, BYTES, test_limit_ms(), &err), 0);
    for (int i = 0; i < OTHERS; i++) {
        struct region_ask ask = {.magic = REGION_MAGIC};
        struct region_answer answer;
        assert_int_equal(send(fds[i], &ask, sizeof ask, MSG_NOSIGNAL), sizeof ask);
        receive_all(fds[i], &answer, sizeof answer);
        close(fds[i]);
    }
}

/* The reader asks for more than sockets can hold and receives nothing, like a reader that waits for
 * another owner. Other readers do not wait for it, and it is not disconnected. */
static void a_reader_that_waits_holds_nobody_up(void **state)
{
    enum { ASKS = 24 };
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct region_ask ask = {.magic = REGION_MAGIC, .bytes = REGION_PIECE_BYTES};
    int fd = connect_as_reader(&o->members[0]);
    for (int i = 0; i < ASKS; i++) {
        assert_int_equal(send(fd, &ask, sizeof ask, 0), sizeof ask);
    }
    assert_int_equal(read_all(o, 17, &err), 0);
    for (int i = 0; i < ASKS; i++) {
        struct region_answer answer;
        receive_all(fd, &answer, sizeof answer);
        assert_int_equal(answer.bytes, REGION_PIECE_BYTES);
        receive_all(fd, o->read, REGION_PIECE_BYTES);
    }
    close(fd);
}

/* ---- questions ---- */

enum { STAMPED = 2 };

struct stamped {
    struct muster_endpoint *endpoints[STAMPED];
    char byte; /* the region's contents */
};

static int accept_reader(struct muster_endpoint *endpoint)
{
    struct hello hello;
    int fd = MUSTER_EAGAIN;
    for (int64_t end = 0; fd == MUSTER_EAGAIN && test_turn(&end);) {
        fd = arrivals_next(&endpoint->arrivals, 0, REGION_DIGEST, 0, &hello, NULL);
    }
    return fd >= 0 && fcntl(fd, F_SETFL, 0) == 0 ? fd : -1; /* blocking */
}

static bool hear_question(int fd, struct region_ask *ret)
{
    return recv(fd, ret, sizeof *ret, MSG_WAITALL) == sizeof *ret;
}

static bool answer_question(int fd, const struct region_ask *ask, const char *state)
{
    const struct region_answer answer = {.magic = REGION_MAGIC,
                                         .shown = 1,
                                         .generation = 4,
                                         .version = 17,
                                         .bytes = ask->bytes,
                                         .checksum = region_checksum(state, (size_t)ask->bytes),
                                         .all_bytes = 1};
    return send(fd, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer &&
           send(fd, state, (size_t)ask->bytes, MSG_NOSIGNAL) == (ssize_t)ask->bytes;
}

/* Serves both owners; the first one has the only piece. It answers the last questions, for the
 * stamps, only when both owners have been asked. */
static void *wait_for_both_questions(void *context)
{
    const struct stamped *s = context;
    struct region_ask ask = {0};
    int fds[] = {accept_reader(s->endpoints[0]), accept_reader(s->endpoints[1])};
    bool good = hear_question(fds[0], &ask) && answer_question(fds[0], &ask, &s->byte);
    good = good && hear_question(fds[0], &ask) && hear_question(fds[1], &ask);
    for (int i = 0; i < STAMPED; i++) {
        good = good && answer_question(fds[i], &ask, &s->byte);
        close(fds[i]);
    }
    return NULL;
}

static void stamps_are_asked_for_together(void **state)
{
    struct stamped s = {.byte = 9};
    struct muster_member members[STAMPED];
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_t thread;
    char read = 0;
    (void)state;
    for (int i = 0; i < STAMPED; i++) {
        assert_int_equal(muster_endpoint_open("127.0.0.1", &s.endpoints[i], &err), 0);
        muster_endpoint_member(s.endpoints[i], &members[i]);
    }
    assert_int_equal(pthread_create(&thread, NULL, wait_for_both_questions, &s), 0);
    int r = muster_region_read(members, STAMPED, 4, 17, &read, 1, test_limit_ms(), &err);
    pthread_join(thread, NULL);
    for (int i = 0; i < STAMPED; i++) {
        muster_endpoint_close(s.endpoints[i]);
    }
    assert_int_equal(r, 0);
    assert_int_equal(read, s.byte);
}

/* ---- versions ---- */

enum { TWO_PIECES = 2 * REGION_PIECE_BYTES };

struct reading {
    struct muster_member owners[2];
    char *to;
    int result;
    struct muster_err err;
};

static void *read_two_pieces(void *context)
{
    struct reading *reading = context;
    reading->result = muster_region_read(reading->owners, 2, 4, 17, reading->to, TWO_PIECES,
                                         test_limit_ms(), &reading->err);
    return NULL;
}

__attribute__((no_sanitize("thread"))) static void wait_until_written(const volatile char *at)
{
    for (int64_t end = 0; !*at;) {
        assert_true(test_turn(&end));
    }
}

/* This test is the second owner. It answers only after the first owner's piece has been read and
 * the first owner has shown its memory again, as the same version. */
static void the_same_version_again_is_another(void **state)
{
    struct owners *o = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *second;
    struct reading reading = {
        .owners = {o->members[0]}, .to = calloc(1, TWO_PIECES), .err = MUSTER_ERR_INIT};
    assert_int_equal(muster_endpoint_open("127.0.0.1", &second, &err), 0);
    muster_endpoint_member(second, &reading.owners[1]);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_two_pieces, &reading), 0);
    struct hello hello;
    int fd = MUSTER_EAGAIN;
    while (fd == MUSTER_EAGAIN) {
        fd = arrivals_next(&second->arrivals, 0, REGION_DIGEST, test_limit_ms(), &hello, &err);
    }
    assert_true(fd >= 0);
    wait_until_written(&reading.to[REGION_PIECE_BYTES - 1]);
    muster_region_hide(o->regions[0]);
    muster_region_set(o->regions[0], 4, 17);
    struct region_answer answer = {.magic = REGION_MAGIC,
                                   .shown = 1,
                                   .generation = 4,
                                   .version = 17,
                                   .bytes = REGION_PIECE_BYTES,
                                   .checksum = region_checksum(o->state[0], REGION_PIECE_BYTES)};
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    assert_int_equal(send(fd, &answer, sizeof answer, 0), sizeof answer);
    assert_int_equal(send(fd, o->state[0], REGION_PIECE_BYTES, 0), REGION_PIECE_BYTES);
    answer.bytes = 0; /* the answer to the question at the end */
    answer.checksum = region_checksum(o->state[0], 0);
    assert_int_equal(send(fd, &answer, sizeof answer, MSG_NOSIGNAL), sizeof answer);
    pthread_join(thread, NULL);
    assert_int_equal(reading.result, MUSTER_ECONFLICT);
    assert_non_null(strstr(reading.err.text, "owner 0"));
    close(fd);
    muster_endpoint_close(second);
    free(reading.to);
}

/* ---- an owner that dies ---- */

/* Sends its member. When it is told to, it forks a child and sends the child's process id. */
static void own_and_have_a_child(int from, int to)
{
    static char memory[100], byte;
    struct muster_region *region;
    struct muster_member member;
    test_alarm();
    if (muster_region_open("127.0.0.1", memory, sizeof memory, &region, NULL) < 0) {
        _exit(1);
    }
    muster_region_set(region, 4, 17);
    muster_region_member(region, &member);
    pid_t child = write(to, &member, sizeof member) > 0 && read(from, &byte, 1) == 1 ? fork() : -1;
    if (child > 0) {
        (void)!write(to, &child, sizeof child);
    }
    (void)pause();
    _exit(0);
}

/* The child may be a worker that loads data: the descriptors that it inherits must not look as if
 * its parent were alive. */
static void a_dead_owner_is_named_though_its_child_lives(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_member member;
    struct timeval patience = {test_limit_ms() / 1000, 0};
    char byte = 0;
    int down[2], up[2];
    pid_t child, owner;
    assert_true(pipe(down) == 0 && pipe(up) == 0);
    if ((owner = fork()) == 0) {
        own_and_have_a_child(down[0], up[1]);
    }
    assert_int_equal(read(up[0], &member, sizeof member), sizeof member);
    int fd = connect_as_reader(&member);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(muster_region_read(&member, 1, 4, 17, &byte, 1, test_limit_ms(), &err), 0);
    assert_int_equal(write(down[1], &byte, 1), 1);
    assert_int_equal(read(up[0], &child, sizeof child), sizeof child);
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    assert_int_equal(muster_region_read(&member, 1, 4, 17, &byte, 1, test_limit_ms(), &err),
                     MUSTER_EPEERDEAD);
    assert_int_equal(kill(child, SIGKILL), 0);
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(down[i]);
        close(up[i]);
    }
}

/* ---- owners that train while they are read ---- */

enum { READS = 40 };

struct training {
    struct owners *owners;
    _Atomic uint64_t version;
    _Atomic int over;
};

/* Readers may see the change while they read, and must not accept the data, so this race is
 * intended.
 */
__attribute__((no_sanitize("thread"))) static void overwrite(volatile char *memory, char value)
{
    for (int b = 0; b < BYTES; b++) {
        memory[b] = value;
    }
}

/* Fills the memory with another byte for each version. Later versions are kept longer, so that in
 * the end even a slow machine reads a whole version. */
static void *train(void *context)
{
    struct training *t = context;
    for (uint64_t version = 18; !atomic_load(&t->over); version++) {
        for (int i = 0; i < OWNERS; i++) {
            muster_region_hide(t->owners->regions[i]);
            overwrite(t->owners->state[i], (char)version);
            muster_region_set(t->owners->regions[i], 4, version);
        }
        atomic_store(&t->version, version);
        test_let_pass((int64_t)(version % 8 * (20 + version / 4)));
    }
    return NULL;
}

static void a_read_is_of_one_version(void **state)
{
    struct owners *o = *state;
    struct training t = {.owners = o};
    pthread_t thread;
    int good = 0;
    assert_int_equal(pthread_create(&thread, NULL, train, &t), 0);
    for (int turn = 0; turn < READS || good == 0; turn++) {
        struct muster_err err = MUSTER_ERR_INIT;
        uint64_t version = atomic_load(&t.version);
        int r = read_all(o, version, &err);
        assert_true(r == 0 || r == MUSTER_ECONFLICT);
        if (r == 0) { /* all bytes are equal */
            assert_true(o->read[0] == (char)version);
            assert_memory_equal(o->read + 1, o->read, BYTES - 1);
            good++;
        }
    }
    atomic_store(&t.over, 1);
    pthread_join(thread, NULL);
}

/* The checksum must not change, because files of checkpoints contain it. */
static void a_checksum_stays_what_it_is(void **state)
{
    char data[77];
    for (int i = 0; i < 77; i++) {
        data[i] = (char)(i * 7);
    }
    assert_true(region_checksum(data, sizeof data) == UINT64_C(0xce01d8bbb9ab25a8));
    (void)state;
}

static void every_bit_changes_the_checksum(void **state)
{
    char data[77] = {0};
    uint64_t before = region_checksum(data, sizeof data);
    for (int bit = 0; bit < 8 * 77; bit++) {
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        assert_true(region_checksum(data, sizeof data) != before);
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checksum_stays_what_it_is),
        cmocka_unit_test(every_bit_changes_the_checksum),
        cmocka_unit_test_setup_teardown(pieces_come_from_all_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_owner_has_two_connections, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_another_thread_the_callers_reads_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_version_is_a_conflict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_owner_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_outside_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_place_that_is_of_no_use_costs_no_byte, set_up, tear_down),
        cmocka_unit_test(of_an_owner_elsewhere_the_connection_brings_all),
        cmocka_unit_test_setup_teardown(without_descriptors_no_owner_is_blamed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forked_child_closes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_are_one_row_of_bytes, set_up, tear_down),
        cmocka_unit_test(bytes_without_memory_are_refused),
        cmocka_unit_test_setup_teardown(another_size_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_can_be_interrupted_while_it_connects, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_hundred_ranks_can_read_from_one_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_can_be_interrupted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_can_be_interrupted_while_the_other_thread_waits,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_owner_that_the_other_thread_waited_for_is_named, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_waits_holds_nobody_up, set_up, tear_down),
        cmocka_unit_test(stamps_are_asked_for_together),
        cmocka_unit_test_setup_teardown(the_same_version_again_is_another, set_up, tear_down),
        cmocka_unit_test(a_dead_owner_is_named_though_its_child_lives),
        cmocka_unit_test_setup_teardown(a_read_is_of_one_version, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
