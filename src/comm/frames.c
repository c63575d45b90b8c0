/* Rounds of collectives between hosts. Layer: comm; see link.h. */
#include "comm/link.h"

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

/* A round is named within its call, of which the signature tells. */
static uint64_t flag_of(const struct task *task, const struct exchange *x, size_t round)
{
    return comm_flag(x->link_base + (uint32_t)round + 1, task->signature);
}

static void lose(struct muster_comm *comm, struct channel *c, int rank, int error)
{
    c->broken = true;
    link_lost(comm, rank, error);
}

/* ---- sending ---- */

static bool send_first(struct task *task, struct channel *c)
{
    struct outgoing *o = &c->pending[c->first % LINK_PENDING];
    size_t head = sizeof o->header, all = head + o->header.bytes;
    while (o->sent < all) {
        struct iovec parts[2];
        int num = 0;
        if (o->sent < head) {
            parts[num++] = (struct iovec){(char *)&o->header + o->sent, head - o->sent};
        }
        size_t data_sent = o->sent > head ? o->sent - head : 0;
        if (o->header.bytes > data_sent) {
            parts[num++] =
                (struct iovec){(char *)(uintptr_t)o->data + data_sent, o->header.bytes - data_sent};
        }
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

/* Hands the kernel what it takes. */
static void flush(struct muster_comm *comm, struct task *task, struct channel *c, int rank)
{
    while (c->num > 0 && !c->broken) {
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
    uint64_t shape, count;
    call_signed(comm, &task->call, &shape, &count);
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

static bool read_some(struct muster_comm *comm, struct task *task, int rank, char *to, size_t bytes,
                      size_t *done)
{
    struct channel *c = channel_of(comm, task, rank);
    while (*done < bytes && !c->broken) {
        ssize_t n = recv(c->fd, to + *done, bytes - *done, MSG_DONTWAIT);
        if (n > 0) {
            *done += (size_t)n;
            task->moved = true;
            link_note_read(comm->peers[rank].link);
        } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            atomic_store_explicit(&c->wants_read, true, memory_order_relaxed);
            return false;
        } else {
            lose(comm, c, rank, n < 0 ? errno : 0);
        }
    }
    return !c->broken;
}

static int check_header(struct muster_comm *comm, struct task *task, const struct exchange *x,
                        size_t round, int from, struct muster_err *err)
{
    int rank = x->team->ranks[from];
    const struct frame_header *h = &channel_of(comm, task, rank)->header;
    if (h->magic != FRAME_MAGIC || h->generation != comm->generation) {
        return muster_fail(err, MUSTER_EPROTO, "rank %d sent something that is no frame of ours",
                           rank);
    }
    if (h->flag != flag_of(task, x, round) ||
        h->bytes != schedule_receive(&x->plan, round, from).bytes) {
        return failure_mismatch(comm, task, rank, err);
    }
    return 0;
}

/* Pieces to be folded go through memory of the link. */
static char *place_of(struct muster_comm *comm, struct task *task, const struct exchange *x,
                      size_t round, int from)
{
    if (schedule_round(&x->plan, round).action == SCHEDULE_COPY) {
        return x->out + schedule_receive(&x->plan, round, from).offset;
    }
    return channel_of(comm, task, x->team->ranks[from])->scratch;
}

/* 1: this round's piece from that one of the team is here. */
static int receive(struct muster_comm *comm, struct task *task, const struct exchange *x,
                   size_t round, int from, struct muster_err *err)
{
    int rank = x->team->ranks[from];
    struct channel *c = channel_of(comm, task, rank);
    uint32_t rounds = x->link_base + (uint32_t)round + 1;
    if (c->call == task->number && c->rounds == rounds) {
        return 1;
    }
    if (c->header_bytes < sizeof c->header) {
        if (!read_some(comm, task, rank, (char *)&c->header, sizeof c->header, &c->header_bytes)) {
            return 0;
        }
        int rc = check_header(comm, task, x, round, from, err);
        if (rc < 0) {
            return rc;
        }
        c->data_bytes = 0;
    }
    char *place = c->header.bytes > 0 ? place_of(comm, task, x, round, from) : NULL;
    if (!read_some(comm, task, rank, place, c->header.bytes, &c->data_bytes)) {
        return 0;
    }
    c->header_bytes = 0;
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
        /* Always both: two ranks that only read on while neither has room to write would wait for
         * each other for ever. What was published ahead may still be on its way. */
        struct channel *c = channel_of(comm, task, rank);
        flush(comm, task, c, rank);
        bool sent = !c->broken && c->num <= x->published - (round + 1);
        int rc = receive(comm, task, x, round, from, err);
        if (rc < 0) {
            return rc;
        }
        if (rc == 0 || !sent) {
            task->waiting = rank;
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

int link_record(const struct muster_comm *comm, int rank, int lane, uint64_t number,
                uint64_t *ret_shape, uint64_t *ret_count)
{
    const struct link *link = comm->peers[rank].link;
    if (tell(&link->channels[lane].header, number, ret_shape, ret_count)) {
        return 1;
    }
    /* It may have gone to another lane, where nobody reads now. */
    for (int other = 0; other < BOARD_LANES; other++) {
        struct frame_header h;
        ssize_t n = recv(link->channels[other].fd, &h, sizeof h, MSG_PEEK | MSG_DONTWAIT);
        if (other != lane && n == (ssize_t)sizeof h && tell(&h, number, ret_shape, ret_count)) {
            return 1;
        }
    }
    return 0;
}
