/* Allocates and frees a job, from its options. Layer: worker (part of libmuster). Thread: the
 * user's. */
#pragma once

#include "client/worker.h"

/* Checks the options, and completes them from the environment. Nothing runs yet. */
int open_job(const struct muster_elastic_options *options, struct muster_elastic **ret,
             struct muster_err *err);
void open_free(struct muster_elastic *job);
