/* Runs slow work on the disk (a recursive removal, a write that is synced) off the loop, in a
 * thread of libuv's pool, one task after the other.
 *
 * The queue is bounded: if it is full, the caller does the work itself, at once.
 *
 * Layer: program (daemon). Thread: the loop's; `work` runs in another.
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>
#include <uv.h>

struct disk;

struct disk_task {
    void (*work)(void *data); /* called in another thread, or in the caller's */
    void (*done)(void *data); /* then, in the loop's thread; may be NULL; not after disk_free */
    void (*drop)(void *data); /* called last; frees data */
    void *data;
};

int disk_new(uv_loop_t *loop, size_t tasks_max, struct disk **ret, struct muster_err *err);
/* Tasks that wait are still done, and only dropped then: run the loop until it has nothing to do.
 * `disk` may be NULL. */
struct disk *disk_free(struct disk *disk);

void disk_do(struct disk *disk, const struct disk_task *task);
