/* One request of a controller, carried out on the store.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: ret_object is a new reference.
 */
#pragma once

#include "controller/cluster.h"
#include "store/store.h"

/* ret_object: the object, or the list; NULL where there is none. MUSTER_EUNSUPPORTED: of lists all
 * but whole collections, of patches all but merge patches. */
int store_request_carry_out(struct store *store, const struct cluster_request *request,
                            json_t **ret_object, struct muster_err *err);

/* What Kubernetes calls that code (metav1.StatusReason); "" for none. */
const char *store_request_reason(int code);
