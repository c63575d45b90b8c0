/* Gives events to the arbiter and carries out its effects; also compacts the journal, and begins
 * and ends a term. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/file.h"
#include "base/system/random.h"
#include "base/time/clock.h"
#include "coordinator/arbiter/entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int64_t server_now_ms(void)
{
    return clock_ms();
}

void server_fail(struct server *s, int code)
{
    if (s->result == 0) {
        s->result = code;
    }
}

/* ---- Effects ---- */

/* The frame that was sent last. Effects with the same bytes for several members follow each other,
 * so that one frame serves all. */
struct last_frame {
    struct server_frame *frame;
    size_t offset;
};

static void send_frame(struct server *s, const struct arbiter_effect *effect,
                       struct last_frame *last)
{
    struct server_member *member = server_member(s, effect->to);
    if (!member || !member->connection) {
        return;
    }
    if (!last->frame || last->offset != effect->offset) {
        server_frame_release(last->frame);
        last->frame = server_frame_new(arbiter_effect_bytes(&s->effects, effect), effect->count);
        last->offset = effect->offset;
    }
    if (last->frame) {
        server_connection_send(member->connection, last->frame);
    } else {
        server_connection_end(member->connection);
    }
}

static void append(struct server *s, const struct arbiter_effect *effect)
{
    int r = journal_append(s->journal, effect->record, arbiter_effect_bytes(&s->effects, effect),
                           effect->count, s->err);
    if (r < 0) {
        s->journal_failed = true;
        server_fail(s, r);
    }
}

static void serve(struct server *s)
{
    journal_note_term(s->journal, arbiter_term(s->arbiter));
    for (size_t i = 0; i < s->listener_count; i++) {
        server_listener_serve(&s->listeners[i], s->loop, server_accept, s);
    }
}

static void hang_up(struct server *s, uint64_t incarnation)
{
    struct server_member *member = server_member(s, incarnation);
    if (member && member->connection) {
        server_connection_hang_up(member->connection, server_now_ms());
    }
}

static void say_lost(struct server *s, const struct arbiter_effect *effect)
{
    const struct server_member *member = server_member(s, effect->to);
    report_lost(&s->report, arbiter_name(s->arbiter, effect->to), effect->to,
                (enum rendezvous_reason)effect->record, member ? member->how : "");
}

static void note_lost(struct server *s, const struct arbiter_effect *effect)
{
    const char *name = arbiter_name(s->arbiter, effect->to);
    enum rendezvous_reason reason = (enum rendezvous_reason)effect->record;
    if (effect->kind == ARBITER_LOST) {
        say_lost(s, effect);
    }
    if (reason != RENDEZVOUS_DONE) {
        pace_note(&s->pace, reason == RENDEZVOUS_LEFT ? PACE_LEFT : PACE_LOST, name);
    }
}

/* Ends the job with a failure. Nothing is decided any more; messages that are queued for members
 * are sent before the end. */
static void fail_job(struct server *s, const struct arbiter_effect *effect)
{
    s->over = true;
    s->has_failed = true;
    const char *bytes = (const char *)arbiter_effect_bytes(&s->effects, effect);
    char *text = strndup(bytes, effect->count);
    report_clean_text(text);
    size_t first = text ? strcspn(text, "\n") : 0;
    if (text && text[first]) { /* the details, such as a traceback, are for the log only */
        report_say(&s->report, "%s", text);
    }
    muster_fail(s->err, MUSTER_EFAILED, "the job has failed: %.*s", (int)first, text ? text : "");
    free(text);
}

static void carry_out(struct server *s, const struct arbiter_effect *effect,
                      struct last_frame *last)
{
    switch (effect->kind) {
    case ARBITER_APPEND: append(s, effect); break;
    case ARBITER_SYNC: s->sync_due = true; break;
    case ARBITER_SERVE: serve(s); break;
    case ARBITER_SEND: send_frame(s, effect, last); break;
    case ARBITER_HANG_UP: hang_up(s, effect->to); break;
    case ARBITER_END: s->over = true; break;
    case ARBITER_FAILED: fail_job(s, effect); break;
    case ARBITER_HANGS:
        report_say(&s->report, "%s: %.*s", arbiter_name(s->arbiter, effect->to), (int)effect->count,
                   (const char *)arbiter_effect_bytes(&s->effects, effect));
        break;
    case ARBITER_ASIDE:
        report_say(&s->report, "warning: %.*s", (int)effect->count,
                   (const char *)arbiter_effect_bytes(&s->effects, effect));
        s->status_due = true;
        break;
    case ARBITER_OPENED: s->status_due = true; break;
    case ARBITER_LOST:
    case ARBITER_LOST_AGAIN: note_lost(s, effect); break;
    case ARBITER_LEASER_LOST: /* no other worker has waited for it */
        say_lost(s, effect);
        s->status_due = true;
        break;
    }
}

static struct pace_look look_at(const struct server *s)
{
    return (struct pace_look){.now_ms = server_now_ms(),
                              .now_unix_ms = clock_unix_ms(),
                              .generation = arbiter_generation(s->arbiter),
                              .version = arbiter_version(s->arbiter),
                              .is_open = arbiter_is_open(s->arbiter),
                              .restored = arbiter_is_restored(s->arbiter)};
}

static void measure(struct server *s)
{
    const struct pace_look look = look_at(s);
    if (pace_look(&s->pace, &look)) {
        s->status_due = true;
        report_recovery(&s->report, &s->pace.recoveries[s->pace.recovery_count - 1]);
    }
}

void server_feed(struct server *s, struct arbiter_event event)
{
    struct last_frame last = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!s->arbiter || s->result < 0 || !server_may_act(s)) {
        return;
    }
    event.now_ms = server_now_ms();
    int r = server_step(s, &event, &err);
    for (size_t i = 0; i < s->effects.count && s->result == 0 && server_may_act(s); i++) {
        carry_out(s, &s->effects.list[i], &last);
    }
    server_frame_release(last.frame);
    if (r < 0 && s->result == 0) {
        *s->err = err;
        server_fail(s, r);
    }
    measure(s);
}

void server_sync(struct server *s)
{
    s->sync_due = false;
    int r = journal_sync(s->journal, s->err);
    if (r < 0) {
        s->journal_failed = true;
        server_fail(s, r);
        return;
    }
    server_feed(s, (struct arbiter_event){.kind = ARBITER_DURABLE});
}

/* If this fails, the old journal stays valid and keeps growing. */
static int compact(struct server *s, struct muster_err *err)
{
    struct buf bytes;
    buf_init(&bytes, JOURNAL_RECORD_MAX);
    int r = arbiter_snapshot(s->arbiter, &bytes, err);
    r = r < 0 ? r : journal_compact(s->journal, ENTRY_SNAPSHOT, bytes.data, bytes.used, err);
    buf_done(&bytes);
    return r;
}

void server_compact(struct server *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    size_t before = journal_bytes(s->journal);
    if (before <= s->compact_bytes || s->sync_due || !arbiter_may_compact(s->arbiter)) {
        return;
    }
    if (compact(s, &err) < 0) {
        report_say(&s->report, "warning: the journal of %zu bytes is not compacted: %s", before,
                   err.text);
        s->compact_bytes = 2 * before;
        return;
    }
    size_t after = journal_bytes(s->journal);
    s->compact_bytes =
        2 * after > s->options->compact_bytes ? 2 * after : s->options->compact_bytes;
}

/* Makes the journal's files again from what the arbiter has. They may be deleted or moved while
 * they are in use, for example by a cleaner of temporary files. */
void server_keep_journal(struct server *s)
{
    const char *folder = s->options->journal;
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t now_ms = server_now_ms();
    if (s->sync_due || now_ms < s->keep_ms || !arbiter_may_compact(s->arbiter) ||
        !journal_is_lost(s->journal)) {
        return;
    }
    s->keep_ms = now_ms + SERVER_WARN_MS;
    int r = file_mkdir(folder, 0700, &err);
    r = r < 0 ? r : compact(s, &err);
    if (r < 0) {
        report_say(&s->report,
                   "warning: the journal is no longer in %s, and cannot be written there "
                   "again: %s; without it a coordinator that is started again begins anew",
                   folder, err.text);
        return;
    }
    journal_note_term(s->journal, arbiter_term(s->arbiter));
    report_say(&s->report,
               "warning: files of the journal in %s were deleted or moved while they were in "
               "use; they were written again",
               folder);
}

/* ---- A term ---- */

static int replay(struct server *s, struct muster_err *err)
{
    struct journal_record record;
    int r = 0;
    while (r == 0 && journal_read(s->journal, &record)) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .now_ms = server_now_ms(),
                                            .record = record.kind,
                                            .bytes = record.bytes,
                                            .count = record.count};
        r = server_step(s, &event, err);
    }
    return r < 0 ? muster_wrap(err, "the journal in %s", s->options->journal) : 0;
}

/* Makes the number that distinguishes this job's checkpoints from those of other jobs. */
static int make_lineage(uint64_t *ret_lineage, struct muster_err *err)
{
    uint32_t job = 0;
    int r = random_bytes(&job, sizeof job, err);
    *ret_lineage = (uint64_t)job << 32;
    return r;
}

/* Warns once that there are no locks, because this does not change by itself. */
static void note_lock(struct server *s)
{
    if (!journal_is_locked(s->journal) && !s->lacks_locks) {
        s->lacks_locks = true;
        report_say(&s->report,
                   "warning: the file system of %s has no locks (flock): the lease alone keeps "
                   "other coordinators from the journal there",
                   s->options->journal);
    }
}

static int open_term(struct server *s, struct muster_err *err)
{
    const struct server_options *options = s->options;
    struct server_lease *lease = options->lease;
    const struct journal_options journal = {
        .folder = options->journal, .sync = options->durable, .takes_over = lease != NULL};
    struct arbiter_options arbiter = {.sizes = options->sizes,
                                      .peers = options->sizes.max_size + 64,
                                      .micro_batches = options->micro_batches,
                                      .lease_ms = SHARD_LEASE_MS,
                                      .pass_ms = options->pass_ms,
                                      .pass_max_ms = options->pass_max_ms,
                                      .first_ms = options->first_ms,
                                      .max_steps = options->max_steps,
                                      .least_term = lease ? lease->calls->term(lease) : 0};
    int r = file_mkdir(options->journal, 0700, err);
    r = r < 0 ? r : journal_open(&journal, &s->journal, err);
    r = r < 0 ? r : make_lineage(&arbiter.sizes.lineage, err);
    r = r < 0 ? r : arbiter_new(&arbiter, &s->arbiter, err);
    if (r < 0) {
        return r;
    }
    note_lock(s);
    server_recording_begin(s, &arbiter);
    return replay(s, err);
}

int server_begin(struct server *s, struct muster_err *err)
{
    s->result = 0;
    s->journal_failed = false;
    s->sync_due = false;
    s->compact_bytes = s->options->compact_bytes;
    arbiter_effects_init(&s->effects);
    int r = open_term(s, err);
    if (r == 0) {
        const struct pace_look look = look_at(s);
        pace_begin(&s->pace, &look, server_alive_begin(s));
        server_feed(s, (struct arbiter_event){.kind = ARBITER_START});
        if (s->result == 0 && !s->over) {
            server_roll_call(s);
        }
    }
    return r;
}

void server_end(struct server *s)
{
    for (size_t i = 0; i < s->listener_count; i++) {
        server_listener_pause(&s->listeners[i]);
    }
    server_forget_all(s);
    arbiter_free(s->arbiter);
    s->arbiter = NULL;
    recording_close(s->recording);
    s->recording = NULL;
    arbiter_effects_done(&s->effects);
    server_alive_end(s);
    journal_close(s->journal);
    s->journal = NULL;
}
