/* Finds the row of the table of tunings for this processor (schedule/tuning.h). Layer: comm.
 * Thread: any. */
#pragma once

#include <muster/err.h>

#include "schedule/tuning.h"

/* Finds the row by what the processor says of itself, unless MUSTER_TUNING names a row.
 * MUSTER_ECONFIG: there is no such row. */
int processor_find(enum schedule_processor *ret, struct muster_err *err);
