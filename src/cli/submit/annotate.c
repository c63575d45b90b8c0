/* Records in a job what it needs of the shell in which it was submitted: the working directory and
 * the options for this machine, as annotations, and the ID of its environment. */
#include "cli/submit/objects.h"

#include "base/err.h"
#include "base/system/soft_limits.h"
#include "cli/submit/environment.h"
#include "cli/submit/images.h"
#include "cli/submit/pod_variables.h"
#include "job/annotations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int annotate_doc(struct cli *cli, json_t *job, const char *name, const json_t *value)
{
    muster_auto(free) char *text = doc_print(value);
    return objects_set_annotation(cli, job, name, text ? json_string(text) : NULL);
}

/* Reads the umask, which is possible only by setting it. */
static int own_umask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return (int)mask;
}

static int annotate_submitter(struct cli *cli, json_t *job)
{
    muster_auto(free) char *cwd = getcwd(NULL, 0);
    if (!cwd) {
        return errno == ENOENT
                   ? muster_fail(&cli->err, MUSTER_ENOENT,
                                 "the folder that this shell is in was deleted, and the ranks "
                                 "would start there: cd to one that exists")
                   : muster_fail(&cli->err, MUSTER_EOS,
                                 "cannot determine the working directory: %s", strerror(errno));
    }
    muster_auto(doc) json_t *submit = json_pack("{s:s, s:i, s:o}", "cwd", cwd, "umask", own_umask(),
                                                "limits", soft_limits_read());
    if (!submit) {
        return muster_fail(&cli->err, MUSTER_EDATA,
                           "the name of the working directory is not valid UTF-8");
    }
    return annotate_doc(cli, job, JOB_ANNOTATION_SUBMIT, submit);
}

static int annotate_backend(struct cli *cli, json_t *job)
{
    const char *backend = args_value(&cli->args, "backend");
    if (backend && strcmp(backend, "muster") != 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "--backend must be muster, not '%s': any other backend is the script's "
                           "own choice, in init_process_group or an argument behind --",
                           backend);
    }
    return backend ? objects_set_annotation(cli, job, JOB_ANNOTATION_BACKEND, json_string(backend))
                   : 0;
}

/* Sets the annotations whose value is the value of an option. */
static int annotate_words(struct cli *cli, json_t *job)
{
    static const struct {
        const char *option;
        const char *annotation;
    } words[] = {{"network", JOB_ANNOTATION_NETWORK}, {"runtime", JOB_ANNOTATION_RUNTIME}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *value = NULL;
        int r = args_choice(&cli->args, words[i].option, &value, &cli->err);
        if (r == 0 && value) {
            r = objects_set_annotation(cli, job, words[i].annotation, json_string(value));
        }
        if (r < 0) {
            return r;
        }
    }
    return annotate_backend(cli, job);
}

static int annotate_stall(struct cli *cli, json_t *job)
{
    const char *text = args_value(&cli->args, "stall");
    int64_t ms;
    int r = args_duration(&cli->args, "stall", &ms, &cli->err);
    return r < 0 || !text
               ? r
               : objects_set_annotation(cli, job, JOB_ANNOTATION_STALL, json_string(text));
}

static int annotate_gpu(struct cli *cli, json_t *job)
{
    bool share = args_flag(&cli->args, "share-gpu");
    bool none = args_flag(&cli->args, "no-gpu");
    return share || none ? objects_set_annotation(cli, job, JOB_ANNOTATION_GPU,
                                                  json_string(share ? "share" : "none"))
                         : 0;
}

int objects_set_policy(struct cli *cli, json_t *object)
{
    bool wanted = objects_is_job(object) && args_has_flag(&cli->args, "all-ranks");
    return wanted ? objects_set_annotation(cli, object, JOB_ANNOTATION_SUCCESS_POLICY,
                                           json_string("AllRanks"))
                  : 0;
}

int objects_annotate_options(struct cli *cli, json_t *object)
{
    if (!objects_is_job(object)) {
        return 0;
    }
    if (cli_on_cluster(cli)) {
        int failed = pod_variables_set(cli, object);
        return failed < 0 ? failed : objects_set_policy(cli, object);
    }
    int r = images_annotate(cli, object);
    if (r == 0 && args_has(&cli->args, "network")) {
        r = annotate_words(cli, object);
    }
    if (r == 0 && args_has(&cli->args, "stall")) {
        r = annotate_stall(cli, object);
    }
    if (r == 0 && args_has(&cli->args, "share-gpu")) {
        r = annotate_gpu(cli, object);
    }
    return r < 0 ? r : objects_set_policy(cli, object);
}

int objects_annotate(struct cli *cli, json_t *object, const json_t *before)
{
    if (!objects_is_job(object)) {
        return 0;
    }
    if (cli_on_cluster(cli)) {
        return objects_annotate_options(cli, object); /* its pods do not depend on this shell */
    }
    int r = annotate_submitter(cli, object);
    r = r < 0 ? r : environment_annotate(cli, object, before);
    return r < 0 ? r : objects_annotate_options(cli, object);
}
