/* Ends jobs that are followed, when a signal asks for it, or when the reader of the output has
 * gone.
 *
 * Layer: cli, on the loop. Ownership: the follow's.
 */
#pragma once

#include "cli/follow/followed.h"

/* SIGINT, SIGTERM and SIGHUP end what runs from now on, until stop_release; a signal that was held
 * (signals.h) is handled at once. */
void stop_catch(struct follow *follow);
/* From now on these signals end this process at once: it does not wait for the jobs any more. */
void stop_release(struct follow *follow);

/* Acts as if that signal had arrived: SIGPIPE means that nobody reads the output any more. */
void stop_hear(struct follow *follow, int signal);

/* On a cluster: deletes a job whose operator does not end it when asked to. */
void stop_check(struct followed_job *job);

/* Ends the job for this reason; SIGTERM is sent first. False: the request failed, and a message was
 * printed. */
bool stop_job(struct followed_job *job, const char *why);
