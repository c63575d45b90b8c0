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
    int64_t number;    /* restarts so far */
    const char *first; /* why the first attempt failed; "": no restart yet; borrowed */
    const char *last;  /* why the attempt before this one failed */
};

/* Reads the attempt; number 0 if the job is not restarted as a whole. If an earlier version began
 * the job, the attempt is in annotations. These are copied when a job is exported and created
 * again, so they may be another job's; then the number is 0, too. */
struct control_attempt control_attempt_read(const struct job *job);
int64_t control_attempt_of_pod(const json_t *pod);
