/* See uplink.h. A connection begins with HELLO and DATASET; later messages are handed to the core.
 * A connection that fails is made again, first at once, then after delays that grow from 10 ms to
 * 150 ms. Messages of a former coordinator process, which have an older term, are ignored.
 */
#include "client/uplink.h"

#include "client/hear.h"
#include "client/obey.h"
#include "client/report.h"
#include "client/saver.h"
#include "core/thread.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    GREETING_MS = 5000, /* until the connection is up, or it is made again */
    FIRST_PAUSE_MS = 10,
    LAST_PAUSE_MS = 150, /* a coordinator that was started again gives members 800 ms to report */
    PROGRESS_MS = 1000,
    NS_PER_MS = 1000000,
};

struct times {
    int64_t retry_ns;
    int64_t greeted_ns; /* when the connection was begun */
    int64_t progress_ns;
    int pause_ms;
};

static int64_t later(int64_t now_ns, int64_t ms)
{
    return now_ns + ms * NS_PER_MS;
}

static void drop(struct muster_elastic *job, struct times *t, const struct muster_err *err)
{
    connection_close(&job->connection);
    if (err->code < 0 && job->end == WORKER_GOES_ON) {
        job->why = *err;
    }
    if (job->phase == UPLINK_UP) {
        t->pause_ms = 0;
        obey_own(job, COMMIT_DISCONNECTED, 0);
    }
    job->phase = UPLINK_DOWN;
    t->retry_ns = later(worker_now_ns(), t->pause_ms);
    t->pause_ms = t->pause_ms == 0                  ? FIRST_PAUSE_MS
                  : t->pause_ms * 2 < LAST_PAUSE_MS ? t->pause_ms * 2
                                                    : LAST_PAUSE_MS;
    (void)pthread_cond_broadcast(&job->changed);
}

/* Connects without the mutex: the look-up of the coordinator's name may take long, and the user's
 * thread must not wait for it. No other thread uses the connection while it is down. */
static void connect_anew(struct muster_elastic *job, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_mutex_unlock(&job->mutex);
    int r = connection_open(&job->connection, job->coordinator, &err);
    pthread_mutex_lock(&job->mutex);
    t->greeted_ns = worker_now_ns();
    if (r == MUSTER_EGONE) { /* this worker came too late, or was left out */
        worker_end(job, job->core.complete ? WORKER_FINISHED : WORKER_EXPELLED, r, "%s", err.text);
    } else if (r == MUSTER_EFAILED) {
        worker_end(job, WORKER_FAILED, r, "%s", err.text);
    }
    if (r < 0) {
        drop(job, t, &err);
        return;
    }
    job->phase = UPLINK_GREETING;
    report_hello(job);
}

static void move(struct muster_elastic *job, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct wire_message message;
    int moved = connection_move(&job->connection, &err), r = 0;
    bool more = true; /* messages that came before the end of the connection count */
    while (r == 0 && more && job->connection.fd >= 0 && job->end == WORKER_GOES_ON) {
        r = connection_next(&job->connection, &message, moved < 0 ? NULL : &err);
        more = r == 1;
        r = more ? hear(job, &message, &err) : r;
    }
    if (job->phase == UPLINK_UP) {
        t->pause_ms = 0;
    }
    if (r < 0 || moved < 0 || job->connection.fd < 0) {
        drop(job, t, &err);
    }
}

static void ask_to_leave(struct muster_elastic *job)
{
    if (atomic_load(&job->leave_asked) && !job->told_leave && job->joins) {
        job->told_leave = true;
        obey_own(job, COMMIT_LEAVE, 0);
    }
}

/* Reports a pass that was expected to be too short to report, but is not over yet. */
static void tell_of_pass(struct muster_elastic *job)
{
    bool current = job->pass_version == job->core.version + 1;
    if (job->computing && current && job->at_hand.count == 0) {
        struct plan_step step = plan_step(&job->plan, job->pass_version);
        job->at_hand = plan_micro_batch(&job->plan, &step, job->pass_micro_batch);
        report_pass(job);
    }
}

/* Does what is due; returns how long until the next thing is due. */
static int tend(struct muster_elastic *job, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t now = worker_now_ns(), next = later(now, PROGRESS_MS);
    bool goes_on = job->end == WORKER_GOES_ON;
    ask_to_leave(job);
    if (job->connection.fd < 0 && job->phase != UPLINK_DOWN) {
        drop(job, t, &job->why); /* it was closed when something had to be sent */
    }
    if (job->phase == UPLINK_DOWN && goes_on && now >= t->retry_ns) {
        connect_anew(job, t);
    }
    if (job->phase == UPLINK_DOWN) {
        next = goes_on ? t->retry_ns : next;
    } else if (job->phase != UPLINK_UP && now > later(t->greeted_ns, GREETING_MS)) {
        muster_fail(&err, MUSTER_ETIMEDOUT, "the coordinator does not answer");
        drop(job, t, &err);
    } else if (job->phase == UPLINK_UP && job->joins && now >= t->progress_ns) {
        t->progress_ns = later(now, PROGRESS_MS);
        report_progress(job);
        tell_of_pass(job);
        saver_remind(job);
    }
    int64_t left_ms = (next - now) / NS_PER_MS + 1;
    return left_ms < 0 ? 0 : (int)left_ms;
}

static void *run(void *context)
{
    struct muster_elastic *job = context;
    struct times t = {0};
    pthread_mutex_lock(&job->mutex);
    while (!job->stop) {
        int wait_ms = tend(job, &t);
        struct pollfd fds[] = {
            {.fd = job->wake_fd, .events = POLLIN},
            {.fd = job->connection.fd, .events = connection_events(&job->connection)}};
        pthread_mutex_unlock(&job->mutex);
        (void)poll(fds, 2, wait_ms);
        uint64_t rung;
        if (fds[0].revents) {
            (void)!read(job->wake_fd, &rung, sizeof rung);
        }
        pthread_mutex_lock(&job->mutex);
        if (job->connection.fd >= 0) {
            move(job, &t);
        }
        obey_abort(job);
    }
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

int uplink_start(struct muster_elastic *job, struct muster_err *err)
{
    int r = thread_start(&job->thread, NULL, run, job);
    return r == 0 ? 0
                  : muster_fail(err, MUSTER_EOS, "no thread for the coordinator: %s", strerror(r));
}

/* Sends all that is queued, so that nothing is lost: by LEAVE the coordinator knows that this
 * worker did not die. */
static void flush(struct muster_elastic *job, int64_t deadline_ns)
{
    struct muster_err err = MUSTER_ERR_INIT;
    while (job->phase == UPLINK_UP && job->connection.out.used > 0 &&
           worker_now_ns() < deadline_ns) {
        struct pollfd p = {.fd = job->connection.fd, .events = POLLOUT};
        (void)poll(&p, 1, 10);
        if (connection_move(&job->connection, &err) < 0) {
            return;
        }
    }
}

void uplink_stop(struct muster_elastic *job, int64_t flush_ms)
{
    pthread_mutex_lock(&job->mutex);
    job->stop = true;
    pthread_mutex_unlock(&job->mutex);
    worker_wake(job);
    pthread_join(job->thread, NULL);
    flush(job, later(worker_now_ns(), flush_ms));
}
