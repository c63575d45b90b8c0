/* See placement.h. */
#include "daemon/machine/placement.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PORT_FIRST = 20000, PORT_LAST = 32767, FILE_BYTES_MAX = 1 << 20 };

static bool are_all(const json_t *section, bool (*fits)(const json_t *value))
{
    const char *key;
    json_t *value;
    bool all = !section || json_is_object(section);
    json_object_foreach ((json_t *)section, key, value) {
        all = all && fits(value);
    }
    return all;
}

static bool is_port(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) > 0 &&
           json_integer_value(value) <= UINT16_MAX;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

/* Whether the file has content. A power cut may leave an empty file (file_put): then no process of
 * the job is left either. */
static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

/* Whether the document is as save writes it. */
static int check(const json_t *doc, const char *path, struct muster_err *err)
{
    bool whole = json_is_object(doc) && are_all(json_object_get(doc, "ports"), is_port) &&
                 are_all(json_object_get(doc, "gpus"), is_text);
    return whole ? 0
                 : muster_fail(err, MUSTER_EDATA,
                               "%s is damaged: the job's ports and GPUs are not known; end the job",
                               path);
}

int placement_open(struct placement *ret, const char *folder, struct muster_err *err)
{
    struct placement p = {.path = file_join(folder, "placement.json")};
    if (!p.path) {
        return err_no_memory(err);
    }
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = is_there(p.path) ? file_read(p.path, FILE_BYTES_MAX, &text, &bytes, err) : 0;
    if (r == 0) {
        r = text ? doc_parse(text, bytes, &p.doc, err) : 0;
        r = r == 0 && text ? check(p.doc, p.path, err) : r;
    }
    if (r < 0) {
        placement_done(&p);
        return r;
    }
    if (!p.doc) {
        p.doc = json_object();
    }
    *ret = p;
    return 0;
}

void placement_done(struct placement *p)
{
    free(p->path);
    json_decref(p->doc);
    *p = (struct placement){0};
}

static int save(const struct placement *p, struct muster_err *err)
{
    muster_auto(free) char *text = doc_print(p->doc);
    if (!text) {
        return err_no_memory(err);
    }
    return file_put(p->path, text, strlen(text), 0600, err);
}

/* Whether the port is free on every address: a wildcard listener would use all of them. */
static bool is_free(int port)
{
    muster_auto(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
           bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
}

bool placement_holds(const struct placement *p, int port)
{
    const char *purpose;
    json_t *value;
    json_object_foreach (json_object_get(p->doc, "ports"), purpose, value) {
        if (json_integer_value(value) == port) {
            return true;
        }
    }
    return false;
}

/* Searches for a free port. It starts at a random one, so that two controllers on one machine
 * seldom try the same port. */
static int find_port(const struct placement *p, bool (*taken)(void *data, int port), void *data)
{
    const int span = PORT_LAST - PORT_FIRST + 1;
    unsigned start = 0;
    (void)!getrandom(&start, sizeof start, 0); /* on failure the search starts at 0 */
    for (int i = 0; i < span; i++) {
        int port = PORT_FIRST + (int)((start + (unsigned)i) % (unsigned)span);
        if (!placement_holds(p, port) && !taken(data, port) && is_free(port)) {
            return port;
        }
    }
    return -1;
}

/* Returns the object under `key`, which is made at the first use. */
static json_t *section(const struct placement *p, const char *key)
{
    json_t *found = json_object_get(p->doc, key);
    if (!found) {
        found = json_object();
        json_object_set_new(p->doc, key, found);
    }
    return found;
}

int placement_port(struct placement *p, const char *purpose, bool (*taken)(void *data, int port),
                   void *data, int *ret_port, struct muster_err *err)
{
    json_t *ports = section(p, "ports");
    json_t *known = json_object_get(ports, purpose);
    if (known) {
        *ret_port = (int)json_integer_value(known);
        return 0;
    }
    int port = find_port(p, taken, data);
    if (port < 0) {
        return muster_fail(err, MUSTER_EAGAIN, "no port between %d and %d is free", PORT_FIRST,
                           PORT_LAST);
    }
    json_object_set_new(ports, purpose, json_integer(port));
    int r = save(p, err);
    if (r == 0) {
        *ret_port = port;
    }
    return r;
}

const char *placement_gpus(const struct placement *p, const char *pod_uid)
{
    return json_string_value(json_object_get(json_object_get(p->doc, "gpus"), pod_uid));
}

int placement_set_gpus(struct placement *p, const char *pod_uid, const char *ids,
                       struct muster_err *err)
{
    json_t *gpus = section(p, "gpus");
    if (ids) {
        json_object_set_new(gpus, pod_uid, json_string(ids));
    } else {
        json_object_del(gpus, pod_uid);
    }
    return save(p, err);
}
