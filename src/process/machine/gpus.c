/* See gpus.h. */
#include "process/machine/gpus.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INFORMATION_BYTES_MAX = 64 << 10 };

static void add(struct gpus *gpus, const char *id, size_t length)
{
    if (gpus->count < GPUS_MAX && length > 0 && length < GPUS_ID_BYTES) {
        struct gpu *gpu = &gpus->list[gpus->count++];
        *gpu = (struct gpu){0};
        memcpy(gpu->id, id, length);
    }
}

/* Calls `each` for every id in "a,b,c". */
static void split(struct gpus *gpus, const char *ids,
                  void (*each)(struct gpus *gpus, const char *id, size_t length))
{
    while (*ids) {
        size_t length = strcspn(ids, ",");
        each(gpus, ids, length);
        ids += length + (ids[length] == ',');
    }
}

/* Reads "GPU UUID: \t GPU-8f…" of /proc/driver/nvidia/gpus/BUS/information. */
static void read_uuid(const char *folder, const char *bus, char ret[GPUS_ID_BYTES])
{
    muster_auto(free) char *path = NULL;
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    ret[0] = '\0';
    if (asprintf(&path, "%s/%s/information", folder, bus) < 0) {
        path = NULL;
        return;
    }
    const char *line = file_read(path, INFORMATION_BYTES_MAX, &text, &bytes, NULL) == 0
                           ? strstr(text, "GPU UUID:")
                           : NULL;
    char uuid[GPUS_ID_BYTES];
    if (line && sscanf(line, "GPU UUID: %47s", uuid) == 1) {
        (void)snprintf(ret, GPUS_ID_BYTES, "%s", uuid);
    }
}

static int is_bus(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Orders by bus, as CUDA does if all GPUs are of one kind. */
static void look_at_driver(struct gpus *gpus, const char *root)
{
    muster_auto(free) char *path = NULL;
    struct dirent **list = NULL;
    if (asprintf(&path, "%s/proc/driver/nvidia/gpus", root) < 0) {
        path = NULL;
        return;
    }
    int count = scandir(path, &list, is_bus, alphasort);
    for (int i = 0; i < count; i++) {
        if (gpus->machine_count < GPUS_MAX) {
            read_uuid(path, list[i]->d_name, gpus->uuids[gpus->machine_count++]);
        }
        free(list[i]);
    }
    free(list);
}

void gpus_discover(struct gpus *gpus, const char *root, const char *configured)
{
    *gpus = (struct gpus){0};
    look_at_driver(gpus, root);
    if (configured && *configured) {
        if (strcmp(configured, "none") != 0) {
            split(gpus, configured, add);
        }
        return;
    }
    for (size_t i = 0; i < gpus->machine_count; i++) {
        char id[24];
        int length = snprintf(id, sizeof id, "%zu", i);
        add(gpus, id, (size_t)length);
    }
}

/* ---- CUDA_VISIBLE_DEVICES of a shell ---- */

enum { NO_DEVICE = -1 };

/* Returns the machine's number of the device; NO_DEVICE if no device, or more than one, has this
 * UUID. */
static long device_of_uuid(const struct gpus *gpus, const char *word, size_t length)
{
    long found = NO_DEVICE;
    for (size_t i = 0; i < gpus->machine_count; i++) {
        if (strncmp(gpus->uuids[i], word, length) == 0) {
            found = found == NO_DEVICE ? (long)i : NO_DEVICE - 1;
        }
    }
    return found < 0 ? NO_DEVICE : found;
}

static bool is_uuid(const char *word)
{
    return strncmp(word, "GPU-", 4) == 0 || strncmp(word, "MIG-", 4) == 0;
}

/* CUDA reads an index with strtol(3): "1x" is 1, and a word without a digit is not an index. */
static long device_of_index(const struct gpus *gpus, const char *word)
{
    char *end;
    long index = strtol(word, &end, 10);
    bool none = end == word || index < 0 || index >= GPUS_MAX ||
                (gpus->machine_count > 0 && index >= (long)gpus->machine_count);
    return none ? NO_DEVICE : index;
}

/* Whether the word of the list names this GPU. */
static bool names(const struct gpus *gpus, const struct gpu *gpu, const char *word, size_t length,
                  long device)
{
    if (is_uuid(gpu->id)) {
        if (device >= 0) {
            return (size_t)device < gpus->machine_count &&
                   strcmp(gpus->uuids[device], gpu->id) == 0;
        }
        bool unknown = gpus->machine_count == 0 || strncmp(word, "MIG-", 4) == 0;
        return unknown && is_uuid(word) && strncmp(gpu->id, word, length) == 0;
    }
    char *end;
    return device >= 0 && strtol(gpu->id, &end, 10) == device && *end == '\0';
}

/* Returns false if CUDA stops reading at this word. */
static bool allow_word(const struct gpus *gpus, const char *word, size_t length,
                       bool pool[GPUS_MAX], bool *ret_twice)
{
    long device = is_uuid(word) ? device_of_uuid(gpus, word, length) : device_of_index(gpus, word);
    bool known = device != NO_DEVICE;
    for (size_t i = 0; i < gpus->count; i++) {
        if (names(gpus, &gpus->list[i], word, length, device)) {
            *ret_twice = *ret_twice || pool[i];
            pool[i] = known = true;
        }
    }
    return known;
}

size_t gpus_pool(const struct gpus *gpus, const char *visible, bool ret_pool[GPUS_MAX])
{
    size_t count = 0;
    bool twice = false;
    for (size_t i = 0; i < GPUS_MAX; i++) {
        ret_pool[i] = !visible && i < gpus->count;
    }
    bool uuids = visible && is_uuid(visible);
    for (const char *word = visible; word && *word;) {
        word += strspn(word, " ");
        size_t length = strcspn(word, ", ");
        if (is_uuid(word) != uuids || !allow_word(gpus, word, length, ret_pool, &twice)) {
            break;
        }
        word += strcspn(word, ",");
        word += *word == ',';
    }
    for (size_t i = 0; i < gpus->count; i++) {
        ret_pool[i] = ret_pool[i] && !twice;
        count += ret_pool[i];
    }
    return count;
}

/* ---- Taking and giving back ---- */

static bool available(const struct gpu *gpu, bool share)
{
    return share ? !gpu->exclusive : gpu->holders == 0;
}

/* Returns the GPU of the pool with the fewest holders that is available and not in `taken`; NULL
 * when none is left. */
static struct gpu *best(struct gpus *gpus, bool share, const bool *pool, const bool *taken)
{
    struct gpu *found = NULL;
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu *gpu = &gpus->list[i];
        if ((!pool || pool[i]) && !taken[i] && available(gpu, share) &&
            (!found || gpu->holders < found->holders)) {
            found = gpu;
        }
    }
    return found;
}

int gpus_take(struct gpus *gpus, size_t wanted, bool share, const bool *pool, char *ret_ids,
              size_t room, struct muster_err *err)
{
    if (wanted > gpus->count) {
        return muster_fail(err, MUSTER_EINVAL, "needs %zu GPUs, this machine has %zu", wanted,
                           gpus->count);
    }
    char ids[GPUS_MAX * GPUS_ID_BYTES] = "";
    size_t used = 0;
    bool taken[GPUS_MAX] = {false};
    for (size_t i = 0; i < wanted; i++) {
        const struct gpu *gpu = best(gpus, share, pool, taken);
        if (!gpu) {
            return muster_fail(err, MUSTER_EAGAIN, "needs %zu GPUs, and fewer are free", wanted);
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
