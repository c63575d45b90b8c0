/* The annotations of ours that a job may carry, all under muster.dev/. A cluster ignores them;
 * docs/annotations.md explains each, and lint knows no others.
 *
 * Layer: pure.
 */
#pragma once

/* On the job, or on a replica's pod template. Shell words: stands for the image's ENTRYPOINT when a
 * container has no command. */
#define JOB_NOTE_COMMAND "muster.dev/command"

/* On the job, written by the CLI at submit. */
#define JOB_NOTE_SUBMIT "muster.dev/submit" /* JSON {"cwd":…}: where it was submitted */
#define JOB_NOTE_ENVIRONMENT                                                                       \
    "muster.dev/environment"                  /* ID of the values that lie beside the object */
#define JOB_NOTE_IMAGES "muster.dev/images"   /* JSON {"IMAGE":["word",…]}: from --image */
#define JOB_NOTE_LEASE "muster.dev/lease"     /* lease id, "run-PID-RANDOM" */
#define JOB_NOTE_STDIN "muster.dev/stdin"     /* the rank whose standard input is a client's */
#define JOB_NOTE_NETWORK "muster.dev/network" /* "host" (default) or "private" */
#define JOB_NOTE_RUNTIME "muster.dev/runtime" /* "process" (default) or "podman" */
#define JOB_NOTE_GPU "muster.dev/gpu"         /* "share" or "none" */
#define JOB_NOTE_BACKEND "muster.dev/backend" /* "muster": in the place of gloo or nothing */
#define JOB_NOTE_SUCCESS_POLICY                                                                    \
    "muster.dev/success-policy" /* "AllRanks": succeeded when every rank is; or "Default" */
#define JOB_NOTE_STALL "muster.dev/stall" /* a duration; "60s" when it is not there, "0": never */

#define JOB_NOTE_MAX_RESTARTS                                                                      \
    "muster.dev/max-restarts" /* "N": a rank that fails ends all, which start anew, N times */

/* On the job, written by the controller. */
#define JOB_NOTE_FAILURES "muster.dev/failures" /* what backoffLimit counts: "N" */
#define JOB_NOTE_COUNTED                                                                           \
    "muster.dev/counted" /* JSON {"job": uid, "<pod uid>": failures counted}                       \
                          */
#define JOB_NOTE_RESTARTS                                                                          \
    "muster.dev/restarts" /* JSON {"worker-1": {"uid","count","at"}}: delays of re-made pods */
#define JOB_NOTE_STARTED                                                                           \
    "muster.dev/started" /* startTime in milliseconds since 1970, where there is a deadline */
#define JOB_NOTE_ENDED "muster.dev/ended" /* completionTime, the same way, where there is a TTL */
#define JOB_NOTE_STOP                                                                              \
    "muster.dev/stop" /* text: why the job was ended from outside; the control core fails the job  \
                       */
#define JOB_NOTE_STOP_SIGNAL                                                                       \
    "muster.dev/stop-signal" /* with it, by the CLI: "SIGINT": what ranks get first; else SIGTERM  \
                              */

#define JOB_NOTE_JOB_RESTARTS "muster.dev/job-restarts"   /* "N UID": see control/attempt.h */
#define JOB_NOTE_FIRST_RESTART "muster.dev/first-restart" /* text: the failure it was for */
#define JOB_NOTE_LAST_RESTART "muster.dev/last-restart"

/* On the pods of such a job, written by the controller. */
#define JOB_NOTE_ATTEMPT "muster.dev/attempt" /* restarts of the whole job before it was made */

/* A label, not an annotation, on each Event that is about a job or its pods: the job's uid. */
#define JOB_LABEL_EVENT "muster.dev/job-uid"

#define JOB_NOTE_PREFIX "muster.dev/"
#define JOB_NOTES                                                                                  \
    JOB_NOTE_COMMAND, JOB_NOTE_SUBMIT, JOB_NOTE_ENVIRONMENT, JOB_NOTE_IMAGES, JOB_NOTE_LEASE,      \
        JOB_NOTE_NETWORK, JOB_NOTE_RUNTIME, JOB_NOTE_GPU, JOB_NOTE_BACKEND,                        \
        JOB_NOTE_SUCCESS_POLICY, JOB_NOTE_STALL, JOB_NOTE_FAILURES, JOB_NOTE_COUNTED,              \
        JOB_NOTE_RESTARTS, JOB_NOTE_MAX_RESTARTS, JOB_NOTE_JOB_RESTARTS, JOB_NOTE_FIRST_RESTART,   \
        JOB_NOTE_LAST_RESTART, JOB_NOTE_ATTEMPT, JOB_NOTE_STARTED, JOB_NOTE_ENDED, JOB_NOTE_STOP
