/* Collects the environment for a job's ranks from this shell, -e and --env-file, checks it against
 * the kernel's limits, and sends it beside the object (docs/environment.md). The object has only
 * its ID.
 *
 * Layer: cli. Ownership: environment_free. What was gathered stays with the command (struct cli).
 */
#pragma once

#include "cli/command/cli.h"

struct environment;

/* Returns the environment; the first call gathers it. MUSTER_EINVAL for an option, MUSTER_EDATA for
 * a file that is wrong, MUSTER_ETOOBIG for more than the kernel can start a process with. */
int environment_gather(struct cli *cli, const struct environment **ret);
/* Adds a variable before the environment is gathered. It is sent beside the object, like those of
 * -e, which win over it. `what` stands before the name in an error. */
int environment_give(struct cli *cli, const char *what, const char *name, const char *value);
/* Gathers the environment before any request to a controller, and prints a note on variables that
 * are not passed. */
int environment_check(struct cli *cli);
void environment_free(struct environment *environment);

/* The variables that -e and --env-file give, up to a NULL. Borrowed. */
char *const *environment_given(const struct environment *environment);

/* Whether ranks get that variable from this environment. */
bool environment_has(const struct environment *environment, const char *name);

/* Prints on standard error the names of variables that a printed object lacks; never a value. */
int environment_say_lacking(struct cli *cli);

/* Gives the job the ID of an environment that is still to be sent; a dry run gives none. `before`
 * is the existing object, whose ID stays (NULL: there is none). */
int environment_annotate(struct cli *cli, json_t *job, const json_t *before);
/* Sends the environment under the ID that the object has; does nothing if it has none. */
int environment_send(struct cli *cli, const json_t *job);
/* Deletes the environment that was sent, because the object was not created. */
void environment_withdraw(struct cli *cli, const json_t *job);
