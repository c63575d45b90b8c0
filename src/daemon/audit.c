/* See audit.h. */
#include "daemon/audit.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { ONLY_OWNER = 0600 };

static const char *const verbs[] = {
    [CLUSTER_GET] = "get",         [CLUSTER_LIST] = "list",   [CLUSTER_CREATE] = "create",
    [CLUSTER_REPLACE] = "replace", [CLUSTER_PATCH] = "patch", [CLUSTER_DELETE] = "delete",
};

int audit_open(int *ret_fd, struct muster_err *err)
{
    const char *path = getenv("MUSTER_AUDIT");
    *ret_fd = -1;
    if (!path || !*path) {
        return 0;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, ONLY_OWNER);
    if (fd < 0) {
        return muster_fail(err, MUSTER_EIO, "MUSTER_AUDIT: cannot open %s: %s", path,
                           strerror(errno));
    }
    *ret_fd = fd;
    return 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void audit_write(int fd, const struct cluster_request *q)
{
    muster_auto(doc) json_t *line =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:O?}", "verb", verbs[q->verb], "resource",
                  q->resource->plural, "subresource", or_empty(q->subresource), "namespace",
                  or_empty(q->namespace), "name", or_empty(q->name), "body", q->body);
    muster_auto(free) char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    size_t length = text ? strlen(text) : 0;
    if (length > 0) {
        text[length] = '\n'; /* instead of the final NUL */
        (void)!write(fd, text, length + 1);
    }
}
