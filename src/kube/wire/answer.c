/* See wire/answer.h. */
#include "kube/wire/answer.h"

#include "base/doc.h"

static int code_of_status(long http_status)
{
    static const struct {
        int http_status;
        int code;
    } codes[] = {
        {400, MUSTER_EINVAL},       {401, MUSTER_EUNAUTH}, {403, MUSTER_EPERM},
        {404, MUSTER_ENOENT},       {405, MUSTER_EMETHOD}, {406, MUSTER_EUNSUPPORTED},
        {409, MUSTER_EEXIST},       {410, MUSTER_EGONE},   {413, MUSTER_ETOOBIG},
        {415, MUSTER_EUNSUPPORTED}, {422, MUSTER_EINVAL},  {429, MUSTER_EAGAIN},
        {504, MUSTER_ETIMEDOUT},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].http_status == http_status) {
            return codes[i].code;
        }
    }
    return http_status >= 500   ? MUSTER_EUNAVAIL
           : http_status >= 400 ? MUSTER_EINVAL
                                : MUSTER_EPROTO;
}

/* Returns our code for an HTTP status of 300 and more, and the Status object's reason ("" if there
 * is none). */
static int code_of(long http_status, const char *reason)
{
    int code = code_of_status(http_status);
    if (http_status == 409 && strcmp(reason, "AlreadyExists") != 0) {
        return MUSTER_ECONFLICT;
    }
    return http_status >= 500 && strcmp(reason, "ServerTimeout") == 0 ? MUSTER_ETIMEDOUT : code;
}

static void refuse(long http_status, bool writes, struct cluster_answer *ret)
{
    bool is_status = strcmp(doc_text(ret->object, "kind", ""), "Status") == 0;
    ret->reason = is_status ? doc_text(ret->object, "reason", "") : "";
    ret->code = code_of(http_status, ret->reason);
    ret->message = is_status ? doc_text(ret->object, "message", "") : "";
    if (!*ret->message) {
        ret->message = muster_code_text(ret->code);
    }
    /* An API server that is not ready to serve has done nothing; after any other failure the write
     * may have been carried out (etcd answered too late, a gateway lost the answer). */
    ret->unsure = writes && http_status >= 500 && !(http_status == 503 && is_status);
}

void wire_answer(long http_status, const char *body, size_t bytes, bool writes,
                 struct cluster_answer *ret)
{
    json_t *object = NULL;
    *ret = (struct cluster_answer){.http_status = (int)http_status, .reason = "", .message = ""};
    int r = bytes > 0 ? doc_parse_last(body, bytes, &object, NULL) : MUSTER_EDATA;
    if (r == 0 && !json_is_object(object)) {
        json_decref(object);
        object = NULL;
    }
    ret->object = object;
    if (http_status < 200 || http_status >= 300) {
        refuse(http_status, writes, ret);
    } else if (!object) {
        ret->code = r == MUSTER_ENOMEM ? MUSTER_ENOMEM : MUSTER_EPROTO;
        ret->message = r == MUSTER_ENOMEM ? "out of memory" : "the answer is not a JSON object";
        ret->unsure = writes;
    }
}
