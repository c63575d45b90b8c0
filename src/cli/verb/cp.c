/* muster cp: files out of a pod, through its mounts and working directory on this machine. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "base/file.h"
#include "cli/pod/copy.h"
#include "cli/pod/place.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The pod, or the job's first rank; also when it was cleaned up. */
static int find_pod(struct cli *cli, const char *word, json_t **ret)
{
    struct pod_set set = {0};
    muster_auto(doc) json_t *job = NULL;
    int r = pod_set_find(cli, word, false, &set, &job);
    if (r < 0) {
        return r;
    }
    json_t *first = json_incref(json_array_get(set.pods, 0));
    pod_set_done(&set);
    if (!first) {
        return muster_fail(&cli->err, MUSTER_ENOENT, "no pod of job %s has started", word);
    }
    *ret = first;
    return 0;
}

/* cp's rule: into a folder that exists under the source's own name, else as DEST. */
static char *destination(const char *from, const char *to)
{
    struct stat info;
    const char *slash = strrchr(from, '/');
    bool folder = stat(to, &info) == 0 && S_ISDIR(info.st_mode);
    return folder ? file_join(to, slash ? slash + 1 : from) : strdup(to);
}

static int copy_out(struct cli *cli, const json_t *pod, const char *path, const char *to)
{
    const char *container = args_value(&cli->args, "container");
    muster_auto(doc) json_t *place = NULL;
    int r = place_get(cli, pod, container ? container : ranks_main_container(pod), &place);
    if (r < 0) {
        return r;
    }
    muster_auto(free) char *from = place_resolve(place, path);
    for (size_t n = from ? strlen(from) : 0; n > 1 && from[n - 1] == '/'; n--) {
        from[n - 1] = '\0';
    }
    if (from && !file_exists(from)) {
        return muster_fail(
            &cli->err, MUSTER_ENOENT, "%s has no %s (looked for %s; its working directory is %s)",
            doc_text(pod, "metadata.name", ""), path, from, doc_text(place, "cwd", "unknown"));
    }
    muster_auto(free) char *dest = from ? destination(from, to) : NULL;
    return dest ? copy_tree(from, dest, &cli->err) : err_no_memory(&cli->err);
}

int cli_cp(struct cli *cli)
{
    int r = cli_expect_operands(cli, 2, 2);
    if (r < 0) {
        return r;
    }
    const char *source = cli->args.operands[0];
    const char *colon = strchr(source, ':');
    if (!colon || colon == source || !colon[1]) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "cp: the source must be JOB:PATH or POD:PATH, not '%s'", source);
    }
    muster_auto(free) char *name = strndup(source, (size_t)(colon - source));
    muster_auto(doc) json_t *pod = NULL;
    r = cli_connect(cli, KUBE_START);
    r = r < 0 ? r : find_pod(cli, name, &pod);
    return r < 0 ? r : copy_out(cli, pod, colon + 1, cli->args.operands[1]);
}
