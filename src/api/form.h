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
    const char *api_version; /* of the form itself; static */
    enum table_rows rows;
};

/* MUSTER_EUNSUPPORTED: nothing that the header names is to be had here, or the form is not that of
 * an answer that is a list (or is none); MUSTER_EINVAL: includeObject. */
int form_read(const struct http_request *request, bool is_list, struct form *ret,
              struct muster_err *err);

/* New; NULL when out of memory. `object` as it is stored. */
json_t *form_object(const struct form *form, const struct resource *resource, json_t *object);

/* New: a PyTorchJobList and the like. `items` (as stored) and `meta` (may be NULL) are shared with
 * it. */
json_t *form_list(const struct form *form, const struct resource *resource, json_t *items,
                  json_t *meta);

/* New: an object of which there is nothing but a version, for a watch's bookmark. */
json_t *form_bookmark(const struct form *form, const struct resource *resource,
                      const char *version);
