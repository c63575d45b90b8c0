/* The annotations of ours that a job may carry, all under muster.dev/. A cluster ignores them;
 * docs/annotations.md explains each, and lint knows no others.
 *
 * Layer: pure.
 */
#pragma once

/* On the job, or on a replica's pod template. Shell words that replace the image's ENTRYPOINT if a
 * container has no command. */
#define JOB_ANNOTATION_COMMAND "muster.dev/command"

/* On the job. "ElasticDL": its pods are named as by that tool. */
#define JOB_ANNOTATION_POD_NAMES "muster.dev/pod-names"
/* On the job. "Master": the Master is not a rank, but the coordinator of the Workers. When the
 * Workers have ended, its end is the end of the job. */
#define JOB_ANNOTATION_COORDINATOR "muster.dev/coordinator"
/* On the job. "N": the first N Workers have the PriorityClass "high"; the others have the one of
 * their template. */
#define JOB_ANNOTATION_HIGH_WORKERS "muster.dev/high-priority-workers"

/* On the job, written by the CLI at submit. */
#define JOB_ANNOTATION_SUBMIT "muster.dev/submit" /* JSON {"cwd":…,"umask":N} of the submitter */
#define JOB_ANNOTATION_ENVIRONMENT                                                                 \
    "muster.dev/environment"                      /* ID of the values kept beside the object */
#define JOB_ANNOTATION_IMAGES "muster.dev/images" /* JSON {"IMAGE":["word",…]}: from --image */
#define JOB_ANNOTATION_LEASE "muster.dev/lease"   /* lease id, "run-PID-RANDOM" */
#define JOB_ANNOTATION_STDIN "muster.dev/stdin"   /* the rank whose standard input is a client's */
#define JOB_ANNOTATION_NETWORK "muster.dev/network" /* "host" (default) or "private" */
#define JOB_ANNOTATION_RUNTIME "muster.dev/runtime" /* "process" (default) or "podman" */
#define JOB_ANNOTATION_GPU "muster.dev/gpu"         /* "share" or "none" */
#define JOB_ANNOTATION_BACKEND                                                                     \
    "muster.dev/backend" /* "muster": use it in place of gloo, or of no backend */
#define JOB_ANNOTATION_SUCCESS_POLICY                                                              \
    "muster.dev/success-policy" /* "AllRanks": succeeded when every rank has; or "Default" */
#define JOB_ANNOTATION_STALL                                                                       \
    "muster.dev/stall" /* a duration; "60s" if the annotation is absent; "0": never */

#define JOB_ANNOTATION_MAX_RESTARTS                                                                \
    "muster.dev/max-restarts" /* "N": if a rank fails, all are started again, up to N times */

/* On the job: why and how it is ended from outside. */
#define JOB_ANNOTATION_STOP                                                                        \
    "muster.dev/stop" /* text: why it was ended from outside; the control core fails the job */
#define JOB_ANNOTATION_STOP_SIGNAL                                                                 \
    "muster.dev/stop-signal" /* from the CLI: "SIGINT", the first signal to ranks; else SIGTERM */

/* On the job, written by the controllers of earlier versions; now these values are in
 * .status.counters. */
#define JOB_ANNOTATION_FAILURES "muster.dev/failures"
#define JOB_ANNOTATION_COUNTED "muster.dev/counted"
#define JOB_ANNOTATION_RESTARTS "muster.dev/restarts"
#define JOB_ANNOTATION_STARTED "muster.dev/started"
#define JOB_ANNOTATION_ENDED "muster.dev/ended"
#define JOB_ANNOTATION_JOB_RESTARTS "muster.dev/job-restarts" /* "N UID" */
#define JOB_ANNOTATION_FIRST_RESTART "muster.dev/first-restart"
#define JOB_ANNOTATION_LAST_RESTART "muster.dev/last-restart"

/* On the pods of a job that restarts as a whole, written by the controller. */
#define JOB_ANNOTATION_ATTEMPT                                                                     \
    "muster.dev/attempt" /* restarts of the whole job before the pod was made */

/* The job's uid: a label, not an annotation, on each Event that is about a job or its pods. */
#define JOB_LABEL_EVENT "muster.dev/job-uid"

#define JOB_ANNOTATION_PREFIX "muster.dev/"
#define JOB_NOTES                                                                                  \
    JOB_ANNOTATION_COMMAND, JOB_ANNOTATION_SUBMIT, JOB_ANNOTATION_ENVIRONMENT,                     \
        JOB_ANNOTATION_IMAGES, JOB_ANNOTATION_LEASE, JOB_ANNOTATION_NETWORK,                       \
        JOB_ANNOTATION_RUNTIME, JOB_ANNOTATION_GPU, JOB_ANNOTATION_BACKEND,                        \
        JOB_ANNOTATION_SUCCESS_POLICY, JOB_ANNOTATION_STALL, JOB_ANNOTATION_FAILURES,              \
        JOB_ANNOTATION_COUNTED, JOB_ANNOTATION_RESTARTS, JOB_ANNOTATION_MAX_RESTARTS,              \
        JOB_ANNOTATION_JOB_RESTARTS, JOB_ANNOTATION_FIRST_RESTART, JOB_ANNOTATION_LAST_RESTART,    \
        JOB_ANNOTATION_ATTEMPT, JOB_ANNOTATION_STARTED, JOB_ANNOTATION_ENDED, JOB_ANNOTATION_STOP, \
        JOB_ANNOTATION_POD_NAMES, JOB_ANNOTATION_COORDINATOR, JOB_ANNOTATION_HIGH_WORKERS
