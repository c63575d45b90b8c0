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

static void lose(struct muster_comm *comm, struct channel *c, int rank)
{
    c->broken = true;
    link_lost(comm, rank);
}

/* ---- sending ---- */

static bool send_first(struct channel *c)
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
    }
    return true;
}

/* 1: everything is with the kernel. 0: not yet, or never. */
static int flush(struct muster_comm *comm, struct channel *c, int rank)
{
    while (c->num > 0 && !c->broken) {
        if (!send_first(c)) {
            if (errno != EAGAIN && errno != EINTR) {
                lose(comm, c, rank);
            }
            atomic_store_explicit(&c->wants_write, true, memory_order_relaxed);
            return 0;
        }
        c->first++;
        c->num--;
    }
    atomic_store_explicit(&c->wants_write, false, memory_order_relaxed);
    return !c->broken;
}

int link_publish(struct muster_comm *comm, struct task *task, size_t round, const char *source,
                 struct muster_err *err)
{
    (void)err;
    const struct exchange *x = &task->exchange;
    uint64_t shape, count;
    call_signed(comm, &task->call, &shape, &count);
    for (int to = 0; to < comm->size; to++) {
        if (!comm->peers[to].link) {
            continue;
        }
        struct channel *c = channel_of(comm, task, to);
        struct schedule_piece p = schedule_send(&x->plan, round, to);
        assert(c->num < LINK_PENDING);
        struct outgoing *o = &c->pending[(c->first + c->num++) % LINK_PENDING];
        o->header =
            (struct frame_header){.magic = FRAME_MAGIC,
                                  .bytes = (uint32_t)p.bytes,
                                  .generation = comm->generation,
                                  .flag = comm_flag(x->base + (uint32_t)round + 1, task->signature),
                                  .number = task->number,
                                  .shape = shape,
                                  .count = count};
        o->data = p.bytes > 0 ? source + p.offset : NULL;
        o->sent = 0;
        (void)flush(comm, c, to);
    }
    return 0;
}

/* ---- receiving ---- */

static bool read_some(struct muster_comm *comm, struct channel *c, int rank, char *to, size_t bytes,
                      size_t *done)
{
    while (*done < bytes && !c->broken) {
        ssize_t n = recv(c->fd, to + *done, bytes - *done, MSG_DONTWAIT);
        if (n > 0) {
            *done += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            atomic_store_explicit(&c->wants_read, true, memory_order_relaxed);
            return false;
        } else {
            lose(comm, c, rank);
        }
    }
    return !c->broken;
}

static int check_header(struct muster_comm *comm, struct task *task, size_t round, int from,
                        const struct frame_header *h, struct muster_err *err)
{
    uint64_t want = comm_flag(task->exchange.base + (uint32_t)round + 1, task->signature);
    size_t bytes = schedule_receive(&task->exchange.plan, round, from).bytes;
    if (h->magic != FRAME_MAGIC || h->generation != comm->generation) {
        return muster_fail(err, MUSTER_EPROTO, "rank %d sent something that is no frame of ours",
                           from);
    }
    if (h->flag != want || h->bytes != bytes) {
        return failure_mismatch(comm, task, from, err);
    }
    return 0;
}

/* Pieces to be folded go through memory of the link. */
static char *place_of(struct muster_comm *comm, struct task *task, size_t round, int from)
{
    struct exchange *x = &task->exchange;
    if (schedule_round(&x->plan, round).action == SCHEDULE_COPY) {
        return x->out + schedule_receive(&x->plan, round, from).offset;
    }
    return channel_of(comm, task, from)->scratch;
}

/* 1: this round's piece from that rank is here. */
static int receive(struct muster_comm *comm, struct task *task, size_t round, int from,
                   struct muster_err *err)
{
    struct channel *c = channel_of(comm, task, from);
    uint32_t tag = task->exchange.base + (uint32_t)round + 1;
    if (c->next_round == tag + 1) {
        return 1;
    }
    if (c->header_bytes < sizeof c->header) {
        if (!read_some(comm, c, from, (char *)&c->header, sizeof c->header, &c->header_bytes)) {
            return 0;
        }
        int rc = check_header(comm, task, round, from, &c->header, err);
        if (rc < 0) {
            return rc;
        }
        c->data_bytes = 0;
    }
    char *place = c->header.bytes > 0 ? place_of(comm, task, round, from) : NULL;
    if (!read_some(comm, c, from, place, c->header.bytes, &c->data_bytes)) {
        return 0;
    }
    c->header_bytes = 0;
    atomic_store_explicit(&c->wants_read, false, memory_order_relaxed);
    c->next_round = tag + 1;
    return 1;
}

int link_arrived(struct muster_comm *comm, struct task *task, size_t round, struct muster_err *err)
{
    int all = 1;
    for (int from = 0; from < comm->size; from++) {
        if (!comm->peers[from].link) {
            continue;
        }
        struct channel *c = channel_of(comm, task, from);
        int rc = receive(comm, task, round, from, err);
        if (rc < 0) {
            return rc;
        }
        if (rc == 0 || !flush(comm, c, from)) {
            task->waiting = from;
            all = 0;
        }
    }
    return all;
}

char *link_piece(struct muster_comm *comm, const struct task *task, size_t round, int from)
{
    if (schedule_round(&task->exchange.plan, round).action == SCHEDULE_COPY) {
        return NULL;
    }
    return comm->peers[from].link->channels[task->lane].scratch;
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
