/* The data that the controller finds on its machine: files of MUSTER_HOME that a crash or an editor
 * has left, and files of the system.
 *
 * An input that starts with '{' is placement.json; one that starts with '[' is the job and the pods
 * of a run of the history, an image mapping and the Services of a job. Otherwise the first byte
 * chooses among /etc/hosts, lists of GPUs and /proc/PID/cgroup. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/system/cgroup_path.h"
#include "daemon/history/summary.h"
#include "daemon/machine/image.h"
#include "daemon/machine/placement.h"
#include "invariant.h"
#include "process/machine/gpus.h"
#include "process/monitor/hosts.h"

#include <fcntl.h>
#include <unistd.h>

enum { MOST = 1 << 16, NAMES = 2 };

static char folder[] = "/dev/shm/muster-fuzz-machine-XXXXXX";

static void remove_folder(void)
{
    (void)file_remove(folder, NULL);
}

static void start(void)
{
    invariant(mkdtemp(folder), "a folder is made", folder);
    (void)atexit(remove_folder);
}

/* Writes a file without file_write, whose flush for every input is too slow. */
static void write_whole(const char *name, const char *text)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t size = (ssize_t)strlen(text);
    invariant(fd >= 0 && write(fd, text, (size_t)size) == size, "the file is written", path);
}

/* ---- GPUs ---- */

static void hold_and_give_back(const struct gpus *machine, const char *ids)
{
    struct gpus gpus = *machine;
    gpus_hold(&gpus, ids, false);
    gpus_give_back(&gpus, ids);
    for (size_t i = 0; i < gpus.count; i++) {
        invariant(gpus.list[i].holders == 0, "what is given back is free", ids);
    }
}

/* "CONFIGURED\nVISIBLE" */
static void share_gpus(char *text)
{
    struct gpus gpus;
    bool pool[GPUS_MAX];
    char ids[GPUS_MAX * GPUS_ID_BYTES];
    char *visible = strchr(text, '\n');
    if (visible) {
        *visible++ = '\0';
    }
    gpus_discover(&gpus, folder, text);
    invariant(gpus.count <= GPUS_MAX && gpus.machine_count <= GPUS_MAX, "as many as there is room",
              text);
    size_t count = gpus_pool(&gpus, visible, pool);
    invariant(count <= gpus.count, "a pool is of the machine's", text);
    if (count > 0 && gpus_take(&gpus, count, false, pool, ids, sizeof ids, NULL) == 0) {
        gpus_give_back(&gpus, ids);
        hold_and_give_back(&gpus, ids);
    }
}

/* ---- files ---- */

static void read_placement(const char *text)
{
    struct placement placement;
    struct gpus gpus;
    write_whole("placement.json", text);
    if (placement_open(&placement, folder, NULL) < 0) {
        return;
    }
    (void)placement_holds(&placement, 23456);
    gpus_discover(&gpus, folder, "0,1,2");
    const char *ids = placement_gpus(&placement, "a");
    if (ids) {
        gpus_hold(&gpus, ids, true);
        gpus_give_back(&gpus, ids);
    }
    placement_done(&placement);
}

static void describe_run(const json_t *job, const json_t *pods)
{
    muster_auto(doc) json_t *summary = history_summary(job, pods, 1, 0);
    const json_t *code = json_object_get(summary, "exitCode");
    invariant(json_is_object(summary), "there is a summary", "");
    invariant(!code || json_is_null(code) || json_is_integer(code), "an exit code is a number", "");
}

static void find_command(const json_t *job, const json_t *container)
{
    muster_auto(doc) json_t *words = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r =
        image_entrypoint(job, json_object_get(container, "annotations"), container, &words, &err);
    invariant(r < 0 || !words || json_array_size(words) > 0, "an entrypoint has words", "");
}

/* Checks the number of lines: each has the address and four names, and a line break in a name would
 * add a line. */
static void add_services(const json_t *services)
{
    muster_auto(free) char *text = hosts_text("", NULL, 0, services);
    invariant(text, "there is a text", "");
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++) {
        lines++;
    }
    invariant(lines <= json_array_size(doc_at(services, "names")), "a line a name", text);
}

static void read_run(const char *text)
{
    muster_auto(doc) json_t *doc = NULL;
    if (doc_parse(text, strlen(text), &doc, NULL) < 0) {
        return;
    }
    describe_run(json_array_get(doc, 0), json_array_get(doc, 1));
    find_command(json_array_get(doc, 0), json_array_get(doc, 2));
    add_services(json_array_get(doc, 3));
}

/* ---- the system ---- */

static void add_names(const char *text)
{
    static const char *const names[NAMES] = {"pod-0", "machine"};
    muster_auto(free) char *once = hosts_text(text, names, NAMES, NULL);
    invariant(once && strncmp(once, text, strlen(text)) == 0, "the machine's lines stay", text);
    muster_auto(free) char *twice = hosts_text(once, names, NAMES, NULL);
    invariant(twice && strcmp(once, twice) == 0, "what has all names is left alone", once);
}

static void find_groups(const char *text)
{
    static const char *const controllers[] = {"", "memory", "cpu"};
    for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
        muster_auto(free) char *path = cgroup_own_path(text, controllers[i]);
        invariant(!path || !strchr(path, '\n'), "a path is of one line", text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        start();
        started = true;
    }
    if (size < 1 || size > MOST) {
        return 0;
    }
    muster_auto(free) char *text = strndup((const char *)data, size);
    switch (*text) {
    case '\0': break;
    case '{': read_placement(text); break;
    case '[': read_run(text); break;
    case 'h': add_names(text + 1); break;
    case 'g': share_gpus(text + 1); break;
    default: find_groups(text); break;
    }
    return 0;
}
