/* Rounds of collectives between hosts. Layer: comm; see link.h. */
#include "comm/state/call_log.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { FRAME_MAGIC = 0x6d66726d };

static struct channel *channel_of(struct muster_comm *comm, const struct task *task, int rank)
{
    return &comm->peers[rank].link->channels[task->lane];
}

/* The flag names a round within its call; the signature identifies the call. */
static uint64_t flag_of(const struct task *task, const struct exchange *x, size_t round)
{
    return segment_flag(x->link_base + (uint32_t)round + 1, task->signature);
}

static void lose(struct muster_comm *comm, struct channel *c, int rank, int error)
{
    ending_channel(&c->state, CHANNEL_ENDED);
    link_lost(comm, rank, error);
}

/* ---- sending ---- */

/* Lists the parts that remain of a frame, of which moved_bytes have moved. Returns their number: 1
 * or 2. */
static int parts_left(struct frame_header *header, const char *data, size_t data_bytes,
                      size_t moved_bytes, struct iovec *ret)
{
    assert(moved_bytes <= sizeof *header + data_bytes);
    size_t head = sizeof *header, moved = moved_bytes > head ? moved_bytes - head : 0;
    int num = 0;
    if (moved_bytes < head) {
        ret[num++] = (struct iovec){(char *)header + moved_bytes, head - moved_bytes};
    }
    if (moved < data_bytes) {
        ret[num++] = (struct iovec){(char *)(uintptr_t)data + moved, data_bytes - moved};
    }
    return num;
}

static bool send_first(struct task *task, struct channel *c)
{
    struct outgoing *o = &c->pending[c->first % LINK_PENDING];
    while (o->sent < sizeof o->header + o->header.bytes) {
        struct iovec parts[2];
        int num = parts_left(&o->header, o->data, o->header.bytes, o->sent, parts);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)num};
        ssize_t n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            return false;
        }
        o->sent += (size_t)n;
        task->moved = true;
    }
    return true;
}

/* Gives the kernel as much as it takes. */
static void flush(struct muster_comm *comm, struct task *task, struct channel *c, int rank)
{
    assert(c->num <= LINK_PENDING);
    while (c->num > 0 && !channel_has_ended(c)) {
        if (!send_first(task, c)) {
            if (errno != EAGAIN && errno != EINTR) {
                lose(comm, c, rank, errno);
            }
            atomic_store_explicit(&c->wants_write, true, memory_order_relaxed);
            return;
        }
        c->first++;
        c->num--;
    }
    atomic_store_explicit(&c->wants_write, false, memory_order_relaxed);
}

void link_publish(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                  const char *source)
{
    uint64_t shape = task->call.shape, count = task->call.total;
    assert(round == x->at.published - 1 && x->plan.size == x->team->size);
    for (int to = 0; to < x->plan.size; to++) {
        int rank = x->team->ranks[to];
        if (!comm->peers[rank].link) {
            continue;
        }
        struct channel *c = channel_of(comm, task, rank);
        struct schedule_piece p = schedule_send(&x->plan, round, to);
        assert(c->num < LINK_PENDING && p.bytes <= UINT32_MAX);
        struct outgoing *o = &c->pending[(c->first + c->num++) % LINK_PENDING];
        o->header = (struct frame_header){.magic = FRAME_MAGIC,
                                          .bytes = (uint32_t)p.bytes,
                                          .generation = comm->generation,
                                          .flag = flag_of(task, x, round),
                                          .number = task->number,
                                          .shape = shape,
                                          .count = count};
        o->data = p.bytes > 0 ? source + p.offset : NULL;
        o->sent = 0;
        flush(comm, task, c, rank);
    }
}

/* ---- receiving ---- */

/* Reads header and piece at once, because the length of the piece is known. */
static bool read_some(struct muster_comm *comm, struct task *task, int rank, char *place,
                      size_t bytes)
{
    struct channel *c = channel_of(comm, task, rank);
    struct iovec parts[2];
    int num = parts_left(&c->header, place, bytes, c->received, parts);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)num};
    ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT);
    if (n > 0) {
        c->received += (size_t)n;
        task->moved = true;
        link_note_read(comm->peers[rank].link);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        atomic_store_explicit(&c->wants_read, true, memory_order_relaxed);
    } else {
        lose(comm, c, rank, n < 0 ? errno : 0);
    }
    return false;
}

static int check_header(struct muster_comm *comm, struct task *task, const struct exchange *x,
                        size_t round, int from, struct muster_err *err)
{
    int rank = x->team->ranks[from];
    const struct frame_header *h = &channel_of(comm, task, rank)->header;
    if (h->magic != FRAME_MAGIC || h->generation != comm->generation) {
        return muster_fail(err, MUSTER_EPROTO,
                           "rank %d sent bytes that are not of libmuster's protocol", rank);
    }
    if (h->flag != flag_of(task, x, round) ||
        h->bytes != schedule_receive(&x->plan, round, from).bytes) {
        task->waiting = rank;
        return MUSTER_EMISMATCH;
    }
    return 0;
}

/* Returns where a piece is read to: pieces to be reduced go through memory of the link. */
static char *place_of(struct muster_comm *comm, struct task *task, const struct exchange *x,
                      size_t round, int from)
{
    struct schedule_piece piece = schedule_receive(&x->plan, round, from);
    if (schedule_round(&x->plan, round).action == SCHEDULE_COPY) {
        return x->out + piece.offset;
    }
    assert(piece.bytes <= link_scratch_bytes(task->lane));
    return channel_of(comm, task, x->team->ranks[from])->scratch;
}

/* Returns 1 when this round's piece from that rank of the team has arrived. */
static int receive(struct muster_comm *comm, struct task *task, const struct exchange *x,
                   size_t round, int from, struct muster_err *err)
{
    int rank = x->team->ranks[from];
    struct channel *c = channel_of(comm, task, rank);
    uint32_t rounds = x->link_base + (uint32_t)round + 1;
    if (c->call == task->number && c->rounds == rounds) {
        return 1;
    }
    assert(round == x->at.consumed && "rounds are read in order");
    size_t head = sizeof c->header, bytes = schedule_receive(&x->plan, round, from).bytes;
    char *place = bytes > 0 ? place_of(comm, task, x, round, from) : NULL;
    assert(c->received <= head + bytes);
    while (c->received < head + bytes) {
        bool is_known = c->received >= head;
        if (channel_has_ended(c) || !read_some(comm, task, rank, place, bytes)) {
            link_ask(comm, rank);
            return 0;
        }
        int r = is_known || c->received < head ? 0 : check_header(comm, task, x, round, from, err);
        if (r < 0) {
            return r;
        }
    }
    c->received = 0;
    atomic_store_explicit(&c->wants_read, false, memory_order_relaxed);
    c->call = task->number;
    c->rounds = rounds;
    return 1;
}

int link_arrived(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                 struct muster_err *err)
{
    int all = 1;
    for (int from = 0; from < x->plan.size; from++) {
        int rank = x->team->ranks[from];
        if (!comm->peers[rank].link) {
            continue;
        }
        /* Always writes and reads: two ranks that only read, while neither has written all, would
         * wait for each other for ever. Frames that were published ahead may still be on their way.
         */
        struct channel *c = channel_of(comm, task, rank);
        flush(comm, task, c, rank);
        bool sent = !channel_has_ended(c) && c->num <= x->at.published - (round + 1);
        int r = receive(comm, task, x, round, from, err);
        if (r < 0) {
            return r;
        }
        if (r == 0 || !sent) { /* of several ranks, names one from which nothing more will come */
            task->waiting = all || channel_has_ended(c) ? rank : task->waiting;
            all = 0;
        }
    }
    return all;
}

char *link_piece(struct muster_comm *comm, const struct task *task, const struct exchange *x,
                 size_t round, int from)
{
    if (schedule_round(&x->plan, round).action == SCHEDULE_COPY) {
        return NULL;
    }
    return channel_of(comm, task, x->team->ranks[from])->scratch;
}

static int tell(const struct frame_header *h, uint64_t number, uint64_t *ret_shape,
                uint64_t *ret_count)
{
    if (h->magic != FRAME_MAGIC || h->number != number) {
        return 0;
    }
    *ret_shape = h->shape;
    *ret_count = h->count;
    return 1;
}

/* Whether the header is complete: it is the last one, or the next one. */
static bool has_header(const struct channel *c)
{
    return c->received == 0 || c->received >= sizeof c->header;
}

bool link_is_dry(const struct muster_comm *comm, int rank, int lane, uint64_t number)
{
    const struct channel *c = &comm->peers[rank].link->channels[lane];
    char byte;
    if (c->received > 0 || c->call >= number) {
        return false;
    }
    ssize_t n = channel_has_ended(c) ? 0 : recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

uint64_t link_lane_call(const struct muster_comm *comm, int rank, int lane, uint64_t *ret_shape,
                        uint64_t *ret_count)
{
    const struct channel *c = &comm->peers[rank].link->channels[lane];
    uint64_t number = c->header.number;
    return has_header(c) && tell(&c->header, number, ret_shape, ret_count) ? number : 0;
}

int link_record(const struct muster_comm *comm, int rank, int lane, uint64_t number,
                uint64_t *ret_shape, uint64_t *ret_count)
{
    const struct link *link = comm->peers[rank].link;
    const struct channel *c = &link->channels[lane];
    if (has_header(c) && tell(&c->header, number, ret_shape, ret_count)) {
        return 1;
    }
    /* The frame may have been sent on another lane, which nobody reads now. */
    for (int other = 0; other < BOARD_LANES; other++) {
        struct frame_header h;
        ssize_t n = recv(link->channels[other].fd, &h, sizeof h, MSG_PEEK | MSG_DONTWAIT);
        if (other != lane && n == (ssize_t)sizeof h && tell(&h, number, ret_shape, ret_count)) {
            return 1;
        }
    }
    return 0;
}
