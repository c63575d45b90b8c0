/* The agent's one queue of events. Every part that has something to tell the agent posts it; the
 * loop hands out what waits, one event after the other, never from within another.
 *
 * Layer: program (daemon), private to the agent. Thread: the loop's. Ownership: texts and documents
 * are copied; an item is the queue's, and borrowed by its handler.
 */
#pragma once

#include "daemon/agent/events.h"
#include "pod/pod.h"

#include <jansson.h>
#include <uv.h>

/* One event in the queue. */
struct agent_item {
    char *look;               /* "namespace/name" of a pod to read; NULL: use `event` */
    struct agent_event event; /* its `seen` is filled in when a look is handled */
    json_t *object;           /* for a look: what the store has */
    struct pod_event news;    /* AGENT_NEWS; its texts are the item's */
    char *reason, *message;
    char *text; /* for an answer that says no: why */
    struct agent_item *next;
};

typedef void agent_handle_fn(void *data, struct agent_item *item);

struct agent_queue {
    uv_idle_t idle; /* runs while something waits */
    struct agent_item *first, *last;
    size_t count;
    json_t *looks; /* set of the keys of looks that wait */
    agent_handle_fn *handle;
    void *data;
    bool handling;
};

int agent_queue_init(struct agent_queue *queue, uv_loop_t *loop, agent_handle_fn *handle,
                     void *data, struct muster_err *err);
/* Drops the events that wait, and closes the handle; closed() is called when it is closed. */
void agent_queue_close(struct agent_queue *queue, uv_close_cb closed);

void agent_post(struct agent_queue *queue, const struct agent_event *event);
/* `text` may be NULL. */
void agent_post_text(struct agent_queue *queue, const struct agent_event *event, const char *text);
/* Posts an event for a pod's machine. */
void agent_post_news(struct agent_queue *queue, int64_t pod, const struct pod_event *news);
/* Posts a look at the pod with this name; does nothing if such a look waits already. */
void agent_post_look(struct agent_queue *queue, const char *key);
