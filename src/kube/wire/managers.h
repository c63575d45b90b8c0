/* Leaves metadata.managedFields out of what an API server sends, before it is read: of a pod that
 * is more than half of the text, and nobody here looks at it.
 *
 * Layer: services, room kube/wire. Pure.
 */
#pragma once

#include <stddef.h>

/* Works in place: the array of each member "managedFields" becomes an empty one. Returns the new
 * length of the text; text that is no JSON stays as it is from there on. The byte after the text is
 * not touched. */
size_t wire_drop_managers(char *json, size_t bytes);
