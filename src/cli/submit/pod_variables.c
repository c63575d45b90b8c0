/* See pod_variables.h. */
#include "cli/submit/pod_variables.h"

#include "base/err.h"
#include "base/text.h"
#include "base/variables.h"
#include "cli/submit/environment.h"
#include "job/items.h"

#include <string.h>

/* Sets one variable; replaces what the file says about that name. */
static int set_one(json_t *env, const char *variable)
{
    size_t length = variables_name_length(variable);
    muster_auto(doc) json_t *entry =
        json_pack("{s:s%, s:s}", "name", variable, length, "value", variable + length + 1);
    json_t *before = doc_find(env, "name", doc_text(entry, "name", ""));
    if (before) {
        return !entry || json_object_clear(before) < 0 ? -1 : json_object_update(before, entry);
    }
    return json_array_append(env, entry);
}

static int set_all(void *context, const json_t *container, const char *role, const char *path)
{
    char *const *variable = context;
    json_t *owner = (json_t *)(uintptr_t)container;
    (void)role, (void)path;
    if (*variable && !json_is_array(json_object_get(owner, "env")) &&
        json_object_set_new(owner, "env", json_array()) < 0) {
        return MUSTER_ENOMEM;
    }
    for (; *variable; variable++) {
        if (set_one(json_object_get(owner, "env"), *variable) < 0) {
            return MUSTER_ENOMEM;
        }
    }
    return 0;
}

/* Checks that variables are UTF-8: ranks here get them as bytes, but a cluster has them in the pod,
 * which is text. */
static int check_text(char *const *given, struct muster_err *err)
{
    for (; *given; given++) {
        size_t length = variables_name_length(*given);
        if (!text_is_utf8(*given, length)) {
            return muster_fail(err, MUSTER_EINVAL,
                               "the name of a variable that is given is not valid UTF-8, which a "
                               "pod cannot have");
        }
        if (!text_is_utf8(*given, strlen(*given))) {
            return muster_fail(err, MUSTER_EINVAL,
                               "the value of %.*s is not valid UTF-8, which a pod cannot have",
                               (int)length, *given);
        }
    }
    return 0;
}

int pod_variables_set(struct cli *cli, json_t *job)
{
    const struct environment *environment = NULL;
    int r = environment_gather(cli, &environment);
    if (r < 0) {
        return r;
    }
    char *const *given = environment_given(environment);
    r = check_text(given, &cli->err);
    if (r == 0 && job_each_item(job, "containers", set_all, (void *)(uintptr_t)given) < 0) {
        r = err_no_memory(&cli->err);
    }
    return r;
}
