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

/* One event that waits. */
struct agent_item {
    char *look;               /* "namespace/name" to be read from the store; NULL: `event` */
    struct agent_event event; /* its `seen` is filled in when a look is handled */
    json_t *object;           /* of a look: what the store has */
    struct pod_event news;    /* AGENT_NEWS; its texts are the item's */
    char *reason, *message;
    char *text; /* why, of an answer that says no */
    struct agent_item *next;
};

typedef void agent_handle_fn(void *data, struct agent_item *item);

struct agent_queue {
    uv_idle_t idle; /* runs while something waits */
    struct agent_item *first, *last;
    size_t count;
    json_t *looks; /* set of keys that wait */
    agent_handle_fn *handle;
    void *data;
    bool handling;
};

int agent_queue_init(struct agent_queue *queue, uv_loop_t *loop, agent_handle_fn *handle,
                     void *data, struct muster_err *err);
/* Drops what waits. The handle is closed; closed() is called when it is. */
void agent_queue_close(struct agent_queue *queue, uv_close_cb closed);

void agent_post(struct agent_queue *queue, const struct agent_event *event);
/* text: may be NULL. */
void agent_post_text(struct agent_queue *queue, const struct agent_event *event, const char *text);
/* What is to be fed to a pod's machine. */
void agent_post_news(struct agent_queue *queue, int64_t pod, const struct pod_event *news);
/* A pod of this name is to be looked at; once, however often that is asked for before it is done.
 */
void agent_post_look(struct agent_queue *queue, const char *key);
