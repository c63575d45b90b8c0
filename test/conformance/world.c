/* Worlds for tests: see world.h. The ranks meet through a store in shared memory. */
#include "world.h"

#include "base/testing/test_wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 64, KEY_BYTES = 128, VALUE_BYTES = 256, MAX_KEYS = 4096 };

struct entry {
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
    size_t bytes;
};

struct shared_store {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int num;
    struct entry entries[MAX_KEYS];
};

struct start {
    const struct world *world;
    struct shared_store *store;
    world_fn fn;
    void *context;
    int rank;
    int result;
    pthread_t thread;
};

static struct shared_store *store_new(void)
{
    struct shared_store *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, &mutex);
    pthread_cond_init(&s->changed, &cond);
    return s;
}

static int store_set(void *context, const char *key, const void *value, size_t bytes)
{
    struct shared_store *s = context;
    pthread_mutex_lock(&s->mutex);
    struct entry *e = &s->entries[s->num++];
    (void)snprintf(e->key, sizeof e->key, "%s", key);
    memcpy(e->value, value, bytes);
    e->bytes = bytes;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static const struct entry *find(const struct shared_store *s, const char *key)
{
    for (int i = 0; i < s->num; i++) {
        if (strcmp(s->entries[i].key, key) == 0) {
            return &s->entries[i];
        }
    }
    return NULL;
}

static int store_get(void *context, const char *key, void *value, size_t capacity, size_t *ret,
                     int64_t timeout_ms)
{
    struct shared_store *s = context;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000 + 1;
    const struct entry *e;
    int rc = 0;
    pthread_mutex_lock(&s->mutex);
    while (!(e = find(s, key)) && rc == 0) {
        rc = pthread_cond_timedwait(&s->changed, &s->mutex, &until);
    }
    if (e) {
        memcpy(value, e->value, e->bytes < capacity ? e->bytes : capacity);
        *ret = e->bytes;
    }
    pthread_mutex_unlock(&s->mutex);
    return e ? 0 : MUSTER_ETIMEDOUT;
}

const char *world_transport(const char *transport, int rank, char *ret_group, size_t size_bytes)
{
    if (transport && strcmp(transport, "mixed") == 0) {
        return rank % 2 ? "tcp" : "auto";
    }
    if (transport && strncmp(transport, "hosts", 5) == 0) {
        (void)snprintf(ret_group, size_bytes, "group:%d", rank % (transport[5] - '0'));
        return ret_group;
    }
    return transport;
}

static int be_rank(struct start *start)
{
    struct muster_store store = {sizeof store, start->store, store_set, store_get};
    struct muster_comm_options o = MUSTER_COMM_OPTIONS_INIT;
    o.rank = start->rank;
    o.size = start->world->size;
    o.store = &store;
    char group[16];
    o.transport = world_transport(start->world->transport, start->rank, group, sizeof group);
    o.timeout_ms = start->world->timeout_ms ? start->world->timeout_ms : test_limit_ms();
    o.heartbeat_timeout_ms = start->world->heartbeat_timeout_ms ? start->world->heartbeat_timeout_ms
                                                                : o.heartbeat_timeout_ms;
    if (start->world->enter && start->world->enter(start->rank, start->context) != 0) {
        return 1;
    }
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    if (muster_comm_create(&o, &comm, &err) < 0) {
        (void)fprintf(stderr, "rank %d: no communicator: %s\n", start->rank, err.text);
        return 1;
    }
    int result = start->fn(comm, start->context);
    muster_comm_free(comm);
    return result;
}

static void *run_thread(void *start)
{
    struct start *s = start;
    s->result = be_rank(s);
    return NULL;
}

static int run_threads(struct start *starts, int size)
{
    int failed = 0;
    for (int r = 0; r < size; r++) {
        pthread_create(&starts[r].thread, NULL, run_thread, &starts[r]);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(starts[r].thread, NULL);
        failed += starts[r].result != 0;
    }
    return failed;
}

static int judge(const struct start *start, int size, int status)
{
    const struct world *w = start->world;
    uint64_t self = WORLD_RANK(start->rank);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (killed ? (w->killed | w->may_be_killed) & self : well && !(w->killed & self)) {
        return 0;
    }
    (void)fprintf(stderr, "rank %d of %d (%s): status %d%s\n", start->rank, size,
                  w->transport ? w->transport : "auto", status,
                  killed ? ": killed, and no test meant it" : "");
    return 1;
}

static pid_t fork_rank(const struct world *world)
{
    if (!world->process_spaces) {
        return fork();
    }
    int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    pid_t pid = here >= 0 && unshare(CLONE_NEWPID) == 0 ? fork() : -1;
    if (pid != 0 && here >= 0) {
        (void)setns(here, CLONE_NEWPID);
    }
    (void)close(here);
    return pid;
}

static int run_processes(struct start *starts, int size)
{
    pid_t pids[MAX_RANKS];
    int failed = 0, stopped = -1;
    (void)fflush(NULL);
    for (int r = 0; r < size; r++) {
        pids[r] = fork_rank(starts[r].world);
        if (pids[r] == 0) {
            test_alarm();
            _exit(be_rank(&starts[r]));
        }
    }
    if (starts->world->meanwhile) {
        starts->world->meanwhile(pids, size, starts->context);
    }
    for (int r = 0; r < size; r++) {
        int status = -1;
        (void)waitpid(pids[r], &status, WUNTRACED);
        if (WIFSTOPPED(status)) {
            stopped = r; /* it is continued when the other ranks have ended */
        } else {
            failed += judge(&starts[r], size, status);
        }
    }
    if (stopped >= 0) {
        int status = -1;
        (void)kill(pids[stopped], SIGCONT);
        (void)waitpid(pids[stopped], &status, 0);
        failed += judge(&starts[stopped], size, status);
    }
    return failed;
}

int world_run(const struct world *world, world_fn fn, void *context)
{
    struct start starts[MAX_RANKS];
    struct shared_store *store = store_new();
    for (int r = 0; r < world->size; r++) {
        starts[r] =
            (struct start){.world = world, .store = store, .fn = fn, .context = context, .rank = r};
    }
    int failed = world->kind == WORLD_THREADS ? run_threads(starts, world->size)
                                              : run_processes(starts, world->size);
    (void)munmap(store, sizeof *store);
    return failed;
}

uint64_t world_hash(uint64_t seed, uint64_t rank, uint64_t index)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u ^ (rank + 1) * 0xbf58476d1ce4e5b9u ^ (index + 7);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void world_complain(const char *file, int line, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "%s:%d: %s\n", file, line, text);
}
