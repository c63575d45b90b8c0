/* See exec.h. */
#include "daemon/route/exec.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/stream/rank_command.h"
#include "process/monitor/session.h"
#include "process/supervisor/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMESPACE_BYTES = 64, NAME_BYTES = 254, PART_BYTES = 16 };

/* ---- exec ---- */

/* Gives the client's socket to the rank's supervisor. A failure is reported to the client in the
 * session's protocol. */
static void on_exec_socket(void *arg, int fd)
{
    struct rank_command *command = arg;
    struct muster_err err = MUSTER_ERR_INIT;
    if (fd >= 0 && rank_command_send(command, fd, &err) < 0) {
        session_refuse(fd, SESSION_GONE, err.text);
    }
    passing_close(&fd, 1);
    rank_command_free(command);
}

static int refuse_upgrade(const char *protocol, int r, struct muster_err *err)
{
    return muster_fail(err, r, "%s is available over the controller's Unix socket only", protocol);
}

static int exec_in(const struct home *home, struct store *store, const struct store_key *key,
                   const struct http_request *request, struct http_reply *reply,
                   struct muster_err *err)
{
    muster_auto(doc) json_t *pod = NULL;
    muster_auto(doc) json_t *body = NULL;
    struct rank_command *command = NULL;
    int r = doc_parse(request->body, request->body_bytes, &body, err);
    r = r < 0 ? r : store_get(store, *key, &pod, err);
    r = r < 0 ? r : rank_command_new(home, store, pod, body, &command, err);
    if (r < 0) {
        return r;
    }
    r = http_reply_upgrade(reply, "muster-exec", on_exec_socket, command);
    if (r < 0) {
        rank_command_free(command);
        return refuse_upgrade("muster-exec", r, err);
    }
    return 0;
}

/* ---- stdin ---- */

/* Gives the client's socket of standard input to the job's supervisor. If that fails, the socket is
 * closed, which the client notices. */
static void on_stdin_socket(void *arg, int fd)
{
    const struct handover_packet packet = {.kind = HANDOVER_STDIN};
    char *folder = arg;
    if (fd >= 0) {
        (void)handover_send(folder, &packet, &fd, 1, NULL);
    }
    passing_close(&fd, 1);
    free(folder);
}

static int feed_job(const struct home *home, struct store *store, const struct store_key *key,
                    struct http_reply *reply, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    char *folder = NULL;
    int r = store_get(store, *key, &job, err);
    if (r < 0) {
        return r;
    }
    if (asprintf(&folder, "%s/jobs/%s", home->path, doc_text(job, "metadata.uid", "")) < 0) {
        return err_no_memory(err);
    }
    r = http_reply_upgrade(reply, "muster-stdin", on_stdin_socket, folder);
    if (r < 0) {
        free(folder);
        return refuse_upgrade("muster-stdin", r, err);
    }
    return 0;
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
