/* See address.h. */
#include "daemon/machine/address.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const here = "127.0.0.1";

/* Whether the host is "<job>-ROLE-INDEX", as in "<job>-master-3". */
static bool names_a_rank(const struct job *job, const char *host, size_t length)
{
    size_t name = strlen(job->name);
    if (length <= name + 1 || strncmp(host, job->name, name) != 0 || host[name] != '-') {
        return false;
    }
    const char *rest = host + name + 1;
    size_t left = length - name - 1;
    for (int role = 0; role < JOB_ROLE_COUNT; role++) {
        const char *word = job_role_lower((enum job_role)role);
        size_t n = strlen(word);
        if (left > n + 1 && strncmp(rest, word, n) == 0 && rest[n] == '-' &&
            strspn(rest + n + 1, "0123456789") >= left - n - 1) {
            return true;
        }
    }
    return false;
}

static char *host_of(const struct address_map *map, const char *value)
{
    return names_a_rank(map->job, value, strlen(value)) ? strdup(here) : NULL;
}

static char *number(int value)
{
    char *text = NULL;
    return asprintf(&text, "%d", value) < 0 ? NULL : text;
}

static char *port_of(const struct address_map *map, const char *value)
{
    long port = strtol(value, NULL, 10);
    bool masters = map->master_port && port == map->job->replica[JOB_MASTER].port;
    return masters ? number(map->master_port) : NULL;
}

static char *endpoint_of(const struct address_map *map, const char *value)
{
    const char *colon = strrchr(value, ':');
    if (!colon || !names_a_rank(map->job, value, (size_t)(colon - value))) {
        return NULL;
    }
    char *text = NULL;
    int n = map->rdzv_port ? asprintf(&text, "%s:%d", here, map->rdzv_port)
                           : asprintf(&text, "%s%s", here, colon);
    return n < 0 ? NULL : text;
}

/* Localizes "tcp:<job>-master-0:23456", which the Workers have, and "tcp:0.0.0.0:23456", which the
 * coordinator itself has. */
static char *coordinator_of(const struct address_map *map, const char *value)
{
    static const char tcp[] = "tcp:", any[] = "0.0.0.0";
    const char *host = value + strlen(tcp);
    const char *colon = strrchr(value, ':');
    if (strncmp(value, tcp, strlen(tcp)) != 0 || !colon || colon < host) {
        return NULL;
    }
    size_t length = (size_t)(colon - host);
    bool ours = names_a_rank(map->job, host, length) ||
                (length == strlen(any) && strncmp(host, any, length) == 0);
    muster_auto(free) char *port = ours ? port_of(map, colon + 1) : NULL;
    char *text = NULL;
    if (ours && map->socket) {
        return asprintf(&text, "unix:%s", map->socket) < 0 ? NULL : text;
    }
    return !ours || asprintf(&text, "tcp:%s:%s", here, port ? port : colon + 1) < 0 ? NULL : text;
}

char *address_localize(const struct address_map *map, const char *name, const char *value)
{
    static const struct {
        const char *name;
        char *(*local)(const struct address_map *map, const char *value);
    } rules[] = {
        {"MASTER_ADDR", host_of},
        {"PET_MASTER_ADDR", host_of},
        {"MASTER_PORT", port_of},
        {"PET_MASTER_PORT", port_of},
        {"PET_RDZV_ENDPOINT", endpoint_of},
        {"MUSTER_COORDINATOR", coordinator_of},
        {"MUSTER_COORDINATOR_LISTEN", coordinator_of},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            return rules[i].local(map, value);
        }
    }
    return NULL;
}
