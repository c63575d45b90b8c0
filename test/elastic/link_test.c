/* The link of a worker to its coordinator: wrong messages are refused, and a coordinator that
 * cannot be reached holds no thread of the user up. The coordinator is a thread of the test, with
 * one connection, that follows a script. */
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "comm/system/deadline.h"
#include "rendezvous/rendezvous.h"
#include "wire/wire.h"

#include <muster/elastic.h>
#include <muster/shards.h>

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FRAME_MAX = 4096, RECORDS = 10, MANY = 300000, TURNS = 40 };

struct speaker {
    char folder[TEST_FOLDER_BYTES];
    char address[TEST_FOLDER_BYTES + 16];
    int listens;
    int fd;
    void (*script)(struct speaker *speaker);
    pthread_t thread;
    uint64_t incarnation; /* of the worker */
    uint8_t frame[FRAME_MAX];
    alignas(max_align_t) uint8_t room[WIRE_ROOM_BYTES(FRAME_MAX)];
    _Atomic bool awaited; /* the worker waits for the coordinator */
    _Atomic bool dropped; /* the worker has ended the connection */
};

/* ---- The coordinator ---- */

/* A check for the coordinator's thread, in which cmocka's assertions cannot be used. */
static void must(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "the speaker: %s\n", what);
        abort();
    }
}

static void wait_until(_Atomic bool *flag)
{
    for (int64_t end = 0; !atomic_load(flag);) {
        must(test_turn(&end), "what it waits for does not come");
    }
}

static void hear(struct speaker *s, enum wire_kind kind, struct wire_message *ret)
{
    struct wire_room room = {.memory = s->room, .size_bytes = sizeof s->room};
    do {
        ssize_t n = recv(s->fd, s->frame, WIRE_LENGTH_BYTES, MSG_WAITALL);
        int64_t count = wire_frame_bytes(s->frame, n > 0 ? (size_t)n : 0, FRAME_MAX, NULL);
        must(count > 0, "no frame has come");
        size_t rest = (size_t)count - WIRE_LENGTH_BYTES;
        n = recv(s->fd, s->frame + WIRE_LENGTH_BYTES, rest, MSG_WAITALL);
        must(n == (ssize_t)rest, "a frame is torn");
        room.used_bytes = 0;
        must(wire_read(s->frame, (size_t)count, &room, ret, NULL) == 0, "a frame is no message");
    } while (ret->kind != kind);
}

static void say(struct speaker *s, struct wire_message m)
{
    uint8_t bytes[FRAME_MAX];
    m.term = 1;
    int64_t count = wire_write(&m, bytes, sizeof bytes, NULL);
    must(count > 0 && count <= FRAME_MAX, "the message is too long");
    must(send(s->fd, bytes, (size_t)count, MSG_NOSIGNAL) == count, "nothing can be sent");
}

static void greet(struct speaker *s)
{
    struct wire_message m;
    struct timeval limit = {.tv_sec = test_limit_ms() / 1000};
    s->fd = accept4(s->listens, NULL, NULL, SOCK_CLOEXEC);
    must(s->fd >= 0, "no worker has come");
    (void)setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    hear(s, WIRE_HELLO, &m);
    s->incarnation = m.hello.incarnation;
    say(s, (struct wire_message){.kind = WIRE_WELCOME,
                                 .welcome = {.version = WIRE_VERSION, .lease_ms = 30000}});
}

static void settle(struct speaker *s, struct wire_dataset spec)
{
    spec.micro_batches = 1;
    say(s, (struct wire_message){.kind = WIRE_DATASET, .dataset = spec});
}

static void greet_member(struct speaker *s)
{
    struct wire_message m;
    greet(s);
    hear(s, WIRE_DATASET, &m);
    settle(s, m.dataset);
}

static void greet_leaser(struct speaker *s)
{
    struct wire_message m;
    greet(s);
    hear(s, WIRE_ENROLL, &m);
    settle(s, m.enroll.dataset);
}

/* Waits until the worker has ended the connection. */
static void see_it_go(struct speaker *s)
{
    while (recv(s->fd, s->frame, sizeof s->frame, 0) > 0) {
    }
    atomic_store(&s->dropped, true);
}

static void *run(void *context)
{
    struct speaker *s = context;
    s->script(s);
    return NULL;
}

static void start(struct speaker *s, void (*script)(struct speaker *speaker))
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *s = (struct speaker){.script = script, .fd = -1};
    test_folder_make(s->folder);
    (void)snprintf(s->address, sizeof s->address, "unix:%s/socket", s->folder);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.90s/socket", s->folder);
    s->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listens, 8), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void stop(struct speaker *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    close(s->fd);
    close(s->listens);
    test_folder_remove(s->folder);
}

/* ---- The worker ---- */

static const char token[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static int is_dropped(void *user)
{
    struct speaker *s = user;
    return atomic_load(&s->dropped);
}

static struct muster_elastic_options member_of(struct speaker *s)
{
    struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    options.coordinator = s->address;
    options.token = token;
    options.host = "127.0.0.1";
    options.records = RECORDS;
    options.epochs = options.batch = 1;
    options.connect_ms = test_limit_ms();
    options.interrupted = is_dropped;
    options.user = s;
    return options;
}

static struct muster_shards_options leaser_of(struct speaker *s)
{
    struct muster_shards_options options = MUSTER_SHARDS_OPTIONS_INIT;
    options.coordinator = s->address;
    options.token = token;
    options.records = RECORDS;
    options.epochs = options.shard = 1;
    options.connect_ms = test_limit_ms();
    options.interrupted = is_dropped;
    options.user = s;
    return options;
}

/* ---- Wrong messages ---- */

static void open_behind_the_last_step(struct speaker *s)
{
    struct wire_message m;
    greet_member(s);
    hear(s, WIRE_JOIN, &m);
    const struct wire_member member = {.incarnation = s->incarnation, .address = m.join.address};
    say(s, (struct wire_message){
               .kind = WIRE_OPEN,
               .open = {.generation = 1, .base = RECORDS + 1, .members = {&member, 1}}});
    see_it_go(s);
}

static void a_generation_behind_the_last_step_is_refused(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic_info info = MUSTER_ELASTIC_INFO_INIT;
    start(&s, open_behind_the_last_step);
    struct muster_elastic_options options = member_of(&s);
    assert_int_equal(muster_elastic_open(&options, &job, &err), 0);
    assert_int_equal(muster_elastic_next(job, &pass, &err), MUSTER_EINTERRUPTED);
    assert_int_equal(muster_elastic_query(job, &info, &err), 0);
    assert_int_equal(info.version, 0);
    muster_elastic_close(job);
    stop(&s);
}

static void lease_what_there_is_not(struct speaker *s)
{
    static const struct shard_range range = {.first = RECORDS, .count = 1};
    struct wire_message m;
    greet_leaser(s);
    hear(s, WIRE_FETCH, &m);
    say(s, (struct wire_message){.kind = WIRE_LEASED, .leased.ranges = {&range, 1}});
    see_it_go(s);
}

static void leases_of_records_beyond_the_data_set_are_refused(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards *shards;
    struct muster_shard shard = MUSTER_SHARD_INIT;
    start(&s, lease_what_there_is_not);
    struct muster_shards_options options = leaser_of(&s);
    assert_int_equal(muster_shards_open(&options, &shards, &err), 0);
    assert_int_equal(muster_shards_fetch(shards, &shard, &err), MUSTER_EINTERRUPTED);
    muster_shards_close(shards);
    stop(&s);
}

/* ---- A slow look-up of the coordinator's name ---- */

/* While is_slow, a look-up lasts until is_answered, at most `most_ms`. */
static struct {
    _Atomic bool is_slow, is_asked, is_answered, is_over;
    int most_ms;
} names;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    bool is_own = strcmp(service, "0") == 0; /* the worker's host */
    bool slow = !is_own && atomic_load(&names.is_slow);
    if (slow) {
        atomic_store(&names.is_asked, true);
        int64_t end_ns = deadline_after_ms(names.most_ms);
        while (deadline_now_ns() < end_ns && !atomic_load(&names.is_answered)) {
            test_let_pass(1);
        }
        atomic_store(&names.is_over, true);
    }
    return __real_getaddrinfo(node, service, hints, ret);
}

/* Listens at a port, so that the worker looks up the name of the coordinator's host. */
static void start_at_port(struct speaker *s, void (*script)(struct speaker *speaker))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    *s = (struct speaker){.script = script, .fd = -1};
    test_folder_make(s->folder);
    s->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listens, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(getsockname(s->listens, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(listen(s->listens, 8), 0);
    (void)snprintf(s->address, sizeof s->address, "tcp:127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void only_greet_a_member(struct speaker *s)
{
    greet_member(s);
    see_it_go(s);
}

static void hang_up_on_a_member(struct speaker *s)
{
    greet_member(s);
    wait_until(&s->awaited);
    (void)shutdown(s->fd, SHUT_RDWR);
}

static void hang_up_on_a_leaser(struct speaker *s)
{
    greet_leaser(s);
    wait_until(&s->awaited);
    (void)shutdown(s->fd, SHUT_RDWR);
}

static void slow_names_down(struct speaker *s)
{
    names.is_asked = names.is_answered = names.is_over = false;
    names.most_ms = test_limit_ms() / 20;
    atomic_store(&names.is_slow, true);
    atomic_store(&s->awaited, true);
    wait_until(&names.is_asked);
}

static void speed_names_up(void)
{
    assert_false(atomic_load(&names.is_over));
    atomic_store(&names.is_answered, true);
    atomic_store(&names.is_slow, false);
}

/* Workers train while the coordinator is away: the user's thread does not wait for the thread that
 * looks the name up. */
static void a_slow_resolver_holds_no_member_up(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    struct muster_elastic_info info = MUSTER_ELASTIC_INFO_INIT;
    start_at_port(&s, hang_up_on_a_member);
    struct muster_elastic_options options = member_of(&s);
    assert_int_equal(muster_elastic_open(&options, &job, &err), 0);
    slow_names_down(&s);
    assert_int_equal(muster_elastic_query(job, &info, &err), 0);
    speed_names_up();
    muster_elastic_close(job);
    stop(&s);
}

static void a_slow_resolver_holds_no_leaser_up(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards *shards;
    struct muster_shards_info info = MUSTER_SHARDS_INFO_INIT;
    start_at_port(&s, hang_up_on_a_leaser);
    struct muster_shards_options options = leaser_of(&s);
    assert_int_equal(muster_shards_open(&options, &shards, &err), 0);
    slow_names_down(&s);
    assert_int_equal(muster_shards_query(shards, &info, &err), 0);
    speed_names_up();
    muster_shards_close(shards);
    stop(&s);
}

/* If the first DNS server does not answer, the resolver asks the next one after five seconds. */
static void after_a_long_look_up_there_is_time_for_a_greeting(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    start_at_port(&s, only_greet_a_member);
    struct muster_elastic_options options = member_of(&s);
    names.most_ms = 5500;
    names.is_answered = false;
    atomic_store(&names.is_slow, true);
    int r = muster_elastic_open(&options, &job, &err);
    atomic_store(&names.is_slow, false);
    assert_int_equal(r, 0);
    muster_elastic_close(job);
    stop(&s);
}

static void hear_the_failure_the_second_time(struct speaker *s)
{
    struct wire_message m;
    hang_up_on_a_member(s);
    close(s->fd);
    greet_member(s);
    hear(s, WIRE_FAIL, &m);
    say(s, (struct wire_message){.kind = WIRE_EXPELLED,
                                 .expelled = {.incarnation = s->incarnation,
                                              .reason = RENDEZVOUS_FAILED,
                                              .why = m.fail.why}});
    see_it_go(s);
}

static int answer(void *user)
{
    (void)user;
    atomic_store(&names.is_answered, true);
    return 0;
}

/* The error must not be lost: another worker would run into it again. */
static void a_failure_waits_for_a_coordinator_that_is_away(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    start_at_port(&s, hear_the_failure_the_second_time);
    struct muster_elastic_options options = member_of(&s);
    options.interrupted = answer;
    assert_int_equal(muster_elastic_open(&options, &job, &err), 0);
    slow_names_down(&s);
    assert_int_equal(muster_elastic_fail(job, "an error of the program", &err), 0);
    atomic_store(&names.is_slow, false);
    assert_int_equal(muster_elastic_next(job, &pass, &err), MUSTER_EFAILED);
    assert_non_null(strstr(err.text, "an error of the program"));
    muster_elastic_close(job);
    stop(&s);
}

/* ---- Hostile arguments ---- */

static void only_greet_a_leaser(struct speaker *s)
{
    greet_leaser(s);
    see_it_go(s);
}

static int is_long_ago(void *user)
{
    int *turns = user;
    return ++*turns > TURNS;
}

/* The worker must not connect again and again to send a message that is too long for a frame. */
static void a_position_that_no_message_can_hold_is_an_error(void **state)
{
    (void)state;
    static struct muster_shards_range ranges[MANY];
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards *shards;
    int turns = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        ranges[i] = (struct muster_shards_range){2 * i, 1};
    }
    start(&s, only_greet_a_leaser);
    struct muster_shards_options options = leaser_of(&s);
    options.records = UINT64_C(2) * MANY;
    options.interrupted = is_long_ago;
    options.user = &turns;
    assert_int_equal(muster_shards_open(&options, &shards, &err), 0);
    const struct muster_shards_position begins = {.to_do = ranges, .to_do_count = MANY};
    assert_int_equal(muster_shards_begin(shards, &begins, &err), MUSTER_ETOOBIG);
    muster_shards_close(shards);
    stop(&s);
}

static void greet_who_waits_as_member(struct speaker *s)
{
    wait_until(&s->awaited);
    greet_member(s);
    see_it_go(s);
}

static void greet_who_waits_as_leaser(struct speaker *s)
{
    wait_until(&s->awaited);
    greet_leaser(s);
    see_it_go(s);
}

static int note_wait(void *user)
{
    struct speaker *s = user;
    atomic_store(&s->awaited, true);
    return 0;
}

static void the_longest_time_to_connect_is_not_over_at_once(void **state)
{
    (void)state;
    struct speaker s;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    struct muster_shards *shards;
    start(&s, greet_who_waits_as_member);
    struct muster_elastic_options member = member_of(&s);
    member.connect_ms = INT64_MAX;
    member.interrupted = note_wait;
    assert_int_equal(muster_elastic_open(&member, &job, &err), 0);
    muster_elastic_close(job);
    stop(&s);
    start(&s, greet_who_waits_as_leaser);
    struct muster_shards_options leaser = leaser_of(&s);
    leaser.connect_ms = INT64_MAX;
    leaser.interrupted = note_wait;
    assert_int_equal(muster_shards_open(&leaser, &shards, &err), 0);
    muster_shards_close(shards);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_behind_the_last_step_is_refused),
        cmocka_unit_test(leases_of_records_beyond_the_data_set_are_refused),
        cmocka_unit_test(a_slow_resolver_holds_no_member_up),
        cmocka_unit_test(a_slow_resolver_holds_no_leaser_up),
        cmocka_unit_test(after_a_long_look_up_there_is_time_for_a_greeting),
        cmocka_unit_test(a_failure_waits_for_a_coordinator_that_is_away),
        cmocka_unit_test(a_position_that_no_message_can_hold_is_an_error),
        cmocka_unit_test(the_longest_time_to_connect_is_not_over_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
