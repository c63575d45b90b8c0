/* See exec.h. */
#include "daemon/route/exec.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/machine/podman.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "process/monitor/session.h"
#include "process/supervisor/handover.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAMESPACE_BYTES = 64, NAME_BYTES = 254, PART_BYTES = 16 };

/* Until the client's socket is there. */
struct transfer {
    struct handover_packet packet;
    char *folder; /* the job's */
    int open_fd;  /* what to run; -1 for a standard input */
};

static void free_transfer(struct transfer *transfer)
{
    if (transfer) {
        passing_close(&transfer->open_fd, 1);
        free(transfer->folder);
        free(transfer);
    }
}

/* The client hears of a failure in the session's own words; of a standard input, that it closes. */
static void on_socket(void *arg, int fd)
{
    struct transfer *transfer = arg;
    const int fds[] = {fd, transfer->open_fd};
    struct muster_err err = MUSTER_ERR_INIT;
    size_t count = transfer->packet.kind == HANDOVER_EXEC ? 2 : 1;
    if (fd >= 0 && handover_send(transfer->folder, &transfer->packet, fds, count, &err) < 0 &&
        transfer->packet.kind == HANDOVER_EXEC) {
        session_refuse(fd, SESSION_GONE, err.text);
    }
    passing_close(&fd, 1);
    free_transfer(transfer);
}

static struct transfer *new_transfer(const struct home *home, const char *uid,
                                     enum handover_kind kind)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer) {
        transfer->packet.kind = kind;
        transfer->open_fd = -1;
    }
    if (transfer && asprintf(&transfer->folder, "%s/jobs/%s", home->path, uid) < 0) {
        transfer->folder = NULL;
        free_transfer(transfer);
        return NULL;
    }
    return transfer;
}

/* Takes the transfer. */
static int switch_over(struct transfer *transfer, const char *protocol, struct http_reply *reply,
                       struct muster_err *err)
{
    int r = http_reply_upgrade(reply, protocol, on_socket, transfer);
    if (r < 0) {
        free_transfer(transfer);
        return muster_fail(err, r, "%s is available over the controller's Unix socket only",
                           protocol);
    }
    return 0;
}

/* ---- exec ---- */

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

static int check_container(const json_t *pod, const char *container, struct muster_err *err)
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

/* A podman container is entered by podman, which runs as the rank's own podman does. */
static json_t *words_of(const json_t *pod, const json_t *owner, const char *container,
                        const json_t *body)
{
    const char *runtime = owner ? jobs_annotation(owner, JOB_ANNOTATION_RUNTIME) : NULL;
    json_t *command = doc_at(body, "command");
    if (!runtime || strcmp(runtime, "podman") != 0) {
        return json_incref(command);
    }
    char name[PODMAN_NAME_BYTES];
    podman_name(doc_text(pod, "metadata.uid", ""), container, name);
    return podman_exec_words(name, doc_bool(body, "stdin", false), doc_bool(body, "tty", false),
                             command);
}

static int write_open(const json_t *words, const json_t *body, int *ret_fd, struct muster_err *err)
{
    muster_auto(doc) json_t *doc = json_copy((json_t *)body);
    if (!doc || json_object_set(doc, "argv", (json_t *)words) != 0) {
        return err_no_memory(err);
    }
    json_object_del(doc, "command");
    int fd = memfd_create("muster-exec", MFD_CLOEXEC);
    if (fd < 0 || json_dumpfd(doc, fd, JSON_COMPACT) != 0) {
        passing_close(&fd, 1);
        return muster_fail(err, MUSTER_EOS, "the command cannot be handed over");
    }
    *ret_fd = fd;
    return 0;
}

static int exec_in(const struct home *home, struct store *store, const struct store_key *key,
                   const struct http_request *request, struct http_reply *reply,
                   struct muster_err *err)
{
    muster_auto(doc) json_t *pod = NULL;
    muster_auto(doc) json_t *body = NULL;
    int r = doc_parse(request->body, request->body_bytes, &body, err);
    r = r < 0 ? r : store_get(store, *key, &pod, err);
    const char *container =
        doc_text(body, "container", doc_text(pod, "spec.containers.0.name", ""));
    if (r == 0 && json_array_size(doc_at(body, "command")) == 0) {
        r = muster_fail(err, MUSTER_EINVAL, "command: at least one word is needed");
    }
    r = r < 0 ? r : check_container(pod, container, err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *owner = NULL;
    r = jobs_fetch_owner(store, pod, &owner, err);
    if (r < 0) {
        return r;
    }
    struct transfer *transfer = new_transfer(home, jobs_folder_uid(pod), HANDOVER_EXEC);
    if (!transfer) {
        return err_no_memory(err);
    }
    (void)snprintf(transfer->packet.id, sizeof transfer->packet.id, "%s/%s/",
                   doc_text(pod, "metadata.uid", ""), container);
    muster_auto(doc) json_t *words = words_of(pod, owner, container, body);
    r = write_open(words, body, &transfer->open_fd, err);
    if (r < 0) {
        free_transfer(transfer);
        return r;
    }
    return switch_over(transfer, "muster-exec", reply, err);
}

/* ---- stdin ---- */

static int feed_job(const struct home *home, struct store *store, const struct store_key *key,
                    struct http_reply *reply, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    int r = store_get(store, *key, &job, err);
    if (r < 0) {
        return r;
    }
    struct transfer *transfer =
        new_transfer(home, doc_text(job, "metadata.uid", ""), HANDOVER_STDIN);
    return transfer ? switch_over(transfer, "muster-stdin", reply, err) : err_no_memory(err);
}

void exec_routes_handle(const struct home *home, struct store *store, const char *rest,
                        const struct http_request *request, struct http_reply *reply)
{
    char namespace[NAMESPACE_BYTES], kind[PART_BYTES], name[NAME_BYTES], part[PART_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    int end = 0;
    int words =
        sscanf(rest, "%63[^/]/%15[^/]/%253[^/]/%15[^/]%n", namespace, kind, name, part, &end);
    bool whole = words == 4 && rest[end] == '\0';
    int r;
    if (whole && strcmp(kind, "pods") == 0 && strcmp(part, "exec") == 0) {
        const struct store_key key = {"pods", namespace, name};
        r = exec_in(home, store, &key, request, reply, &err);
    } else if (whole && strcmp(kind, "jobs") == 0 && strcmp(part, "stdin") == 0) {
        const struct store_key key = {"pytorchjobs", namespace, name};
        r = feed_job(home, store, &key, reply, &err);
    } else {
        r = muster_fail(&err, MUSTER_ENOENT,
                        "there is nothing to post to at /muster/v1/namespaces/%s", rest);
    }
    if (r < 0) {
        api_send_error(reply, &err);
    }
}
