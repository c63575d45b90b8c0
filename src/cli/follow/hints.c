/* See hints.h. */
#include "cli/follow/hints.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 254 };

/* EADDRINUSE in the words of the C library, Python, Go, gloo and torch's c10d. */
static const char *const port_in_use[] = {
    "address already in use", "address in use", "EADDRINUSE", "errno 98", "errno: 98", "code: -98"};

/* The errors of torch's env:// and of os.environ. */
static const char *const no_rank[] = {"environment variable RANK expected", "KeyError: 'RANK'",
                                      "environment variable WORLD_SIZE expected",
                                      "KeyError: 'WORLD_SIZE'"};

static bool holds(const char *line, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(line, words[i])) {
            return true;
        }
    }
    return false;
}

/* A private network is shared by the whole job: it separates jobs, not ranks. */
const char *hint_of_line(const char *line, struct hint_job job)
{
    if (job.elastic && holds(line, no_rank, sizeof no_rank / sizeof no_rank[0])) {
        return "the workers of an elastic job have no RANK and no WORLD_SIZE, as both change while it "
               "trains. muster run -n N runs a script with torch.distributed as it is; "
               "docs/elastic-python.md says how it becomes elastic";
    }
    if (!holds(line, port_in_use, sizeof port_in_use / sizeof port_in_use[0])) {
        return NULL;
    }
    return job.private
               ? "the port is in use by another rank: all ranks of a job share its network. Let "
                 "each rank bind its own port: 0, or a base plus its RANK"
               : "the port is in use: all ranks share this machine's ports. Let each rank bind "
                 "its own port: 0, or a base plus its RANK. If another job or program has the "
                 "port, --network private gives this job ports of its own";
}

/* Reads "configmap" or "secret" and the object's name, as the kubelet names them in messages. */
static bool read_missing(const char *message, char kind[32], char name[NAME_BYTES])
{
    static const char *const forms[] = {"%31[a-z] \"%253[^\"]\" not found",
                                        "volume %*[^:]: there is no %31[a-z] \"%253[^\"]\""};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (sscanf(message, forms[i], kind, name) == 2) {
            return true;
        }
    }
    return false;
}

static bool read_missing_key(const char *message, char key[NAME_BYTES], char kind[32],
                             char name[NAME_BYTES])
{
    return sscanf(message, "couldn't find key %253s in %31[A-Za-z] %*[^/]/%253s", key, kind,
                  name) == 3 ||
           sscanf(message, "volume %*[^:]: %31[a-z] %253s has no key %253s", kind, name, key) == 3;
}

static void advise_object(const char *kind, const char *name, const char *where, char *ret,
                          size_t size)
{
    if (strcmp(kind, "configmap") == 0) {
        snprintf(ret, size, "kubectl create configmap %s --from-literal=KEY=VALUE%s", name, where);
    } else if (strcmp(kind, "secret") == 0) {
        snprintf(ret, size, "kubectl create secret generic %s --from-literal=KEY=VALUE%s", name,
                 where);
    } else if (strcmp(kind, "persistentvolumeclaim") == 0) {
        snprintf(ret, size, "muster create -f FILE%s, with a PersistentVolumeClaim %s in it", where,
                 name);
    }
}

void hint_of_waiting(const char *message, const char *namespace, char *ret, size_t size)
{
    char kind[32], name[NAME_BYTES], key[NAME_BYTES], where[80] = "";
    if (strcmp(namespace, "default") != 0) {
        snprintf(where, sizeof where, " -n %.63s", namespace);
    }
    ret[0] = '\0';
    if (read_missing_key(message, key, kind, name)) {
        bool secret = strcasecmp(kind, "secret") == 0;
        snprintf(ret, size, "kubectl patch %s %s%s --type merge -p '{\"%s\": {\"%s\": \"VALUE\"}}'",
                 secret ? "secret" : "configmap", name, where, secret ? "stringData" : "data", key);
    } else if (read_missing(message, kind, name)) {
        advise_object(kind, name, where, ret, size);
    }
}
