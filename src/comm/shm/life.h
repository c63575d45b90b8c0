/* Who is alive. One thread per process owns a word in every segment (a robust futex): when the
 * process ends, in whatever way, the kernel marks the word before it tears down the memory, within
 * 0.2 ms for a process of any size. The same thread beats 20 times a second, which shows a process
 * that is stopped or cut off: it can be dead to us without having ended.
 *
 * Layer: comm. Memory: nothing outlives its owner's life_leave. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <muster/err.h>

struct life_word;

/* The thread calls beat every time, life_join the first time. */
struct life_watch {
    void (*beat)(void *context);
    void *context;
    struct life_watch *next;
};

enum { LIFE_BEAT_MS = 50 };

/* Starts the thread when it is not there. word and watch stay until life_leave. */
int life_join(struct life_word *word, struct life_watch *watch, struct muster_err *err);
/* When it returns, watch is not being called and will not be again, and the word is no longer ours.
 */
void life_leave(struct life_word *word, struct life_watch *watch);

/* The kernel says that the word's owner is no more. */
bool life_is_dead(const struct life_word *word);

/* Our own heartbeat has ended: this process dies, or runs another program. For those who share its
 * memory. */
bool life_is_over(void);

/* Differs in a child after fork(), where our threads do not exist. */
uint32_t life_process(void);
