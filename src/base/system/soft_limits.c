/* See soft_limits.h. */
#include "base/system/soft_limits.h"

#include "base/system/nofile_limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

static const struct {
    const char *name; /* name as in getrlimit(2) */
    __rlimit_resource_t resource;
    bool ends_programs;
} limits_table[] = {
    {"as", RLIMIT_AS, true},          {"core", RLIMIT_CORE, false},
    {"cpu", RLIMIT_CPU, true},        {"data", RLIMIT_DATA, true},
    {"fsize", RLIMIT_FSIZE, true},    {"memlock", RLIMIT_MEMLOCK, false},
    {"nofile", RLIMIT_NOFILE, false}, {"nproc", RLIMIT_NPROC, false},
    {"stack", RLIMIT_STACK, false},
};

enum { FILE_BYTES_MIN = 64 << 20 };
enum { LIMITS = sizeof limits_table / sizeof limits_table[0] };

/* Sets the soft limit, and raises the hard limit with it if that is permitted. */
static void set_soft(__rlimit_resource_t resource, rlim_t wanted)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0) {
        return;
    }
    const struct rlimit raised = {wanted, wanted > limit.rlim_max ? wanted : limit.rlim_max};
    if (setrlimit(resource, &raised) < 0) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(resource, &limit);
    }
}

static json_int_t number_of(rlim_t value)
{
    return value == RLIM_INFINITY || value > INT64_MAX ? -1 : (json_int_t)value;
}

json_t *soft_limits_read(void)
{
    json_t *limits = json_object();
    for (size_t i = 0; limits && i < LIMITS; i++) {
        struct rlimit limit;
        if (getrlimit(limits_table[i].resource, &limit) < 0) {
            continue;
        }
        unsigned long users = nofile_limit_of_user();
        bool raised = limits_table[i].resource == RLIMIT_NOFILE && users > 0;
        json_object_set_new(limits, limits_table[i].name,
                            json_integer(number_of(raised ? users : limit.rlim_cur)));
    }
    return limits;
}

void soft_limits_set(const json_t *limits)
{
    for (size_t i = 0; i < LIMITS; i++) {
        const json_t *value = json_object_get(limits, limits_table[i].name);
        json_int_t number = json_integer_value(value);
        if (json_is_integer(value) && number >= -1) {
            set_soft(limits_table[i].resource, number < 0 ? RLIM_INFINITY : (rlim_t)number);
        }
    }
}

void soft_limits_raise(void)
{
    for (size_t i = 0; i < LIMITS; i++) {
        if (limits_table[i].ends_programs) {
            set_soft(limits_table[i].resource, RLIM_INFINITY);
        }
    }
}

int soft_limits_check(struct muster_err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= FILE_BYTES_MIN) {
        return 0;
    }
    return muster_fail(
        err, MUSTER_ECREATE,
        "files may have %llu KiB at most (ulimit -f), too little for the store: type "
        "muster up in a shell that has no such limit",
        (unsigned long long)limit.rlim_cur >> 10);
}
