/* See boot.h. */
#include "daemon/boot.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/object/leases.h"

#include <string.h>

enum { ID_BYTES_MAX = 256 };

static int end_live_jobs(struct store *store, struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(store, &(struct store_query){.resource = "pytorchjobs"}, &page, err);
    if (r < 0) {
        return r;
    }
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        int stopped = leases_stop_job(store, job, "the machine was restarted", err);
        r = r < 0 ? r : stopped;
    }
    store_page_done(&page);
    return r;
}

int boot_check(const struct home *home, struct store *store, struct muster_err *err)
{
    muster_auto(free) char *now = NULL;
    muster_auto(free) char *before = NULL;
    muster_auto(free) char *path = home_file(home, "boot");
    if (!path) {
        return err_no_memory(err);
    }
    if (file_read("/proc/sys/kernel/random/boot_id", ID_BYTES_MAX, &now, NULL, NULL) < 0) {
        return 0; /* without /proc a restart cannot be noticed */
    }
    bool known = file_read(path, ID_BYTES_MAX, &before, NULL, NULL) == 0;
    if (known && strcmp(before, now) == 0) {
        return 0;
    }
    int r = known ? end_live_jobs(store, err) : 0;
    if (known) {
        log_event(LOG_WARN, "daemon.reboot", "the machine was restarted: live jobs are failed");
    }
    return r < 0 ? r : file_write(path, now, strlen(now), 0600, err);
}
