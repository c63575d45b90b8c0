/* See images.h. */
#include "cli/submit/images.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "job/annotations.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGES_MAX = 64, LIST_BYTES_MAX = 2048 };

/* Whether the job is generated (-n): --image IMAGE then names the pods' image; see generated.h. */
static bool is_generated(const struct cli *cli)
{
    return args_has_flag(&cli->args, "ranks");
}

/* Reads IMAGE=COMMAND. The name of an image has no "="; a command may have one. */
static int read_image(struct cli *cli, const char *text, json_t *images)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "--image must be IMAGE=COMMAND, such as 'repo/mnist:1.0=python3 "
                           "mnist.py', not '%s'",
                           text);
    }
    char **words = NULL;
    int r = shell_split(equals + 1, &words, &cli->err);
    if (r < 0) {
        return muster_wrap(&cli->err, "--image %.*s", (int)(equals - text), text);
    }
    json_t *command = json_array();
    for (char **word = words; *word; word++) {
        json_array_append_new(command, json_string(*word));
    }
    shell_free(words);
    if (json_array_size(command) == 0) {
        json_decref(command);
        return muster_fail(&cli->err, MUSTER_EINVAL, "--image %s names no command", text);
    }
    muster_auto(free) char *image = strndup(text, (size_t)(equals - text));
    json_object_set_new(images, image, command);
    return 0;
}

int images_annotate(struct cli *cli, json_t *job)
{
    if (!args_has(&cli->args, "image")) {
        return 0;
    }
    muster_auto(doc) json_t *images = json_object();
    size_t at = 0;
    for (const char *text; (text = args_each(&cli->args, "image", &at));) {
        int r = is_generated(cli) ? 0 : read_image(cli, text, images);
        if (r < 0) {
            return r;
        }
    }
    if (json_object_size(images) == 0) {
        return 0;
    }
    muster_auto(free) char *text = doc_print(images);
    return objects_set_annotation(cli, job, JOB_ANNOTATION_IMAGES, text ? json_string(text) : NULL);
}

/* --- which images the containers have --- */

struct image_search {
    const char *image; /* looked for, with its length */
    size_t length;
    bool found;   /* a container has it */
    bool applies; /* such a container names no command */
    const char *names[IMAGES_MAX];
    size_t count;
};

static bool is_listed(const struct image_search *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void look_at(struct image_search *s, const json_t *containers)
{
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        const char *name = doc_text(container, "image", "");
        bool fits = strlen(name) == s->length && strncmp(name, s->image, s->length) == 0;
        s->found = s->found || fits;
        s->applies = s->applies || (fits && json_array_size(doc_at(container, "command")) == 0);
        if (*name && s->count < IMAGES_MAX && !is_listed(s, name)) {
            s->names[s->count++] = name;
        }
    }
}

static void look_at_job(struct image_search *s, const json_t *job)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        look_at(s, doc_at(replica, "template.spec.initContainers"));
        look_at(s, doc_at(replica, "template.spec.containers"));
    }
}

static int no_such_image(struct cli *cli, const struct image_search *s)
{
    muster_auto(free) char *image = strndup(s->image, s->length);
    const char *near = image ? text_nearest(image, s->names, s->count) : NULL;
    if (near) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "--image %s=…: no container has this image; did you mean %s?", image,
                           near);
    }
    struct buf list;
    buf_init(&list, LIST_BYTES_MAX);
    for (size_t i = 0; i < s->count; i++) {
        buf_format(&list, "%s%s", i ? ", " : "", s->names[i]);
    }
    int r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "--image %s=…: no container has this image; those of the file are: %s",
                        image ? image : "?", s->count ? buf_str(&list) : "none");
    buf_done(&list);
    return r;
}

static int check_image(struct cli *cli, const char *text, const struct objects *objects)
{
    struct image_search s = {.image = text, .length = strcspn(text, "=")};
    for (size_t i = 0; i < objects->count; i++) {
        if (objects_is_job(objects->list[i])) {
            look_at_job(&s, objects->list[i]);
        }
    }
    if (!s.found) {
        return no_such_image(cli, &s);
    }
    return s.applies ? 0
                     : muster_fail(&cli->err, MUSTER_EINVAL,
                                   "--image %.*s=…: the containers of this image name their own "
                                   "command:, which wins; change it in the file",
                                   (int)s.length, text);
}

static int check_form(struct cli *cli, const char *text)
{
    if (is_generated(cli)) {
        return !strchr(text, '=')
                   ? 0
                   : muster_fail(
                         &cli->err, MUSTER_EINVAL,
                         "run: --image IMAGE=COMMAND goes with a file; with -n the command stands "
                         "behind --, and --image IMAGE names the image, not '%s'",
                         text);
    }
    muster_auto(doc) json_t *images = json_object();
    return read_image(cli, text, images);
}

/* Checks that --image names only one image, because all pods have the same one. */
static int check_single(struct cli *cli)
{
    size_t at = 0;
    const char *first = args_each(&cli->args, "image", &at);
    const char *second = first ? args_each(&cli->args, "image", &at) : NULL;
    return !is_generated(cli) || !second || strcmp(first, second) == 0
               ? 0
               : muster_fail(&cli->err, MUSTER_EINVAL,
                             "run: with -n all ranks have one image; --image is given twice: '%s' "
                             "and '%s'",
                             first, second);
}

int images_check(struct cli *cli, const struct objects *objects)
{
    int r = check_single(cli);
    size_t at = 0;
    for (const char *text; r == 0 && (text = args_each(&cli->args, "image", &at));) {
        r = check_form(cli, text);
        if (r == 0 && !is_generated(cli)) {
            r = check_image(cli, text, objects);
        }
    }
    return r;
}
