/* See image.h. */
#include "daemon/image.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/words.h"
#include "job/annotations.h"

#include <string.h>

static json_t *words_of(const char *text, struct muster_err *err)
{
    char **words = NULL;
    if (words_split(text, &words, err) < 0) {
        return NULL;
    }
    json_t *array = json_array();
    for (char **w = words; *w; w++) {
        json_array_append_new(array, json_string(*w));
    }
    words_free(words);
    return array;
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

static json_t *entrypoint(const json_t *job, const json_t *pod_annotations, const json_t *container,
                          struct muster_err *err)
{
    const json_t *command = doc_at(container, "command");
    if (json_array_size(command) > 0) {
        return json_copy((json_t *)command);
    }
    const char *image = doc_text(container, "image", "");
    json_t *words = mapped(job, image);
    if (json_array_size(words) > 0) {
        return words;
    }
    json_decref(words);
    const char *text = note(pod_annotations, JOB_NOTE_COMMAND);
    if (!text) {
        text = note(doc_at(job, "metadata.annotations"), JOB_NOTE_COMMAND);
    }
    if (text) {
        return words_of(text, err);
    }
    muster_fail(
        err, MUSTER_EDATA,
        "container %s has no command, and processes cannot read the ENTRYPOINT of image %s: "
        "say what it runs with --image '%s=COMMAND', the annotation %s, or command:",
        doc_text(container, "name", "?"), image, image, JOB_NOTE_COMMAND);
    return NULL;
}

int image_command(const json_t *job, const json_t *pod_annotations, const json_t *container,
                  json_t **ret, struct muster_err *err)
{
    struct muster_err why = {.code = MUSTER_ENOMEM, .text = "out of memory"};
    json_t *words = entrypoint(job, pod_annotations, container, &why);
    if (!words) {
        return muster_fail(err, why.code, "%s", why.text);
    }
    if (json_array_size(words) == 0) {
        json_decref(words);
        return muster_fail(err, MUSTER_EDATA, "container %s: the command is empty",
                           doc_text(container, "name", "?"));
    }
    json_t *args = doc_at(container, "args");
    if (args) {
        json_array_extend(words, args);
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
            image_command(job, doc_at(template, "metadata.annotations"), container, &words, err);
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
