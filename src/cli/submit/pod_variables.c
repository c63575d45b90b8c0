/* See pod_variables.h. */
#include "cli/submit/pod_variables.h"

#include "base/err.h"
#include "base/variables.h"
#include "cli/submit/environment.h"
#include "job/items.h"

#include <string.h>

/* Where the entry of that name is; the end where there is none. */
static size_t find(const json_t *env, const char *name, size_t length)
{
    size_t i;
    json_t *entry;
    json_array_foreach (env, i, entry) {
        const char *has = doc_text(entry, "name", "");
        if (strlen(has) == length && strncmp(has, name, length) == 0) {
            return i;
        }
    }
    return json_array_size(env);
}

static int set_one(json_t *env, const char *variable)
{
    size_t length = variables_name_length(variable);
    size_t at = find(env, variable, length);
    json_t *entry =
        json_pack("{s:s%, s:s}", "name", variable, length, "value", variable + length + 1);
    return at < json_array_size(env) ? json_array_set_new(env, at, entry)
                                     : json_array_append_new(env, entry);
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

int pod_variables_set(struct cli *cli, json_t *job)
{
    const struct environment *environment = NULL;
    int r = environment_gather(cli, &environment);
    if (r < 0) {
        return r;
    }
    void *given = (void *)(uintptr_t)environment_given(environment);
    return job_each_item(job, "containers", set_all, given) < 0 ? err_no_memory(&cli->err) : 0;
}
