/* Sends one request for an upgrade by hand, without libcurl; then the socket is the caller's.
 *
 * Layer: services. Memory: nothing is kept. Thread: any; it blocks, ANSWER_S at most.
 */
#include "kube/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 16 << 10, ANSWER_S = 30 };

static int dial(const struct kube *kube, int *ret_fd, struct muster_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = ANSWER_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", kube->home.socket);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return muster_fail(err, MUSTER_EUNAVAIL, "the controller does not answer at %s: %s",
                           kube->home.socket, strerror(why));
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    *ret_fd = fd;
    return 0;
}

static int connection_lost(struct muster_err *err)
{
    return muster_fail(err, MUSTER_EUNAVAIL, "the connection to the controller was lost");
}

static int send_all(int fd, const char *bytes, size_t count, struct muster_err *err)
{
    for (size_t sent = 0; sent < count;) {
        ssize_t n = send(fd, bytes + sent, count - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return connection_lost(err);
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int ask(int fd, const char *path, const char *protocol, const json_t *body,
               struct muster_err *err)
{
    muster_auto(free) char *text = body ? doc_print(body) : strdup("");
    muster_auto(free) char *request = NULL;
    if (!text ||
        asprintf(&request,
                 "POST %s HTTP/1.1\r\nHost: muster\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 path, protocol, strlen(text), text) < 0) {
        request = NULL;
        return err_no_memory(err);
    }
    return send_all(fd, request, strlen(request), err);
}

/* Reads the head byte by byte, and nothing after it: what follows belongs to the next protocol. */
static int read_head(int fd, char head[HEAD_BYTES_MAX], struct muster_err *err)
{
    size_t used = 0;
    while (used + 1 < HEAD_BYTES_MAX) {
        ssize_t n = recv(fd, head + used, 1, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return connection_lost(err);
        }
        head[++used] = '\0';
        if (used >= 4 && memcmp(head + used - 4, "\r\n\r\n", 4) == 0) {
            return 0;
        }
    }
    return connection_lost(err);
}

static int read_refusal(struct kube *kube, int fd, const char *head, long status,
                        struct muster_err *err)
{
    char body[HEAD_BYTES_MAX];
    const char *length = strcasestr(head, "\r\ncontent-length:");
    size_t count = length ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
    size_t used = 0;
    count = count < sizeof body - 1 ? count : sizeof body - 1;
    for (ssize_t n = 1; used < count && n > 0; used += n > 0 ? (size_t)n : 0) {
        n = recv(fd, body + used, count - used, 0);
    }
    body[used] = '\0';
    return kube_refuse(kube, status, body, used, err);
}

int kube_upgrade(struct kube *kube, const char *path, const char *protocol, const json_t *body,
                 int *ret_fd, struct muster_err *err)
{
    char head[HEAD_BYTES_MAX];
    long status = 0;
    muster_auto(close) int fd = -1;
    int r = dial(kube, &fd, err);
    r = r < 0 ? r : ask(fd, path, protocol, body, err);
    r = r < 0 ? r : read_head(fd, head, err);
    if (r < 0) {
        return r;
    }
    if (sscanf(head, "HTTP/1.1 %ld", &status) != 1) {
        return connection_lost(err);
    }
    if (status != 101) {
        return read_refusal(kube, fd, head, status, err);
    }
    const struct timeval never = {0};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof never);
    *ret_fd = fd;
    fd = -1;
    return 0;
}
