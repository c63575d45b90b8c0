/* Events (controller/event.h) in the store, for `describe` and `events`: the store bounds how many
 * there are.
 *
 * Layer: program (daemon). One thread.
 */
#pragma once

#include "controller/event.h"
#include "store/store.h"

int event_record(struct store *store, const struct event_note *note, struct muster_err *err);
