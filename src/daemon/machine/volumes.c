/* See volumes.h. Object names were checked by the API (DNS labels), file names inside them are
 * checked here. */
#include "daemon/machine/volumes.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "job/text.h"
#include "pod/resolve_env.h"
#include "process/machine/host_path.h"

#include <limits.h>
#include <string.h>

struct request {
    const struct volume_sources *sources;
    const char *namespace;
    const char *name;     /* the name of the volume */
    const json_t *source; /* the value under the key of the volume's kind */
    struct muster_err *err;
};

char *volumes_claim_folder(const char *home, const char *namespace, const char *claim)
{
    char *path = NULL;
    return asprintf(&path, "%s/volumes/%s/%s", home, namespace, claim) < 0 ? NULL : path;
}

static char *pod_volume_folder(const struct request *q)
{
    char *path = NULL;
    return asprintf(&path, "%s/volumes/%s", q->sources->folder, q->name) < 0 ? NULL : path;
}

static int made(char *folder, char **ret_path, struct muster_err *err)
{
    if (!folder) {
        return err_no_memory(err);
    }
    int r = file_mkdir(folder, 0777, err);
    if (r < 0) {
        free(folder);
        return r;
    }
    *ret_path = folder;
    return 0;
}

static int make_empty_dir(const struct request *q, char **ret_path)
{
    return made(pod_volume_folder(q), ret_path, q->err);
}

/* Reads an object. *ret stays NULL when it does not exist; an error means that it cannot be
 * read. */
static int find_object(const struct request *q, const char *resource, const char *name,
                       json_t **ret)
{
    struct muster_err why = MUSTER_ERR_INIT;
    int r = q->sources->find(q->sources->data, resource, q->namespace, name, ret, &why);
    return r == 0 || r == MUSTER_ENOENT
               ? 0
               : muster_fail(q->err, r, "volume %s: %s \"%s\" cannot be read: %s", q->name,
                             resource, name, why.text);
}

/* Makes the folder of claims private, even if others may enter MUSTER_HOME. A claim itself may
 * belong to a container's user. */
static int make_private(const struct request *q)
{
    muster_auto(free) char *folder = file_join(q->sources->home, "volumes");
    return folder ? file_mkdir(folder, 0700, q->err) : err_no_memory(q->err);
}

static int make_claim(const struct request *q, char **ret_path)
{
    const char *claim = doc_text(q->source, "claimName", "");
    muster_auto(doc) json_t *object = NULL;
    int r = find_object(q, "persistentvolumeclaims", claim, &object);
    if (r < 0) {
        return r;
    }
    if (!object) {
        return muster_fail(
            q->err, MUSTER_ENOENT,
            "volume %s: there is no persistentvolumeclaim \"%s\" in namespace %s; put one "
            "into the file, before the job",
            q->name, claim, q->namespace);
    }
    r = make_private(q);
    return r < 0 ? r
                 : made(volumes_claim_folder(q->sources->home, q->namespace, claim), ret_path,
                        q->err);
}

static int make_host_path(const struct request *q, char **ret_path)
{
    const char *path = doc_text(q->source, "path", "");
    if (host_path_prepare(path, doc_text(q->source, "type", ""), q->err) < 0) {
        return q->err ? muster_wrap(q->err, "volume %s", q->name) : MUSTER_ENOENT;
    }
    char *copy = strdup(path);
    if (!copy) {
        return err_no_memory(q->err);
    }
    *ret_path = copy;
    return 0;
}

/* Whether a key may be a file name: it must not leave the folder. */
static bool is_file_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Returns the mode of a key's file: the item's own, or the volume's. */
static mode_t mode_of(const struct request *q, const char *file)
{
    int64_t mode = doc_int(q->source, "defaultMode", 0644);
    size_t i;
    json_t *item;
    json_array_foreach (doc_at(q->source, "items"), i, item) {
        if (strcmp(doc_text(item, "path", ""), file) == 0) {
            mode = doc_int(item, "mode", mode);
        }
    }
    return (mode_t)(mode & 0777);
}

static int write_key(const struct request *q, const char *folder, const char *file,
                     const void *bytes, size_t count)
{
    if (!is_file_name(file)) {
        return muster_fail(q->err, MUSTER_EDATA, "volume %s: \"%s\" is not a file name", q->name,
                           file);
    }
    muster_auto(free) char *path = file_join(folder, file);
    return path ? file_put(path, bytes, count, mode_of(q, file), q->err) : err_no_memory(q->err);
}

static int write_encoded(const struct request *q, const char *folder, const char *file,
                         const char *text)
{
    muster_auto(free) char *bytes = NULL;
    size_t count = 0;
    int r = base64_decode(text, &bytes, &count, q->err);
    if (r < 0) {
        return q->err ? muster_wrap(q->err, "volume %s: the value of %s", q->name, file) : r;
    }
    return write_key(q, folder, file, bytes, count);
}

static int write_value(const struct request *q, const json_t *object, const char *folder,
                       const char *key, const char *file)
{
    bool secret = strcmp(doc_text(object, "kind", ""), "Secret") == 0;
    const char *text = json_string_value(json_object_get(doc_at(object, "data"), key));
    const char *binary = json_string_value(json_object_get(doc_at(object, "binaryData"), key));
    if (text && !secret) {
        return write_key(q, folder, file, text, strlen(text));
    }
    if (text || binary) {
        return write_encoded(q, folder, file, text ? text : binary);
    }
    if (doc_bool(q->source, "optional", false)) {
        return 0;
    }
    return muster_fail(q->err, MUSTER_ENOENT, "volume %s: %s %s has no key %s", q->name,
                       secret ? "secret" : "configmap", doc_text(object, "metadata.name", "?"),
                       key);
}

static int write_items(const struct request *q, const json_t *object, const char *folder)
{
    size_t i;
    json_t *item;
    int r = 0;
    json_array_foreach (doc_at(q->source, "items"), i, item) {
        const char *key = doc_text(item, "key", "");
        r = r < 0 ? r : write_value(q, object, folder, key, doc_text(item, "path", key));
    }
    return r;
}

static int write_all(const struct request *q, const json_t *object, const char *folder)
{
    static const char *const sections[] = {"data", "binaryData"};
    int r = 0;
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        const char *key;
        json_t *value;
        json_object_foreach (doc_at(object, sections[s]), key, value) {
            r = r < 0 ? r : write_value(q, object, folder, key, key);
        }
    }
    return r;
}

static int make_files(const struct request *q, const char *resource, const char *kind,
                      const char *name, char **ret_path)
{
    muster_auto(doc) json_t *object = NULL;
    int r = find_object(q, resource, name, &object);
    if (r < 0) {
        return r;
    }
    if (!object && !doc_bool(q->source, "optional", false)) {
        return muster_fail(q->err, MUSTER_ENOENT,
                           "volume %s: there is no %s \"%s\" in namespace %s", q->name, kind, name,
                           q->namespace);
    }
    char *folder = NULL;
    r = made(pod_volume_folder(q), &folder, q->err);
    if (r == 0 && object) {
        r = doc_at(q->source, "items") ? write_items(q, object, folder)
                                       : write_all(q, object, folder);
    }
    if (r < 0) {
        free(folder);
        return r;
    }
    *ret_path = folder;
    return 0;
}

static int make_config_map(const struct request *q, char **ret_path)
{
    return make_files(q, "configmaps", "configmap", doc_text(q->source, "name", ""), ret_path);
}

static int make_secret(const struct request *q, char **ret_path)
{
    return make_files(q, "secrets", "secret", doc_text(q->source, "secretName", ""), ret_path);
}

static const struct kind {
    const char *key;
    int (*make)(const struct request *q, char **ret_path);
} kinds[] = {
    {"emptyDir", make_empty_dir}, {"persistentVolumeClaim", make_claim},
    {"hostPath", make_host_path}, {"configMap", make_config_map},
    {"secret", make_secret},
};

static int make_volume(const struct volume_sources *sources, const json_t *pod,
                       const json_t *volume, char **ret_path, struct muster_err *err)
{
    struct request q = {.sources = sources,
                        .namespace = doc_text(pod, "metadata.namespace", "default"),
                        .name = doc_text(volume, "name", "?"),
                        .err = err};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        q.source = json_object_get(volume, kinds[i].key);
        if (q.source) {
            return kinds[i].make(&q, ret_path);
        }
    }
    if (json_object_size(volume) == 1) { /* only a name: an emptyDir, as in Kubernetes */
        return make_empty_dir(&q, ret_path);
    }
    return muster_fail(
        err, MUSTER_EUNSUPPORTED,
        "volume %s: this kind of volume exists on a cluster only; use emptyDir, hostPath, "
        "configMap, secret or persistentVolumeClaim",
        q.name);
}

/* Reads subPath, or subPathExpr with the container's variables; *ret stays NULL if there is
 * none. */
static int read_sub_path(const struct volume_sources *sources, const json_t *mount, char **ret,
                         struct muster_err *err)
{
    const char *name = doc_text(mount, "name", "");
    const char *plain = doc_text(mount, "subPath", NULL);
    const char *pattern = doc_text(mount, "subPathExpr", NULL);
    if (!plain && !pattern) {
        return 0;
    }
    struct buf path;
    buf_init(&path, PATH_MAX);
    if (plain) {
        buf_text(&path, plain);
    } else {
        pod_expand(pattern, sources->env, &path);
    }
    muster_auto(free) char *text = buf_steal(&path);
    const char *fault = text ? job_text_fault(SCHEMA_INSIDE, text) : "is too long";
    if (!fault && pattern && strstr(text, "$(")) {
        fault = "names a variable that the container does not have";
    }
    if (fault) {
        return muster_fail(err, MUSTER_EDATA, "volumeMount %s: subPath %.200s %s", name,
                           text ? text : pattern, fault);
    }
    *ret = muster_take(text);
    return 0;
}

static int mount_one(const struct volume_sources *sources, const json_t *pod, const json_t *mount,
                     json_t *mounts, struct muster_err *err)
{
    const char *name = doc_text(mount, "name", "");
    const json_t *volume = doc_find(doc_at(pod, "spec.volumes"), "name", name);
    if (!volume) {
        return muster_fail(err, MUSTER_EDATA, "volumeMount %s: spec.volumes has no such volume",
                           name);
    }
    muster_auto(free) char *path = NULL;
    muster_auto(free) char *sub_path = NULL;
    int r = read_sub_path(sources, mount, &sub_path, err);
    r = r < 0 ? r : make_volume(sources, pod, volume, &path, err);
    if (r < 0) {
        return r;
    }
    bool read_only = doc_bool(mount, "readOnly", false) ||
                     doc_bool(volume, "persistentVolumeClaim.readOnly", false);
    json_t *entry = json_pack("{s:s, s:s, s:s, s:b}", "name", name, "hostPath", path, "mountPath",
                              doc_text(mount, "mountPath", ""), "readOnly", (int)read_only);
    if (entry && sub_path) {
        json_object_set_new(entry, "subPath", json_string(sub_path));
    }
    return json_array_append_new(mounts, entry) == 0 ? 0 : err_no_memory(err);
}

int volumes_mount(const struct volume_sources *sources, const json_t *pod, const json_t *container,
                  json_t **ret_mounts, struct muster_err *err)
{
    muster_auto(doc) json_t *mounts = json_array();
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(container, "volumeMounts"), i, mount) {
        int r = mount_one(sources, pod, mount, mounts, err);
        if (r < 0) {
            return r;
        }
    }
    *ret_mounts = muster_take(mounts);
    return 0;
}
