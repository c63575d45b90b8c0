/* Posted receives and unexpected messages. Layer: comm; see matching.h. */
#include "comm/messages/matching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool matching_fits(const struct task *receive, int from, int tag)
{
    const struct prepared *call = &receive->call;
    return (call->peer == MUSTER_ANY_SOURCE || call->peer == from) &&
           (call->tag == MUSTER_ANY_TAG || call->tag == tag);
}

size_t matching_room(const struct task *receive)
{
    return receive->call.bytes;
}

void matching_post(struct matching *m, struct task *receive)
{
    assert(receive != m->last_posted && "it is posted once");
    receive->transfer.next = NULL;
    *(m->posted ? &m->last_posted->transfer.next : &m->posted) = receive;
    m->last_posted = receive;
}

static void note_message(struct task *receive, const struct muster_message *message)
{
    assert(!receive->transfer.ended);
    receive->transfer.message = *message;
    receive->transfer.too_big = message->size_bytes > matching_room(receive);
}

struct task *matching_take_posted(struct matching *m, const struct muster_message *message)
{
    struct task *before = NULL, *found = m->posted;
    while (found && !matching_fits(found, message->source, message->tag)) {
        before = found;
        found = found->transfer.next;
    }
    if (found) {
        *(before ? &before->transfer.next : &m->posted) = found->transfer.next;
        m->last_posted = m->last_posted == found ? before : m->last_posted;
        note_message(found, message);
    }
    return found;
}

struct unexpected *matching_make_room(struct matching *m, const struct muster_message *message)
{
    if (message->size_bytes > UNEXPECTED_LIMIT_BYTES - m->unexpected_bytes) {
        return NULL;
    }
    struct unexpected *unexpected = malloc(sizeof *unexpected + message->size_bytes);
    if (unexpected) {
        unexpected->next = NULL;
        unexpected->message = *message;
        m->unexpected_bytes += message->size_bytes;
    }
    return unexpected;
}

void matching_free_room(struct matching *m, struct unexpected *unexpected)
{
    assert(m->unexpected_bytes >= unexpected->message.size_bytes);
    m->unexpected_bytes -= unexpected->message.size_bytes;
    free(unexpected);
}

void matching_queue(struct matching *m, struct unexpected *unexpected)
{
    *(m->unexpected ? &m->last_unexpected->next : &m->unexpected) = unexpected;
    m->last_unexpected = unexpected;
}

void matching_deliver(struct task *receive, const struct unexpected *unexpected, size_t bytes)
{
    note_message(receive, &unexpected->message);
    size_t room = matching_room(receive), taken = bytes < room ? bytes : room;
    if (taken > 0) {
        memcpy(receive->call.out, unexpected->data, taken);
    }
}

bool matching_take_unexpected(struct matching *m, struct task *receive)
{
    struct unexpected *before = NULL, *found = m->unexpected;
    while (found && !matching_fits(receive, found->message.source, found->message.tag)) {
        before = found;
        found = found->next;
    }
    if (!found) {
        return false;
    }
    *(before ? &before->next : &m->unexpected) = found->next;
    m->last_unexpected = m->last_unexpected == found ? before : m->last_unexpected;
    matching_deliver(receive, found, found->message.size_bytes);
    receive->transfer.ended = true;
    matching_free_room(m, found);
    return true;
}

void matching_done(struct matching *m)
{
    while (m->unexpected) {
        struct unexpected *next = m->unexpected->next;
        matching_free_room(m, m->unexpected);
        m->unexpected = next;
    }
}
