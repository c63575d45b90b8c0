/* Ends jobs that are followed, when a signal asks for it, or when the reader of the output has
 * gone.
 *
 * Layer: cli, on the loop. Ownership: the follow's.
 */
#pragma once

#include "cli/follow/followed.h"

/* SIGINT, SIGTERM and SIGHUP end what runs from now on, until stop_release; one that was held
 * (signals.h) does at once. */
void stop_catch(struct follow *follow);
/* They end this process at once: nothing of the jobs is waited for any more. */
void stop_release(struct follow *follow);

/* Acts as if that signal had come: SIGPIPE when nobody reads the output any more. */
void stop_hear(struct follow *follow, int signal);

/* On a cluster: deletes a job whose operator does not end it when asked to. */
void stop_check(struct followed_job *job);

/* Ends the job with these words why; SIGTERM comes first. False: it cannot be told, and that was
 * said. */
bool stop_job(struct followed_job *job, const char *why);
