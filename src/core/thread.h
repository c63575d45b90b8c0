/* Threads of libmuster and of the store. Layer: core. Thread: any. */
#pragma once

#include <pthread.h>

/* Starts a thread in which all signals are blocked: the program's other threads handle them.
 * attributes: NULL, or as for pthread_create. Returns 0, or an error number such as EAGAIN. */
int thread_start(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *context),
                 void *context);
