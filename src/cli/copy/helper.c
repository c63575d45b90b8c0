/* See helper.h. */
#include "cli/copy/helper.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "deploy/files.h"

#include <string.h>

enum { LIFE_S = 3600 }; /* limits also a pod whose maker was killed */

/* Kinds of volumes that are deleted with their pod, or that hold no results of the job. */
static const char *const with_the_pod[] = {"emptyDir",  "secret",    "configMap", "downwardAPI",
                                           "projected", "ephemeral", "gitRepo",   "image"};

static bool outlives(const json_t *volume)
{
    for (size_t i = 0; i < sizeof with_the_pod / sizeof with_the_pod[0]; i++) {
        if (json_object_get(volume, with_the_pod[i])) {
            return false;
        }
    }
    return json_object_size(volume) > 1; /* a volume with only a name is an emptyDir */
}

static json_t *program(void)
{
    const struct deploy_file *file = deploy_file_find("copy/serve.py");
    return file ? json_stringn(file->text, file->bytes) : NULL;
}

static void copy_field(struct build *b, json_t *to, const json_t *from, const char *key)
{
    const json_t *value = json_object_get(from, key);
    if (value) {
        build_set(b, to, key, json_deep_copy(value));
    }
}

/* Makes read-only mounts of the volumes that outlive the pod; adds their paths to the program's
 * arguments, too. */
static json_t *make_mounts(struct build *b, const json_t *spec, const json_t *container,
                           json_t *command, bool *ret_expanded)
{
    json_t *mounts = build_value(b, json_array());
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(container, "volumeMounts"), i, each) {
        const json_t *volume =
            doc_find(json_object_get(spec, "volumes"), "name", doc_text(each, "name", ""));
        const char *path = doc_text(each, "mountPath", "");
        if (!volume || !outlives(volume) || *path != '/') {
            continue;
        }
        json_t *mount = build_value(b, json_object());
        copy_field(b, mount, each, "name");
        copy_field(b, mount, each, "mountPath");
        copy_field(b, mount, each, "subPath");
        copy_field(b, mount, each, "subPathExpr");
        build_set(b, mount, "readOnly", json_true());
        *ret_expanded = *ret_expanded || json_object_get(each, "subPathExpr");
        build_add(b, mounts, mount);
        build_add(b, command, json_string(path));
    }
    return mounts;
}

/* Whether a pod has mounted the volume. */
static bool is_mounted(const json_t *mounts, const json_t *volume)
{
    return doc_find(mounts, "name", doc_text(volume, "name", "")) != NULL;
}

static void set_volumes(struct build *b, json_t *into, const json_t *spec, const json_t *mounts,
                        bool *ret_of_node)
{
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(spec, "volumes"), i, each) {
        if (is_mounted(mounts, each)) {
            build_add(b, build_array_at(b, into, "volumes"), json_deep_copy(each));
            *ret_of_node = *ret_of_node || json_object_get(each, "hostPath");
        }
    }
}

/* Puts the helper on the pod's node. That node is required if the pod's folders lie there, or while
 * the pod runs; otherwise it is preferred, because it has the image. */
static void set_node(struct build *b, json_t *into, const json_t *pod, bool of_node)
{
    const char *node = doc_text(pod, "spec.nodeName", NULL),
               *phase = doc_text(pod, "status.phase", "");
    if (!node) {
        return;
    }
    bool over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    json_t *term = build_value(b, json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchFields", "key",
                                            "metadata.name", "operator", "In", "values", node));
    json_t *affinity =
        over && !of_node
            ? json_pack("{s:[{s:i, s:o}]}", "preferredDuringSchedulingIgnoredDuringExecution",
                        "weight", 100, "preference", term)
            : json_pack("{s:{s:[o]}}", "requiredDuringSchedulingIgnoredDuringExecution",
                        "nodeSelectorTerms", term);
    build_set(b, build_object_at(b, into, "affinity"), "nodeAffinity", affinity);
}

static json_t *make_container(struct build *b, const struct helper *h, const json_t *container,
                              json_t *mounts, json_t *command, bool expanded)
{
    json_t *made = build_value(b, json_pack("{s:s, s:o, s:o, s:{s:{s:s, s:i}, s:i}}", "name",
                                            "copy", "command", command, "volumeMounts", mounts,
                                            "readinessProbe", "httpGet", "path", "/ready", "port",
                                            HELPER_PORT, "periodSeconds", 1));
    copy_field(b, made, container, "image");
    build_text(b, made, "image", h->image);
    copy_field(b, made, container, "imagePullPolicy");
    copy_field(b, made, container, "workingDir");
    copy_field(b, made, container, "securityContext");
    if (expanded) { /* a subPathExpr names variables */
        copy_field(b, made, container, "env");
    }
    build_set(b, made, "resources",
              json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "requests", "cpu", "50m", "memory", "64Mi",
                        "limits", "cpu", "1", "memory", "256Mi"));
    return made;
}

static json_t *make_spec(struct build *b, const struct helper *h, const json_t *container)
{
    static const char *const taken[] = {"imagePullSecrets", "nodeSelector", "securityContext",
                                        "serviceAccountName", "tolerations"};
    const json_t *spec = json_object_get(h->pod, "spec");
    bool expanded = false, of_node = false;
    json_t *command =
        build_value(b, json_pack("[s, s, o, s, s]", "python3", "-c", program(), h->token, h->path));
    json_t *mounts = make_mounts(b, spec, container, command, &expanded);
    json_t *made =
        build_value(b, json_pack("{s:s, s:i, s:i, s:b, s:b}", "restartPolicy", "Never",
                                 "activeDeadlineSeconds", LIFE_S, "terminationGracePeriodSeconds",
                                 1, "automountServiceAccountToken", 0, "enableServiceLinks", 0));
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        copy_field(b, made, spec, taken[i]);
    }
    set_volumes(b, made, spec, mounts, &of_node);
    set_node(b, made, h->pod, of_node);
    build_add(b, build_array_at(b, made, "containers"),
              make_container(b, h, container, mounts, command, expanded));
    return made;
}

/* Sets the owner, but not as controller: the helper is not a replica. */
static void set_owner(struct build *b, json_t *metadata, const json_t *owner)
{
    if (*doc_text(owner, "metadata.uid", "")) {
        build_add(b, build_array_at(b, metadata, "ownerReferences"),
                  json_pack("{s:s, s:s, s:s, s:s}", "apiVersion",
                            doc_text(owner, "apiVersion", "v1"), "kind",
                            doc_text(owner, "kind", "Pod"), "name",
                            doc_text(owner, "metadata.name", ""), "uid",
                            doc_text(owner, "metadata.uid", "")));
    }
}

int helper_make(const struct helper *helper, json_t **ret, struct muster_err *err)
{
    static const char no_proxy[] = "sidecar.istio.io/inject"; /* a proxy would take the requests */
    const char *pod = doc_text(helper->pod, "metadata.name", "");
    const json_t *container =
        doc_find(doc_at(helper->pod, "spec.containers"), "name", helper->container);
    struct build b = {0};
    if (!container) {
        return muster_fail(err, MUSTER_ENOENT, "pod %s has no container %s", pod,
                           helper->container);
    }
    json_t *metadata =
        build_value(&b, json_pack("{s:s, s:{s:s, s:s}, s:{s:s}}", "name", helper->name, "labels",
                                  "app.kubernetes.io/name", "muster-cp", no_proxy, "false",
                                  "annotations", no_proxy, "false"));
    set_owner(&b, metadata, helper->owner);
    muster_auto(doc) json_t *made =
        build_end(&b, json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod",
                                "metadata", metadata, "spec", make_spec(&b, helper, container)));
    if (!made) {
        return err_no_memory(err);
    }
    if (!doc_at(made, "spec.volumes")) {
        return muster_fail(err, MUSTER_ENOENT,
                           "container %s of pod %s mounts no volume that outlives it, as a claim "
                           "does: its files go with it (kubectl cp copies from one that runs)",
                           helper->container, pod);
    }
    *ret = muster_take(made);
    return 0;
}
