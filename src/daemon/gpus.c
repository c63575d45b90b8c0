/* See gpus.h. */
#include "daemon/gpus.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static void add(struct gpus *gpus, const char *id, size_t length)
{
    if (gpus->count < GPUS_MAX && length > 0 && length < GPUS_ID_BYTES) {
        struct gpu *gpu = &gpus->list[gpus->count++];
        *gpu = (struct gpu){0};
        memcpy(gpu->id, id, length);
    }
}

/* Calls `each` for every id of "a,b,c". */
static void split(struct gpus *gpus, const char *ids,
                  void (*each)(struct gpus *gpus, const char *id, size_t length))
{
    while (*ids) {
        size_t length = strcspn(ids, ",");
        each(gpus, ids, length);
        ids += length + (ids[length] == ',');
    }
}

static size_t count_driver_entries(const char *root)
{
    muster_auto(free) char *path = NULL;
    if (asprintf(&path, "%s/proc/driver/nvidia/gpus", root) < 0) {
        path = NULL;
        return 0;
    }
    DIR *folder = opendir(path);
    size_t count = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        count += entry->d_name[0] != '.';
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

void gpus_discover(struct gpus *gpus, const char *root, const char *configured)
{
    *gpus = (struct gpus){0};
    if (configured && *configured) {
        if (strcmp(configured, "none") != 0) {
            split(gpus, configured, add);
        }
        return;
    }
    size_t count = count_driver_entries(root);
    for (size_t i = 0; i < count; i++) {
        char id[24];
        int length = snprintf(id, sizeof id, "%zu", i);
        add(gpus, id, (size_t)length);
    }
}

static bool available(const struct gpu *gpu, bool share)
{
    return share ? !gpu->exclusive : gpu->holders == 0;
}

/* The least held GPU that may be taken and is not among `taken`; NULL when none is left. */
static struct gpu *best(struct gpus *gpus, bool share, const bool *taken)
{
    struct gpu *found = NULL;
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu *gpu = &gpus->list[i];
        if (!taken[i] && available(gpu, share) && (!found || gpu->holders < found->holders)) {
            found = gpu;
        }
    }
    return found;
}

int gpus_take(struct gpus *gpus, size_t wanted, bool share, char *ret_ids, size_t room,
              struct muster_err *err)
{
    if (wanted > gpus->count) {
        return muster_fail(err, MUSTER_EINVAL, "%zu GPUs wanted, this machine has %zu", wanted,
                           gpus->count);
    }
    char ids[GPUS_MAX * GPUS_ID_BYTES] = "";
    size_t used = 0;
    bool taken[GPUS_MAX] = {false};
    for (size_t i = 0; i < wanted; i++) {
        const struct gpu *gpu = best(gpus, share, taken);
        if (!gpu) {
            return muster_fail(err, MUSTER_EAGAIN, "%zu GPUs wanted, the others are busy", wanted);
        }
        taken[gpu - gpus->list] = true;
        used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%s", i ? "," : "", gpu->id);
    }
    if (used >= room) {
        return muster_fail(err, MUSTER_ETOOBIG, "the list of %zu GPUs is too long", wanted);
    }
    memcpy(ret_ids, ids, used + 1);
    gpus_hold(gpus, ids, share);
    return 0;
}

static struct gpu *find(struct gpus *gpus, const char *id, size_t length)
{
    for (size_t i = 0; i < gpus->count; i++) {
        if (strlen(gpus->list[i].id) == length && memcmp(gpus->list[i].id, id, length) == 0) {
            return &gpus->list[i];
        }
    }
    return NULL;
}

static void hold_shared(struct gpus *gpus, const char *id, size_t length)
{
    struct gpu *gpu = find(gpus, id, length);
    if (gpu) {
        gpu->holders++;
    }
}

static void hold_alone(struct gpus *gpus, const char *id, size_t length)
{
    struct gpu *gpu = find(gpus, id, length);
    if (gpu) {
        gpu->holders++;
        gpu->exclusive = true;
    }
}

static void give_back(struct gpus *gpus, const char *id, size_t length)
{
    struct gpu *gpu = find(gpus, id, length);
    if (gpu && gpu->holders > 0) {
        gpu->holders--;
        gpu->exclusive = gpu->exclusive && gpu->holders > 0;
    }
}

void gpus_hold(struct gpus *gpus, const char *ids, bool share)
{
    split(gpus, ids, share ? hold_shared : hold_alone);
}

void gpus_give_back(struct gpus *gpus, const char *ids)
{
    split(gpus, ids, give_back);
}
