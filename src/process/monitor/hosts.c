/* See hosts.h and hosts(5). */
#include "process/monitor/hosts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const machine_file = "/etc/hosts";
static const char *const least = "127.0.0.1\tlocalhost\n::1\tlocalhost\n";

static bool is_name(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    return *text && strspn(text, letters) == strlen(text);
}

/* Whether the line "ADDRESS NAME… # comment" has the name. */
static bool line_has(const char *line, const char *name)
{
    size_t end = strcspn(line, "#\n");
    size_t at = strspn(line, " \t");
    at += strcspn(line + at, " \t#\n"); /* the address */
    while (at < end) {
        at += strspn(line + at, " \t");
        size_t length = strcspn(line + at, " \t#\n");
        if (length == strlen(name) && strncasecmp(line + at, name, length) == 0) {
            return true;
        }
        at += length;
    }
    return false;
}

static bool has_name(const char *text, const char *name)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line_has(line, name)) {
            return true;
        }
    }
    return false;
}

/* Adds a line for each service. If an earlier line has the name, that line applies to the short
 * name. */
static void add_services(struct buf *text, const json_t *services)
{
    const char *space = doc_text(services, "namespace", "");
    size_t i;
    json_t *service;
    json_array_foreach (doc_at(services, "names"), i, service) {
        const char *name = json_string_value(service);
        if (name && is_name(name) && is_name(space)) {
            buf_format(text, "127.0.0.1\t%s %s.%s %s.%s.svc %s.%s.svc.cluster.local\n", name, name,
                       space, name, space, name, space);
        }
    }
}

char *hosts_text(const char *machine, const char *const *names, size_t count,
                 const json_t *services)
{
    struct buf text;
    buf_init(&text, 2 * HOSTS_BYTES_MAX);
    buf_text(&text, machine ? machine : least);
    if (text.used > 0 && text.data[text.used - 1] != '\n') {
        buf_text(&text, "\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_name(names[i]) && !has_name(buf_str(&text), names[i])) {
            buf_format(&text, "127.0.0.1\t%s\n", names[i]);
        }
    }
    add_services(&text, services);
    char *all = buf_steal(&text);
    buf_done(&text);
    return all;
}

/* Unlike a record the file is not flushed: it is made again for each attempt. It is readable for
 * any runAsUser. */
static int write_file(const char *path, const char *text, struct muster_err *err)
{
    size_t count = strlen(text);
    muster_auto(close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool written = fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, text, count) == (ssize_t)count;
    return written ? 0
                   : muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", path, strerror(errno));
}

int hosts_write(const char *folder, const char *pod_name, const json_t *services, char **ret_path,
                struct muster_err *err)
{
    char host_name[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host_name, sizeof host_name - 1);
    const char *const names[] = {host_name, pod_name};
    muster_auto(free) char *machine = NULL;
    int r = file_read(machine_file, HOSTS_BYTES_MAX, &machine, NULL, err);
    if (r < 0 && r != MUSTER_ENOENT) {
        return r;
    }
    muster_auto(free) char *path = file_join(folder, "hosts");
    muster_auto(free) char *text =
        hosts_text(machine, names, sizeof names / sizeof names[0], services);
    if (!path || !text) {
        return err_no_memory(err);
    }
    r = write_file(path, text, err);
    if (r == 0) {
        *ret_path = muster_take(path);
    }
    return r;
}
