/* Makes a message when the API refuses an object: the line of the file that the object came from,
 * and what the user can do with this command.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"
#include "job/problem.h"

/* `code` is the result of a request about `object`. If it is an Invalid with causes, prints each as
 * a problem of the file and sets cli->err again, or puts all of them into cli->err if the object
 * came from no file. Returns `code`. */
int refusal_explain(struct cli *cli, const json_t *object, int code);

/* Adds the same as errors to `problems`, for a caller that prints those; without causes, adds the
 * text of cli->err. */
void refusal_add(struct cli *cli, const json_t *object, struct job_problems *problems);

/* The same for a problem that this command itself has found. MUSTER_EDATA. */
int refusal_at(struct cli *cli, const json_t *object, const char *field, const char *hint,
               const char *message);
