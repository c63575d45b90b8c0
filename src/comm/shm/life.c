/* The thread that shows that this process lives. Layer: comm; see life.h. */
#include "comm/shm/life.h"

#include "comm/shm/segment.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
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
    struct life_word word; /* of the process itself */
    struct life_watch *watches;
} life = {.mutex = PTHREAD_MUTEX_INITIALIZER, .started = PTHREAD_COND_INITIALIZER};

static _Atomic uint32_t process = 1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&life.mutex);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&life.mutex);
}

/* The child has no threads of ours and no communicators. */
static void forget_in_child(void)
{
    atomic_fetch_add(&process, 1);
    life.starting = life.running = false;
    life.watches = NULL;
    pthread_cond_init(&life.started, NULL);
    pthread_mutex_unlock(&life.mutex);
}

static void prepare_fork(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

static void beat_all(void)
{
    pthread_mutex_lock(&life.mutex);
    for (struct life_watch *w = life.watches; w; w = w->next) {
        w->beat(w->context);
    }
    pthread_mutex_unlock(&life.mutex);
}

/* At every instant the list is whole, or the entry is in list_op_pending: kill -9 may come at any.
 */
static void own(struct life_word *word)
{
    life.list.list_op_pending = &word->node;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store(&word->owner, life.thread_id | FUTEX_WAITERS);
    word->node.next = life.list.list.next;
    atomic_signal_fence(memory_order_seq_cst);
    life.list.list.next = &word->node;
    atomic_signal_fence(memory_order_seq_cst);
    life.list.list_op_pending = NULL;
}

static void *run(void *unused)
{
    (void)unused;
    /* This thread uses no robust mutexes, so that the C library's list may give way to ours. */
    pthread_mutex_lock(&life.mutex);
    life.list.list.next = &life.list.list;
    life.list.futex_offset =
        (long)offsetof(struct life_word, owner) - (long)offsetof(struct life_word, node);
    life.list.list_op_pending = NULL;
    long rc = syscall(SYS_set_robust_list, &life.list, sizeof life.list);
    life.thread_id = rc == 0 ? (uint32_t)syscall(SYS_gettid) : 0;
    if (rc == 0) {
        own(&life.word);
    }
    life.running = true;
    pthread_cond_broadcast(&life.started);
    pthread_mutex_unlock(&life.mutex);
    for (;;) {
        struct timespec nap = {0, LIFE_BEAT_MS * 1000000L};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
        beat_all();
    }
    return NULL;
}

/* Signals are for the user's threads. */
static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    int rc = pthread_create(&thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void disown(struct life_word *word)
{
    for (struct robust_list *at = &life.list.list; at->next != &life.list.list; at = at->next) {
        if (at->next == &word->node) {
            at->next = word->node.next;
            return;
        }
    }
}

int life_join(struct life_word *word, struct life_watch *watch, struct muster_err *err)
{
    (void)pthread_once(&fork_once, prepare_fork);
    pthread_mutex_lock(&life.mutex);
    int rc = 0;
    if (!life.starting) {
        rc = start_thread();
        life.starting = rc == 0;
    }
    while (life.starting && !life.running) {
        pthread_cond_wait(&life.started, &life.mutex);
    }
    if (rc == 0 && life.thread_id == 0) {
        rc = EPERM;
    }
    if (rc == 0) {
        if (word) {
            own(word);
        }
        watch->next = life.watches;
        life.watches = watch;
        watch->beat(watch->context);
    }
    pthread_mutex_unlock(&life.mutex);
    return rc == 0 ? 0
                   : muster_fail(err, MUSTER_EOS, "cannot start the heartbeat thread: %s",
                                 strerror(rc));
}

void life_leave(struct life_word *word, struct life_watch *watch)
{
    pthread_mutex_lock(&life.mutex);
    if (word) {
        disown(word);
    }
    for (struct life_watch **at = &life.watches; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            break;
        }
    }
    pthread_mutex_unlock(&life.mutex);
}

bool life_is_dead(const struct life_word *word)
{
    return atomic_load_explicit(&word->owner, memory_order_acquire) & FUTEX_OWNER_DIED;
}

/* Called where no sanitizer may look: in the witness. */
__attribute__((no_sanitize("address", "undefined"))) bool life_is_over(void)
{
    return atomic_load_explicit(&life.word.owner, memory_order_relaxed) & FUTEX_OWNER_DIED;
}

uint32_t life_process(void)
{
    return atomic_load_explicit(&process, memory_order_relaxed);
}
