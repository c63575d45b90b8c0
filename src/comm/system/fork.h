/* Closes in a child what it must not keep after fork(). A descriptor ends only when the last
 * process that has it does, and the descriptors by which others see that we live must end with us.
 *
 * Layer: comm. Memory: a watch is its owner's, and stays until fork_forget. Thread: any.
 */
#pragma once

/* forked is called in the child, where no other thread runs: it may close what it finds. */
struct fork_watch {
    void (*forked)(void *context);
    void *context;
    struct fork_watch *next;
};

void fork_remember(struct fork_watch *watch);
/* One that is not remembered, or was in a parent, is fine. */
void fork_forget(struct fork_watch *watch);

/* Closes a descriptor that a watch would close in a child, and makes it -1; negative: nothing to
 * do. Forgotten first: a child that is forked at this instant must not close the number's next
 * owner. */
void fork_close(int *fd);
