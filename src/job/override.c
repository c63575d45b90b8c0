/* See override.h. */
#include "job/override.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/quantity.h"
#include "job/gpus.h"
#include "job/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOLUME_NAME_BYTES = 32, MEMORY_BYTES_MIN = 1 << 20 };

static int refuse(struct muster_err *err, const char *option, const char *text, const char *fault)
{
    return muster_fail(err, MUSTER_EINVAL, "%s \"%.80s\" must be %s", option, text, fault);
}

static int check_quantity(const char *option, const char *text, const char *form,
                          struct muster_err *err)
{
    double quantity;
    bool good = !text || (quantity_read(text, &quantity) && quantity > 0);
    return good ? 0 : refuse(err, option, text, form);
}

/* Refuses "4", which is four bytes: a unit was forgotten. */
static int check_bytes(const char *text, struct muster_err *err)
{
    double bytes;
    bool few = text && quantity_read(text, &bytes) && bytes < MEMORY_BYTES_MIN;
    return few ? muster_fail(err, MUSTER_EINVAL,
                             "--memory \"%.80s\" means %g bytes; write 4Gi or 512Mi", text, bytes)
               : 0;
}

static int check_gpus(const char *text, struct muster_err *err)
{
    bool good = !text || (*text && strlen(text) < 5 && strspn(text, "0123456789") == strlen(text));
    return good ? 0 : refuse(err, "--gpus", text, "a number from 0 to 9999");
}

static int check_override(const struct job_override *o, struct muster_err *err)
{
    int r = check_quantity("--cpu", o->cpu, "a quantity such as 2 or 500m", err);
    r = r < 0 ? r : check_quantity("--memory", o->memory, "a quantity such as 4Gi", err);
    r = r < 0 ? r : check_bytes(o->memory, err);
    r = r < 0 ? r : check_gpus(o->gpus, err);
    if (r == 0 && o->working_dir && !*o->working_dir) {
        r = refuse(err, "--workdir", "", "a folder");
    }
    for (size_t i = 0; i < o->claim_count && r == 0; i++) {
        const char *fault = job_text_fault(SCHEMA_SUBDOMAIN, o->claims[i].name);
        r = fault ? muster_fail(err, MUSTER_EINVAL, "--claim \"%.80s\": the claim's name %s",
                                o->claims[i].name, fault)
                  : 0;
    }
    return r;
}

/* --- resources --- */

static void set_limit(struct build *b, json_t *container, const char *resource, json_t *value)
{
    json_t *resources = build_object_at(b, container, "resources");
    json_t *requests = json_object_get(resources, "requests");
    json_object_del(requests, resource);
    if (requests && json_object_size(requests) == 0) {
        json_object_del(resources, "requests");
    }
    build_set(b, build_object_at(b, resources, "limits"), resource, value);
}

static void remove_gpus(json_t *container)
{
    json_object_del(doc_at(container, "resources.limits"), JOB_GPU_RESOURCE);
    json_object_del(doc_at(container, "resources.requests"), JOB_GPU_RESOURCE);
}

static void set_resources(struct build *b, json_t *container, const struct job_override *o)
{
    if (o->cpu) {
        set_limit(b, container, "cpu", json_string(o->cpu));
    }
    if (o->memory) {
        set_limit(b, container, "memory", json_string(o->memory));
    }
    long gpus = o->gpus ? strtol(o->gpus, NULL, 10) : 0;
    if (gpus > 0) {
        set_limit(b, container, JOB_GPU_RESOURCE, json_integer(gpus));
    } else if (o->gpus) {
        remove_gpus(container);
    }
}

/* --- claims --- */

/* Writes the first of "claim", "claim-2" … that is not the name of a volume of the pod. */
static void free_volume_name(const json_t *volumes, char ret[VOLUME_NAME_BYTES])
{
    snprintf(ret, VOLUME_NAME_BYTES, "claim");
    for (int i = 2; doc_find(volumes, "name", ret); i++) {
        snprintf(ret, VOLUME_NAME_BYTES, "claim-%d", i);
    }
}

static int add_claim(struct build *b, json_t *pod, json_t *container, const struct job_claim *claim,
                     struct muster_err *err)
{
    json_t *volumes = build_array_at(b, pod, "volumes");
    json_t *mounts = build_array_at(b, container, "volumeMounts");
    const json_t *taken = doc_find(mounts, "mountPath", claim->path);
    if (taken) {
        return muster_fail(err, MUSTER_EINVAL,
                           "--claim %s:%s: volume %s is mounted there already; choose another path",
                           claim->name, claim->path, doc_text(taken, "name", "?"));
    }
    char name[VOLUME_NAME_BYTES];
    free_volume_name(volumes, name);
    json_t *volume = build_value(b, json_object());
    build_text(b, volume, "name", name);
    build_text(b, build_object_at(b, volume, "persistentVolumeClaim"), "claimName", claim->name);
    build_add(b, volumes, volume);
    json_t *mount = build_value(b, json_object());
    build_text(b, mount, "name", name);
    build_text(b, mount, "mountPath", claim->path);
    build_add(b, mounts, mount);
    return 0;
}

static int override_replica(json_t *replica, const struct job_override *o, struct muster_err *err)
{
    struct build b = {0};
    json_t *pod = doc_at(replica, "template.spec");
    json_t *containers = doc_at(pod, "containers");
    json_t *container = (json_t *)(uintptr_t)doc_find(containers, "name", "pytorch");
    if (!container) {
        return 0; /* the check reports this */
    }
    set_resources(&b, container, o);
    build_text(&b, container, "workingDir", o->working_dir);
    int r = 0;
    for (size_t i = 0; i < o->claim_count && r == 0; i++) {
        r = add_claim(&b, pod, container, &o->claims[i], err);
    }
    return r == 0 && b.failed ? err_no_memory(err) : r;
}

int job_override(json_t *job, const struct job_override *override, struct muster_err *err)
{
    int r = check_override(override, err);
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        if (r == 0) {
            r = override_replica(replica, override, err);
            r = r < 0 && err ? muster_wrap(err, "%s", role) : r;
        }
    }
    return r;
}
