/* Tells to which attempt of the whole job a pod belongs. With the annotation
 * JOB_ANNOTATION_MAX_RESTARTS a rank that fails ends all ranks, and they start again together: the
 * next attempt. The job's number is in .status.counters.jobRestarts, a pod's in its annotation
 * JOB_ANNOTATION_ATTEMPT. A pod with a lower number is only to be deleted.
 *
 * Layer: pure; nothing is allocated, so that no attempt can be taken for another one.
 */
#pragma once

#include "job/job.h"

struct control_attempt {
    int64_t number;    /* restarts until now */
    const char *first; /* why the first attempt failed, "": there was no restart; borrowed */
    const char *last;  /* why the attempt before this one failed */
};

/* Number 0 where the job is not restarted as a whole. Of a job that an earlier version began it is
 * in annotations; they travel when a job is exported and created again, so what is written there
 * may be another job's, which counts as 0, too. */
struct control_attempt control_attempt_read(const struct job *job);
int64_t control_attempt_of_pod(const json_t *pod);
