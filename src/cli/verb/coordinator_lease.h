/* The lease of a coordinator (coordinator/server/lease.h) as a Lease of Kubernetes: taken, renewed
 * and given up by the rules of the operator's (kube/leader). In a pod the API server is the
 * cluster's, and the Lease is in the pod's namespace; elsewhere both are those of KUBECONFIG.
 *
 * Layer: cli. Ownership: new/free.
 */
#pragma once

#include "coordinator/server/lease.h"

/* Makes a lease, which sends nothing before the server opens it. */
int coordinator_lease_new(const char *name, struct server_lease **ret, struct muster_err *err);
/* Frees a lease that is closed or was never opened; NULL is allowed. */
void coordinator_lease_free(struct server_lease *lease);
