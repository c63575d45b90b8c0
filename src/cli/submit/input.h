/* Sends the standard input of `muster run` (a terminal, a pipe or a file) to one rank of its job.
 *
 * The rank may start later, start again, or not read: what it has not taken waits in the connection
 * (bounded), then here, then in the program that writes. The end of the input is passed on.
 *
 * Layer: cli, on the loop. Ownership: start/stop; run the loop once more after stop.
 */
#pragma once

#include "cli/command/cli.h"

struct input;

/* `object`: a PyTorchJob, not created yet. Checks `rank` ("0", "1" …) and notes in the job that
 * this rank's standard input comes from a client. */
int input_annotate(json_t *object, const char *rank, struct muster_err *err);

/* Starts the input of the job of this name. NULL when out of memory. */
struct input *input_start(struct cli *cli, const char *namespace, const char *job);
/* Stops the input; NULL is allowed. */
void input_stop(struct input *input);
