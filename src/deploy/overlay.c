/* See overlay.h. */
#include "deploy/overlay.h"

#include "api/patch/merge.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/yaml/yaml.h"
#include "deploy/definition.h"
#include "deploy/files.h"
#include "job/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES_MAX = 256 };

struct overlay {
    const struct overlay_choice *choice;
    json_t *objects;
    struct muster_err *err;
};

/* Joins "overlays/ha" and "../cluster/x.yaml" to "overlays/cluster/x.yaml". */
static void join(const char *folder, const char *name, char *ret)
{
    size_t length = strlen(folder);
    while (strncmp(name, "../", 3) == 0) {
        while (length > 0 && folder[--length] != '/') {
        }
        name += 3;
    }
    snprintf(ret, PATH_BYTES_MAX, "%.*s%s%s", (int)length, folder, length ? "/" : "", name);
}

/* Reads the documents of a file into an array, in order. */
static int read_file(struct overlay *o, const char *path, json_t **ret)
{
    const struct deploy_file *file = deploy_file_find(path);
    struct yaml_stream stream = {0};
    if (!file) {
        return muster_fail(o->err, MUSTER_ENOENT, "there is no file deploy/%s", path);
    }
    int r = yaml_load(file->text, file->bytes, &yaml_limits_default, &stream, o->err);
    *ret = json_array();
    for (size_t i = 0; r == 0 && i < stream.document_count; i++) {
        r = json_array_append(*ret, stream.documents[i].doc) == 0 ? 0 : err_no_memory(o->err);
    }
    if (r == 0 && stream.fault_count > 0) {
        r = muster_fail(o->err, MUSTER_EDATA, "deploy/%s: %s", path, stream.faults[0].message);
    }
    yaml_done(&stream);
    return r;
}

/* Reads a file's documents; the definition is not an embedded file, but made from the tables of
 * src/job. */
static int read_documents(struct overlay *o, const char *path, json_t **ret)
{
    if (strcmp(path, "base/definition.yaml") != 0) {
        return read_file(o, path, ret);
    }
    *ret = json_pack("[o]", definition_new());
    return *ret ? 0 : err_no_memory(o->err);
}

/* --- patches --- */

static bool is_target(const json_t *object, const json_t *target)
{
    return strcmp(doc_text(object, "kind", ""), doc_text(target, "kind", "")) == 0 &&
           strcmp(doc_text(object, "metadata.name", ""), doc_text(target, "name", "")) == 0;
}

static int patch_objects(struct overlay *o, const char *folder, const json_t *patch)
{
    muster_auto(doc) json_t *documents = NULL;
    char path[PATH_BYTES_MAX];
    size_t i;
    json_t *object;
    join(folder, doc_text(patch, "path", ""), path);
    int r = read_documents(o, path, &documents);
    json_array_foreach (o->objects, i, object) {
        json_t *patched = NULL;
        if (r < 0 || !is_target(object, doc_at(patch, "target"))) {
            continue;
        }
        r = json_patch(object, json_array_get(documents, 0), &patched, o->err);
        if (r == 0 && json_array_set_new(o->objects, i, patched) != 0) {
            r = err_no_memory(o->err);
        }
    }
    return r;
}

/* --- the namespace --- */

/* Whether the object is of a kind without namespace; only kinds that a namespaced overlay has are
 * known. */
static bool lies_in_none(const json_t *object)
{
    const char *kind = doc_text(object, "kind", "");
    return strcmp(kind, "CustomResourceDefinition") == 0 || strncmp(kind, "ClusterRole", 11) == 0;
}

static int set_namespace(struct overlay *o, json_t *object, const char *name)
{
    size_t i;
    json_t *subject;
    int r = lies_in_none(object) ? 0 : doc_set_text(object, "metadata.namespace", name);
    json_array_foreach (json_object_get(object, "subjects"), i, subject) {
        r = r < 0 ? r : doc_set_text(subject, "namespace", name);
    }
    return r < 0 ? err_no_memory(o->err) : 0;
}

static int set_namespaces(struct overlay *o, const json_t *kustomization)
{
    const char *own = doc_text(kustomization, "namespace", NULL);
    const char *chosen = o->choice->namespace ? o->choice->namespace : own;
    size_t i;
    json_t *object;
    int r = 0;
    json_array_foreach (own ? o->objects : NULL, i, object) {
        r = r < 0 ? r : set_namespace(o, object, chosen);
    }
    return r;
}

/* --- folders --- */

static int add_folder(struct overlay *o, const char *folder);

static int add_resource(struct overlay *o, const char *folder, const char *name)
{
    muster_auto(doc) json_t *documents = NULL;
    char path[PATH_BYTES_MAX];
    char inside[PATH_BYTES_MAX];
    join(folder, name, path);
    join(path, "kustomization.yaml", inside);
    if (deploy_file_find(inside)) {
        return add_folder(o, path);
    }
    int r = read_documents(o, path, &documents);
    return r < 0 ? r : json_array_extend(o->objects, documents) == 0 ? 0 : err_no_memory(o->err);
}

static int add_folder(struct overlay *o, const char *folder)
{
    muster_auto(doc) json_t *documents = NULL;
    char path[PATH_BYTES_MAX];
    size_t i;
    json_t *each;
    join(folder, "kustomization.yaml", path);
    int r = read_documents(o, path, &documents);
    const json_t *kustomization = json_array_get(documents, 0);
    json_array_foreach (json_object_get(kustomization, "resources"), i, each) {
        r = r < 0 ? r : add_resource(o, folder, json_string_value(each));
    }
    json_array_foreach (json_object_get(kustomization, "patches"), i, each) {
        r = r < 0 ? r : patch_objects(o, folder, each);
    }
    return r < 0 ? r : set_namespaces(o, kustomization);
}

/* --- the caller's choices --- */

static int set_image(json_t *pod, const struct overlay_choice *choice)
{
    int r = 0;
    if (choice->image) {
        r = doc_set_text(doc_at(pod, "containers.0"), "image", choice->image);
    }
    if (r == 0 && choice->pull_secret) {
        json_t *secrets = json_pack("[{s:s}]", "name", choice->pull_secret);
        r = json_object_set_new(pod, "imagePullSecrets", secrets);
    }
    return r;
}

static int set_images(struct overlay *o)
{
    size_t i;
    json_t *object;
    json_array_foreach (o->objects, i, object) {
        json_t *pod = doc_at(object, "spec.template.spec");
        if (pod && set_image(pod, o->choice) < 0) {
            return err_no_memory(o->err);
        }
    }
    return 0;
}

/* Refuses values that no cluster would accept. */
static int check_words(const struct overlay_choice *choice, struct muster_err *err)
{
    const char *fault = choice->namespace ? job_text_fault(SCHEMA_LABEL, choice->namespace) : NULL;
    if (fault) {
        return muster_fail(err, MUSTER_EINVAL, "--namespace %s, not '%.80s'", fault,
                           choice->namespace);
    }
    fault = choice->pull_secret ? job_text_fault(SCHEMA_SUBDOMAIN, choice->pull_secret) : NULL;
    if (fault) {
        return muster_fail(err, MUSTER_EINVAL, "--image-pull-secret %s, not '%.80s'", fault,
                           choice->pull_secret);
    }
    size_t length = 0;
    while (choice->image && isgraph((unsigned char)choice->image[length])) {
        length++;
    }
    return choice->image && (length == 0 || choice->image[length])
               ? muster_fail(err, MUSTER_EINVAL,
                             "--image must be the name of an image, without blanks, not '%.80s'",
                             choice->image)
               : 0;
}

static int check_choice(struct overlay *o, const char *folder)
{
    muster_auto(doc) json_t *documents = NULL;
    char path[PATH_BYTES_MAX];
    join(folder, "kustomization.yaml", path);
    if (!deploy_file_find(path)) {
        return muster_fail(
            o->err, MUSTER_ENOENT,
            "there is no overlay %.60s: use cluster, ha, namespaced, webhook or images",
            o->choice->overlay);
    }
    int r = read_documents(o, path, &documents);
    if (r == 0 && o->choice->namespace && !doc_at(documents, "0.namespace")) {
        r = muster_fail(o->err, MUSTER_EINVAL,
                        "overlay %s is for all namespaces; --namespace is for the overlay "
                        "namespaced",
                        o->choice->overlay);
    }
    return r;
}

int overlay_objects(const struct overlay_choice *choice, json_t **ret, struct muster_err *err)
{
    struct overlay o = {.choice = choice, .objects = json_array(), .err = err};
    char folder[PATH_BYTES_MAX];
    snprintf(folder, sizeof folder, "overlays/%s", choice->overlay);
    int r = o.objects ? check_words(choice, err) : err_no_memory(err);
    r = r < 0 ? r : check_choice(&o, folder);
    r = r < 0 ? r : add_folder(&o, folder);
    r = r < 0 ? r : set_images(&o);
    if (r < 0) {
        json_decref(o.objects);
        return r;
    }
    *ret = o.objects;
    return 0;
}
