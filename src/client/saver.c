/* See saver.h. */
#include "client/saver.h"

#include "client/checkpoint/folder.h"
#include "client/report.h"
#include "core/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 2, SECONDS = 60 };

/* ---- Options ---- */

/* Reads the option, or the environment where the option is 0; 0: neither is set. */
static int read_number(uint32_t said, const char *variable, uint32_t *ret, struct muster_err *err)
{
    const char *text = getenv(variable);
    char *end = NULL;
    *ret = said;
    if (said > 0 || !text || !*text) {
        return 0;
    }
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > UINT32_MAX) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is a number, not \"%s\"", variable, text);
    }
    *ret = (uint32_t)value;
    return 0;
}

int saver_init(struct saver *saver, const struct muster_elastic_options *options,
               struct muster_err *err)
{
    uint32_t steps, seconds;
    const char *folder = options->checkpoint ? options->checkpoint : getenv("MUSTER_CHECKPOINT");
    int r = read_number(options->checkpoint_steps, "MUSTER_CHECKPOINT_STEPS", &steps, err);
    r = r < 0
            ? r
            : read_number(options->checkpoint_seconds, "MUSTER_CHECKPOINT_SECONDS", &seconds, err);
    r = r < 0 ? r
              : read_number(options->checkpoint_keep, "MUSTER_CHECKPOINT_KEEP", &saver->keep, err);
    if (r < 0 || !folder || !*folder) {
        return r;
    }
    saver->keep = saver->keep > 0 ? saver->keep : KEEP;
    saver->every_steps = steps;
    saver->every_ns = INT64_C(1000000000) * (steps == 0 && seconds == 0 ? SECONDS : seconds);
    saver->newest_ns = worker_now_ns();
    return folder_open(folder, &saver->folder, err);
}

void saver_done(struct saver *saver)
{
    free(saver->folder);
    free(saver->copy);
    free(saver->sizes);
}

/* ---- What is due ---- */

static bool is_due(const struct muster_elastic *job)
{
    const struct saver *s = &job->saver;
    uint64_t version = job->core.version;
    bool steps = s->every_steps > 0 && version / s->every_steps > s->newest / s->every_steps;
    bool time = s->every_ns > 0 && worker_now_ns() - s->newest_ns >= s->every_ns;
    return version > s->newest && (steps || time);
}

static void describe(struct muster_elastic *job)
{
    uint64_t version = job->core.version, steps = plan_steps(&job->plan);
    struct checkpoint_head *head = &job->saver.head;
    *head = (struct checkpoint_head){.lineage = job->core.lineage,
                                     .version = version,
                                     .epoch = job->plan.epochs,
                                     .plan = plan_digest(&job->plan),
                                     .num_pieces = (uint32_t)job->num_pieces};
    if (version < steps) {
        struct plan_step next = plan_step(&job->plan, version + 1);
        head->epoch = next.epoch;
        head->position = next.first;
    }
    for (size_t i = 0; i < job->num_pieces; i++) {
        head->state_bytes += job->pieces[i].size_bytes;
    }
}

/* A complete job needs no checkpoint, because it is over once its workers have ended. */
void saver_offer(struct muster_elastic *job)
{
    struct saver *s = &job->saver;
    bool writes = s->is_started && job->mine->rank == 0 && !job->core.complete;
    bool waits = s->unsaid_version > 0 && job->phase != UPLINK_UP; /* unreported checkpoints stay */
    if (!writes || waits || s->phase != SAVER_IDLE || !is_due(job)) {
        return;
    }
    s->newest = job->core.version;
    s->newest_ns = worker_now_ns();
    describe(job);
    s->phase = SAVER_COPYING;
    (void)pthread_cond_broadcast(&job->changed);
}

void saver_settle(struct muster_elastic *job)
{
    while (job->saver.phase == SAVER_COPYING) {
        (void)pthread_cond_wait(&job->changed, &job->mutex);
    }
}

/* ---- The thread ---- */

static int make_room(struct saver *s, size_t bytes, size_t num_sizes, struct muster_err *err)
{
    if (bytes > s->room || !s->copy) {
        free(s->copy);
        s->copy = malloc(bytes + 1);
        s->room = s->copy ? bytes : 0;
    }
    if (num_sizes > s->num_sizes || !s->sizes) {
        free(s->sizes);
        s->sizes = calloc(num_sizes + 1, sizeof *s->sizes);
        s->num_sizes = s->sizes ? num_sizes : 0;
    }
    return s->copy && s->sizes
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for a copy of the state of %zu bytes",
                             bytes);
}

/* The caller has released the mutex: the pieces do not change until this returns. */
static int copy_pieces(struct saver *s, const struct muster_elastic_piece *pieces, size_t count,
                       struct muster_err *err)
{
    int r = make_room(s, (size_t)s->head.state_bytes, count, err);
    char *at = s->copy;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (pieces[i].size_bytes > 0) {
            memcpy(at, pieces[i].memory, pieces[i].size_bytes);
        }
        s->sizes[i] = pieces[i].size_bytes;
        at += pieces[i].size_bytes;
    }
    return r;
}

static bool is_stopped(void *context)
{
    const struct saver *s = context;
    return atomic_load(&s->stop);
}

static void note_written(struct muster_elastic *job, const struct checkpoint_place *place, int code,
                         const struct muster_err *err)
{
    struct saver *s = &job->saver;
    if (code == 0) {
        s->unsaid_version = place->name.version;
        s->unsaid = *place;
        saver_remind(job);
    } else if (code != MUSTER_EABORTED) {
        report_checkpoint_failed(job, s->head.version, false, err->text);
    }
}

static void save(struct muster_elastic *job)
{
    struct saver *s = &job->saver;
    struct muster_err err = MUSTER_ERR_INIT;
    struct checkpoint_place place;
    const struct muster_elastic_piece *pieces = job->pieces;
    size_t count = job->num_pieces;
    pthread_mutex_unlock(&job->mutex);
    int r = copy_pieces(s, pieces, count, &err);
    pthread_mutex_lock(&job->mutex);
    s->phase = SAVER_WRITING;
    (void)pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    if (r == 0) {
        r = checkpoint_save(s->folder, job->incarnation, &s->head, s->sizes, s->copy, is_stopped, s,
                            &place, &err);
    }
    pthread_mutex_lock(&job->mutex);
    note_written(job, &place, r, &err);
    s->phase = SAVER_IDLE;
}

static void prune(struct muster_elastic *job)
{
    struct saver *s = &job->saver;
    struct checkpoint_name list[SAVER_KNOWN_MAX];
    const struct folder_known known = {list, s->known_count, job->core.lineage};
    memcpy(list, s->known, sizeof list);
    s->prune = false;
    pthread_mutex_unlock(&job->mutex);
    folder_prune(s->folder, &known, s->keep);
    pthread_mutex_lock(&job->mutex);
}

static void *run(void *context)
{
    struct muster_elastic *job = context;
    struct saver *s = &job->saver;
    pthread_mutex_lock(&job->mutex);
    while (!atomic_load(&s->stop)) {
        if (s->phase == SAVER_COPYING) {
            save(job);
        } else if (s->prune) {
            prune(job);
        } else {
            (void)pthread_cond_wait(&job->changed, &job->mutex);
        }
    }
    s->phase = SAVER_IDLE;
    (void)pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

int saver_start(struct muster_elastic *job, struct muster_err *err)
{
    if (!job->saver.folder) {
        return 0;
    }
    int r = thread_start(&job->saver.thread, NULL, run, job);
    job->saver.is_started = r == 0;
    return r == 0 ? 0 : muster_fail(err, MUSTER_EOS, "no thread for checkpoints: %s", strerror(r));
}

void saver_stop(struct muster_elastic *job)
{
    if (!job->saver.is_started) {
        return;
    }
    pthread_mutex_lock(&job->mutex);
    atomic_store(&job->saver.stop, true);
    (void)pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    pthread_join(job->saver.thread, NULL);
    job->saver.is_started = false;
}

/* ---- With the coordinator ---- */

void saver_remind(struct muster_elastic *job)
{
    struct saver *s = &job->saver;
    if (s->unsaid_version > 0) {
        report_checkpoint(job, &s->unsaid);
    }
    if (s->refused_generation > 0 && s->refused_generation == job->core.generation) {
        report_checkpoint_failed(job, job->core.version, true, s->why);
    }
}

void saver_refuse(struct muster_elastic *job, const char *why)
{
    struct saver *s = &job->saver;
    s->refused_generation = job->core.generation;
    strncpy(s->why, why, sizeof s->why - 1);
    report_checkpoint_failed(job, job->core.version, true, s->why);
}

/* Reads the name that begins there. Returns the beginning of the next one, or NULL. */
static const char *take_name(const char *at, const char *end, char ret[CHECKPOINT_NAME_BYTES])
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t count = (size_t)((stop ? stop : end) - at);
    ret[0] = 0;
    if (count < CHECKPOINT_NAME_BYTES) {
        memcpy(ret, at, count);
        ret[count] = 0;
    }
    return stop ? stop + 1 : NULL;
}

/* Takes the names of all checkpoints that the job may go back to, one on a line, the newest last.
 * Returns false, and changes nothing, if there are none. */
static bool take_names(struct saver *s, const struct wire_text *names)
{
    const char *at = names->bytes, *end = names->bytes + names->count;
    struct checkpoint_name list[SAVER_KNOWN_MAX];
    size_t count = 0;
    while (at && count < SAVER_KNOWN_MAX) {
        char text[CHECKPOINT_NAME_BYTES];
        bool part;
        at = take_name(at, end, text);
        count += checkpoint_name_read(text, &list[count], &part) && !part;
    }
    if (count > 0) {
        memcpy(s->known, list, count * sizeof *list);
        s->known_count = count;
    }
    return count > 0;
}

void saver_hear(struct muster_elastic *job, const struct wire_checkpoint *told)
{
    struct saver *s = &job->saver;
    if (!take_names(s, &told->path)) {
        return;
    }
    if (s->unsaid_version > 0 && s->unsaid_version <= told->version) {
        s->unsaid_version = 0;
    }
    if (s->newest < told->version) {
        s->newest = told->version;
        s->newest_ns = worker_now_ns();
    }
    s->prune = s->is_started && job->mine->rank == 0;
    (void)pthread_cond_broadcast(&job->changed);
}
