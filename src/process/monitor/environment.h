/* The environment of an attempt: what its spec says, over what lies in a file that the spec names.
 *
 * The file (base/variables.h) holds what came from the submitter's shell. Its values are read when
 * the attempt starts and are in no record.
 *
 * Layer: services; private to the supervisor.
 */
#pragma once

#include "process/wire/spec.h"

/* Completes spec->env. MUSTER_ENOENT: the file is gone. */
int environment_load(struct process_spec *spec, struct muster_err *err);
