/* Reads what earlier steps have counted of a job, as it is stored: .status.counters (counters.h).
 *
 * Layer: pure.
 */
#pragma once

#include "base/doc.h"

/* Borrowed; NULL: none, or an earlier version wrote them, which kept them in annotations. */
static inline const json_t *control_stored_counters(const json_t *job)
{
    const json_t *counters = doc_at(job, "status.counters");
    return json_is_object(counters) ? counters : NULL;
}
