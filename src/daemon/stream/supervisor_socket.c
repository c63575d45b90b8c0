/* See supervisor_socket.h. */
#include "daemon/stream/supervisor_socket.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/system/error_text.h"
#include "daemon/object/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int supervisor_socket(const struct home *home, const json_t *pod,
                      const struct handover_packet *packet, int type, int *ret_fd,
                      struct muster_err *err)
{
    muster_auto(free) char *folder = NULL;
    int ends[2];
    if (asprintf(&folder, "%s/jobs/%s", home->path, jobs_folder_uid(pod)) < 0) {
        folder = NULL;
        return err_no_memory(err);
    }
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket: %s", error_text(errno));
    }
    int r = handover_send(folder, packet, &ends[1], 1, err);
    passing_close(&ends[1], 1);
    if (r < 0) {
        passing_close(&ends[0], 1);
        return r;
    }
    *ret_fd = ends[0];
    return 0;
}
