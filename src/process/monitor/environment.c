/* See environment.h. */
#include "process/monitor/environment.h"

#include "base/doc.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads {"PYTHONPATH": "/ours"}: puts our part before the value that the variable has. */
static int put_before(struct process_spec *spec, struct muster_err *err)
{
    json_t *prepend = doc_at(spec->doc, "prepend");
    const char *name;
    json_t *ours;
    size_t i = 0;
    spec->prepended = calloc(json_object_size(prepend) + 1, sizeof *spec->prepended);
    if (!spec->prepended) {
        return err_no_memory(err);
    }
    json_object_foreach (prepend, name, ours) {
        const char *rest = variables_value(spec->env, name);
        bool more = rest && *rest;
        if (!json_is_string(ours) || !*name || strchr(name, '=')) {
            return muster_fail(err, MUSTER_EDATA, "prepend.%s: a name and text are needed", name);
        }
        if (asprintf(&spec->prepended[i], "%s=%s%s%s", name, json_string_value(ours),
                     more ? ":" : "", more ? rest : "") < 0) {
            spec->prepended[i] = NULL;
            return err_no_memory(err);
        }
        i++;
    }
    return 0;
}

static int merge(struct process_spec *spec, char *const *const *lists, size_t count,
                 struct muster_err *err)
{
    char **merged = variables_merge(lists, count);
    if (!merged) {
        return err_no_memory(err);
    }
    free(spec->env);
    spec->env = merged;
    return 0;
}

int environment_load(struct process_spec *spec, struct muster_err *err)
{
    const char *path = doc_text(spec->doc, "environmentFile", NULL);
    int r = path ? variables_read(path, &spec->from_file, err) : 0;
    if (r < 0) {
        return muster_wrap(err, "the environment that the job was submitted with");
    }
    char *const *const lists[] = {spec->own_env, spec->from_file.given, spec->from_file.shell};
    r = merge(spec, lists, 3, err);
    r = r < 0 ? r : put_before(spec, err);
    char *const *const whole[] = {spec->prepended, spec->env};
    return r < 0 ? r : merge(spec, whole, 2, err);
}
