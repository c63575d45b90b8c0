/* Hostile kubeconfigs: read, merged, and turned into a target. The first byte says where the second
 * file begins. */
#include "base/cleanup.h"
#include "invariant.h"
#include "kube/config/kubeconfig.h"

#include <string.h>

/* libfyaml 0.7.12 loses a buffer for some scalars in single quotes; this leak is not reported. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kubeconfig config;
    struct target target = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    size_t first = size > 0 ? (size_t)data[0] * size / 256 : 0;
    const char *text = (const char *)data;
    muster_auto(free) char *one = strndup(text + (size > 0), first);
    muster_auto(free) char *two = strndup(text + first, size - first);
    if (!one || !two || kubeconfig_init(&config, &err) < 0) {
        return 0;
    }
    int r = kubeconfig_add(&config, one, "one", "/", &err);
    r = r < 0 ? r : kubeconfig_add(&config, two, "two", ".", &err);
    r = r < 0 ? r : kubeconfig_target(&config, NULL, &target, &err);
    invariant(r == 0 || *err.text, "a refusal says why", "");
    invariant(r < 0 || !target.ca_pem || strlen(target.ca_pem) <= size,
              "a text is no longer than what it came from", "");
    target_done(&target);
    kubeconfig_done(&config);
    return 0;
}
