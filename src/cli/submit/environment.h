/* Collects the environment for a job's ranks from this shell, -e and --env-file, checks it against
 * the kernel's limits, and sends it beside the object (docs/environment.md). The object has only
 * its ID.
 *
 * Layer: cli. Ownership: environment_free. What was gathered stays with the command (struct cli).
 */
#pragma once

#include "cli/command/cli.h"

struct environment;

/* Gathers it at the first call. MUSTER_EINVAL for an option, MUSTER_EDATA for a file that is wrong,
 * MUSTER_ETOOBIG for more than the kernel starts a process with. */
int environment_gather(struct cli *cli, const struct environment **ret);
/* One more variable, before it is gathered: beside the object, as one of -e, which wins. `what` is
 * said before the name in an error. */
int environment_give(struct cli *cli, const char *what, const char *name, const char *value);
/* Called before any request to a controller. */
int environment_check(struct cli *cli);
void environment_free(struct environment *environment);

/* What -e and --env-file give: a variable each, to a NULL. Borrowed. */
char *const *environment_given(const struct environment *environment);

/* Whether ranks get that variable from this environment. */
bool environment_has(const struct environment *environment, const char *name);

/* Says on standard error which names an object that was only printed lacks; never a value. */
int environment_say_lacking(struct cli *cli);

/* Names an environment that is still to be sent; a dry run names none. `before`: the object as it
 * is there already (NULL: it is not), whose ID stays. */
int environment_annotate(struct cli *cli, json_t *job, const json_t *before);
/* Sends it under the ID that the object names; nothing for one that names none. */
int environment_send(struct cli *cli, const json_t *job);
/* The object did not come to be. */
void environment_withdraw(struct cli *cli, const json_t *job);
