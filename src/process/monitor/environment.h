/* The environment of an attempt: the variables of its spec, which override those of a file that the
 * spec names.
 *
 * The file (base/variables.h) holds the variables of the submitter's shell. Its values are read
 * when the attempt starts and are in no record.
 *
 * Layer: services; private to the supervisor.
 */
#pragma once

#include "process/wire/spec.h"

/* Completes spec->env. MUSTER_ENOENT: the file is gone. */
int environment_load(struct process_spec *spec, struct muster_err *err);
