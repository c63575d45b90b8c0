/* See missed.h. */
#include "cli/follow/missed.h"

#include "base/doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 10 }; /* of that name, newest first: another may have been made since */

static json_t *get(struct cli *cli, char *path)
{
    json_t *answer = NULL;
    if (path) {
        (void)kube_call(cli->kube, "GET", path, NULL, &answer, NULL);
    }
    free(path);
    return answer;
}

static json_t *list_runs(struct cli *cli, const char *namespace, const char *name)
{
    char *path = NULL;
    return get(cli, asprintf(&path, "/muster/v1/history?limit=%d&namespace=%s&job=%s", RUNS_MAX,
                             namespace, name) < 0
                        ? NULL
                        : path);
}

static json_t *get_run(struct cli *cli, const char *namespace, const char *name, int64_t run)
{
    char *path = NULL;
    return get(cli, asprintf(&path, "/muster/v1/history/%s/%s/%" PRId64, namespace, name, run) < 0
                        ? NULL
                        : path);
}

json_t *missed_find(struct cli *cli, const char *namespace, const char *name, const char *uid)
{
    muster_auto(doc) json_t *list = list_runs(cli, namespace, name);
    size_t i;
    json_t *summary;
    json_array_foreach (doc_at(list, "runs"), i, summary) {
        muster_auto(doc) json_t *run = get_run(cli, namespace, name, doc_int(summary, "run", 0));
        if (strcmp(doc_text(run, "job.metadata.uid", ""), uid) == 0) {
            return muster_take(run);
        }
    }
    return NULL;
}
