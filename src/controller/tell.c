/* Sends events about jobs; no step waits for them. Equal events are counted. See driver.h.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/objects.h"
#include "controller/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size of one waiting event without its texts: the call here, the back end's request with its
 * path, and the body, which repeats names, labels and times (as text, as Kubernetes has them). */
enum { EVENT_BYTES = 2048 };

static void leave_out(struct driver *d)
{
    d->events_left_out++;
    if (!d->leaves_out) {
        driver_say(d, "controller.event", "",
                   "events are left out: too many wait to be sent; the next ones are only counted");
    }
    d->leaves_out = true;
}

/* An event that is being sent. */
struct sent_event {
    char *id; /* "namespace/name"; send_event takes it */
    size_t bytes;
    int64_t unix_ms;
};

static int send_event(struct driver *d, const struct cluster_request *request,
                      struct sent_event event,
                      void (*done)(struct call *, const struct cluster_answer *))
{
    struct call *call = driver_call(d, done);
    if (!call) {
        free(event.id);
        return MUSTER_ENOMEM;
    }
    call->event = event.id;
    call->event_bytes = event.bytes;
    call->event_unix_ms = event.unix_ms;
    d->events++;
    d->event_bytes += event.bytes;
    return driver_send(call, request);
}

void driver_forget_event(struct call *call)
{
    struct driver *d = call->driver;
    if (call->event) {
        d->events--;
        d->event_bytes -= call->event_bytes;
        d->leaves_out = d->leaves_out && d->events > 0;
        free(call->event);
    }
}

static struct cluster_request request_for(enum cluster_verb verb, const char *namespace,
                                          const char *name)
{
    return (struct cluster_request){
        .verb = verb,
        .lane = CLUSTER_LANE_EVENTS,
        .timeout_ms = DRIVER_EVENT_MS,
        .resource = &driver_events,
        .namespace = namespace,
        .name = name,
        .without_managers = true,
    };
}

/* Sends a further request about the call's event; the new call has a copy of its id. */
static void send_next(struct call *call, enum cluster_verb verb, json_t *body,
                      void (*done)(struct call *, const struct cluster_answer *))
{
    char *slash = strchr(call->event, '/');
    struct sent_event next = {strdup(call->event), call->event_bytes, call->event_unix_ms};
    *slash = '\0';
    struct cluster_request request = request_for(verb, call->event, slash + 1);
    request.body = body;
    if (!next.id || send_event(call->driver, &request, next, done) < 0) {
        leave_out(call->driver);
    }
    *slash = '/';
}

/* A missing right concerns all events: it is reported once. */
static void on_counted(struct call *call, const struct cluster_answer *answer)
{
    struct driver *d = call->driver;
    bool refused = answer->code == MUSTER_EPERM;
    if (answer->code < 0 && !(refused && d->events_refused)) {
        driver_say(d, "controller.event", call->event, answer->message);
    }
    d->events_refused = refused || (d->events_refused && answer->code < 0);
}

static void on_read(struct call *call, const struct cluster_answer *answer)
{
    const struct driver_clock *clock = &call->driver->options.clock;
    muster_auto(doc) json_t *patch =
        answer->code == 0 ? event_count_again(answer->object, clock->now_unix_ms(clock->arg))
                          : NULL;
    if (patch) {
        send_next(call, CLUSTER_PATCH, patch, on_counted);
    }
}

/* The name was taken when the creation was repeated: by this event itself, or by an earlier one. */
static void on_read_doubtful(struct call *call, const struct cluster_answer *answer)
{
    char sent[TIMESTAMP_BYTES];
    timestamp_seconds(call->event_unix_ms, sent);
    if (doc_int(answer->object, "count", 0) != 1 ||
        strcmp(doc_text(answer->object, "firstTimestamp", ""), sent) != 0) {
        on_read(call, answer);
    }
}

static void on_created(struct call *call, const struct cluster_answer *answer)
{
    if (answer->code == MUSTER_EEXIST) {
        send_next(call, CLUSTER_GET, NULL, answer->repeated ? on_read_doubtful : on_read);
    } else {
        on_counted(call, answer);
    }
}

static int create(struct driver *d, const struct event_note *note, size_t bytes)
{
    muster_auto(free) char *name = event_name(note);
    muster_auto(doc) json_t *event = name ? event_make(note, name) : NULL;
    const char *namespace = doc_text(event, "metadata.namespace", "");
    struct sent_event sent = {NULL, bytes, note->now_unix_ms};
    if (!event || asprintf(&sent.id, "%s/%s", namespace, name) < 0) {
        return MUSTER_ENOMEM;
    }
    struct cluster_request request = request_for(CLUSTER_CREATE, namespace, name);
    request.body = event;
    return send_event(d, &request, sent, on_created);
}

void driver_tell(struct driver *d, const json_t *job, const struct control_effect *effect)
{
    const struct event_note note = {
        .about = job,
        .component = CONTROL_CONTROLLER,
        .warning = effect->warning,
        .reason = effect->name,
        .message = effect->text,
        .now_unix_ms = driver_now_unix_ms(d),
    };
    size_t bytes = EVENT_BYTES + strlen(note.message);
    if (d->event_bytes + bytes > DRIVER_EVENTS_BYTES_MAX || create(d, &note, bytes) < 0) {
        leave_out(d);
    }
}
