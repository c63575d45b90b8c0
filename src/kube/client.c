/* Opening and closing the client. */
#include "kube/internal.h"

#include "base/err.h"

#include <stdlib.h>

void kube_close(struct kube *kube)
{
    if (!kube) {
        return;
    }
    kube_streams_close(kube);
    curl_easy_cleanup(kube->easy);
    endpoint_close(kube->endpoint);
    transport_close(kube->transport);
    home_done(&kube->home);
    json_decref(kube->status);
    free(kube);
}

static int open_endpoint(struct kube *kube, struct muster_err *err)
{
    struct target target = {0};
    int r = target_socket(kube->home.socket, &target, err);
    r = r < 0 ? r : endpoint_open(&target, &kube->endpoint, err);
    target_done(&target);
    return r;
}

static int set_up(struct kube *kube, struct muster_err *err)
{
    int r = transport_open(kube->loop, &kube->transport, err);
    kube->easy = r < 0 ? NULL : curl_easy_init();
    r = kube->easy || r < 0 ? r : err_no_memory(err);
    r = r < 0 ? r : home_open(&kube->home, err);
    r = r < 0 ? r : open_endpoint(kube, err);
    return r < 0 ? r : kube_ensure(kube, err);
}

int kube_open(uv_loop_t *loop, enum kube_start start, struct kube **ret, struct muster_err *err)
{
    struct kube *kube = calloc(1, sizeof *kube);
    if (!kube) {
        return err_no_memory(err);
    }
    kube->loop = loop;
    kube->start = start;
    int r = set_up(kube, err);
    if (r < 0) {
        kube_close(kube);
        return r;
    }
    *ret = kube;
    return 0;
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

void kube_set_dry_run(struct kube *kube, bool on)
{
    kube->dry_run = on;
}

bool kube_is_dry_run(const struct kube *kube)
{
    return kube->dry_run;
}
