/* The embedded store as a cluster (controller/cluster.h): what is sent in one turn of the loop is
 * carried out together in the next, in its order, as one transaction; then it is answered.
 *
 * Layer: program (daemon). Thread: the loop's. It serves LIST without selectors and pages, patches
 * as merge patches; no lanes: requests are carried out in their order.
 */
#pragma once

#include "controller/cluster.h"
#include "store/store.h"

#include <uv.h>

/* Borrows loop and store. */
int store_cluster_new(uv_loop_t *loop, struct store *store, struct cluster **ret,
                      struct muster_err *err);
/* Writes each request from now on to `fd` (daemon/audit.h), which is borrowed; -1 stops this. */
void store_cluster_audit(struct cluster *cluster, int fd);
/* Cancels requests that wait, and ends the cluster's watches. Run the loop once more after this. */
struct cluster *store_cluster_free(struct cluster *cluster);
