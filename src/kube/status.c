/* Makes one of our errors of a refused request. */
#include "kube/internal.h"

#include <string.h>

/* Returns our code for what a Kubernetes API means by this HTTP status. */
static int code_of(long http_status)
{
    static const struct {
        int http_status;
        int code;
    } codes[] = {
        {400, MUSTER_EINVAL},  {401, MUSTER_EUNAUTH},  {403, MUSTER_EPERM},
        {404, MUSTER_ENOENT},  {405, MUSTER_EMETHOD},  {409, MUSTER_EEXIST},
        {410, MUSTER_EGONE},   {413, MUSTER_ETOOBIG},  {415, MUSTER_EUNSUPPORTED},
        {422, MUSTER_EDATA},   {429, MUSTER_EAGAIN},   {500, MUSTER_EINTERNAL},
        {502, MUSTER_ENOHOST}, {503, MUSTER_EUNAVAIL}, {504, MUSTER_ETIMEDOUT},
        {507, MUSTER_ECREATE},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].http_status == http_status) {
            return codes[i].code;
        }
    }
    return http_status >= 500 ? MUSTER_EINTERNAL : MUSTER_EINVAL;
}

/* Whether the answer is an API server's for a path of no resource that it knows. */
static bool is_unknown_kind(long http_status, const char *body)
{
    static const char unknown[] = "404 page not found";
    return http_status == 404 && strncmp(body, unknown, sizeof unknown - 1) == 0;
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
        if (is_unknown_kind(http_status, body)) {
            return muster_fail(
                err, code,
                "%s does not know this kind of object (a cluster gets PyTorchJobs by "
                "'muster deploy --print | kubectl apply --server-side -f -')",
                kube->peer);
        }
        return muster_fail(err, code, "%s answered %ld: %.200s", kube->peer, http_status, body);
    }
    kube->status = status;
    if (strcmp(doc_text(status, "reason", ""), "Conflict") == 0) {
        code = MUSTER_ECONFLICT;
    }
    const char *message = doc_text(status, "message", "");
    return muster_fail(err, code, "%s", *message ? message : muster_code_text(code));
}
