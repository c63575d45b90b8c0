/* The Node object that stands for this machine.
 *
 * Layer: program (daemon).
 */
#pragma once

#include "process/machine/gpus.h"
#include "store/store.h"

enum { NODE_NAME_BYTES = 64 };

/* Writes the host's name as a DNS label. */
void node_name(char ret_name[NODE_NAME_BYTES]);

/* Writes the node's object, with its capacity, over an older one; a cordon stays. */
int node_register(struct store *store, const struct gpus *gpus, struct muster_err *err);

/* Whether the pod may be placed here: a cordoned node (kubectl cordon, drain) accepts only a pod
 * that was placed before, or that tolerates the cordon. MUSTER_EAGAIN: the pod waits until the node
 * is uncordoned. */
int node_takes(struct store *store, const json_t *pod, struct muster_err *err);

/* Returns the bytes of memory, and thousandths of a core, of this machine. */
int64_t node_memory_bytes(void);
int64_t node_cpu_milli(void);
