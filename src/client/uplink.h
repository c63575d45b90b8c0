/* The thread that talks to the coordinator: it connects (again and again, if necessary),
 * identifies the worker, and handles messages.
 *
 * Layer: worker (part of libmuster). Memory: the job's. Thread: starts and ends its own.
 */
#pragma once

#include "client/worker.h"

int uplink_start(struct muster_elastic *job, struct muster_err *err);
/* Ends the link. Messages that are queued for the coordinator are sent for up to `flush_ms`. */
void uplink_stop(struct muster_elastic *job, int64_t flush_ms);
