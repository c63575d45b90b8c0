/* Tries all objects of a file before the first is made, so that either all of them are created or
 * none.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/submit/objects.h"

/* Puts an object. It is called as it will be when objects are really put; during the rehearsal the
 * client's writes are dry runs, and `object` is a copy. */
typedef int preflight_put(void *context, json_t *object);

/* Returns the first error of `put`; nothing is made. A single object needs no rehearsal. */
int preflight_objects(struct cli *cli, const struct objects *objects, preflight_put *put,
                      void *context);

/* MUSTER_EDATA when a job mounts a claim that is neither among `objects` nor on this machine: its
 * pods would wait for ever. */
int preflight_claims(struct cli *cli, const struct objects *objects);
