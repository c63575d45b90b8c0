/* Decides when the server serves: at once, or while it holds a lease (lease.h), and with a pause if
 * its journal cannot be written. See internal.h. */
#include "coordinator/server/internal.h"

enum { RETRY_MS = 500, NEVER_MS = -1 }; /* the time until the journal is tried again */

bool server_may_act(const struct server *s)
{
    struct server_lease *lease = s->options->lease;
    return !lease || s->over || (s->lease_held && !s->lease_lost && lease->calls->is_held(lease));
}

/* ---- Beginning ---- */

static int open_listeners(struct server *s, struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->options->listen_count; i++) {
        r = server_listener_open(&s->listeners[i], s->options->listen[i], err);
        s->listener_count += r == 0;
        if (r < 0) {
            s->listeners[i].is_unix = false; /* another process has the socket */
            server_listener_close(&s->listeners[i]);
        }
    }
    return r;
}

/* Opens the journal first: if another coordinator has it, no member must connect here. */
static int begin(struct server *s, struct muster_err *err)
{
    int r = server_begin(s, err);
    return r < 0 || s->over || s->listener_count > 0 ? r : open_listeners(s, err);
}

/* ---- Again ---- */

static void pause_turn(struct server *s)
{
    server_end(s);
    s->result = 0;
    s->retry_ms = server_now_ms() + RETRY_MS;
}

void server_turn_suspend(struct server *s)
{
    report_say(&s->report,
               "%s; workers train on, and wait when one comes or goes: make room, and "
               "the coordinator goes on",
               s->err->text);
    pause_turn(s);
}

/* Whether the journal's lock is held by the earlier holder of the lease, which may be stopped: then
 * this coordinator waits. */
static bool is_locked(struct server *s, int code, const struct muster_err *err)
{
    bool locked = s->options->lease && code == MUSTER_ECONFLICT && !s->journal;
    if (locked && !s->waits_for_lock) {
        s->waits_for_lock = true;
        report_say(&s->report, "%s; waiting until it has ended", err->text);
    }
    return locked;
}

static bool is_to_be_tried_again(struct server *s, int code, const struct muster_err *err)
{
    bool unwritable = code == MUSTER_EIO || code == MUSTER_ECREATE;
    return is_locked(s, code, err) ||
           (s->served && (unwritable || (s->result < 0 && s->journal_failed)));
}

void server_turn_retry(struct server *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool again = s->announced;
    if (s->retry_ms == NEVER_MS || server_now_ms() < s->retry_ms || !server_may_act(s)) {
        return;
    }
    int r = begin(s, &err);
    if (is_to_be_tried_again(s, r, &err)) {
        pause_turn(s);
    } else if (r < 0) {
        *s->err = err;
        s->result = r;
    } else if (again) {
        report_say(&s->report, "the journal can be written again: term %llu",
                   (unsigned long long)arbiter_term(s->arbiter));
    }
}

/* ---- The lease ---- */

static void on_held(void *data)
{
    struct server *s = data;
    s->lease_held = true;
    s->lease_lost = false;
    s->waits_for_lock = false;
    s->retry_ms = 0;
    server_turn_retry(s);
}

static void on_lost(void *data)
{
    struct server *s = data;
    s->lease_lost = true;
}

static void on_say(void *data, const char *text)
{
    struct server *s = data;
    report_say(&s->report, "coordinator: %s", text);
}

static void close_listeners(struct server *s)
{
    for (size_t i = 0; i < s->listener_count; i++) {
        server_listener_close(&s->listeners[i]);
    }
    s->listener_count = 0;
}

void server_turn_yield(struct server *s)
{
    if (s->arbiter) {
        report_say(&s->report, "coordinator: the lease could not be renewed in time, and another "
                               "coordinator may have it: nobody is served until it is held again; "
                               "workers train on");
    }
    server_end(s);
    close_listeners(s); /* workers look for another coordinator */
    s->result = 0;
    s->announced = false;
    s->lease_held = s->lease_lost = false;
    s->retry_ms = NEVER_MS;
    s->options->lease->calls->ask_again(s->options->lease);
}

int server_turn_begin(struct server *s, struct muster_err *err)
{
    struct server_lease *lease = s->options->lease;
    const struct server_lease_events events = {on_held, on_lost, on_say, s};
    if (!lease) {
        return begin(s, err);
    }
    s->retry_ms = NEVER_MS;
    return lease->calls->open(lease, s->loop, &events, err);
}

void server_turn_end(struct server *s)
{
    close_listeners(s);
    if (s->options->lease) {
        s->options->lease->calls->close(s->options->lease);
    }
}
