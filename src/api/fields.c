/* See fields.h. */
#include "api/fields.h"

#include "base/doc.h"
#include "base/yaml/yaml.h"

#include <assert.h>
#include <string.h>

/* ---- duplicate keys ---- */

/* Notes duplicate keys. JSON is YAML, and our YAML reader knows the paths. Returns false when it
 * cannot find them. */
static bool note_duplicates(struct api_call *call)
{
    const struct http_request *request = call->request;
    struct yaml_stream stream = {0};
    if (yaml_load(request->body, request->body_bytes, &yaml_limits_default, &stream, NULL) < 0) {
        return false;
    }
    bool known = stream.fault_count > 0;
    for (size_t i = 0; i < stream.fault_count; i++) {
        known = known && !stream.faults[i].fatal;
    }
    for (size_t i = 0; known && i < stream.fault_count; i++) {
        size_t place = call->problems.count;
        const char *path = stream.faults[i].path;
        job_problem_add(&call->problems, JOB_WARNING, NULL, NULL, "duplicate field \"%.200s\"",
                        path ? path : "");
        if (call->problems.count > place) {
            call->problems.list[place].strict = true;
        }
    }
    yaml_done(&stream);
    return known;
}

int fields_parse(struct api_call *call, struct muster_err *err)
{
    const struct http_request *request = call->request;
    struct muster_err why = MUSTER_ERR_INIT;
    int r = doc_parse(request->body, request->body_bytes, &call->body, &why);
    json_t *last = NULL;
    if (r == MUSTER_EDATA && doc_parse_last(request->body, request->body_bytes, &last, NULL) == 0) {
        if (note_duplicates(call)) {
            call->body = last;
            return 0;
        }
        json_decref(last);
    }
    return r < 0 ? muster_fail(err, r == MUSTER_EDATA ? MUSTER_EINVAL : r, "the body: %.300s",
                               why.text)
                 : 0;
}

/* ---- what is done about the problems ---- */

int fields_admit(struct api_call *call, struct muster_err *err)
{
    for (size_t i = 0; call->fields == FIELDS_STRICT && i < call->problems.count; i++) {
        if (call->problems.list[i].strict) {
            call->refusal = REFUSED_FIELDS;
            return muster_fail(err, MUSTER_EINVAL, "strict decoding error");
        }
    }
    return 0;
}

bool fields_warned(const struct api_call *call, const struct job_problem *problem)
{
    return problem->severity == JOB_WARNING && !(problem->strict && call->fields == FIELDS_IGNORE);
}

void fields_word(const struct job_problem *problem, struct buf *out)
{
    assert(problem->strict);
    if (*problem->path) {
        buf_format(out, "unknown field \"%s\"", problem->path);
    } else {
        buf_text(out, problem->message);
    }
}

void fields_word_refusal(const struct api_call *call, struct buf *out)
{
    const struct resource *resource = call->route.resource;
    buf_format(out, "%s in version \"v1\" cannot be handled as a %s: strict decoding error: ",
               resource->kind, resource->kind);
    const char *separator = "";
    for (size_t i = 0; i < call->problems.count; i++) {
        if (call->problems.list[i].strict) {
            buf_text(out, separator);
            fields_word(&call->problems.list[i], out);
            separator = ", ";
        }
    }
}
