/* See deed.h. */
#include "operator/deed.h"

#include "base/doc.h"
#include "base/log.h"

#include <stdio.h>

void deed_log(const struct control_effect *effect, const json_t *before, const json_t *after)
{
    static const char *const nouns[CONTROL_RESOURCES] = {
        "job", "pod", "service", "claim", "autoscaler", "pod group", "pod group"};
    char job[512];
    (void)snprintf(job, sizeof job, "%s/%s", doc_text(after, "metadata.namespace", ""),
                   doc_text(after, "metadata.name", ""));
    const json_t *was = doc_at(before, "status.conditions");
    const json_t *is = doc_at(after, "status.conditions");
    if (effect->verb == CONTROL_CREATE) {
        log_about(LOG_INFO, "operator.create", job, "created %s %s", nouns[effect->resource],
                  effect->name);
    } else if (effect->verb == CONTROL_UPDATE) {
        log_about(LOG_INFO, "operator.update", job, "updated %s %s", nouns[effect->resource],
                  effect->name);
    } else if (effect->verb == CONTROL_DELETE) {
        log_about(LOG_INFO, "operator.delete", job, "deleted %s %s", nouns[effect->resource],
                  effect->name ? effect->name : doc_text(after, "metadata.name", ""));
    } else if (effect->verb == CONTROL_UPDATE_STATUS && !json_equal(was, is)) {
        const json_t *last = json_array_get(is, json_array_size(is) - 1);
        log_about(LOG_INFO, "operator.status", job, "%s", doc_text(last, "message", ""));
    }
}
