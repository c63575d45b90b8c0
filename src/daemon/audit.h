/* What the controller asks of the embedded cluster, as an API server's audit log would tell it: a
 * line of JSON for each request, with its body as it was sent. For tests and the curious:
 * MUSTER_AUDIT names the file. It holds what pods hold: environments, too.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "controller/cluster.h"

/* Opens the file for appending; only the user may read it. *ret_fd is -1 if MUSTER_AUDIT is not
 * set. */
int audit_open(int *ret_fd, struct muster_err *err);

/* Writes one line. On a full disk the line is lost: an audit never stops a job. */
void audit_write(int fd, const struct cluster_request *request);
