/* The GPUs of this machine and which pod holds which.
 *
 * Layer: process. Ownership: the caller's struct, nothing to free. One thread.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

enum { GPUS_MAX = 64, GPUS_ID_BYTES = 48 };

struct gpu {
    char id[GPUS_ID_BYTES]; /* an index or a UUID, as CUDA_VISIBLE_DEVICES takes it */
    size_t holders;         /* pods; more than one only if the jobs share */
    bool exclusive;         /* held by a pod that does not share */
};

struct gpus {
    struct gpu list[GPUS_MAX]; /* the GPUs that may be given out */
    size_t count;
    char uuids[GPUS_MAX][GPUS_ID_BYTES]; /* of the machine, by the driver's numbers; "": unknown */
    size_t machine_count;
};

/* Reads the GPUs from `configured`, the value of MUSTER_GPUS ("0,1", "none"); else from what
 * NVIDIA's driver shows under `root` ("" for the real root). */
void gpus_discover(struct gpus *gpus, const char *root, const char *configured);

/* Finds the GPUs that a shell whose CUDA_VISIBLE_DEVICES is `visible` (NULL: not set) may use. The
 * value is read as CUDA reads it: indices or UUIDs, which may be cut short, up to the first that
 * names no device; no GPU at all if one is named twice. Returns how many there are. */
size_t gpus_pool(const struct gpus *gpus, const char *visible, bool ret_pool[GPUS_MAX]);

/* Picks `wanted` GPUs of the pool (NULL: all) and writes "0,1" to ret_ids. Pods that share get the
 * GPUs with the fewest holders. MUSTER_EAGAIN when too many are busy, MUSTER_EINVAL when the
 * machine does not have that many. */
int gpus_take(struct gpus *gpus, size_t wanted, bool share, const bool *pool, char *ret_ids,
              size_t room, struct muster_err *err);

/* Marks "0,1" as held again (after a restart of the controller), or gives them back. */
void gpus_hold(struct gpus *gpus, const char *ids, bool share);
void gpus_give_back(struct gpus *gpus, const char *ids);
