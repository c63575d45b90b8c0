/* Opening and closing the client. */
#include "kube/internal.h"

#include "base/err.h"

#include <stdlib.h>

static void closed(uv_handle_t *handle)
{
    struct kube *kube = handle->data;
    home_done(&kube->home);
    json_decref(kube->status);
    free(kube);
    curl_global_cleanup();
}

void kube_close(struct kube *kube)
{
    if (!kube) {
        return;
    }
    kube_multi_stop(kube);
    curl_easy_cleanup(kube->easy);
    uv_close((uv_handle_t *)&kube->timer, closed);
}

static int set_up(struct kube *kube, struct muster_err *err)
{
    kube->easy = curl_easy_init();
    int r = kube->easy ? kube_multi_start(kube, err) : err_no_memory(err);
    r = r < 0 ? r : home_open(&kube->home, err);
    return r < 0 ? r : kube_ensure(kube, err);
}

int kube_open(uv_loop_t *loop, enum kube_start start, struct kube **ret, struct muster_err *err)
{
    struct kube *kube = calloc(1, sizeof *kube);
    if (!kube || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(kube);
        return err_no_memory(err);
    }
    kube->loop = loop;
    kube->start = start;
    uv_timer_init(loop, &kube->timer);
    kube->timer.data = kube;
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
