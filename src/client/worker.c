/* See worker.h. */
#include "client/worker.h"

#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURN_MS = 50 };

int64_t worker_now_ns(void)
{
    return deadline_now_ns();
}

int worker_interrupted(void *context)
{
    const struct muster_elastic *job = context;
    return job->interrupted ? job->interrupted(job->user) : 0;
}

int worker_wait(struct muster_elastic *job, struct muster_err *err)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TURN_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&job->changed, &job->mutex, &until);
    pthread_mutex_unlock(&job->mutex);
    bool enough = worker_interrupted(job);
    pthread_mutex_lock(&job->mutex);
    return enough ? muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while others are waited for")
                  : 0;
}

void worker_wake(const struct muster_elastic *job)
{
    uint64_t one = 1;
    (void)!write(job->wake_fd, &one, sizeof one);
}

void worker_end(struct muster_elastic *job, enum worker_ending end, int code, const char *format,
                ...)
{
    if (job->end != WORKER_GOES_ON) {
        return;
    }
    va_list args;
    job->end = end;
    job->why = (struct muster_err)MUSTER_ERR_INIT;
    va_start(args, format);
    (void)muster_vfail(&job->why, code, format, args);
    va_end(args);
    if (end == WORKER_EXPELLED || end == WORKER_FAILED) { /* the user's thread must return */
        job->abort_wanted = job->core.generation;
    }
    (void)pthread_cond_broadcast(&job->changed);
    worker_wake(job);
}

int worker_check_own(const struct muster_elastic *job, struct muster_err *err)
{
    int r = sized_check_err(err);
    if (r == 0 && job->owner != getpid()) {
        return muster_fail(err, MUSTER_EINVAL, "a forked process cannot use its parent's job");
    }
    return r;
}
