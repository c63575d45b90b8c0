/* See coordinator_lease.h. */
#include "cli/verb/coordinator_lease.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/config/kubeconfig.h"
#include "kube/leader/leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024, KEPT_BYTES = 64 };

struct coordinator_lease {
    struct server_lease base; /* must be the first member */
    const char *name;
    uv_loop_t *loop;
    struct server_lease_events events;
    struct cluster *cluster;
    struct leader *leader;
    char said[TEXT_BYTES]; /* the last message, which is not repeated */
    bool released;
};

static struct coordinator_lease *own(struct server_lease *lease)
{
    return (struct coordinator_lease *)lease;
}

/* ---- What the leader says ---- */

static void on_led(void *arg)
{
    struct coordinator_lease *l = arg;
    l->events.held(l->events.data);
}

static void on_lost(void *arg)
{
    struct coordinator_lease *l = arg;
    l->events.lost(l->events.data);
}

/* Passes on a message unless it is the same as the last one: while an API server does not answer,
 * each second has the same trouble. */
static void on_say(void *arg, enum leader_news news, const char *text)
{
    struct coordinator_lease *l = arg;
    char line[TEXT_BYTES];
    static const char *const more[] = {
        [LEADER_TROUBLE] = "; without the lease nobody new is served",
        [LEADER_WAITS] = "; waiting until it is given up, or not renewed for 8 s",
        [LEADER_LEADS] = "",
        [LEADER_GIVES_UP] = "",
    };
    (void)snprintf(line, sizeof line, "%s%s", text, more[news]);
    if (strcmp(line, l->said) != 0) {
        memcpy(l->said, line, sizeof line);
        l->events.say(l->events.data, line);
    }
}

static void on_released(void *arg)
{
    struct coordinator_lease *l = arg;
    l->released = true;
    uv_stop(l->loop);
}

/* ---- What the server asks ---- */

/* The job for which the operator has made this pod: the Lease is deleted with it. NULL: the Lease
 * has no owner. */
static json_t *owner(bool in_pod)
{
    const char *name = getenv("MUSTER_JOB"), *uid = getenv("MUSTER_JOB_UID");
    bool known = in_pod && name && *name && uid && *uid;
    return known ? json_pack("{s:s, s:s, s:s, s:s}", "apiVersion", "kubeflow.org/v1", "kind",
                             "PyTorchJob", "name", name, "uid", uid)
                 : NULL;
}

/* The name that `muster keep` (main/keep.h) has given this process: the previous process of that
 * name has ended, so what it held is ours at once. NULL for a process that has only inherited the
 * name, because it may be one of two. */
static const char *kept_as(void)
{
    const char *kept = getenv("MUSTER_KEPT_AS");
    bool by_parent = kept && strlen(kept) < KEPT_BYTES && strtol(kept, NULL, 10) == getppid();
    return by_parent ? kept : NULL;
}

static int open_leader(struct coordinator_lease *l, const char *namespace, bool in_pod,
                       struct muster_err *err)
{
    muster_auto(doc) json_t *owned_by = owner(in_pod);
    const struct leader_options options = {
        .cluster = l->cluster,
        .namespace = namespace,
        .name = l->name,
        .process = kept_as(),
        .owner = owned_by,
        .led = on_led,
        .lost = on_lost,
        .say = on_say,
        .arg = l,
    };
    return leader_open(l->loop, &options, &l->leader, err);
}

static int open_lease(struct server_lease *lease, uv_loop_t *loop,
                      const struct server_lease_events *events, struct muster_err *err)
{
    struct coordinator_lease *l = own(lease);
    struct target target = {0};
    bool in_pod = false;
    l->loop = loop;
    l->events = *events;
    int r = kubeconfig_find(NULL, NULL, &target, &in_pod, err);
    muster_auto(free) char *namespace = r == 0 ? strdup(target.namespace) : NULL;
    r = r == 0 && !namespace ? err_no_memory(err) : r;
    r = r < 0 ? r : kube_cluster_open(loop, &target, NULL, &l->cluster, err);
    target_done(&target);
    r = r < 0 ? r : open_leader(l, namespace, in_pod, err);
    return r < 0 ? muster_wrap(err, "--lease %s", l->name) : 0;
}

static bool is_held(struct server_lease *lease)
{
    struct leader *leader = own(lease)->leader;
    return leader_leads(leader) && leader_may_send(leader);
}

static uint64_t term(struct server_lease *lease)
{
    int64_t changes = leader_changes(own(lease)->leader);
    return changes > 0 ? (uint64_t)changes + 1 : 1;
}

static void ask_again(struct server_lease *lease)
{
    leader_stand_again(own(lease)->leader);
}

static void close_lease(struct server_lease *lease)
{
    struct coordinator_lease *l = own(lease);
    if (l->leader) {
        leader_release(l->leader, on_released);
        while (!l->released) {
            uv_run(l->loop, UV_RUN_ONCE);
        }
    }
    leader_close(l->leader);
    kube_cluster_close(l->cluster);
    l->leader = NULL;
    l->cluster = NULL;
}

int coordinator_lease_new(const char *name, struct server_lease **ret, struct muster_err *err)
{
    static const struct server_lease_calls calls = {.open = open_lease,
                                                    .is_held = is_held,
                                                    .term = term,
                                                    .ask_again = ask_again,
                                                    .close = close_lease};
    struct coordinator_lease *l = calloc(1, sizeof *l);
    if (!l) {
        return err_no_memory(err);
    }
    l->base.calls = &calls;
    l->name = name;
    *ret = &l->base;
    return 0;
}

void coordinator_lease_free(struct server_lease *lease)
{
    free(lease);
}
