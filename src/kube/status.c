/* A refused request as one of our errors. */
#include "kube/internal.h"

#include <string.h>

/* The first code of the table that answers with this HTTP status. */
static int code_of(long http_status)
{
    static const int codes[][2] = {
#define X(name, code, http, exit, python, text) {http, code},
#include <muster/err.def>
#undef X
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i][0] == http_status) {
            return codes[i][1];
        }
    }
    return http_status >= 500 ? MUSTER_EINTERNAL : MUSTER_EINVAL;
}

int kube_refuse(struct kube *kube, long http_status, const char *body, size_t bytes,
                struct muster_err *err)
{
    json_t *status = NULL;
    json_decref(kube->status);
    kube->status = NULL;
    int code = code_of(http_status);
    if (doc_parse(body, bytes, &status, NULL) < 0 ||
        strcmp(doc_text(status, "kind", ""), "Status") != 0) {
        json_decref(status);
        return muster_fail(err, code, "the controller answered %ld: %.200s", http_status, body);
    }
    kube->status = status;
    if (strcmp(doc_text(status, "reason", ""), "Conflict") == 0) {
        code = MUSTER_ECONFLICT;
    }
    return muster_fail(err, code, "%s", doc_text(status, "message", muster_code_text(code)));
}
