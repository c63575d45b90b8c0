/* Opens and closes the client. */
#include "kube/internal.h"

#include "base/err.h"
#include "kube/config/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>

void kube_close(struct kube *kube)
{
    if (!kube) {
        return;
    }
    kube_streams_close(kube);
    curl_easy_cleanup(kube->easy);
    kube_endpoint_close(kube->endpoint);
    transport_close(kube->transport);
    home_done(&kube->home);
    free(kube->peer);
    json_decref(kube->status);
    free(kube);
}

/* Connects to the target, and takes it over. */
static int connect_to(struct kube *kube, struct target *target, struct muster_err *err)
{
    int r = asprintf(&kube->peer, "the %s%s", kube->is_cluster ? "API server " : "controller",
                     kube->is_cluster ? target->server : "");
    kube->peer = r < 0 ? NULL : kube->peer;
    r = r < 0 ? err_no_memory(err) : kube_endpoint_open(target, &kube->endpoint, err);
    target_done(target);
    r = r < 0 ? r : transport_open(kube->loop, &kube->transport, err);
    kube->easy = r < 0 ? NULL : curl_easy_init();
    return kube->easy || r < 0 ? r : err_no_memory(err);
}

static int connect_home(struct kube *kube, struct muster_err *err)
{
    struct target target = {0};
    int r = home_open(&kube->home, err);
    r = r < 0 ? r : target_socket(kube->home.socket, &target, err);
    r = r < 0 ? r : connect_to(kube, &target, err);
    return r < 0 ? r : kube_ensure(kube, err);
}

/* Frees everything if the opening has failed. */
static int finish(struct kube *kube, int r, struct kube **ret)
{
    if (r < 0) {
        kube_close(kube);
        return r;
    }
    *ret = kube;
    return 0;
}

int kube_open(uv_loop_t *loop, enum kube_start start, struct kube **ret, struct muster_err *err)
{
    struct kube *kube = calloc(1, sizeof *kube);
    if (!kube) {
        return err_no_memory(err);
    }
    kube->loop = loop;
    kube->start = start;
    return finish(kube, connect_home(kube, err), ret);
}

int kube_open_cluster(uv_loop_t *loop, const char *file, const char *context, struct kube **ret,
                      struct muster_err *err)
{
    struct target target = {0};
    struct kube *kube = calloc(1, sizeof *kube);
    if (!kube) {
        return err_no_memory(err);
    }
    kube->loop = loop;
    kube->is_cluster = true;
    int r = kubeconfig_load(file, context, &target, err);
    return finish(kube, r < 0 ? r : connect_to(kube, &target, err), ret);
}

bool kube_is_cluster(const struct kube *kube)
{
    return kube->is_cluster;
}

const char *kube_namespace(const struct kube *kube)
{
    return kube_endpoint_target(kube->endpoint)->namespace;
}

const char *kube_home(const struct kube *kube)
{
    return kube->home.path;
}

const json_t *kube_status(const struct kube *kube)
{
    return kube->status;
}

void kube_hurry(struct kube *kube)
{
    kube->hurried = true;
}

void kube_hurry_when(struct kube *kube, const volatile sig_atomic_t *flag)
{
    kube->hurry_when = flag;
}

void kube_say_slow(struct kube *kube, void (*say)(const struct kube *kube, int waited_s))
{
    kube->say_slow = say;
}

void kube_look(struct kube *kube,
               bool (*look)(const struct kube *kube, pid_t *controller, bool said))
{
    kube->look = look;
}

void kube_set_dry_run(struct kube *kube, bool on)
{
    kube->dry_run = on;
}

bool kube_is_dry_run(const struct kube *kube)
{
    return kube->dry_run;
}
