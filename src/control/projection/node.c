/* See node.h. */
#include "control/projection/node.h"

#include "base/doc.h"

#include <string.h>

#define OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

struct control_node_state control_node_read(const json_t *node)
{
    const json_t *ready = doc_find(doc_at(node, "status.conditions"), "type", "Ready");
    const char *status = doc_text(ready, "status", "");
    bool tainted = doc_find(doc_at(node, "spec.taints"), "key", OUT_OF_SERVICE) != NULL;
    return (struct control_node_state){.silent = strcmp(status, "Unknown") == 0,
                                       .out_of_service = tainted && strcmp(status, "True") != 0,
                                       .since = doc_text(ready, "lastTransitionTime", "")};
}

bool control_node_is_still_lost(const json_t *node, const char *since)
{
    struct control_node_state now = control_node_read(node);
    return since ? now.silent && strcmp(now.since, since) == 0 : now.out_of_service;
}
