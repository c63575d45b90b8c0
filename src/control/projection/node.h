/* What is read of a node. It is out of service when whoever runs the cluster says so: it has the
 * taint node.kubernetes.io/out-of-service and is not ready (one that is ready again still runs its
 * pods; the pod garbage collection of Kubernetes has the same rule). It is silent when its kubelet
 * says nothing to the API server. A node that is not ready but answers is neither: its kubelet ends
 * pods by itself.
 *
 * Layer: pure. Texts are borrowed from the node.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct control_node_state {
    bool silent; /* its condition Ready is Unknown */
    bool out_of_service;
    const char *since; /* when Ready last changed, by the cluster's clock; "": unknown */
};

struct control_node_state control_node_read(const json_t *node);

/* Whether the reason to delete a pod by force (control_effect) still holds: the node has been
 * silent since then, or, with NULL, has the taint. A silence that was interrupted counts as another
 * one. */
bool control_node_is_still_lost(const json_t *node, const char *since);
