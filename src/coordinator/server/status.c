/* See status.h. */
#include "coordinator/server/status.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"
#include "coordinator/server/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MODE = 0644, LINE_BYTES = 480 };

/* ---- Writing ---- */

static const char *phase_of(const struct arbiter_figures *figures, const struct status *status)
{
    return arbiter_failure(status->arbiter) ? "Failed"
           : status->over                   ? "Done"
           : figures->generation == 0       ? "Waiting"
           : status->pace->closed           ? "Recovering"
                                            : "Training";
}

/* Adds the first line of the reason why the job has failed; the details, such as a traceback, are
 * in the log. */
static void add_failure(struct build *b, json_t *doc, const char *why)
{
    char line[LINE_BYTES];
    if (why) {
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(why, "\n"), why);
        report_clean_text(line);
        line[text_cut(line, sizeof line - 1)] = 0;
        build_text(b, doc, "message", line);
    }
}

static void add_rate(struct build *b, json_t *doc, uint64_t done, uint64_t all, double per_s)
{
    int64_t left_s = pace_seconds_left(done, all, per_s);
    build_int(b, doc, "records", (json_int_t)done);
    if (all != UINT64_MAX) {
        build_int(b, doc, "totalRecords", (json_int_t)all);
    }
    build_int(b, doc, "recordsPerSecond", (json_int_t)per_s);
    if (left_s >= 0) {
        build_int(b, doc, "secondsLeft", left_s);
    }
}

static void add_leased(struct build *b, json_t *doc, const struct status *status)
{
    static const char *const tasks[SHARD_TASKS] = {"train", "evaluate", "predict"};
    json_t *list = build_array_at(b, doc, "datasets");
    struct shard_progress data;
    const char *names;
    const double *sums;
    for (uint32_t i = 0; arbiter_leased(status->arbiter, i, &data, &names, &sums); i++) {
        const struct shard_dataset *spec = &data.dataset;
        bool ends = spec->epochs != SHARD_ENDLESS;
        json_t *entry = build_value(b, json_object());
        build_text(b, entry, "name", spec->name);
        build_text(b, entry, "task", tasks[spec->task]);
        add_rate(b, entry, data.epoch * spec->size + data.epoch_done,
                 ends ? spec->epochs * spec->size : UINT64_MAX,
                 status->over ? 0 : pace_rate(&status->leased[i]));
        build_add(b, list, entry);
    }
}

static json_t *recovery_doc(struct build *b, const struct pace_recovery *recovery)
{
    char at[TIMESTAMP_BYTES];
    json_t *doc = build_value(b, json_object());
    build_text(b, doc, "at", timestamp_text(recovery->at_unix_ms, at));
    build_text(b, doc, "kind", pace_kind_name(recovery->kind));
    build_text(b, doc, "worker", *recovery->worker ? recovery->worker : NULL);
    if (recovery->others > 0) {
        build_int(b, doc, "others", recovery->others);
    }
    build_int(b, doc, "ms", recovery->ms);
    if (recovery->kind == PACE_RESTORED) {
        build_int(b, doc, "version", (json_int_t)recovery->version);
        build_int(b, doc, "lostSteps", (json_int_t)recovery->lost_steps);
    }
    return doc;
}

static void add_records(struct build *b, json_t *doc, const struct arbiter_figures *figures,
                        double per_s)
{
    build_int(b, doc, "epoch", figures->epoch + (figures->epoch < figures->epochs));
    build_int(b, doc, "epochs", figures->epochs);
    add_rate(b, doc, figures->records_done, figures->records, per_s);
}

/* Describes a slow worker. The phase is always "computing", because the compared time is that of a
 * step without its exchange with others. */
static json_t *slow_doc(struct build *b, const struct status_slow *each)
{
    json_t *doc = build_value(b, json_object());
    build_text(b, doc, "worker", each->worker);
    build_text(b, doc, "phase", "computing");
    build_int(b, doc, "lagMs", (json_int_t)(each->slow->lag_ms + 0.5));
    build_int(b, doc, "percent", (json_int_t)(each->slow->times * 100 + 0.5));
    return doc;
}

static void add_asides(struct build *b, json_t *doc, const struct arbiter *arbiter)
{
    json_t *list = build_array_at(b, doc, "setAside");
    struct arbiter_aside each;
    for (uint32_t i = 0; arbiter_aside(arbiter, i, &each); i++) {
        json_t *entry = build_value(b, json_object());
        build_text(b, entry, "dataset", *each.dataset ? each.dataset : NULL);
        build_int(b, entry, "record", (json_int_t)each.aside.record);
        build_int(b, entry, "epoch", each.aside.epoch + 1);
        build_int(b, entry, "deaths", each.aside.deaths);
        build_add(b, list, entry);
    }
}

static json_t *make(const struct status *status)
{
    const struct arbiter *arbiter = status->arbiter;
    const struct pace *pace = status->pace;
    bool over = status->over;
    struct arbiter_figures figures;
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    json_t *doc = build_value(&b, json_object());
    arbiter_figures(arbiter, &figures);
    build_text(&b, doc, "phase", phase_of(&figures, status));
    add_failure(&b, doc, arbiter_failure(arbiter));
    build_int(&b, doc, "generation", (json_int_t)figures.generation);
    build_int(&b, doc, "workers", over ? 0 : figures.members);
    build_int(&b, doc, "joining", figures.joiners);
    build_int(&b, doc, "lost", (json_int_t)arbiter_losses(arbiter)->count);
    build_int(&b, doc, "steps", (json_int_t)figures.version);
    if (figures.max_steps > 0) {
        build_int(&b, doc, "maxSteps", (json_int_t)figures.max_steps);
    }
    add_records(&b, doc, &figures, over ? 0 : pace_rate(pace));
    json_t *list = build_array_at(&b, doc, "recoveries");
    for (size_t i = 0; i < pace->recovery_count; i++) {
        build_add(&b, list, recovery_doc(&b, &pace->recoveries[i]));
    }
    list = build_array_at(&b, doc, "slow");
    for (size_t i = 0; i < status->slow_count; i++) {
        build_add(&b, list, slow_doc(&b, &status->slow[i]));
    }
    add_asides(&b, doc, arbiter);
    add_leased(&b, doc, status);
    build_int(&b, doc, "term", (json_int_t)figures.term);
    build_text(&b, doc, "updated", timestamp_text(clock_unix_ms(), now));
    return build_end(&b, doc);
}

int status_write(const char *path, const struct status *status, struct muster_err *err)
{
    muster_auto(doc) json_t *doc = path ? make(status) : NULL;
    muster_auto(free) char *text = doc ? doc_print(doc) : NULL;
    if (!text) {
        return path ? err_no_memory(err) : 0;
    }
    /* What a pipe cannot take is lost: the next text follows within a second. */
    return file_write_through(path, text, strlen(text), MODE, FILE_NO_WAIT, err);
}

/* ---- Reading ---- */

static bool read_recovery(const json_t *doc, struct pace_recovery *ret)
{
    const char *kind = doc_text(doc, "kind", "");
    int64_t others = doc_int(doc, "others", 0);
    int64_t version = doc_int(doc, "version", 0), lost_steps = doc_int(doc, "lostSteps", 0);
    *ret = (struct pace_recovery){.at_unix_ms = timestamp_read(doc_text(doc, "at", "")),
                                  .ms = doc_int(doc, "ms", -1),
                                  .kind = PACE_KINDS,
                                  .others = (uint32_t)others,
                                  .version = (uint64_t)version,
                                  .lost_steps = (uint64_t)lost_steps};
    for (int i = 0; i < PACE_KINDS; i++) {
        ret->kind =
            strcmp(kind, pace_kind_name((enum pace_kind)i)) == 0 ? (enum pace_kind)i : ret->kind;
    }
    report_clean_name(doc_text(doc, "worker", ""), ret->worker, sizeof ret->worker);
    return ret->kind < PACE_KINDS && ret->ms >= 0 && timestamp_fits(ret->at_unix_ms) &&
           others >= 0 && others <= UINT32_MAX && version >= 0 && lost_steps >= 0;
}

void status_read_recoveries(const char *path, struct pace *pace)
{
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *doc = NULL;
    size_t count = 0, i;
    json_t *each;
    struct pace_recovery recovery;
    struct stat info;
    if (!path || stat(path, &info) < 0 || !S_ISREG(info.st_mode) ||
        file_read(path, STATUS_BYTES_MAX, &text, &count, NULL) < 0 ||
        doc_parse(text, count, &doc, NULL) < 0) {
        return;
    }
    json_array_foreach (doc_at(doc, "recoveries"), i, each) {
        if (read_recovery(each, &recovery)) {
            pace_keep(pace, &recovery);
        }
    }
}
