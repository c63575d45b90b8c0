/* The Node object that stands for this machine.
 *
 * Layer: program (daemon).
 */
#pragma once

#include "process/machine/gpus.h"
#include "store/store.h"

enum { NODE_NAME_BYTES = 64 };

/* The host's name as a DNS label. */
void node_name(char ret_name[NODE_NAME_BYTES]);

/* Writes the node's object, capacity included, over what was there; a cordon stays. */
int node_register(struct store *store, const struct gpus *gpus, struct muster_err *err);

/* Whether the pod may be placed here: a cordoned node (kubectl cordon, drain) takes only a pod that
 * was placed before, or tolerates it. MUSTER_EAGAIN: it waits until the node is uncordoned. */
int node_takes(struct store *store, const json_t *pod, struct muster_err *err);

/* Bytes of memory and thousandths of a core of this machine. */
int64_t node_memory_bytes(void);
int64_t node_cpu_milli(void);
