/* The data that other processes send to libmuster: members, hellos, requests of a region's readers,
 * answers of its owners, frames of collectives, and heartbeats.
 *
 * The first byte chooses among them. The other bytes change correct bytes, by exclusive or: with
 * none of them, the data is that of a good peer. No other process is contacted. */
#include "comm/endpoint/arrivals.h"
#include "comm/endpoint/endpoint.h"
#include "comm/region/region.h"
#include "comm/tcp/link.h"
#include "invariant.h"

#include <muster/comm.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    STATE_BYTES = 300,
    PIECE_BYTES = 4096,
    ROUND_TRIPS = 8,
    LIMIT_S = 60,     /* ends a test that hangs; a good peer comes earlier on any machine */
    TIMEOUT_MS = 300, /* for changed data, which may never come */
    ELEMENTS = 40
};

/* The rest of the input. */
struct noise {
    const uint8_t *data;
    size_t size;
};

static void disturb(struct noise *n, void *bytes, size_t count)
{
    for (size_t i = 0; i < count && n->size > 0; i++, n->data++, n->size--) {
        ((uint8_t *)bytes)[i] ^= *n->data;
    }
}

static struct muster_endpoint *endpoints[2];
static struct muster_member members[2];
static struct muster_region *region;
static char state[STATE_BYTES];

static void start(void)
{
    struct muster_err err = MUSTER_ERR_INIT;
    (void)setenv("MUSTER_TRANSPORT", "tcp", 1);
    for (int i = 0; i < 2; i++) {
        invariant(muster_endpoint_open("127.0.0.1", &endpoints[i], &err) == 0, "endpoints",
                  err.text);
        muster_endpoint_member(endpoints[i], &members[i]);
    }
    for (int i = 0; i < STATE_BYTES; i++) {
        state[i] = (char)(i * 7);
    }
    invariant(muster_region_open("127.0.0.1", state, sizeof state, &region, &err) == 0, "a region",
              err.text);
    muster_region_set(region, 4, 17);
}

/* ---- members ---- */

static void try_member(struct noise n)
{
    struct muster_member list[2] = {members[0], members[1]};
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comm = NULL;
    disturb(&n, &list[1], sizeof list[1]);
    if (endpoint_member_ok(&list[1])) {
        struct member m = endpoint_member(&list[1]);
        memcpy(m.address, endpoint_member(&members[1]).address, sizeof m.address);
        m.port = htons(1); /* nobody listens at this port */
        memcpy(&list[1], &m, sizeof m);
    }
    int rc = muster_comm_form(endpoints[0], list, 2, 0, 9, 1, NULL, &comm, &err);
    invariant(rc < 0 && err.text[0], "nobody is met who is not there", err.text);
}

/* ---- hellos ---- */

static int listen_here(struct sockaddr_un *ret, socklen_t *ret_bytes)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    *ret_bytes = sizeof *ret;
    invariant(bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) == 0 && listen(fd, 8) == 0 &&
                  getsockname(fd, (struct sockaddr *)ret, ret_bytes) == 0,
              "a socket listens", "");
    return fd;
}

/* Sends a hello in two pieces; the first byte of the input says where it is cut. */
static void try_hello(struct noise n)
{
    static struct arrivals arrivals;
    struct sockaddr_un at;
    socklen_t at_bytes;
    struct hello hello = {.magic = HELLO_MAGIC, .index = 1, .generation = 3, .digest = 5}, got;
    uint8_t cut = 0;
    disturb(&n, &cut, 1);
    bool all = cut % 3 != 0;
    disturb(&n, &hello, sizeof hello);
    int listening = listen_here(&at, &at_bytes);
    invariant(arrivals_open(&arrivals, &listening, 1, NULL) == 0, "arrivals open", "");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    invariant(connect(fd, (struct sockaddr *)&at, at_bytes) == 0, "one comes", "");
    size_t first = cut % sizeof hello;
    (void)!write(fd, &hello, first);
    int from = arrivals_next(&arrivals, 3, 5, 0, &got, NULL);
    invariant(from == MUSTER_EAGAIN, "half a hello is none", "");
    if (all && write(fd, (char *)&hello + first, sizeof hello - first) > 0) {
        from = arrivals_next(&arrivals, 3, 5, 0, &got, NULL);
    }
    bool ours = all && hello.magic == HELLO_MAGIC && hello.generation == 3 && hello.digest == 5;
    invariant(from >= 0 ? ours && memcmp(&got, &hello, sizeof got) == 0 : !ours,
              "who says hello is let in, and nobody else", "");
    if (from >= 0) {
        close(from);
    }
    close(fd);
    arrivals_close(&arrivals);
    close(listening);
}

/* ---- a region: what readers ask ---- */

static bool receive_all(int fd, void *to, size_t bytes)
{
    return bytes == 0 || recv(fd, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* Receives the place of a piece, for a reader that copies the piece itself. */
static bool receive_place(int fd, size_t bytes)
{
    struct region_place place;
    if (!receive_all(fd, &place, sizeof place)) {
        return false;
    }
    uint64_t first = (uintptr_t)state, last = first + sizeof state;
    invariant(place.pid == getpid() && place.address >= first && place.address + bytes <= last,
              "a place lies in the memory", "");
    return true;
}

static void read_answers(int fd)
{
    struct region_answer a;
    char piece[STATE_BYTES];
    while (receive_all(fd, &a, sizeof a)) {
        invariant(a.magic == REGION_MAGIC && a.bytes <= sizeof piece,
                  "an owner gives what is there", "");
        if (a.in_place && receive_place(fd, a.bytes)) {
            continue;
        }
        if (a.in_place || !receive_all(fd, piece, a.bytes)) {
            return;
        }
        invariant(memmem(state, sizeof state, piece, a.bytes) != NULL, "nothing else is given", "");
        invariant(region_checksum(piece, a.bytes) == a.checksum || a.bytes == 0, "the checksum",
                  "");
    }
}

static void try_asks(struct noise n)
{
    struct muster_member self;
    struct muster_err err = MUSTER_ERR_INIT;
    struct hello hello = {.magic = HELLO_MAGIC, .digest = REGION_DIGEST};
    muster_region_member(region, &self);
    struct member owner = endpoint_member(&self);
    const struct endpoint_wait for_ever = {.deadline_ns = INT64_MAX};
    int fd = endpoint_connect(&owner, false, &hello, &for_ever, &err);
    invariant(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0, "an owner is there", err.text);
    struct timeval limit = {LIMIT_S, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (int i = 0; i < ROUND_TRIPS && (i == 0 || n.size > 0); i++) {
        struct region_ask ask = {.magic = REGION_MAGIC, .offset = 10, .bytes = 20};
        size_t part =
            n.size > 0 && n.size < sizeof ask ? n.size : sizeof ask; /* the last request is torn */
        disturb(&n, &ask, sizeof ask);
        (void)send(fd, &ask, part, MSG_NOSIGNAL);
    }
    (void)shutdown(fd, SHUT_WR);
    read_answers(fd);
    close(fd);
}

/* ---- a region: what owners answer ---- */

static void *answer(void *context)
{
    struct noise *n = context;
    struct hello hello;
    struct region_ask ask;
    int fd = MUSTER_EAGAIN;
    for (int i = 0; i < LIMIT_S * 10 && fd == MUSTER_EAGAIN; i++) {
        fd = arrivals_next(&endpoints[1]->arrivals, 0, REGION_DIGEST, 100, &hello, NULL);
    }
    invariant(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0, "a reader comes", "");
    for (bool more = true; more && receive_all(fd, &ask, sizeof ask);) {
        char piece[PIECE_BYTES] = {0};
        bool whole = ask.bytes <= sizeof state;
        invariant(whole && ask.magic == REGION_MAGIC, "a reader asks for what it wants", "");
        memcpy(piece, state, ask.bytes);
        struct region_answer a = {.magic = REGION_MAGIC,
                                  .shown = 1,
                                  .generation = 4,
                                  .version = 17,
                                  .bytes = ask.bytes,
                                  .checksum = region_checksum(piece, ask.bytes)};
        disturb(n, &a, sizeof a);
        disturb(n, piece, ask.bytes);
        size_t bytes = a.bytes < sizeof piece ? a.bytes : sizeof piece; /* the size that it gives */
        more = send(fd, &a, sizeof a, MSG_NOSIGNAL) == sizeof a &&
               send(fd, piece, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
    }
    close(fd);
    return NULL;
}

static void try_answers(struct noise n)
{
    pthread_t owner;
    char got[STATE_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    bool good = n.size == 0;
    invariant(pthread_create(&owner, NULL, answer, &n) == 0, "a thread", "");
    int64_t timeout_ms = good ? LIMIT_S * 1000 : TIMEOUT_MS;
    int rc = muster_region_read(&members[1], 1, 4, 17, got, sizeof got, timeout_ms, &err);
    pthread_join(owner, NULL);
    invariant(!good || rc == 0, "a good owner is believed", err.text);
    invariant(rc < 0 ? err.text[0] != 0 : memcmp(got, state, sizeof got) == 0,
              "what was read is the state", err.text);
}

/* ---- frames ---- */

static _Thread_local struct noise *frames_noise;

/* Linked in place of sendmsg: changes the frames that the other rank's thread sends. */
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!frames_noise || frames_noise->size == 0) {
        return __real_sendmsg(fd, message, flags);
    }
    static char copy[1 << 16];
    size_t used = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        struct iovec v = message->msg_iov[i];
        size_t fits = v.iov_len < sizeof copy - used ? v.iov_len : sizeof copy - used;
        memcpy(copy + used, v.iov_base, fits);
        used += fits;
    }
    disturb(frames_noise, copy, used);
    struct iovec changed = {copy, used};
    struct msghdr other = *message;
    other.msg_iov = &changed;
    other.msg_iovlen = 1;
    return __real_sendmsg(fd, &other, flags);
}

struct rank {
    int rank;
    uint64_t generation;
    struct noise frames;
    struct noise life;
    int channel;
    bool good; /* the data of both ranks is unchanged */
    int rc;
};

static int reduce(struct muster_comm *comm, struct muster_err *err)
{
    float data[ELEMENTS] = {1};
    int rc = 0;
    for (size_t count = 1; rc == 0 && count <= ELEMENTS; count += ELEMENTS - 1) {
        rc = muster_all_reduce(comm, data, data, count, MUSTER_F32, MUSTER_SUM, err);
    }
    return rc;
}

/* Runs a rank: rank 1 sends changed frames, or sends stray bytes before them. */
static void *be_rank(void *context)
{
    struct rank *r = context;
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_options o = MUSTER_COMM_OPTIONS_INIT;
    o.timeout_ms = r->good ? LIMIT_S * 1000 : TIMEOUT_MS;
    int rc = muster_comm_form(endpoints[r->rank], members, 2, r->rank, r->generation,
                              LIMIT_S * 1000, &o, &comm, &err);
    invariant(rc == 0, "the two meet", err.text);
    if (r->life.size > 0) {
        int fd = comm->peers[1 - r->rank].link->channels[r->channel].fd;
        (void)send(fd, r->life.data, r->life.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    frames_noise = &r->frames;
    r->rc = reduce(comm, &err);
    frames_noise = NULL;
    invariant(r->rc == 0 || err.text[0], "an error has words", "");
    invariant(r->rc == 0 || !r->good, "two good ranks reduce", err.text);
    muster_comm_free(comm);
    return NULL;
}

static void try_world(struct noise frames, struct noise life, int channel)
{
    static uint64_t generation;
    pthread_t thread;
    bool good = frames.size == 0 && life.size == 0;
    generation++;
    struct rank zero = {.generation = generation, .good = good};
    struct rank one = {1, generation, frames, life, channel, good, 0};
    invariant(pthread_create(&thread, NULL, be_rank, &one) == 0, "a thread", "");
    (void)be_rank(&zero);
    pthread_join(thread, NULL);
}

static void try_stray_bytes(struct noise n)
{
    uint8_t channel = 0;
    disturb(&n, &channel, 1);
    try_world((struct noise){0}, n, channel % LINK_CHANNELS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        start();
        started = true;
    }
    if (size == 0 || size > 4096) {
        return 0;
    }
    struct noise n = {data + 1, size - 1};
    switch (data[0] % 8) {
    case 0: try_member(n); break;
    case 1:
    case 2: try_hello(n); break;
    case 3:
    case 4: try_asks(n); break;
    case 5: try_answers(n); break;
    case 6: try_world(n, (struct noise){0}, 0); break;
    case 7: try_stray_bytes(n); break;
    }
    return 0;
}
