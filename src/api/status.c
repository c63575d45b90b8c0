/* Errors as kubectl expects them: a Status object with reason, message, details, causes.
 *
 * Layer: services. Source: k8s.io/apimachinery api/errors.
 */
#include "api/fields.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES_MAX = 16384, QUALIFIED_BYTES = 128, RETRY_AFTER_S = 1 };

#define OPTIONS_GROUP "meta.k8s.io"

/* The answer for each of our codes; any other code is an error of the server. */
static const struct answer {
    int code;
    int http_status;
    const char *reason;
} answers[] = {
    {MUSTER_EINVAL, 400, "BadRequest"},
    {MUSTER_EDATA, 422, "Invalid"},
    {MUSTER_ENOENT, 404, "NotFound"},
    {MUSTER_EEXIST, 409, "AlreadyExists"},
    {MUSTER_ECONFLICT, 409, "Conflict"},
    {MUSTER_EPERM, 403, "Forbidden"},
    {MUSTER_EUNAUTH, 401, "Unauthorized"},
    {MUSTER_EGONE, 410, "Expired"},
    {MUSTER_EMETHOD, 405, "MethodNotAllowed"},
    {MUSTER_EUNSUPPORTED, 415, "UnsupportedMediaType"},
    {MUSTER_ETOOBIG, 413, "RequestEntityTooLarge"},
    {MUSTER_EAGAIN, 429, "TooManyRequests"},
    {MUSTER_EUNAVAIL, 503, "ServiceUnavailable"},
    {MUSTER_ETIMEDOUT, 504, "Timeout"},
    {MUSTER_EPROTO, 400, "InternalError"},
    {MUSTER_ENOHOST, 502, "InternalError"},
    {MUSTER_ECREATE, 507, "InternalError"},
};

static struct answer answer_to(int code)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i].code == code) {
            return answers[i];
        }
    }
    return (struct answer){code, 500, "InternalError"};
}

static struct answer answer_of(const struct api_call *call, const struct muster_err *err)
{
    return call->refusal == REFUSED_FORM ? (struct answer){err->code, 406, "NotAcceptable"}
                                         : answer_to(err->code);
}

static json_t *status_new(struct build *b, const char *word)
{
    json_t *status = build_value(b, json_object());
    build_text(b, status, "kind", "Status");
    build_text(b, status, "apiVersion", "v1");
    build_object_at(b, status, "metadata");
    build_text(b, status, "status", word);
    return status;
}

/* The message may quote what a client sent, cut at any byte: a byte that is not UTF-8 becomes
 * '?'. */
static void add_message(struct build *b, json_t *status, const char *message)
{
    struct buf text;
    buf_init(&text, MESSAGE_BYTES_MAX);
    size_t left = strlen(message);
    for (const char *at = message; left > 0;) {
        size_t length = text_utf8_length((const unsigned char *)at, left);
        buf_add(&text, length ? at : "?", length ? length : 1);
        at += length ? length : 1;
        left -= length ? length : 1;
    }
    build_text(b, status, "message", buf_str(&text));
    buf_done(&text);
}

static json_t *status_of(int code, const char *reason, const char *message)
{
    struct build b = {0};
    json_t *status = status_new(&b, "Failure");
    add_message(&b, status, message);
    build_text(&b, status, "reason", reason);
    build_int(&b, status, "code", code);
    return build_end(&b, status);
}

static void add_details(struct build *b, json_t *status, const struct resource *resource,
                        const char *name, const char *kind)
{
    json_t *details = build_object_at(b, status, "details");
    build_text(b, details, "name", *name ? name : NULL);
    build_text(b, details, "group", *resource->group ? resource->group : NULL);
    build_text(b, details, "kind", kind);
}

json_t *status_deleted(const struct resource *resource, const json_t *object)
{
    struct build b = {0};
    json_t *status = status_new(&b, "Success");
    add_details(&b, status, resource, doc_text(object, "metadata.name", ""), resource->plural);
    build_text(&b, build_object_at(&b, status, "details"), "uid",
               doc_text(object, "metadata.uid", NULL));
    return build_end(&b, status);
}

/* ---- wording ---- */

/* Writes `PyTorchJob.kubeflow.org "a" is invalid: [spec.x: must be 1, …]`; a single problem has no
 * brackets. */
static void word_invalid(const struct api_call *call, struct buf *out)
{
    const struct resource *resource = call->route.resource;
    if (call->refusal == REFUSED_OPTIONS) {
        buf_format(out, "%s." OPTIONS_GROUP " \"\" is invalid: ", call->options_kind);
    } else {
        buf_format(out, "%s%s%s \"%s\" is invalid: ", resource->kind, *resource->group ? "." : "",
                   resource->group, call->route.name);
    }
    bool several = call->problems.errors > 1;
    const char *separator = several ? "[" : "";
    for (size_t i = 0; i < call->problems.count; i++) {
        const struct job_problem *p = &call->problems.list[i];
        if (p->severity != JOB_ERROR) {
            continue;
        }
        buf_format(out, "%s%s%s%s", separator, p->path, *p->path ? ": " : "", p->message);
        if (p->hint) {
            buf_format(out, " (%s)", p->hint);
        }
        separator = ", ";
    }
    buf_text(out, several ? "]" : "");
}

/* Writes the conflicts; the problems of one owner follow each other. */
static void word_conflicts(const struct api_call *call, const struct muster_err *err,
                           struct buf *out)
{
    const struct job_problems *problems = &call->problems;
    const char *last = "";
    buf_format(out, "%s:", err->text);
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *p = &problems->list[i];
        if (problems->errors == 1) {
            buf_format(out, " %s: %s", p->message, p->path);
        } else if (p->severity == JOB_ERROR) {
            if (strcmp(last, p->message) != 0) {
                buf_format(out, "%sconflicts%s:", *last ? "\n" : " ",
                           p->message + strlen("conflict"));
            }
            buf_format(out, "\n- %s", p->path);
            last = p->message;
        }
    }
}

static void word(const struct api_call *call, const struct muster_err *err, struct buf *out)
{
    char qualified[QUALIFIED_BYTES];
    const char *name = call->route.name;
    resource_qualified(call->route.resource, qualified, sizeof qualified);
    if (call->refusal == REFUSED_FIELDS) {
        fields_word_refusal(call, out);
    } else if (call->refusal == REFUSED_APPLY) {
        word_conflicts(call, err, out);
    } else if (err->code == MUSTER_EDATA && call->problems.errors > 0) {
        word_invalid(call, out);
    } else if (err->code == MUSTER_ENOENT && *name && call->route.subresource[0] == '\0') {
        buf_format(out, "%s \"%s\" not found", qualified, name);
    } else if (err->code == MUSTER_EEXIST && *name) {
        buf_format(out, "%s \"%s\" already exists", qualified, name);
    } else if (err->code == MUSTER_ECONFLICT && *name) {
        buf_format(out, "Operation cannot be fulfilled on %s \"%s\": %s", qualified, name,
                   err->text);
    } else if (err->code == MUSTER_EPERM && *name) {
        buf_format(out, "%s \"%s\" is forbidden: %s", qualified, name, err->text);
    } else {
        buf_text(out, err->text);
    }
}

/* `field` is NULL if the cause is about no field; "" is the whole object. */
static void add_cause(struct build *b, json_t *causes, const char *reason, const char *field,
                      const char *message)
{
    json_t *cause = build_value(b, json_object());
    build_text(b, cause, "reason", reason);
    build_text(b, cause, "message", message);
    build_text(b, cause, "field", field && !*field ? "<object>" : field);
    build_add(b, causes, cause);
}

static void add_problem(struct build *b, json_t *causes, const struct job_problem *p)
{
    struct buf message;
    buf_init(&message, MESSAGE_BYTES_MAX);
    buf_text(&message, p->message);
    if (p->hint) {
        buf_format(&message, " (%s)", p->hint);
    }
    add_cause(b, causes, p->reason ? p->reason : "FieldValueInvalid", p->path, buf_str(&message));
    buf_done(&message);
}

/* kubectl prints the causes of an Invalid, one per line, and never its message: without a cause it
 * would not print what is wrong. */
static void add_causes(struct build *b, json_t *details, const struct api_call *call,
                       const char *message)
{
    json_t *causes = build_array_at(b, details, "causes");
    for (size_t i = 0; i < call->problems.count; i++) {
        if (call->problems.list[i].severity == JOB_ERROR) {
            add_problem(b, causes, &call->problems.list[i]);
        }
    }
    if (call->problems.errors == 0) {
        add_cause(b, causes, "FieldValueInvalid", "", message);
    }
}

static void add_details_of(struct build *b, json_t *status, const struct api_call *call,
                           const struct muster_err *err)
{
    const struct resource *resource = call->route.resource;
    bool invalid = err->code == MUSTER_EDATA;
    json_t *details = build_object_at(b, status, "details");
    if (call->refusal == REFUSED_OPTIONS) {
        build_text(b, details, "group", OPTIONS_GROUP);
        build_text(b, details, "kind", call->options_kind);
    } else if (call->refusal == REFUSED_VERSION) {
        build_int(b, details, "retryAfterSeconds", RETRY_AFTER_S);
        add_cause(b, build_array_at(b, details, "causes"), "ResourceVersionTooLarge", NULL,
                  "Too large resource version");
    } else if (call->refusal == REFUSED_APPLY) {
        add_causes(b, details, call, err->text);
    } else if (call->refusal != REFUSED_FORM) {
        add_details(b, status, resource, call->route.name,
                    invalid ? resource->kind : resource->plural);
    }
    if (invalid) {
        add_causes(b, details, call, err->text);
    }
}

static json_t *make_status(const struct api_call *call, const struct muster_err *err)
{
    struct buf message;
    buf_init(&message, MESSAGE_BYTES_MAX);
    word(call, err, &message);
    struct answer answer = answer_of(call, err);
    json_t *status = status_of(answer.http_status, answer.reason,
                               buf_failed(&message) ? err->text : buf_str(&message));
    buf_done(&message);
    struct build b = {.failed = !status};
    add_details_of(&b, status, call, err);
    return build_end(&b, status);
}

void status_send(struct api_call *call, const struct muster_err *err)
{
    if (call->refusal == REFUSED_VERSION) {
        http_reply_header(call->reply, "Retry-After", "1"); /* RETRY_AFTER_S */
    }
    api_send_json(call->reply, answer_of(call, err).http_status, make_status(call, err));
}

/* ---- for all ---- */

void api_send_json(struct http_reply *reply, int status, json_t *doc)
{
    static const char lost[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                               "\"reason\":\"InternalError\",\"message\":\"out of memory\","
                               "\"code\":500}";
    char *text = doc ? doc_print(doc) : NULL;
    json_decref(doc);
    http_reply_send(reply, text ? status : 500, "application/json", text ? text : lost,
                    text ? strlen(text) : sizeof lost - 1);
    free(text);
}

void api_send_error(struct http_reply *reply, const struct muster_err *err)
{
    struct answer answer = answer_to(err->code);
    api_send_json(reply, answer.http_status,
                  status_of(answer.http_status, answer.reason, err->text));
}
