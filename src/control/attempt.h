/* Which try of the whole job a pod belongs to. With the annotation JOB_ANNOTATION_MAX_RESTARTS a
 * rank that fails ends all ranks, and they start anew together: the next attempt. The job's number
 * is in JOB_ANNOTATION_JOB_RESTARTS, a pod's in its annotation JOB_ANNOTATION_ATTEMPT; a pod whose
 * number is lower has only to go.
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

/* Number 0 where the job is not restarted as a whole, or what is written down is another job's:
 * annotations travel when a job is exported and created again. */
struct control_attempt control_attempt_read(const struct job *job);
int64_t control_attempt_of_pod(const json_t *pod);

/* {JOB_ANNOTATION_JOB_RESTARTS, …}: the annotations of an attempt; new reference, NULL when out of
 * memory. */
json_t *control_attempt_notes(const struct job *job, const struct control_attempt *attempt);
