/* The form in which a client wants its answer: objects as they are, their metadata alone, or a
 * Table. The Accept header says it, in order of preference.
 *
 * Layer: services.
 */
#pragma once

#include "api/table.h"
#include "http/http.h"

#include <jansson.h>

enum form_kind { FORM_WHOLE, FORM_METADATA, FORM_METADATA_LIST, FORM_TABLE };

struct form {
    enum form_kind kind;
    const char *api_version; /* apiVersion of the form itself; static */
    enum table_rows rows;
};

/* Returns MUSTER_EUNSUPPORTED if no form that the header names is available, or the form does not
 * fit an answer that is (or is not) a list; MUSTER_EINVAL for a wrong includeObject. */
int form_read(const struct http_request *request, bool is_list, struct form *ret,
              struct muster_err *err);

/* Returns a new value, or NULL when out of memory. `object` is in its stored form. */
json_t *form_object(const struct form *form, const struct resource *resource, json_t *object);

/* Returns a new list, such as a PyTorchJobList. It shares `items` (in stored form) and `meta` (may
 * be NULL). */
json_t *form_list(const struct form *form, const struct resource *resource, json_t *items,
                  json_t *meta);

/* Returns a new object that has only a version, for a watch's bookmark. */
json_t *form_bookmark(const struct form *form, const struct resource *resource,
                      const char *version);
