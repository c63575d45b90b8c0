/* How a job ended, for people and for exit codes. Layer: pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

enum verdict_end {
    VERDICT_RUNNING, /* not over */
    VERDICT_SUCCEEDED,
    VERDICT_FAILED,
    VERDICT_DELETED, /* someone deleted it while it ran */
};

enum { VERDICT_EXIT_DEADLINE = 124 };

struct verdict {
    enum verdict_end end;
    const char *state;  /* the last true condition: "Succeeded", "Running" …; "Deleted" */
    const char *reason; /* of that condition */
    const char *message;
    int exit_code; /* 0 only for VERDICT_SUCCEEDED */
    bool deadline;
    bool stopped;          /* ended from outside */
    const char *pod;       /* the first that failed, or NULL */
    const char *container; /* its container; "" if the pod failed as a whole */
};

/* Returns the verdict. `pods` are the newest versions of all pods that the job had, also of deleted
 * ones. `deleted`: the job is gone. Texts are borrowed from the objects. */
struct verdict verdict_of(const json_t *job, const json_t *pods, bool deleted);

/* Writes why the job failed, such as "rank 1 (mnist-worker-0) exited with code 3"; nothing if it
 * did not. */
void verdict_why(const struct verdict *verdict, const json_t *job, const json_t *pods,
                 struct buf *out);
