/* The thread that shows that this process lives. Layer: comm; see heartbeat.h. */
#include "comm/shm/heartbeat.h"

#include "comm/shm/segment.h"
#include "core/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t started;
    bool starting;
    bool running;
    uint32_t thread_id;
    struct robust_list_head list;
    struct heartbeat_word word; /* the process's own word */
    struct heartbeat_watch *watches;
} heartbeat = {.mutex = PTHREAD_MUTEX_INITIALIZER, .started = PTHREAD_COND_INITIALIZER};

static _Atomic uint32_t process = 1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&heartbeat.mutex);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&heartbeat.mutex);
}

/* The child has no thread of ours and no communicators. */
static void forget_in_child(void)
{
    atomic_fetch_add(&process, 1);
    heartbeat.starting = heartbeat.running = false;
    heartbeat.watches = NULL;
    pthread_cond_init(&heartbeat.started, NULL);
    pthread_mutex_unlock(&heartbeat.mutex);
}

static void prepare_fork(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

static void beat_all(void)
{
    pthread_mutex_lock(&heartbeat.mutex);
    for (struct heartbeat_watch *w = heartbeat.watches; w; w = w->next) {
        w->beat(w->context);
    }
    pthread_mutex_unlock(&heartbeat.mutex);
}

/* At every instant the list is complete, or the entry is in list_op_pending, because kill -9 may
 * come at any instant. */
static void own(struct heartbeat_word *word)
{
    heartbeat.list.list_op_pending = &word->node;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store(&word->owner, heartbeat.thread_id | FUTEX_WAITERS);
    word->node.next = heartbeat.list.list.next;
    atomic_signal_fence(memory_order_seq_cst);
    heartbeat.list.list.next = &word->node;
    atomic_signal_fence(memory_order_seq_cst);
    heartbeat.list.list_op_pending = NULL;
}

static void *run(void *unused)
{
    (void)unused;
    /* This thread uses no robust mutexes, so our list may replace that of the C library. */
    pthread_mutex_lock(&heartbeat.mutex);
    heartbeat.list.list.next = &heartbeat.list.list;
    heartbeat.list.futex_offset =
        (long)offsetof(struct heartbeat_word, owner) - (long)offsetof(struct heartbeat_word, node);
    heartbeat.list.list_op_pending = NULL;
    long r = syscall(SYS_set_robust_list, &heartbeat.list, sizeof heartbeat.list);
    heartbeat.thread_id = r == 0 ? (uint32_t)syscall(SYS_gettid) : 0;
    if (r == 0) {
        own(&heartbeat.word);
    }
    heartbeat.running = true;
    pthread_cond_broadcast(&heartbeat.started);
    pthread_mutex_unlock(&heartbeat.mutex);
    for (;;) {
        struct timespec nap = {0, HEARTBEAT_MS * 1000000L};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
        beat_all();
    }
    return NULL;
}

static int start_thread(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    int r = thread_start(&thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

static void disown(struct heartbeat_word *word)
{
    for (struct robust_list *at = &heartbeat.list.list; at->next != &heartbeat.list.list;
         at = at->next) {
        if (at->next == &word->node) {
            at->next = word->node.next;
            return;
        }
    }
}

int heartbeat_join(struct heartbeat_word *word, struct heartbeat_watch *watch,
                   struct muster_err *err)
{
    (void)pthread_once(&fork_once, prepare_fork);
    pthread_mutex_lock(&heartbeat.mutex);
    int r = 0;
    if (!heartbeat.starting) {
        r = start_thread();
        heartbeat.starting = r == 0;
    }
    while (heartbeat.starting && !heartbeat.running) {
        pthread_cond_wait(&heartbeat.started, &heartbeat.mutex);
    }
    if (r == 0 && heartbeat.thread_id == 0) {
        r = EPERM;
    }
    if (r == 0) {
        if (word) {
            own(word);
        }
        watch->next = heartbeat.watches;
        heartbeat.watches = watch;
        watch->beat(watch->context);
    }
    pthread_mutex_unlock(&heartbeat.mutex);
    return r == 0
               ? 0
               : muster_fail(err, MUSTER_EOS, "cannot start the heartbeat thread: %s", strerror(r));
}

void heartbeat_leave(struct heartbeat_word *word, struct heartbeat_watch *watch)
{
    pthread_mutex_lock(&heartbeat.mutex);
    if (word) {
        disown(word);
    }
    for (struct heartbeat_watch **at = &heartbeat.watches; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            break;
        }
    }
    pthread_mutex_unlock(&heartbeat.mutex);
}

bool heartbeat_is_dead(const struct heartbeat_word *word)
{
    return atomic_load_explicit(&word->owner, memory_order_acquire) & FUTEX_OWNER_DIED;
}

/* Called in the witness, where no sanitizer may check it. */
__attribute__((no_sanitize("address", "undefined"))) bool heartbeat_is_over(void)
{
    return atomic_load_explicit(&heartbeat.word.owner, memory_order_relaxed) & FUTEX_OWNER_DIED;
}

uint32_t heartbeat_process(void)
{
    return atomic_load_explicit(&process, memory_order_relaxed);
}
