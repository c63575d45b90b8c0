/* Removes metadata.managedFields from an API server's text before it is parsed: for a pod it is
 * more than half of the text, and muster does not use it.
 *
 * Layer: services, room kube/wire. Pure.
 */
#pragma once

#include <stddef.h>

/* Works in place: the array of each member "managedFields" becomes an empty one. Returns the new
 * length of the text; from the first error of syntax on, the text stays as it is. The byte after
 * the text is not changed. */
size_t wire_drop_managers(char *json, size_t bytes);
