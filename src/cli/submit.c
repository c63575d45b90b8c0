/* What a job takes along from the shell it was submitted in: the working directory, the allowed
 * part of the environment, and the options about how to run it here, all as annotations. */
#include "cli/objects.h"

#include "base/err.h"
#include "base/words.h"
#include "job/annotations.h"
#include "job/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes `value`. */
static int note(struct cli *cli, json_t *job, const char *name, json_t *value)
{
    json_t *metadata = json_object_get(job, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    if (!json_is_object(notes)) {
        notes = json_object();
        json_object_set_new(metadata, "annotations", notes);
    }
    return json_object_set_new(notes, name, value) == 0 ? 0 : err_no_memory(&cli->err);
}

static int note_doc(struct cli *cli, json_t *job, const char *name, const json_t *value)
{
    muster_auto(free) char *text = doc_print(value);
    return note(cli, job, name, text ? json_string(text) : NULL);
}

static int note_submitter(struct cli *cli, json_t *job)
{
    muster_auto(free) char *cwd = getcwd(NULL, 0);
    if (!cwd) {
        return muster_fail(&cli->err, MUSTER_EOS, "cannot tell the current folder: %s",
                           strerror(errno));
    }
    muster_auto(doc) json_t *submit =
        json_pack("{s:s, s:o}", "cwd", cwd, "env", submit_capture(environ));
    if (!submit) {
        return muster_fail(&cli->err, MUSTER_EDATA, "the current folder's name is not UTF-8");
    }
    return note_doc(cli, job, JOB_NOTE_SUBMIT, submit);
}

/* IMAGE=COMMAND; the image's own "=" does not exist, a command's may. */
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
    int r = words_split(equals + 1, &words, &cli->err);
    if (r < 0) {
        return muster_wrap(&cli->err, "--image %.*s", (int)(equals - text), text);
    }
    json_t *command = json_array();
    for (char **word = words; *word; word++) {
        json_array_append_new(command, json_string(*word));
    }
    words_free(words);
    if (json_array_size(command) == 0) {
        json_decref(command);
        return muster_fail(&cli->err, MUSTER_EINVAL, "--image %s names no command", text);
    }
    muster_auto(free) char *image = strndup(text, (size_t)(equals - text));
    json_object_set_new(images, image, command);
    return 0;
}

static bool has(const struct cli *cli, const char *option)
{
    return cli_option_find(cli->args.command, option, strlen(option), 0) != NULL;
}

/* There --image IMAGE alone names the pods' image; see generated.h. */
static bool generated_from_command(const struct cli *cli)
{
    return has(cli, "ranks") && args_flag(&cli->args, "ranks");
}

static int note_images(struct cli *cli, json_t *job)
{
    muster_auto(doc) json_t *images = json_object();
    size_t at = 0;
    for (const char *text; (text = args_each(&cli->args, "image", &at));) {
        bool plain = generated_from_command(cli) && !strchr(text, '=');
        int r = plain ? 0 : read_image(cli, text, images);
        if (r < 0) {
            return r;
        }
    }
    return json_object_size(images) ? note_doc(cli, job, JOB_NOTE_IMAGES, images) : 0;
}

static int note_backend(struct cli *cli, json_t *job)
{
    const char *backend = args_value(&cli->args, "backend");
    if (backend && strcmp(backend, "muster") != 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "--backend must be muster, not '%s': any other backend is the script's "
                           "own choice, in init_process_group or an argument behind --",
                           backend);
    }
    return backend ? note(cli, job, JOB_NOTE_BACKEND, json_string(backend)) : 0;
}

/* The options whose value is the annotation's. */
static int note_words(struct cli *cli, json_t *job)
{
    static const struct {
        const char *option;
        const char *annotation;
    } words[] = {{"network", JOB_NOTE_NETWORK}, {"runtime", JOB_NOTE_RUNTIME}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *value = NULL;
        int r = args_choice(&cli->args, words[i].option, &value, &cli->err);
        if (r == 0 && value) {
            r = note(cli, job, words[i].annotation, json_string(value));
        }
        if (r < 0) {
            return r;
        }
    }
    return note_backend(cli, job);
}

static int note_gpu(struct cli *cli, json_t *job)
{
    bool share = args_flag(&cli->args, "share-gpu");
    bool none = args_flag(&cli->args, "no-gpu");
    if (share && none) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "--share-gpu and --no-gpu exclude each other");
    }
    return share || none ? note(cli, job, JOB_NOTE_GPU, json_string(share ? "share" : "none")) : 0;
}

int objects_annotate(struct cli *cli, json_t *object)
{
    if (strcmp(doc_text(object, "kind", ""), "PyTorchJob") != 0) {
        return 0;
    }
    int r = note_submitter(cli, object);
    if (r == 0) {
        r = note_images(cli, object);
    }
    if (r == 0 && has(cli, "network")) {
        r = note_words(cli, object);
    }
    if (r == 0 && has(cli, "share-gpu")) {
        r = note_gpu(cli, object);
    }
    return r;
}
