/* Events about jobs: sent, and forgotten. The same event again is counted. See driver.h. */
#include "base/doc.h"
#include "control/objects.h"
#include "controller/internal.h"

#include <stdlib.h>

static void send_again(struct driver *d, const struct cluster_request *request, json_t *event,
                       void (*done)(struct call *, const struct cluster_answer *))
{
    struct call *call = driver_call(d, done);
    if (call) {
        call->event = json_incref(event);
        d->events++;
        d->events -= driver_send(call, request) < 0;
    }
}

static struct cluster_request request_for(enum cluster_verb verb, const json_t *event)
{
    return (struct cluster_request){
        .verb = verb,
        .lane = CLUSTER_LANE_EVENTS,
        .timeout_ms = DRIVER_EVENT_MS,
        .resource = &driver_events,
        .namespace = doc_text(event, "metadata.namespace", ""),
        .name = doc_text(event, "metadata.name", ""),
    };
}

static void on_counted(struct call *call, const struct cluster_answer *answer)
{
    call->driver->events--;
    if (answer->code < 0) {
        driver_say(call->driver, "controller.event", doc_text(call->event, "metadata.name", ""),
                   answer->message);
    }
}

static void on_read(struct call *call, const struct cluster_answer *answer)
{
    struct driver *d = call->driver;
    d->events--;
    json_t *patch =
        answer->code == 0
            ? event_count_again(answer->object, d->options.clock.now_unix_ms(d->options.clock.arg))
            : NULL;
    if (patch) {
        struct cluster_request request = request_for(CLUSTER_PATCH, call->event);
        request.body = patch;
        send_again(d, &request, call->event, on_counted);
    }
    json_decref(patch);
}

static void on_created(struct call *call, const struct cluster_answer *answer)
{
    if (answer->code != MUSTER_EEXIST) {
        on_counted(call, answer);
        return;
    }
    const struct cluster_request request = request_for(CLUSTER_GET, call->event);
    call->driver->events--;
    send_again(call->driver, &request, call->event, on_read);
}

void driver_tell(struct driver *d, const json_t *job, const struct control_effect *effect)
{
    const struct event_note note = {
        .about = job,
        .component = CONTROL_CONTROLLER,
        .warning = effect->warning,
        .reason = effect->name,
        .message = effect->text,
        .now_unix_ms = d->options.clock.now_unix_ms(d->options.clock.arg),
    };
    char *name = d->events < DRIVER_EVENTS_MAX ? event_name(&note) : NULL;
    json_t *event = name ? event_make(&note, name) : NULL;
    if (event) {
        struct cluster_request request = request_for(CLUSTER_CREATE, event);
        request.body = event;
        send_again(d, &request, event, on_created);
    } else {
        driver_say(d, "controller.event", note.reason, "left out: too many wait to be sent");
    }
    json_decref(event);
    free(name);
}
