/* See rank_command.h. */
#include "daemon/stream/rank_command.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/machine/podman.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "process/supervisor/handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct rank_command {
    struct handover_packet packet;
    char *folder; /* the job's folder */
    int open_fd;  /* the file that says what must be run */
};

static bool is_running(const json_t *pod, const char *container)
{
    const json_t *status = doc_find(doc_at(pod, "status.containerStatuses"), "name", container);
    if (!status) {
        status = doc_find(doc_at(pod, "status.initContainerStatuses"), "name", container);
    }
    return doc_at(status, "state.running") != NULL;
}

static bool has_container(const json_t *pod, const char *name)
{
    return doc_find(doc_at(pod, "spec.containers"), "name", name) ||
           doc_find(doc_at(pod, "spec.initContainers"), "name", name);
}

int rank_check_container(const json_t *pod, const char *container, struct muster_err *err)
{
    const char *name = doc_text(pod, "metadata.name", "?");
    const char *phase = doc_text(pod, "status.phase", "Pending");
    if (!has_container(pod, container)) {
        return muster_fail(err, MUSTER_EINVAL, "container %s is not in pod %s", container, name);
    }
    if (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0) {
        return muster_fail(err, MUSTER_EGONE,
                           "pod %s has ended (%s): commands run in ranks that run", name, phase);
    }
    return is_running(pod, container)
               ? 0
               : muster_fail(err, MUSTER_EAGAIN, "container %s of pod %s does not run now",
                             container, name);
}

/* Makes the words to run. A podman container is entered by podman exec, which runs in the same way
 * as the rank's own podman. */
static json_t *words_of(const json_t *pod, const json_t *owner, const char *container,
                        const json_t *how)
{
    const char *runtime = owner ? jobs_annotation(owner, JOB_ANNOTATION_RUNTIME) : NULL;
    json_t *command = doc_at(how, "command");
    if (!runtime || strcmp(runtime, "podman") != 0) {
        return json_incref(command);
    }
    char name[PODMAN_NAME_BYTES];
    podman_name(doc_text(pod, "metadata.uid", ""), container, name);
    return podman_exec_words(name, doc_bool(how, "stdin", false), doc_bool(how, "tty", false),
                             command);
}

static int write_open(const json_t *words, const json_t *how, int *ret_fd, struct muster_err *err)
{
    muster_auto(doc) json_t *doc = json_copy((json_t *)how);
    if (!doc || json_object_set(doc, "argv", (json_t *)words) != 0) {
        return err_no_memory(err);
    }
    json_object_del(doc, "command");
    int fd = memfd_create("muster-exec", MFD_CLOEXEC);
    if (fd < 0 || json_dumpfd(doc, fd, JSON_COMPACT) != 0) {
        (void)muster_fail(err, MUSTER_EOS, "the command cannot be kept in memory for the rank: %s",
                          strerror(errno));
        passing_close(&fd, 1);
        return MUSTER_EOS;
    }
    *ret_fd = fd;
    return 0;
}

static struct rank_command *allocate(const struct home *home, const json_t *pod,
                                     const char *container)
{
    struct rank_command *command = calloc(1, sizeof *command);
    if (!command ||
        asprintf(&command->folder, "%s/jobs/%s", home->path, jobs_folder_uid(pod)) < 0) {
        free(command);
        return NULL;
    }
    command->open_fd = -1;
    command->packet.kind = HANDOVER_EXEC;
    (void)snprintf(command->packet.id, sizeof command->packet.id, "%s/%s/",
                   doc_text(pod, "metadata.uid", ""), container);
    return command;
}

int rank_command_new(const struct home *home, struct store *store, const json_t *pod,
                     const json_t *how, struct rank_command **ret, struct muster_err *err)
{
    const char *container = doc_text(how, "container", doc_text(pod, "spec.containers.0.name", ""));
    int r = json_array_size(doc_at(how, "command")) > 0
                ? rank_check_container(pod, container, err)
                : muster_fail(err, MUSTER_EINVAL, "command: at least one word is needed");
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *owner = NULL;
    r = jobs_fetch_owner(store, pod, &owner, err);
    if (r < 0) {
        return r;
    }
    struct rank_command *command = allocate(home, pod, container);
    if (!command) {
        return err_no_memory(err);
    }
    muster_auto(doc) json_t *words = words_of(pod, owner, container, how);
    r = write_open(words, how, &command->open_fd, err);
    if (r < 0) {
        rank_command_free(command);
        return r;
    }
    *ret = command;
    return 0;
}

int rank_command_send(const struct rank_command *command, int fd, struct muster_err *err)
{
    const int fds[] = {fd, command->open_fd};
    return handover_send(command->folder, &command->packet, fds, 2, err);
}

void rank_command_free(struct rank_command *command)
{
    if (command) {
        passing_close(&command->open_fd, 1);
        free(command->folder);
        free(command);
    }
}
