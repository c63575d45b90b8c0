/* Makes a message when the API refuses an object: the line of the file that the object came from,
 * and what the user can do with this command.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"
#include "job/problem.h"

/* `code` is what a request about `object` returned. Of an Invalid with causes it prints each as a
 * problem of the file and sets cli->err anew, or puts them all into cli->err when the object came
 * from no file. Returns `code`. */
int refusal_explain(struct cli *cli, const json_t *object, int code);

/* The same as errors among `problems`, for a caller that prints those; without causes: the text of
 * cli->err. */
void refusal_add(struct cli *cli, const json_t *object, struct job_problems *problems);

/* The same for a problem that this command found itself. MUSTER_EDATA. */
int refusal_at(struct cli *cli, const json_t *object, const char *field, const char *hint,
               const char *message);
