/* See image.h. */
#include "daemon/image.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/words.h"
#include "job/annotations.h"

#include <string.h>

static int words_of(const char *text, json_t **ret, struct muster_err *err)
{
    char **words = NULL;
    int r = words_split(text, &words, err);
    if (r < 0) {
        return r;
    }
    json_t *array = json_array();
    for (char **w = words; *w; w++) {
        json_array_append_new(array, json_string(*w));
    }
    words_free(words);
    *ret = array;
    return 0;
}

static const char *note(const json_t *annotations, const char *key)
{
    return json_string_value(json_object_get(annotations, key));
}

/* The words that --image gave for this image; NULL when none did. */
static json_t *mapped(const json_t *job, const char *image)
{
    const char *text = note(doc_at(job, "metadata.annotations"), JOB_NOTE_IMAGES);
    muster_auto(doc) json_t *map = NULL;
    if (!text || doc_parse(text, strlen(text), &map, NULL) < 0) {
        return NULL;
    }
    return json_incref(json_object_get(map, image));
}

static const char *command_note(const json_t *job, const json_t *pod_annotations)
{
    const char *text = note(pod_annotations, JOB_NOTE_COMMAND);
    return text ? text : note(doc_at(job, "metadata.annotations"), JOB_NOTE_COMMAND);
}

static int nothing_to_run(const json_t *container, struct muster_err *err)
{
    const char *image = doc_text(container, "image", "");
    return muster_fail(
        err, MUSTER_EDATA,
        "container %s has no command, and processes cannot read the ENTRYPOINT of "
        "image %s: say what it runs with --image '%s=COMMAND', the annotation %s, or "
        "command:",
        doc_text(container, "name", "?"), image, image, JOB_NOTE_COMMAND);
}

int image_entrypoint(const json_t *job, const json_t *pod_annotations, const json_t *container,
                     json_t **ret, struct muster_err *err)
{
    if (json_array_size(doc_at(container, "command")) > 0) {
        *ret = NULL;
        return 0;
    }
    json_t *words = mapped(job, doc_text(container, "image", ""));
    const char *text = words ? NULL : command_note(job, pod_annotations);
    if (text) {
        int r = words_of(text, &words, err);
        if (r < 0) {
            return err ? muster_wrap(err, "annotation %s", JOB_NOTE_COMMAND) : r;
        }
    }
    if (json_array_size(words) == 0) {
        json_decref(words);
        return nothing_to_run(container, err);
    }
    *ret = words;
    return 0;
}

static int check_list(const json_t *job, const json_t *template, const char *list,
                      struct muster_err *err)
{
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(doc_at(template, "spec"), list), i, container) {
        muster_auto(doc) json_t *words = NULL;
        int r =
            image_entrypoint(job, doc_at(template, "metadata.annotations"), container, &words, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int image_check(const json_t *job, struct muster_err *err)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        const json_t *template = doc_at(replica, "template");
        int r = check_list(job, template, "initContainers", err);
        if (r == 0) {
            r = check_list(job, template, "containers", err);
        }
        if (r < 0) {
            return muster_wrap(err, "%s", role);
        }
    }
    return 0;
}
