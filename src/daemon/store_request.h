/* One request of a controller, carried out on the store.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: ret_object is a new reference.
 */
#pragma once

#include "controller/cluster.h"
#include "store/store.h"

/* ret_object: the object, or the list; NULL if there is none. Returns MUSTER_EUNSUPPORTED for lists
 * other than whole collections, and for patches other than merge patches. */
int store_request_carry_out(struct store *store, const struct cluster_request *request,
                            json_t **ret_object, struct muster_err *err);

/* Returns Kubernetes' name for the code (metav1.StatusReason); "" if it has none. */
const char *store_request_reason(int code);
