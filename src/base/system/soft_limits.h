/* The resource limits (`ulimit`) of the shell in which a job was submitted. The job's ranks have
 * them, although the controller, whose processes they are, may come from another shell. They are
 * soft limits, since only root can raise a hard limit of the controller.
 *
 * Layer: base (not for pure code). Thread: raise before there are other threads; set is also
 * allowed after fork.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Returns {"core": 0, "nofile": 1024, …}; -1 means no limit. The open-files limit is the user's
 * (nofile_limit.h). New reference, NULL when out of memory. */
json_t *soft_limits_read(void);

/* Sets the limits that were read; a limit that is absent, or that may not be set, is unchanged. */
void soft_limits_set(const json_t *limits);

/* Raises, as far as is permitted, the limits that would end a controller, which serves all shells:
 * the limits of processor time, file size and memory. */
void soft_limits_raise(void);

/* Returns MUSTER_ECREATE if files cannot be large enough for a store and logs. */
int soft_limits_check(struct muster_err *err);
