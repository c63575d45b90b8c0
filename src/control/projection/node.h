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
    bool silent; /* Ready is Unknown */
    bool out_of_service;
    const char *since; /* when Ready became what it is, as the cluster has it; "": unknown */
};

struct control_node_state control_node_read(const json_t *node);

/* A pod was to be deleted by force, by the node's silence since then (control_effect), or, with
 * NULL, by its taint: does that still hold? A silence that was broken is another one. */
bool control_node_is_still_lost(const json_t *node, const char *since);
