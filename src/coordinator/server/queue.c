/* See queue.h. */
#include "coordinator/server/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { AT_ONCE = 16, ROOM_FIRST = 16 };

struct server_frame *server_frame_new(const uint8_t *bytes, size_t count)
{
    struct server_frame *frame = malloc(sizeof *frame + count);
    if (frame) {
        frame->references = 1;
        frame->count = count;
        memcpy(frame->bytes, bytes, count);
    }
    return frame;
}

void server_frame_release(struct server_frame *frame)
{
    if (frame && --frame->references == 0) {
        free(frame);
    }
}

int server_queue_add(struct server_queue *queue, struct server_frame *frame)
{
    if (queue->head > 0 && queue->head + queue->count == queue->room) {
        memmove(queue->list, queue->list + queue->head, queue->count * sizeof(void *));
        queue->head = 0;
    }
    if (queue->count == queue->room) {
        size_t room = queue->room ? 2 * queue->room : ROOM_FIRST;
        struct server_frame **list = realloc(queue->list, room * sizeof(void *));
        if (!list) {
            return MUSTER_ENOMEM;
        }
        queue->list = list;
        queue->room = room;
    }
    frame->references++;
    queue->list[queue->head + queue->count++] = frame;
    queue->bytes += frame->count;
    return 0;
}

static void drop_sent(struct server_queue *queue, size_t sent)
{
    queue->bytes -= sent;
    queue->sent += sent;
    while (queue->count > 0 && queue->sent >= queue->list[queue->head]->count) {
        queue->sent -= queue->list[queue->head]->count;
        server_frame_release(queue->list[queue->head]);
        queue->head++;
        queue->count--;
    }
    if (queue->count == 0) {
        queue->head = 0;
    }
}

static ssize_t write_some(const struct server_queue *queue, int fd)
{
    struct iovec parts[AT_ONCE];
    size_t count = queue->count < AT_ONCE ? queue->count : AT_ONCE;
    for (size_t i = 0; i < count; i++) {
        struct server_frame *frame = queue->list[queue->head + i];
        size_t skip = i == 0 ? queue->sent : 0;
        parts[i] = (struct iovec){frame->bytes + skip, frame->count - skip};
    }
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int server_queue_write(struct server_queue *queue, int fd)
{
    while (queue->count > 0) {
        ssize_t sent = write_some(queue, fd);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        }
        drop_sent(queue, (size_t)sent);
    }
    return 0;
}

void server_queue_done(struct server_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) {
        server_frame_release(queue->list[queue->head + i]);
    }
    free(queue->list);
    *queue = (struct server_queue){0};
}
