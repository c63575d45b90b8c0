/* See report.h. */
#include "coordinator/server/report.h"

#include "base/time/age.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 1000, LOG_MS = 5000, NUMBER_BYTES = 32 };

void report_init(struct report *report, bool progress, int64_t now_ms)
{
    *report = (struct report){.progress = progress,
                              .is_terminal = isatty(STDERR_FILENO) == 1,
                              .began_ms = now_ms,
                              .last_ms = now_ms};
}

void report_clean_name(const char *name, char *ret, size_t size)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++) {
        ret[i] = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
    }
    ret[i] = 0;
}

void report_clean_text(char *text)
{
    for (; text && *text; text++) {
        bool plain = (unsigned char)*text >= ' ' && *text != 0x7f;
        *text = plain || *text == '\n' || *text == '\t' ? *text : '?';
    }
}

/* Writes a number such as "12,345". */
static const char *count_text(uint64_t count, char ret[NUMBER_BYTES])
{
    char digits[NUMBER_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count), used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            ret[used++] = ',';
        }
        ret[used++] = digits[i];
    }
    ret[used] = 0;
    return ret;
}

/* ---- During the job ---- */

static void end_line(struct report *report)
{
    if (report->is_open) {
        fputc('\n', stderr);
        report->is_open = false;
    }
}

void report_say(struct report *report, const char *format, ...)
{
    va_list args;
    end_line(report);
    fputs("muster: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Adds ", 2 min 5 s left", or nothing if the time is not known. */
static void add_time_left(const struct arbiter_figures *now, double per_s, char *ret, size_t size)
{
    char words[AGE_BYTES];
    int64_t left_s = pace_seconds_left(now->records_done, now->records, per_s);
    if (left_s > 0) {
        (void)snprintf(ret, size, ", %s left", age_words(left_s * 1000, words));
    }
}

static void describe(const struct arbiter_figures *now, double per_s, char ret[REPORT_LINE_BYTES])
{
    char done[NUMBER_BYTES], all[NUMBER_BYTES], rate[NUMBER_BYTES], wait[NUMBER_BYTES] = "";
    bool ends = now->records != UINT64_MAX;
    if (now->generation == 0 && now->joiners == 0) {
        (void)snprintf(ret, REPORT_LINE_BYTES, "no worker has joined yet");
        return;
    }
    if (now->joiners > 0) {
        (void)snprintf(wait, sizeof wait, " (+%u)", now->joiners);
    }
    if (now->generation == 0) {
        (void)snprintf(ret, REPORT_LINE_BYTES, "no generation yet, 0 workers%s", wait);
        return;
    }
    int length = snprintf(
        ret, REPORT_LINE_BYTES,
        "generation %" PRIu64 ", %u worker%s%s, epoch %u of %u, %s of %s records, %s/s",
        now->generation, now->members, now->members == 1 ? "" : "s", wait,
        now->epoch + (now->epoch < now->epochs), now->epochs, count_text(now->records_done, done),
        ends ? count_text(now->records, all) : "∞", count_text((uint64_t)per_s, rate));
    if (length > 0 && length < REPORT_LINE_BYTES) {
        add_time_left(now, per_s, ret + length, REPORT_LINE_BYTES - (size_t)length);
    }
}

/* Whether a line is due: soon on a terminal, and when workers came or left; otherwise later,
 * because a log need not have all lines. */
static bool is_due(const struct report *report, const struct arbiter_figures *now, int64_t since_ms)
{
    bool soon = report->is_terminal || now->generation != report->last_generation ||
                now->members != report->last_members;
    return since_ms >= (soon ? SOON_MS : LOG_MS);
}

static void note(struct report *report, const struct arbiter_figures *now, int64_t now_ms)
{
    report->last_ms = now_ms;
    report->last_generation = now->generation;
    report->last_members = now->members;
}

void report_progress(struct report *report, const struct arbiter *arbiter, const struct pace *pace,
                     int64_t now_ms)
{
    struct arbiter_figures now;
    char line[REPORT_LINE_BYTES];
    if (!report->progress || pace->sample_count < 2) {
        return;
    }
    arbiter_figures(arbiter, &now);
    if (!is_due(report, &now, now_ms - report->last_ms)) {
        return;
    }
    describe(&now, pace_rate(pace), line);
    note(report, &now, now_ms);
    if (strcmp(line, report->last) == 0) {
        return;
    }
    memcpy(report->last, line, sizeof line);
    fprintf(stderr, report->is_terminal ? "\r\033[K%s" : "%s\n", line);
    report->is_open = report->is_terminal;
    fflush(stderr);
}

/* Writes "worker-1 and 2 more". */
static void name_workers(const struct pace_recovery *recovery, char *ret, size_t size)
{
    const char *who = *recovery->worker ? recovery->worker : "a worker";
    if (recovery->others > 0) {
        (void)snprintf(ret, size, "%s and %u more", who, recovery->others);
    } else {
        (void)snprintf(ret, size, "%s", who);
    }
}

static void say_restored(struct report *report, const struct pace_recovery *recovery)
{
    char where[NUMBER_BYTES + 64] = "begins anew with the model as it was at first, as there is no "
                                    "checkpoint";
    if (recovery->version > 0) {
        (void)snprintf(where, sizeof where, "goes on from the checkpoint of step %" PRIu64,
                       recovery->version);
    }
    report_say(report,
               "warning: no worker is left that has the model of step %" PRIu64
               ": training %s, and %" PRIu64 " step%s done again",
               recovery->version + recovery->lost_steps, where, recovery->lost_steps,
               recovery->lost_steps == 1 ? " is" : "s are");
}

void report_recovery(struct report *report, const struct pace_recovery *recovery)
{
    char who[PACE_NAME_BYTES + NUMBER_BYTES];
    long long ms = recovery->ms;
    if (recovery->kind == PACE_RESTORED) {
        say_restored(report, recovery);
    }
    if (!report->progress) {
        return;
    }
    name_workers(recovery, who, sizeof who);
    switch (recovery->kind) {
    case PACE_LOST: report_say(report, "recovered from the loss of %s in %lld ms", who, ms); break;
    case PACE_LEFT: report_say(report, "%s left, which cost %lld ms", who, ms); break;
    case PACE_JOINED: report_say(report, "%s joined, which cost %lld ms", who, ms); break;
    case PACE_COORDINATOR:
        report_say(report, "the coordinator was away for %lld ms; workers trained on", ms);
        break;
    case PACE_HEALED: /* reported at once, with its step: note.c */
    case PACE_RESTORED:
    case PACE_KINDS: break;
    }
}

static const char *name_or_number(const char *name, uint64_t incarnation, char room[NUMBER_BYTES])
{
    (void)snprintf(room, NUMBER_BYTES, "%016" PRIx64, incarnation);
    return *name ? name : room;
}

void report_lost(struct report *report, const char *name, uint64_t incarnation,
                 enum rendezvous_reason reason, const char *how)
{
    char number[NUMBER_BYTES];
    if (losses_counts(reason)) {
        report_say(report, "lost %s: %s%s%s", name_or_number(name, incarnation, number),
                   arbiter_why(reason), *how ? " " : "", how);
    }
}

/* ---- At the end ---- */

static void add_dataset(const struct shard_progress *data, struct buf *text)
{
    char records[NUMBER_BYTES];
    const struct shard_dataset *spec = &data->dataset;
    const char *name = *spec->name ? spec->name : "records";
    for (uint32_t epoch = 0; epoch < data->epoch && epoch < 100; epoch++) {
        buf_format(text, "%s: epoch %u: %s records committed\n", name, epoch + 1,
                   count_text(spec->size, records));
    }
    if (data->epoch > 100) {
        buf_format(text, "%s: … and so each of %u epochs\n", name, data->epoch);
    }
    if (data->epoch < spec->epochs && data->epoch_done > 0) {
        char all[NUMBER_BYTES];
        buf_format(text, "%s: epoch %u: %s of %s records committed\n", name, data->epoch + 1,
                   count_text(data->epoch_done, records), count_text(spec->size, all));
    }
}

/* Adds the limit of steps; nothing if the epochs have no more steps than that. */
static void add_limit(const struct arbiter_figures *now, struct buf *text)
{
    char steps[NUMBER_BYTES], records[NUMBER_BYTES], all[NUMBER_BYTES];
    if (now->records != now->records_asked) {
        buf_format(text, "limit: training ends after %s step%s: %s of %s records are trained\n",
                   count_text(now->max_steps, steps), now->max_steps == 1 ? "" : "s",
                   count_text(now->records_done, records),
                   now->records_asked == UINT64_MAX ? "∞" : count_text(now->records_asked, all));
    }
}

/* Adds lines such as "correct 9,012 (0.901 a record)". */
static void add_sums(const char *names, const double *sums, uint64_t records, struct buf *text)
{
    for (size_t i = 0; *names; i++) {
        size_t length = strcspn(names, ",");
        buf_format(text, "%s%.*s %.10g (%.6g a record)", i > 0 ? ", " : ": ", (int)length, names,
                   sums[i], sums[i] / (double)records);
        names += length + (names[length] != 0);
    }
}

static void add_leased(const struct arbiter *arbiter, struct buf *text)
{
    static const char *const tasks[SHARD_TASKS] = {"trained", "evaluated", "predicted"};
    struct shard_progress data;
    const char *names;
    const double *sums;
    for (uint32_t i = 0; arbiter_leased(arbiter, i, &data, &names, &sums); i++) {
        char records[NUMBER_BYTES];
        uint64_t count = data.epoch * data.dataset.size + data.epoch_done;
        count -= arbiter_left_out(arbiter, i);
        buf_format(text, "%s: %s records %s", *data.dataset.name ? data.dataset.name : "records",
                   count_text(count, records), tasks[data.dataset.task]);
        add_sums(names, sums, count ? count : 1, text);
        buf_text(text, "\n");
    }
}

static void add_losses(const struct losses *losses, struct buf *text)
{
    char number[NUMBER_BYTES];
    if (losses->count > losses->kept) {
        buf_format(text, "lost: %" PRIu64 " before these\n", losses->count - losses->kept);
    }
    for (size_t i = 0; i < losses->kept; i++) {
        const struct loss *loss = &losses->list[i];
        buf_format(text, "lost: %s: %s\n", name_or_number(loss->name, loss->incarnation, number),
                   arbiter_why(loss->reason));
    }
}

static void add_asides(const struct arbiter *arbiter, struct buf *text)
{
    struct arbiter_aside each;
    for (uint32_t i = 0; arbiter_aside(arbiter, i, &each); i++) {
        buf_format(text, "set aside: record %" PRIu64, each.aside.record);
        if (*each.dataset) {
            buf_format(text, " of data set \"%s\"", each.dataset);
        }
        buf_format(text, ": %u workers died of it, in epoch %u\n", each.aside.deaths,
                   each.aside.epoch + 1);
    }
}

int report_summary(struct report *report, const struct arbiter *arbiter, int64_t now_ms,
                   struct muster_err *err)
{
    struct arbiter_figures now;
    struct shard_progress data;
    struct buf text;
    char records[NUMBER_BYTES], steps[NUMBER_BYTES], age[AGE_BYTES];
    end_line(report);
    buf_init(&text, 1 << 20);
    arbiter_figures(arbiter, &now);
    for (uint32_t i = 0; arbiter_dataset(arbiter, i, &data); i++) {
        add_dataset(&data, &text);
    }
    add_limit(&now, &text);
    add_leased(arbiter, &text);
    add_losses(arbiter_losses(arbiter), &text);
    add_asides(arbiter, &text);
    buf_format(&text,
               "done: %s records in %s steps, %" PRIu64 " generation%s, %" PRIu64
               " lost, in term %" PRIu64 " of the coordinator, which took %s\n",
               count_text(now.records_done, records), count_text(now.version, steps),
               now.generation, now.generation == 1 ? "" : "s", arbiter_losses(arbiter)->count,
               now.term, age_words(now_ms - report->began_ms, age));
    bool written = fputs(buf_str(&text), stdout) >= 0 && fflush(stdout) == 0;
    buf_done(&text);
    return written ? 0 : muster_fail(err, MUSTER_EIO, "the summary cannot be written");
}
