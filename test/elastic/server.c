/* See server.h. */
#include "server.h"

#include "base/testing/test_folder.h"
#include "coordinator/arbiter/arbiter.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PEERS = 64, IN_BYTES = 1 << 20, TURN_MS = 100, TOKEN_DIGITS = 2 * WIRE_TOKEN_BYTES };

struct peer {
    int fd; /* -1: no peer */
    uint64_t incarnation;
    uint8_t *in;
    size_t used;
};

struct server {
    char folder[TEST_FOLDER_BYTES];
    char address[TEST_FOLDER_BYTES + 16];
    int listens;
    int bell;
    struct peer peers[PEERS];
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    uint8_t *room;
    pthread_t thread;
    _Atomic bool stops;
    _Atomic bool hangs_up;
    _Atomic bool done;
    _Atomic uint64_t version;
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- The arbiter's messages ---- */

static void send_all(int fd, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = send(fd, bytes, count, MSG_NOSIGNAL);
        if (n <= 0) {
            return; /* the peer is gone, which is noticed when reading from it */
        }
        bytes += n;
        count -= (size_t)n;
    }
}

static void send_to(struct server *s, const struct arbiter_effect *effect)
{
    for (int i = 0; i < PEERS; i++) {
        if (s->peers[i].fd >= 0 && s->peers[i].incarnation == effect->to) {
            send_all(s->peers[i].fd, arbiter_effect_bytes(&s->effects, effect), effect->count);
        }
    }
}

static void tell(struct server *s, struct arbiter_event event)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool syncs = true;
    while (syncs) {
        event.now_ms = now_ms();
        if (arbiter_step(s->arbiter, &event, &s->effects, &err) < 0) {
            fail_msg("%s", err.text);
        }
        syncs = false;
        for (size_t i = 0; i < s->effects.count; i++) {
            const struct arbiter_effect *effect = &s->effects.list[i];
            if (effect->kind == ARBITER_SEND) {
                send_to(s, effect);
            }
            syncs = syncs || effect->kind == ARBITER_SYNC;
            if (effect->kind == ARBITER_END) {
                atomic_store(&s->done, true);
            }
        }
        event = (struct arbiter_event){.kind = ARBITER_DURABLE};
    }
    atomic_store(&s->version, arbiter_version(s->arbiter));
}

/* ---- The members' messages ---- */

static void hang_up(struct server *s, struct peer *peer, bool dead)
{
    uint64_t incarnation = peer->incarnation;
    close(peer->fd);
    peer->fd = -1;
    peer->incarnation = 0;
    if (incarnation != 0) {
        tell(s, (struct arbiter_event){.kind = ARBITER_DISCONNECTED, .incarnation = incarnation});
    }
    if (incarnation != 0 && dead) {
        tell(s, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = incarnation});
    }
}

static void say(struct peer *peer, const struct wire_message *message)
{
    uint8_t bytes[256];
    int64_t count = wire_write(message, bytes, sizeof bytes, NULL);
    assert_true(count > 0);
    send_all(peer->fd, bytes, (size_t)count);
}

static void greet(struct server *s, struct peer *peer, const struct wire_message *m)
{
    static const uint8_t zero[WIRE_TOKEN_BYTES];
    assert_int_equal(m->kind, WIRE_HELLO);
    if (memcmp(m->hello.token, zero, sizeof zero) != 0) {
        say(peer, &(struct wire_message){.kind = WIRE_REFUSED, .refused.why = {"the token", 9}});
        return;
    }
    peer->incarnation = m->hello.incarnation;
    say(peer, &(struct wire_message){.kind = WIRE_WELCOME,
                                     .term = arbiter_term(s->arbiter),
                                     .welcome = {WIRE_VERSION, SHARD_LEASE_MS}});
}

/* Returns false if there is no complete frame. */
static bool take_frame(struct server *s, struct peer *peer)
{
    struct wire_room room = {.memory = s->room, .size_bytes = 2 * (size_t)IN_BYTES};
    struct wire_message message;
    int64_t count = wire_frame_bytes(peer->in, peer->used, IN_BYTES, NULL);
    if (peer->fd < 0 || count <= 0 || (size_t)count > peer->used) {
        return false;
    }
    assert_int_equal(wire_read(peer->in, (size_t)count, &room, &message, NULL), 0);
    if (peer->incarnation == 0) {
        greet(s, peer, &message);
    } else {
        tell(s, (struct arbiter_event){.kind = ARBITER_MESSAGE,
                                       .incarnation = peer->incarnation,
                                       .message = &message});
    }
    peer->used -= (size_t)count;
    memmove(peer->in, peer->in + count, peer->used);
    return true;
}

static void listen_to(struct server *s, struct peer *peer)
{
    ssize_t n = recv(peer->fd, peer->in + peer->used, IN_BYTES - peer->used, 0);
    if (n <= 0) {
        hang_up(s, peer, true);
        return;
    }
    peer->used += (size_t)n;
    while (take_frame(s, peer)) {
    }
}

static void welcome(struct server *s)
{
    for (int i = 0; i < PEERS; i++) {
        struct peer *peer = &s->peers[i];
        if (peer->fd < 0) {
            peer->fd = accept4(s->listens, NULL, NULL, SOCK_CLOEXEC);
            peer->used = 0;
            peer->in = peer->in ? peer->in : malloc(IN_BYTES);
            assert_non_null(peer->in);
            return;
        }
    }
}

/* ---- The thread ---- */

static void hang_up_on_all(struct server *s, bool dead)
{
    for (int i = 0; i < PEERS; i++) {
        if (s->peers[i].fd >= 0) {
            hang_up(s, &s->peers[i], dead);
        }
    }
}

static void *run(void *context)
{
    struct server *s = context;
    while (!atomic_load(&s->stops)) {
        struct pollfd fds[PEERS + 2] = {{.fd = s->listens, .events = POLLIN},
                                        {.fd = s->bell, .events = POLLIN}};
        for (int i = 0; i < PEERS; i++) {
            fds[2 + i] = (struct pollfd){.fd = s->peers[i].fd, .events = POLLIN};
        }
        int64_t left_ms = arbiter_next_ms(s->arbiter) - now_ms();
        (void)poll(fds, PEERS + 2, left_ms < 0 ? 0 : left_ms > TURN_MS ? TURN_MS : (int)left_ms);
        for (int i = 0; i < PEERS; i++) {
            if (fds[2 + i].revents) {
                listen_to(s, &s->peers[i]);
            }
        }
        if (fds[0].revents) {
            welcome(s);
        }
        if (atomic_exchange(&s->hangs_up, false)) {
            hang_up_on_all(s, false);
        }
        if (now_ms() >= arbiter_next_ms(s->arbiter)) {
            tell(s, (struct arbiter_event){.kind = ARBITER_TICK});
        }
    }
    return NULL;
}

static void ring(const struct server *s)
{
    uint64_t one = 1;
    assert_int_equal(write(s->bell, &one, sizeof one), sizeof one);
}

static void listen_at(struct server *s)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    test_folder_make(s->folder);
    (void)snprintf(s->address, sizeof s->address, "unix:%s/socket", s->folder);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s/socket", s->folder);
    s->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listens, (const struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(listen(s->listens, PEERS), 0);
}

struct server *server_start(const struct server_options *options)
{
    struct server *s = calloc(1, sizeof *s);
    const struct arbiter_options arbiter = {
        .sizes = {options->min_size, options->max_size, options->first_size},
        .peers = PEERS,
        .lease_ms = SHARD_LEASE_MS,
        .first_ms = SHARD_LEASE_MS};
    assert_non_null(s);
    for (int i = 0; i < PEERS; i++) {
        s->peers[i].fd = -1;
    }
    listen_at(s);
    s->room = malloc(2 * (size_t)IN_BYTES);
    s->bell = eventfd(0, EFD_CLOEXEC);
    arbiter_effects_init(&s->effects);
    assert_int_equal(arbiter_new(&arbiter, &s->arbiter, NULL), 0);
    tell(s, (struct arbiter_event){.kind = ARBITER_START});
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

void server_stop(struct server *s)
{
    atomic_store(&s->stops, true);
    ring(s);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < PEERS; i++) {
        if (s->peers[i].fd >= 0) {
            close(s->peers[i].fd);
        }
        free(s->peers[i].in);
    }
    close(s->listens);
    close(s->bell);
    test_folder_remove(s->folder);
    arbiter_free(s->arbiter);
    arbiter_effects_done(&s->effects);
    free(s->room);
    free(s);
}

const char *server_address(const struct server *s)
{
    return s->address;
}

const char *server_token(void)
{
    static char token[TOKEN_DIGITS + 1];
    memset(token, '0', TOKEN_DIGITS);
    return token;
}

uint64_t server_version(const struct server *s)
{
    return atomic_load(&s->version);
}

int server_is_done(const struct server *s)
{
    return atomic_load(&s->done);
}

void server_hang_up(struct server *s)
{
    atomic_store(&s->hangs_up, true);
    ring(s);
}
