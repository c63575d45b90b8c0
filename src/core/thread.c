/* See thread.h. */
#include "core/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *context),
                 void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(ret, attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}
