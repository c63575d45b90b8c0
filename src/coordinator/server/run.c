/* Runs the coordinator: opens its sockets, does what the loop wakes it for, and ends. See server.h.
 */
#include "coordinator/server/server.h"

#include "base/buf.h"
#include "base/file.h"
#include "coordinator/server/internal.h"
#include "coordinator/server/status.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 250,
    STATUS_MS = 1000,
    FAREWELL_MS = 1000, /* at the end, for messages that members have not read, or not sent, yet */
};

/* ---- The end ---- */

static void stop(struct server *s)
{
    s->stopping = true;
    uv_stop(s->loop);
}

/* Whether the connection must still learn why the job has failed, as an answer to its next
 * message. */
static bool is_to_be_told(const struct server *s, const struct server_connection *c)
{
    bool known = c->incarnation != 0 && arbiter_knows(s->arbiter, c->incarnation);
    return s->has_failed && s->arbiter && !c->hangs_up && !known;
}

static bool all_is_sent(const struct server *s)
{
    for (const struct server_connection *c = s->open; c; c = c->next) {
        if (c->out.bytes > 0 || is_to_be_told(s, c)) {
            return false;
        }
    }
    return true;
}

static void settle(struct server *s)
{
    bool unwritable = s->result < 0 && s->journal_failed;
    if (s->lease_lost && !s->over && (s->result == 0 || unwritable)) {
        server_turn_yield(s);
    } else if (unwritable && s->served) {
        server_turn_suspend(s);
    } else if (s->result < 0) {
        stop(s);
    } else if (s->over) {
        int64_t now_ms = server_now_ms();
        s->until_ms = s->until_ms ? s->until_ms : now_ms + FAREWELL_MS;
        if (all_is_sent(s) || now_ms >= s->until_ms) {
            stop(s);
        }
    }
}

/* ---- Events of the loop ---- */

static void on_deadline(uv_timer_t *timer)
{
    server_feed(timer->data, (struct arbiter_event){.kind = ARBITER_TICK});
}

static void set_deadline(struct server *s)
{
    int64_t next_ms = s->arbiter ? arbiter_next_ms(s->arbiter) : INT64_MAX;
    int64_t wait_ms = next_ms - server_now_ms();
    if (next_ms == INT64_MAX || s->over) {
        uv_timer_stop(&s->deadline);
    } else {
        uv_update_time(s->loop); /* the decisions took some time */
        uv_timer_start(&s->deadline, on_deadline, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
    }
}

static int write_ready_file(struct server *s, struct muster_err *err)
{
    struct buf text;
    buf_init(&text, SERVER_LISTENERS_MAX * SERVER_ADDRESS_BYTES);
    for (size_t i = 0; i < s->listener_count; i++) {
        buf_format(&text, "%s\n", s->listeners[i].address);
    }
    int r = file_write_through(s->options->ready_file, buf_str(&text), text.used, 0600, 0, err);
    buf_done(&text);
    return r;
}

static void announce(struct server *s)
{
    s->announced = s->served = true;
    for (size_t i = 0; i < s->listener_count; i++) {
        report_say(&s->report, "coordinator: listening at %s, journal in %s, term %llu",
                   s->listeners[i].address, s->options->journal,
                   (unsigned long long)arbiter_term(s->arbiter));
    }
    if (s->options->ready_file) {
        int r = write_ready_file(s, s->err);
        if (r < 0) {
            s->announced = s->served = false; /* nobody would find the coordinator */
            server_fail(s, r);
        }
    }
}

/* Runs before the loop waits: all messages that have arrived meanwhile are decided, written to the
 * disk once, and announced. */
static void on_prepare(uv_prepare_t *handle)
{
    struct server *s = handle->data;
    while (!s->stopping && s->result == 0 && s->arbiter && server_may_act(s) &&
           (s->ended || s->sync_due)) {
        if (s->ended) {
            server_bury_one(s);
        } else {
            server_sync(s);
        }
    }
    if (!s->stopping && s->result == 0 && s->arbiter && server_may_act(s)) {
        server_compact(s);
    }
    bool serves = s->arbiter && s->listener_count > 0 && s->listeners[0].polled;
    if (!s->announced && serves && s->result == 0) {
        announce(s);
    }
    settle(s);
    set_deadline(s);
}

static void write_status(struct server *s)
{
    struct status_slow slow[SLOW_NAMED_MAX];
    for (size_t i = 0; i < s->slow_count; i++) {
        slow[i] = (struct status_slow){arbiter_name(s->arbiter, s->slow[i].incarnation),
                                       &s->slow[i].figures};
    }
    const struct status status = {.arbiter = s->arbiter,
                                  .pace = &s->pace,
                                  .leased = s->leased,
                                  .slow = slow,
                                  .slow_count = s->over ? 0 : s->slow_count,
                                  .over = s->over};
    struct muster_err err = MUSTER_ERR_INIT;
    bool failed = status_write(s->options->status_file, &status, &err) < 0;
    if (failed && !s->status_failed) {
        report_say(&s->report, "warning: the status file: %s", err.text);
    }
    s->status_failed = failed;
}

static void sample(struct server *s, int64_t now_ms)
{
    struct arbiter_figures figures;
    struct shard_progress data;
    const char *names;
    const double *sums;
    arbiter_figures(s->arbiter, &figures);
    pace_sample(&s->pace, now_ms, figures.records_done);
    for (uint32_t i = 0; arbiter_leased(s->arbiter, i, &data, &names, &sums); i++) {
        pace_sample(&s->leased[i], now_ms, data.epoch * data.dataset.size + data.epoch_done);
    }
}

/* Writes the status each second, and earlier if there is news. */
static void tell_status(struct server *s)
{
    int64_t now_ms = server_now_ms();
    bool due = now_ms - s->status_ms >= STATUS_MS;
    if (due && !s->over) {
        server_update_slow(s);
    }
    if (s->status_due || due) {
        s->status_ms = due ? now_ms : s->status_ms;
        s->status_due = false;
        write_status(s);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct server *s = timer->data;
    if (!s->arbiter) {
        server_turn_retry(s);
        return;
    }
    if (!server_may_act(s)) {
        return;
    }
    server_tidy(s);
    server_reach_look(s);
    server_alive_look(s);
    if (!s->over) {
        server_keep_journal(s);
        sample(s, server_now_ms());
        report_progress(&s->report, s->arbiter, &s->pace, server_now_ms());
        tell_status(s);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct server *s = handle->data;
    if (s->result == 0) {
        s->result = 128 + number;
        stop(s);
    }
}

/* ---- Opening and closing ---- */

static void watch(struct server *s)
{
    uv_timer_init(s->loop, &s->deadline);
    uv_timer_init(s->loop, &s->look);
    uv_prepare_init(s->loop, &s->prepare);
    uv_signal_init(s->loop, &s->on_term);
    uv_signal_init(s->loop, &s->on_int);
    s->deadline.data = s->look.data = s->prepare.data = s->on_term.data = s->on_int.data = s;
    uv_timer_start(&s->look, on_look, LOOK_MS, LOOK_MS);
    uv_prepare_start(&s->prepare, on_prepare);
    uv_signal_start(&s->on_term, on_signal, SIGTERM);
    uv_signal_start(&s->on_int, on_signal, SIGINT);
}

/* Leaves the note of the end. This is also done when the journal had the end at the beginning and
 * no process listens, because the coordinator before may have been killed at its end. */
static void note_end(struct server *s)
{
    bool ended = s->over && s->result == 0 && s->options->marks_done;
    for (size_t i = 0; ended && i < s->options->listen_count; i++) {
        const char *address = s->options->listen[i];
        if (s->listener_count == 0 && server_listener_is_used(address)) {
            report_say(&s->report,
                       "warning: another coordinator listens at %s: no mark is made there",
                       address);
        } else {
            server_listener_note_end(address, s->has_failed ? s->err->text : "");
        }
    }
}

static void close_all(struct server *s)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&s->deadline, (uv_handle_t *)&s->look,
                              (uv_handle_t *)&s->prepare, (uv_handle_t *)&s->on_term,
                              (uv_handle_t *)&s->on_int};
    server_end(s);
    note_end(s);
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        uv_close(handles[i], NULL);
    }
    server_turn_end(s);
    uv_run(s->loop, UV_RUN_DEFAULT);
    free(s->room);
}

static int run(struct server *s, struct muster_err *err)
{
    int r = server_turn_begin(s, err);
    if (r < 0) {
        return r;
    }
    if (s->sync_due || !s->over) {
        uv_run(s->loop, UV_RUN_DEFAULT);
    }
    if (s->result == 0) { /* the job is over */
        write_status(s);
    }
    if (s->result == 0 && s->has_failed) {
        return MUSTER_EFAILED;
    }
    if (s->result == 0) {
        return report_summary(&s->report, s->arbiter, server_now_ms(), err);
    }
    if (s->result > 0) {
        report_say(&s->report, "coordinator: ended by signal %d; the journal in %s has the job",
                   s->result - 128, s->options->journal);
    }
    return s->result;
}

int server_run(uv_loop_t *loop, const struct server_options *options, struct muster_err *err)
{
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    s->loop = loop;
    s->alive_fd = -1;
    s->options = options;
    s->err = err;
    report_init(&s->report, options->progress, server_now_ms());
    status_read_recoveries(options->status_file, &s->pace);
    watch(s);
    int r = run(s, err);
    close_all(s);
    free(s);
    return r;
}
