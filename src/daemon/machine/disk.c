/* See disk.h. */
#include "daemon/machine/disk.h"

#include "base/err.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct entry {
    struct disk_task task;
    struct entry *next;
};

struct disk {
    uv_loop_t *loop;
    uv_work_t request;
    struct entry *first, *last; /* the first is being done */
    size_t count, max;
    bool busy;
    bool closing;
};

static void run_first(struct disk *disk);

static void finish(const struct disk *disk, const struct disk_task *task)
{
    if (task->done && !disk->closing) {
        task->done(task->data);
    }
    task->drop(task->data);
}

static void work(uv_work_t *request)
{
    const struct disk *disk = request->data;
    disk->first->task.work(disk->first->task.data);
}

static void worked(uv_work_t *request, int status)
{
    struct disk *disk = request->data;
    struct entry *entry = disk->first;
    (void)status;
    disk->first = entry->next;
    disk->last = disk->first ? disk->last : NULL;
    disk->count--;
    disk->busy = false;
    finish(disk, &entry->task); /* may add the next task */
    free(entry);
    if (disk->first && !disk->busy) {
        run_first(disk);
    } else if (!disk->first && disk->closing) {
        free(disk);
    }
}

static void run_first(struct disk *disk)
{
    assert(!disk->busy);
    disk->busy = true;
    disk->request.data = disk;
    int r = uv_queue_work(disk->loop, &disk->request, work, worked);
    assert(r == 0);
    (void)r;
}

void disk_do(struct disk *disk, const struct disk_task *task)
{
    assert(!disk->closing);
    struct entry *entry = disk->count < disk->max ? calloc(1, sizeof *entry) : NULL;
    if (!entry) {
        task->work(task->data);
        finish(disk, task);
        return;
    }
    entry->task = *task;
    disk->count++;
    if (disk->last) {
        disk->last->next = entry;
    } else {
        disk->first = entry;
    }
    disk->last = entry;
    if (!disk->busy) {
        run_first(disk);
    }
}

int disk_new(uv_loop_t *loop, size_t tasks_max, struct disk **ret, struct muster_err *err)
{
    struct disk *disk = calloc(1, sizeof *disk);
    if (!disk) {
        return err_no_memory(err);
    }
    *disk = (struct disk){.loop = loop, .max = tasks_max};
    *ret = disk;
    return 0;
}

struct disk *disk_free(struct disk *disk)
{
    if (disk && disk->busy) {
        disk->closing = true;
    } else {
        free(disk);
    }
    return NULL;
}
