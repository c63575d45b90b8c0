/* The end of followed jobs: asked for by a signal, by a reader that went away, or by --after-end;
 * and what is said of ranks that still run after it.
 *
 * Layer: cli, on the loop. Ownership: the follow's.
 */
#pragma once

#include "cli/follow/followed.h"

/* SIGINT, SIGTERM and SIGHUP end what runs from now on; until ending_release they do. */
void ending_catch(struct follow *follow);
/* They end this process at once: nothing of the jobs is waited for any more. */
void ending_release(struct follow *follow);

/* As if that signal had come: SIGPIPE when nobody reads the output any more. */
void ending_hear(struct follow *follow, int signal);

/* Ends the job with these words why; SIGTERM comes first. False: it cannot be told, and that was
 * said. */
bool ending_stop(struct followed_job *job, const char *why);

/* Says and does what is due after the end of a job. */
void ending_check(struct followed_job *job);
