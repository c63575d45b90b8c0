/* The control groups of an attempt: one for its container, one for the further commands in it. See
 * attempt_state.h.
 *
 * If this machine does not permit a limit, an event says so, and the container runs without it. If
 * the machine permits it and setting it fails, the start fails: a limit never fails in silence.
 */
#include "process/supervisor/attempt_state.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "process/wire/passing.h"

#include <stdlib.h>
#include <string.h>

/* Makes the group "POD.CONTAINER.ATTEMPT" and a suffix. */
static int make_group(const struct attempt *attempt, const char *suffix, struct cgroup *ret,
                      struct muster_err *err)
{
    const struct cgroup_limits limits = {attempt->spec.memory_bytes, attempt->spec.cpu_millis};
    muster_auto(free) char *name = NULL;
    if (asprintf(&name, "%s%s", attempt->id, suffix) < 0) {
        name = NULL;
        return err_no_memory(err);
    }
    for (char *slash = name; (slash = strchr(slash, '/'));) {
        *slash = '.';
    }
    return cgroup_init(ret, attempt->place->cgroups, name, &limits, err);
}

static int open_entrances(const struct attempt *attempt, const struct cgroup *group, bool say,
                          int ret_fds[CGROUP_KINDS], struct muster_err *err)
{
    int r = 0;
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        ret_fds[kind] = -1;
        r = r < 0 ? r : cgroup_entrance(group, kind, &ret_fds[kind], err);
        if (r == MUSTER_EUNSUPPORTED) {
            if (say) {
                attempt_note(attempt, err->text);
            }
            r = 0;
        }
    }
    if (r < 0) {
        passing_close(ret_fds, CGROUP_KINDS);
    }
    return r;
}

void attempt_limits_make(struct attempt *attempt)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (make_group(attempt, "", &attempt->cgroup, &err) < 0) {
        attempt_note(attempt, err.text);
    }
}

int attempt_limits_open(const struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                        struct muster_err *err)
{
    return open_entrances(attempt, &attempt->cgroup, true, ret_fds, err);
}

/* Whether the container has limits that its further commands would not have. */
static bool lacks_a_group(const struct attempt *attempt)
{
    bool lacks = false;
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        lacks |= attempt->cgroup.folder[kind] && !attempt->exec_cgroup.folder[kind];
    }
    return lacks;
}

int attempt_limits_open_exec(struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                             struct muster_err *err)
{
    if (!attempt->has_exec_cgroup) {
        int r = make_group(attempt, ".exec", &attempt->exec_cgroup, err);
        if (r < 0 && lacks_a_group(attempt)) {
            cgroup_done(&attempt->exec_cgroup);
            return r;
        }
        attempt->has_exec_cgroup = true;
    }
    return open_entrances(attempt, &attempt->exec_cgroup, false, ret_fds, err);
}
