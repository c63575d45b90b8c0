/* See container_watch.h. */
#include "process/supervisor/container_watch.h"

#include "base/cleanup.h"
#include "process/machine/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIND_MS = 50, SAMPLE_MS = 500, TEXT_BYTES = 4096 };

struct container_watch {
    pid_t monitor;
    pid_t first;            /* the container's first process; 0: not found yet */
    char group[TEXT_BYTES]; /* the text of its /proc/PID/cgroup */
    struct cgroup_memory memory;
    uv_timer_t timer;
    uv_poll_t end;
    int pidfd; /* -1: `end` is not open */
    int open_handles;
};

/* If there is no control group, the peak is the size of the largest process. */
static void sample_processes(struct container_watch *watch, const struct descendant *list,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_BYTES];
        long long kilobytes = 0;
        text[descendants_read(list[i].pid, "status", text, sizeof text - 1)] = '\0';
        const char *at = strstr(text, "\nVmHWM:");
        if (at && sscanf(at, "\nVmHWM: %lld kB", &kilobytes) == 1 &&
            kilobytes * 1024 > watch->memory.peak_bytes) {
            watch->memory.peak_bytes = kilobytes * 1024;
        }
    }
}

static void sample(struct container_watch *watch)
{
    struct cgroup_memory now;
    if (cgroup_read_memory(CGROUP_ROOT, watch->group, &now)) {
        watch->memory = now;
        return;
    }
    muster_auto(free) struct descendant *list = NULL;
    size_t count = descendants_list(watch->monitor, &list);
    sample_processes(watch, list, container_keep(list, count, watch->first));
}

static void on_end(uv_poll_t *poll, int status, int events)
{
    struct container_watch *watch = poll->data;
    struct cgroup_memory now;
    (void)status;
    (void)events;
    if (cgroup_read_memory(CGROUP_ROOT, watch->group, &now)) {
        watch->memory = now;
    }
    uv_poll_stop(&watch->end);
    uv_timer_stop(&watch->timer);
}

static void watch_end(struct container_watch *watch)
{
    watch->pidfd = (int)syscall(SYS_pidfd_open, watch->first, 0);
    if (watch->pidfd >= 0 && uv_poll_init(watch->timer.loop, &watch->end, watch->pidfd) == 0) {
        watch->open_handles++;
        watch->end.data = watch;
        uv_poll_start(&watch->end, UV_READABLE, on_end);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct container_watch *watch = timer->data;
    if (!watch->first) {
        muster_auto(free) struct descendant *list = NULL;
        size_t count = descendants_list(watch->monitor, &list);
        watch->first = container_find(list, count, watch->monitor);
        if (!watch->first) {
            return;
        }
        size_t used = descendants_read(watch->first, "cgroup", watch->group, TEXT_BYTES - 1);
        watch->group[used] = '\0';
        watch_end(watch);
        uv_timer_set_repeat(timer, SAMPLE_MS);
    }
    sample(watch);
}

struct container_watch *container_watch_start(uv_loop_t *loop, pid_t monitor)
{
    struct container_watch *watch = calloc(1, sizeof *watch);
    if (watch) {
        watch->monitor = monitor;
        watch->pidfd = -1;
        watch->timer.data = watch;
        uv_timer_init(loop, &watch->timer);
        watch->open_handles = 1;
        uv_timer_start(&watch->timer, on_look, FIND_MS, FIND_MS);
    }
    return watch;
}

static void on_closed(uv_handle_t *handle)
{
    struct container_watch *watch = handle->data;
    if (--watch->open_handles == 0) {
        if (watch->pidfd >= 0) {
            close(watch->pidfd);
        }
        free(watch);
    }
}

void container_watch_stop(struct container_watch *watch)
{
    if (!watch) {
        return;
    }
    bool has_end = watch->open_handles == 2;
    uv_close((uv_handle_t *)&watch->timer, on_closed);
    if (has_end) {
        uv_close((uv_handle_t *)&watch->end, on_closed);
    }
}

bool container_watch_read(const struct container_watch *watch, struct cgroup_memory *ret)
{
    if (!watch || !watch->first) {
        return false;
    }
    *ret = watch->memory;
    return true;
}
