/* Checks what this machine must have before a job is created here: the questions that only a
 * running controller can answer. The job itself was checked before (job/check/check.h).
 *
 * Layer: program (daemon).
 */
#pragma once

#include "base/home.h"
#include "daemon/object/leases.h"
#include "job/problem.h"
#include "process/machine/gpus.h"

struct admission {
    const struct gpus *gpus;
    const struct leases *leases;
    const struct home *home;
};

/* Adds an error for each thing that is missing, with its field. */
void admission_check(const struct admission *admission, const char *resource, const json_t *object,
                     struct job_problems *problems);
