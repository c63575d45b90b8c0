/* Decides which message goes to which receive. A message goes to the first posted receive that it
 * fits. A message that no receive has asked for yet waits in memory, in the unexpected-message
 * queue, so that it does not block the messages behind it. A receive gets the first message that
 * fits it.
 *
 * Layer: comm; pure. Memory: the queue's messages; tasks are the caller's. Thread: the holder of
 * the messages' lane.
 */
#pragma once

#include "comm/state/state.h"

enum { UNEXPECTED_LIMIT_BYTES = 256 * 1024 * 1024 };

struct unexpected {
    struct unexpected *next;
    struct muster_message message;
    char data[];
};

struct matching {
    struct task *posted;
    struct task *last_posted;
    struct unexpected *unexpected; /* complete messages, in order of arrival */
    struct unexpected *last_unexpected;
    size_t unexpected_bytes; /* bytes of these, and of messages that are still arriving */
};

bool matching_fits(const struct task *receive, int from, int tag);
/* Returns how many bytes this receive's buffer holds. */
size_t matching_room(const struct task *receive);

/* Whether a receive is posted, or a message waits for one. */
static inline bool matching_is_busy(const struct matching *m)
{
    return m->posted || m->unexpected;
}

void matching_post(struct matching *m, struct task *receive);
/* Removes the first posted receive that fits the message, and writes the message into it. NULL:
 * none fits. */
struct task *matching_take_posted(struct matching *m, const struct muster_message *message);

/* Allocates memory for a message that no receive is posted for. NULL: not possible now. */
struct unexpected *matching_make_room(struct matching *m, const struct muster_message *message);
void matching_free_room(struct matching *m, struct unexpected *unexpected);
/* Queues a message that is complete. */
void matching_queue(struct matching *m, struct unexpected *unexpected);
/* Gives the first queued message that fits to this receive, which ends with it. Returns false if
 * there is none. */
bool matching_take_unexpected(struct matching *m, struct task *receive);
/* Copies the first bytes of a message into its receive, as far as they fit. */
void matching_deliver(struct task *receive, const struct unexpected *unexpected, size_t bytes);

/* Frees the queue. */
void matching_done(struct matching *m);
