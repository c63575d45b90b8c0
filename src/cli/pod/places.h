/* The folders of a followed job's containers on this machine: {pod: {container: place
 * (place_get)}}.
 *
 * They are asked for while the pods exist, because pods may be cleaned up at the end. Layer: cli.
 */
#pragma once

#include "cli/pod/place.h"

/* Asks for the places of containers that have started since the last call; true if there were some.
 */
bool places_learn(struct cli *cli, const json_t *pod, json_t *places);

/* Asks again, because rotation has changed the lists of log files. `pods`: name -> pod. */
void places_refresh(struct cli *cli, json_t *pods, json_t *places);

/* The place of a container, borrowed; NULL if it is not known. */
const json_t *places_of(const json_t *places, const char *pod, const char *container);
