/* What the coordinator says, told to the member's core. Layer: worker (part of libmuster). Thread:
 * the link's; the job's mutex is held. */
#pragma once

#include "client/worker.h"

/* Negative: the connection is of no use. */
int hear(struct muster_elastic *job, const struct wire_message *message, struct muster_err *err);
