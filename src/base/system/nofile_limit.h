/* How many files a program of ours may have open: many ranks mean many pipes, logs and connections,
 * and the usual limit of 1024 is for programs that use select(2). What the user runs gets the limit
 * that the user had.
 *
 * Layer: base (not for pure code). Thread: raise before there are other threads; restore is also
 * allowed after fork.
 */
#pragma once

/* Remembers the soft limit as the user's limit and raises it as far as is permitted. */
void nofile_limit_raise(void);

/* The user's soft limit; 0 if it is not known. Call the setter if the limit was received in another
 * way. */
unsigned long nofile_limit_of_user(void);
void nofile_limit_set_user(unsigned long limit);

/* Must be called before another program is executed. */
void nofile_limit_restore(void);
