/* Logs the controller's requests to the embedded cluster, like an API server's audit log: a line of
 * JSON for each request, with its body as it was sent. It is for tests and debugging: MUSTER_AUDIT
 * names the file. The file has all that pods have, also their environments.
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
