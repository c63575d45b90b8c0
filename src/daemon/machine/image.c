/* See image.h. */
#include "daemon/machine/image.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/shell_words.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256 };

static int words_of(const char *text, json_t **ret, struct muster_err *err)
{
    char **words = NULL;
    int r = shell_split(text, &words, err);
    if (r < 0) {
        return r;
    }
    json_t *array = json_array();
    for (char **w = words; *w; w++) {
        json_array_append_new(array, json_string(*w));
    }
    shell_free(words);
    *ret = array;
    return 0;
}

static const char *note(const json_t *annotations, const char *key)
{
    return json_string_value(json_object_get(annotations, key));
}

/* Returns the words that --image gave for this image; NULL if there are none. */
static json_t *mapped(const json_t *job, const char *image)
{
    const char *text = note(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_IMAGES);
    muster_auto(doc) json_t *map = NULL;
    if (!text || doc_parse(text, strlen(text), &map, NULL) < 0) {
        return NULL;
    }
    return json_incref(json_object_get(map, image));
}

static const char *command_note(const json_t *job, const json_t *pod_annotations)
{
    const char *text = note(pod_annotations, JOB_ANNOTATION_COMMAND);
    return text ? text : note(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_COMMAND);
}

static int nothing_to_run(const json_t *container, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EDATA,
                       "container %s has no command, and muster cannot read the ENTRYPOINT of "
                       "image %s: add command:, or the annotation %s",
                       doc_text(container, "name", "?"), doc_text(container, "image", "?"),
                       JOB_ANNOTATION_COMMAND);
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
            return err ? muster_wrap(err, "annotation %s", JOB_ANNOTATION_COMMAND) : r;
        }
    }
    if (json_array_size(words) == 0) {
        json_decref(words);
        return nothing_to_run(container, err);
    }
    *ret = words;
    return 0;
}

static void check_list(const json_t *job, const json_t *template, const char *role,
                       const char *list, struct job_problems *problems)
{
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(doc_at(template, "spec"), list), i, container) {
        muster_auto(doc) json_t *words = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        if (image_entrypoint(job, doc_at(template, "metadata.annotations"), container, &words,
                             &err) < 0) {
            char path[PATH_BYTES];
            (void)snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s.template.spec.%s[%zu]",
                           role, list, i);
            job_problem_add(problems, JOB_ERROR, path, NULL, "%s", err.text);
            job_problem_reason(problems, "NoCommand");
        }
    }
}

void image_check(const json_t *job, struct job_problems *problems)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        const json_t *template = doc_at(replica, "template");
        check_list(job, template, role, "initContainers", problems);
        check_list(job, template, role, "containers", problems);
    }
}
