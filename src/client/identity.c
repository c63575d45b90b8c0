/* See identity.h. */
#include "client/identity.h"

#include "client/socket/connection.h"
#include "core/pid_space.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char *or_environment(const char *said, const char *variable)
{
    const char *value = said ? said : getenv(variable);
    return value && *value ? value : NULL;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int identity_token(const char *said, uint8_t ret[WIRE_TOKEN_BYTES], struct muster_err *err)
{
    const char *text = or_environment(said, "MUSTER_COORDINATOR_TOKEN");
    if (!text) {
        return muster_fail(err, MUSTER_EINVAL,
                           "MUSTER_COORDINATOR_TOKEN is not set, nor the option token: a worker is "
                           "started by \"muster train -- COMMAND\", which sets it, or by hand "
                           "with what its coordinator was given");
    }
    bool good = strlen(text) == 2 * (size_t)WIRE_TOKEN_BYTES;
    for (int i = 0; good && i < WIRE_TOKEN_BYTES; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return good ? 0
                : muster_fail(err, MUSTER_EINVAL,
                              "the job's token is %d hexadecimal digits: the option token, or "
                              "MUSTER_COORDINATOR_TOKEN",
                              2 * WIRE_TOKEN_BYTES);
}

int identity_copy(const char *text, size_t most, const char *what, char **ret,
                  struct muster_err *err)
{
    if (strlen(text) > most) {
        return muster_fail(err, MUSTER_EINVAL, "%s has at most %zu bytes", what, most);
    }
    *ret = strdup(text);
    return *ret ? 0 : muster_fail(err, MUSTER_ENOMEM, "no memory for a job");
}

int identity_names(const char *coordinator_said, const char *name_said, char **ret_coordinator,
                   char **ret_name, struct muster_err *err)
{
    char host[256] = "", name[300];
    const char *coordinator = or_environment(coordinator_said, "MUSTER_COORDINATOR");
    const char *pod = or_environment(name_said, "MUSTER_POD");
    const char *wrong = coordinator ? connection_check_address(coordinator) : "there is none";
    if (wrong) {
        return muster_fail(err, MUSTER_EINVAL,
                           "the coordinator's address (the option coordinator, or "
                           "MUSTER_COORDINATOR) is \"unix:PATH\" or \"tcp:HOST:PORT\": %s",
                           wrong);
    }
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(name, sizeof name, "%s:%ld", host, (long)getpid());
    int r = identity_copy(coordinator, WIRE_TEXT_MAX, "the coordinator's address", ret_coordinator,
                          err);
    return r < 0 ? r
                 : identity_copy(pod ? pod : name, WIRE_TEXT_MAX, "a worker's name", ret_name, err);
}

int identity_set_aside(uint32_t said, bool *ret, struct muster_err *err)
{
    static const char name[] = "MUSTER_SET_ASIDE";
    const char *text = said > 0 ? "1" : getenv(name);
    size_t digits = text ? strspn(text, "0123456789") : 0;
    if (text && (digits == 0 || text[digits] != 0)) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is a number, not \"%s\"", name, text);
    }
    *ret = text && strspn(text, "0") < digits;
    return 0;
}

struct wire_message identity_hello(uint64_t incarnation, const uint8_t token[WIRE_TOKEN_BYTES])
{
    struct wire_message m = {.kind = WIRE_HELLO,
                             .hello = {.version = WIRE_VERSION,
                                       .incarnation = incarnation,
                                       .pid_space = pid_space(),
                                       .pid = (uint32_t)getpid()}};
    memcpy(m.hello.token, token, sizeof m.hello.token);
    return m;
}

static _Atomic uint64_t process; /* 0: the process has no number yet */
static _Atomic uint64_t numbers; /* how many numbers were given */

/* A forked child is another process, and needs another number. */
static void forget_in_child(void)
{
    atomic_store(&process, 0);
}

__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_in_child);
}

/* If two threads are the first at the same time, both use the number of the faster one. */
static int number_process(uint64_t *ret, struct muster_err *err)
{
    uint64_t none = 0, number = atomic_load(&process);
    while (number == 0) {
        if (getrandom(&number, sizeof number, 0) < 0) {
            return muster_fail(err, MUSTER_EOS, "no random numbers: %s", strerror(errno));
        }
        number &= INCARNATION_PROCESS;
        if (number != 0 && !atomic_compare_exchange_strong(&process, &none, number)) {
            number = none;
        }
    }
    *ret = number;
    return 0;
}

int identity_incarnation(uint64_t kind, uint64_t *ret, struct muster_err *err)
{
    uint64_t number = 0;
    int r = number_process(&number, err);
    if (r == 0) {
        *ret = kind | (atomic_fetch_add(&numbers, 1) << 48 & INCARNATION_NUMBER) | number;
    }
    return r;
}

void identity_waiting(pthread_mutex_t *mutex, pthread_cond_t *changed)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(mutex, NULL);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
