/* See pod_name.h. */
#include "cli/pod/pod_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The part of the name before the last `role`, or NULL. */
static char *before_last(const char *pod, const char *role)
{
    const char *last = strstr(pod, role);
    for (const char *next; last && (next = strstr(last + 1, role));) {
        last = next;
    }
    return last && last > pod ? strndup(pod, (size_t)(last - pod)) : NULL;
}

static char *of_elasticdl_master(const char *pod)
{
    static const char start[] = "elasticdl-", end[] = "-master";
    size_t length = strlen(pod);
    size_t around = strlen(start) + strlen(end);
    bool fits = length > around && strncmp(pod, start, strlen(start)) == 0 &&
                strcmp(pod + length - strlen(end), end) == 0;
    return fits ? strndup(pod + strlen(start), length - around) : NULL;
}

char *pod_name_job(const char *pod)
{
    static const char *const roles[] = {"-edljob-worker-", "-master-", "-worker-"};
    char *job = of_elasticdl_master(pod);
    for (size_t i = 0; !job && i < sizeof roles / sizeof roles[0]; i++) {
        job = before_last(pod, roles[i]);
    }
    return job;
}
