/* Functions that are called in a forked child. Layer: comm; see fork.h. */
#include "comm/system/fork.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* guards the rest */
    struct fork_watch *watches;
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock_before_fork(void)
{
    pthread_mutex_lock(&list.mutex);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&list.mutex);
}

static void tell_in_child(void)
{
    for (const struct fork_watch *w = list.watches; w; w = w->next) {
        w->forked(w->context);
    }
    list.watches = NULL;
    pthread_mutex_unlock(&list.mutex);
}

static void prepare(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_in_parent, tell_in_child);
}

void fork_remember(struct fork_watch *watch)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, prepare);
    pthread_mutex_lock(&list.mutex);
    assert(watch->forked);
    for (const struct fork_watch *w = list.watches; w; w = w->next) {
        assert(w != watch);
    }
    watch->next = list.watches;
    list.watches = watch;
    pthread_mutex_unlock(&list.mutex);
}

void fork_forget(struct fork_watch *watch)
{
    pthread_mutex_lock(&list.mutex);
    for (struct fork_watch **at = &list.watches; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            break;
        }
    }
    pthread_mutex_unlock(&list.mutex);
}

void fork_close(int *fd)
{
    int own = *fd;
    *fd = -1;
    if (own >= 0) {
        close(own);
    }
}
