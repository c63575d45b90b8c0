/* Handles messages of the coordinator: hands them to the member's core. */
#pragma once

#include "client/worker.h"

/* Handles a message. Negative: the connection cannot be used any more. */
int hear(struct muster_elastic *job, const struct wire_message *message, struct muster_err *err);
