/* See queue.h. */
#include "daemon/agent/queue.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void free_item(struct agent_item *item)
{
    free(item->look);
    json_decref(item->object);
    free(item->reason);
    free(item->message);
    free(item->text);
    free(item);
}

static struct agent_item *take_first(struct agent_queue *queue)
{
    struct agent_item *item = queue->first;
    queue->first = item->next;
    queue->last = queue->first ? queue->last : NULL;
    queue->count--;
    if (item->look) {
        json_object_del(queue->looks, item->look);
    }
    return item;
}

/* Handles the events that wait now. Events that are posted meanwhile wait for the loop's next turn,
 * so that requests are answered in between. */
static void on_idle(uv_idle_t *idle)
{
    struct agent_queue *queue = idle->data;
    assert(!queue->handling);
    queue->handling = true;
    for (size_t left = queue->count; left > 0; left--) {
        struct agent_item *item = take_first(queue);
        queue->handle(queue->data, item);
        free_item(item);
    }
    queue->handling = false;
    if (queue->count == 0) {
        uv_idle_stop(idle);
    }
}

/* Ends the program when out of memory. A controller that loses an event would wait for it for ever;
 * after one that dies, the next controller reads the store and the supervisors' records. */
static void *must(void *memory)
{
    assert(memory && "out of memory: the next controller goes on");
    return memory;
}

static char *copy(const char *text)
{
    return text ? must(strdup(text)) : NULL;
}

static struct agent_item *append(struct agent_queue *queue)
{
    struct agent_item *item = must(calloc(1, sizeof *item));
    if (queue->last) {
        queue->last->next = item;
    } else {
        queue->first = item;
    }
    queue->last = item;
    queue->count++;
    uv_idle_start(&queue->idle, on_idle);
    return item;
}

void agent_post_text(struct agent_queue *queue, const struct agent_event *event, const char *text)
{
    struct agent_item *item = append(queue);
    item->event = *event;
    item->text = copy(text);
}

void agent_post(struct agent_queue *queue, const struct agent_event *event)
{
    agent_post_text(queue, event, NULL);
}

void agent_post_news(struct agent_queue *queue, int64_t pod, const struct pod_event *news)
{
    struct agent_item *item = append(queue);
    item->event = (struct agent_event){.kind = AGENT_NEWS, .pod = pod};
    item->news = *news;
    item->news.reason = item->reason = copy(news->reason);
    item->news.message = item->message = copy(news->message);
}

void agent_post_look(struct agent_queue *queue, const char *key)
{
    if (!json_object_get(queue->looks, key)) {
        struct agent_item *item = append(queue);
        item->look = copy(key);
        json_object_set_new(queue->looks, key, json_true());
    }
}

int agent_queue_init(struct agent_queue *queue, uv_loop_t *loop, agent_handle_fn *handle,
                     void *data, struct muster_err *err)
{
    *queue = (struct agent_queue){.looks = json_object(), .handle = handle, .data = data};
    uv_idle_init(loop, &queue->idle);
    queue->idle.data = queue;
    return queue->looks ? 0 : err_no_memory(err);
}

void agent_queue_close(struct agent_queue *queue, uv_close_cb closed)
{
    while (queue->first) {
        free_item(take_first(queue));
    }
    json_decref(queue->looks);
    uv_close((uv_handle_t *)&queue->idle, closed);
}
