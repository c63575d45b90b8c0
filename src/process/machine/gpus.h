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
    char id[GPUS_ID_BYTES]; /* what CUDA_VISIBLE_DEVICES takes: an index or a UUID */
    size_t holders;         /* pods; over one only when the job shares */
    bool exclusive;         /* held by a pod that does not share */
};

struct gpus {
    struct gpu list[GPUS_MAX]; /* what may be given out */
    size_t count;
    char uuids[GPUS_MAX][GPUS_ID_BYTES]; /* of the machine, as the driver counts; "": not known */
    size_t machine_count;
};

/* What MUSTER_GPUS says ("0,1", "none"), else what NVIDIA's driver shows under `root` ("" for the
 * real one). */
void gpus_discover(struct gpus *gpus, const char *root, const char *configured);

/* The GPUs that a shell whose CUDA_VISIBLE_DEVICES is `visible` (NULL: not set) may use, read as
 * CUDA reads it: indices or UUIDs, which may be cut short; up to the first that is none; nothing at
 * all when one comes twice. Returns how many. */
size_t gpus_pool(const struct gpus *gpus, const char *visible, bool ret_pool[GPUS_MAX]);

/* Picks `wanted` GPUs of the pool (NULL: of all) and writes "0,1" to ret_ids. Sharing pods are
 * spread over the least held ones. MUSTER_EAGAIN when too many are busy, MUSTER_EINVAL when there
 * are not so many. */
int gpus_take(struct gpus *gpus, size_t wanted, bool share, const bool *pool, char *ret_ids,
              size_t room, struct muster_err *err);

/* Marks "0,1" as held again (after a restart of the controller), or gives it back. */
void gpus_hold(struct gpus *gpus, const char *ids, bool share);
void gpus_give_back(struct gpus *gpus, const char *ids);
