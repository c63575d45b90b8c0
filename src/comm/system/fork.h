/* Closes in a child what it must not keep after fork(). A descriptor ends only when the last
 * process that has it does, and the descriptors by which others see that we live must end with us.
 *
 * Layer: comm. Memory: a watch is its owner's, and stays until fork_forget. Thread: any.
 */
#pragma once

/* forked is called in the child, where no other thread runs, so it may close everything that it
 * finds. */
struct fork_watch {
    void (*forked)(void *context);
    void *context;
    struct fork_watch *next;
};

void fork_remember(struct fork_watch *watch);
/* The watch may be one that is not remembered, or that was remembered in a parent process. */
void fork_forget(struct fork_watch *watch);

/* Closes a descriptor that a watch would close in a child, and sets it to -1; does nothing if it is
 * negative. The variable is set first: a child that is forked at this instant must not close a
 * descriptor that gets the same number later. */
void fork_close(int *fd);
