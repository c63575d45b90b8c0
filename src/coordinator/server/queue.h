/* Keeps frames that wait to be sent to a member. One that goes to several members is in memory
 * once.
 *
 * Layer: program (coordinator). Memory: a frame is freed with its last reference; queue done.
 * Thread: one.
 */
#pragma once

#include <muster/err.h>

#include <stddef.h>
#include <stdint.h>

struct server_frame {
    size_t references;
    size_t count;
    uint8_t bytes[];
};

/* Returns a frame with one reference, or NULL if there is no memory. */
struct server_frame *server_frame_new(const uint8_t *bytes, size_t count);
void server_frame_release(struct server_frame *frame); /* the argument may be NULL */

struct server_queue {
    struct server_frame **list;
    size_t head;
    size_t count;
    size_t room;
    size_t sent;  /* how much of the first frame was sent */
    size_t bytes; /* of all frames, without sent bytes */
};

/* Adds the frame, with another reference to it. MUSTER_ENOMEM. */
int server_queue_add(struct server_queue *queue, struct server_frame *frame);
/* Writes as much as possible without waiting. Returns 0, even if nothing was written; -1 with
 * errno: the connection cannot be used any more. */
int server_queue_write(struct server_queue *queue, int fd);
void server_queue_done(struct server_queue *queue);
