/* Keeps the files that a command's objects were read from, for later messages: an error of the API
 * about a field is shown with the file's line.
 *
 * Layer: cli. Ownership: sources_keep makes the list, sources_free frees it and the files'
 * contents.
 */
#pragma once

#include "job/file/file.h"

struct sources;

/* Takes over the contents of `file`, which is empty afterwards. If *list is NULL, it is made.
 * MUSTER_ENOMEM. */
int sources_keep(struct sources **list, const char *path, struct job_file *file);
struct sources *sources_free(struct sources *list);

/* The file that an object of this kind, name and namespace was read from, and the place of the
 * field in it. If no namespace is equal, an object without a namespace counts, else one of any
 * namespace. NULL if there is no such object. */
const char *sources_find(const struct sources *list, const json_t *object, const char *field,
                         struct yaml_place *ret_place);
