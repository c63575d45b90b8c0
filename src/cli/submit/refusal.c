/* See refusal.h. */
#include "cli/submit/refusal.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/submit/sources.h"

#include <stdio.h>
#include <string.h>

enum { PROBLEMS_MAX = 64, TEXT_BYTES_MAX = 64 << 10, HINT_BYTES = 256 };

/* Options of a command that help against a reason that the API gives; kubectl has none of them. */
static const struct remedy {
    const char *reason;
    const char *option;
    const char *hint; /* a format for an image */
} remedies[] = {
    {"InsufficientGPUs", "share-gpu",
     "--share-gpu puts several ranks on one GPU, --no-gpu runs without%.0s"},
    {"NoCommand", "image", "or say what it runs: --image '%.100s=COMMAND'"},
};

/* The image of the container at `field`, for the option that says what it runs. */
static const char *image_at(const json_t *object, const char *field)
{
    char role[32], list[32];
    size_t index;
    if (sscanf(field, "spec.pytorchReplicaSpecs.%31[^.].template.spec.%31[^[][%zu]", role, list,
               &index) != 3) {
        return NULL;
    }
    const json_t *replica = json_object_get(doc_at(object, "spec.pytorchReplicaSpecs"), role);
    const json_t *containers = json_object_get(doc_at(replica, "template.spec"), list);
    return doc_text(json_array_get(containers, index), "image", NULL);
}

/* Writes the hint; false if this command has no option that helps. */
static bool write_hint(const struct cli *cli, const json_t *object, const json_t *cause,
                       char ret[HINT_BYTES])
{
    const char *reason = doc_text(cause, "reason", "");
    const char *image = image_at(object, doc_text(cause, "field", ""));
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        const char *option = remedies[i].option;
        if (strcmp(remedies[i].reason, reason) == 0 && args_has(&cli->args, option)) {
            snprintf(ret, HINT_BYTES, remedies[i].hint, image ? image : "IMAGE");
            return true;
        }
    }
    return false;
}

/* Adds the causes to `problems`. Returns the file of the last cause that has one; NULL if none has.
 */
static const char *collect(const struct cli *cli, const json_t *object, const json_t *causes,
                           struct job_problems *problems)
{
    const char *file = NULL;
    size_t i;
    json_t *cause;
    json_array_foreach (causes, i, cause) {
        const char *field = doc_text(cause, "field", "");
        const char *path = strcmp(field, "<object>") == 0 ? "" : field;
        struct yaml_place place = {0, 0};
        const char *found = sources_find(cli->sources, object, path, &place);
        file = found ? found : file;
        char hint[HINT_BYTES];
        bool helps = write_hint(cli, object, cause, hint);
        job_problem_place(problems, JOB_ERROR, place, path, helps ? hint : NULL, "%s",
                          doc_text(cause, "message", ""));
    }
    return file;
}

/* Writes only messages and hints: the object is in no file, so that a field name would not help. */
static int put_into_error(struct cli *cli, const struct job_problems *problems, int code)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *p = &problems->list[i];
        buf_format(&text, "%s%s", i > 0 ? "; " : "", p->message);
        if (p->hint) {
            buf_format(&text, " (%s)", p->hint);
        }
    }
    int r = muster_fail(&cli->err, code, "%s", buf_str(&text));
    buf_done(&text);
    return r;
}

static int print(struct cli *cli, const json_t *object, const char *file,
                 const struct job_problems *problems, int code)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    job_problems_print(problems, file, &text);
    fputs(buf_str(&text), stderr);
    buf_done(&text);
    return muster_fail(&cli->err, code, "%zu error%s; %s %s was refused", problems->count,
                       problems->count == 1 ? "" : "s", doc_text(object, "kind", "object"),
                       doc_text(object, "metadata.name", ""));
}

int refusal_explain(struct cli *cli, const json_t *object, int code)
{
    const json_t *causes = doc_at(kube_status(cli->kube), "details.causes");
    if (code != MUSTER_EDATA || json_array_size(causes) == 0) {
        return code;
    }
    struct job_problems problems;
    job_problems_init(&problems, PROBLEMS_MAX);
    const char *file = collect(cli, object, causes, &problems);
    int r = file ? print(cli, object, file, &problems, code) : put_into_error(cli, &problems, code);
    job_problems_done(&problems);
    return r;
}

void refusal_add(struct cli *cli, const json_t *object, struct job_problems *problems)
{
    const json_t *causes = doc_at(kube_status(cli->kube), "details.causes");
    struct yaml_place place = {0, 0};
    if (cli->err.code == MUSTER_EDATA && json_array_size(causes) > 0) {
        (void)collect(cli, object, causes, problems);
    } else {
        (void)sources_find(cli->sources, object, "", &place);
        job_problem_place(problems, JOB_ERROR, place, "", NULL, "%s", cli->err.text);
    }
}

int refusal_at(struct cli *cli, const json_t *object, const char *field, const char *hint,
               const char *message)
{
    struct yaml_place place = {0, 0};
    const char *file = sources_find(cli->sources, object, field, &place);
    struct job_problems problems;
    job_problems_init(&problems, 1);
    job_problem_place(&problems, JOB_ERROR, place, field, hint, "%s", message);
    int r = file ? print(cli, object, file, &problems, MUSTER_EDATA)
                 : put_into_error(cli, &problems, MUSTER_EDATA);
    job_problems_done(&problems);
    return r;
}
