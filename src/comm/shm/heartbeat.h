/* Shows which processes are alive. One thread per process owns a word in every segment (a robust
 * futex): when the process ends, in whatever way, the kernel marks the word before it frees the
 * memory, within 0.2 ms for a process of any size. The same thread beats 20 times a second. Missing
 * beats reveal a process that is stopped or cut off: it has not ended, but does not answer either.
 *
 * Layer: comm. Memory: nothing outlives its owner's heartbeat_leave. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <muster/err.h>

struct heartbeat_word;

/* The thread calls beat at each heartbeat; heartbeat_join makes the first call. */
struct heartbeat_watch {
    void (*beat)(void *context);
    void *context;
    struct heartbeat_watch *next;
};

enum { HEARTBEAT_MS = 50 };

/* Starts the thread if it does not run. word and watch must stay valid until heartbeat_leave. */
int heartbeat_join(struct heartbeat_word *word, struct heartbeat_watch *watch,
                   struct muster_err *err);
/* When it returns, watch is not being called and will not be called again, and the word is no
 * longer ours. */
void heartbeat_leave(struct heartbeat_word *word, struct heartbeat_watch *watch);

/* Whether the kernel has marked the word's owner as dead. */
bool heartbeat_is_dead(const struct heartbeat_word *word);

/* Whether our own heartbeat has ended: this process dies, or runs another program. Called by
 * processes that share its memory. */
bool heartbeat_is_over(void);

/* Returns a number that differs in a child after fork(), where our threads do not exist. */
uint32_t heartbeat_process(void);
