/* The options of a request: which ones a query or a DeleteOptions body may have, and how an API
 * server refuses the others. All mistakes are reported at once.
 *
 * Layer: services. Source: k8s.io/apimachinery, validation of ListOptions, CreateOptions,
 * UpdateOptions, PatchOptions and DeleteOptions.
 */
#include "api/options.h"

#include "base/doc.h"
#include "base/err.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MANAGER_BYTES_MAX = 128, VALUES_BYTES_MAX = 512 };

/* ---- problems ---- */

static void add(struct api_call *call, const char *field, const char *reason, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

static void add(struct api_call *call, const char *field, const char *reason, const char *format,
                ...)
{
    const struct yaml_place nowhere = {0};
    va_list args;
    va_start(args, format);
    job_problem_vplace(&call->problems, JOB_ERROR, nowhere, field, NULL, format, args);
    va_end(args);
    job_problem_reason(&call->problems, reason);
}

static void forbid(struct api_call *call, const char *field, const char *why)
{
    add(call, field, "FieldValueForbidden", "Forbidden: %s", why);
}

static void not_one_of(struct api_call *call, const char *field, const char *value,
                       const char *supported)
{
    add(call, field, "FieldValueNotSupported", "Unsupported value: \"%.40s\": supported values: %s",
        value, supported);
}

/* `kind` is the kind of options that has all these problems. */
static int finish(struct api_call *call, const char *kind, struct muster_err *err)
{
    if (call->problems.errors == 0) {
        return 0;
    }
    call->refusal = REFUSED_OPTIONS;
    call->options_kind = kind;
    return muster_fail(err, MUSTER_EDATA, "%s of the request are invalid", kind);
}

static bool is(const char *value, const char *word)
{
    return value && strcmp(value, word) == 0;
}

/* ---- options of writing ---- */

static void check_manager(struct api_call *call)
{
    const char *manager = http_query(call->request, "fieldManager");
    size_t length = manager ? strlen(manager) : 0;
    if (length > MANAGER_BYTES_MAX) {
        add(call, "fieldManager", "FieldValueTooLong", "Too long: may not be more than %d bytes",
            MANAGER_BYTES_MAX);
    }
    for (size_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char)manager[i])) {
            add(call, "fieldManager", "FieldValueInvalid",
                "Invalid value: invalid character U+%04X (at position %zu)", manager[i], i);
            return;
        }
    }
}

/* Writes the values of a parameter that was given several times: `["All","x"]`. */
static void word_values(const struct http_request *request, const char *name, struct buf *out)
{
    const char *separator = "[";
    for (size_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, name) == 0) {
            buf_format(out, "%s\"%.40s\"", separator, request->query[i].value);
            separator = ",";
        }
    }
    buf_text(out, "]");
}

static void check_dry_run(struct api_call *call)
{
    const struct http_request *request = call->request;
    bool fits = true;
    for (size_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, "dryRun") == 0) {
            call->dry_run = true;
            fits = fits && is(request->query[i].value, "All");
        }
    }
    if (!fits) {
        struct buf values;
        buf_init(&values, VALUES_BYTES_MAX);
        word_values(request, "dryRun", &values);
        add(call, "dryRun", "FieldValueNotSupported",
            "Unsupported value: %s: supported values: \"All\"", buf_str(&values));
        buf_done(&values);
    }
}

static void check_validation(struct api_call *call)
{
    static const char *const words[] = {
        [FIELDS_WARN] = "Warn", [FIELDS_IGNORE] = "Ignore", [FIELDS_STRICT] = "Strict"};
    const char *text = http_query(call->request, "fieldValidation");
    if (!text || !*text) {
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], text) == 0) {
            call->fields = (enum fields_mode)i;
            return;
        }
    }
    not_one_of(call, "fieldValidation", text, "\"\", \"Ignore\", \"Strict\", \"Warn\"");
}

static int check_write(struct api_call *call, const char *kind, struct muster_err *err)
{
    check_manager(call);
    check_dry_run(call);
    check_validation(call);
    return finish(call, kind, err);
}

int options_create(struct api_call *call, struct muster_err *err)
{
    return check_write(call, "CreateOptions", err);
}

int options_update(struct api_call *call, struct muster_err *err)
{
    return check_write(call, "UpdateOptions", err);
}

/* Server-side apply must name its manager; the other patches cannot be forced. */
int options_patch(struct api_call *call, struct muster_err *err)
{
    const char *manager = http_query(call->request, "fieldManager");
    bool applies = request_is_type(call->request, APPLY_TYPE);
    if (applies && (!manager || !*manager)) {
        add(call, "fieldManager", "FieldValueRequired",
            "Required value: is required for apply patch");
    }
    if (!applies && http_query(call->request, "force")) {
        forbid(call, "force", "may not be specified for non-apply patch");
    }
    return check_write(call, "PatchOptions", err);
}

/* ---- options of lists and watches ---- */

static void check_list(struct api_call *call, const char *match, const char *version)
{
    const char *next = http_query(call->request, "continue");
    if (match && !*version) {
        forbid(call, "resourceVersionMatch",
               "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (match && next && *next) {
        forbid(call, "resourceVersionMatch",
               "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match && !is(match, "Exact") && !is(match, "NotOlderThan")) {
        not_one_of(call, "resourceVersionMatch", match, "\"Exact\", \"NotOlderThan\", \"\"");
    }
    if (is(match, "Exact") && is(version, "0")) {
        forbid(call, "resourceVersionMatch",
               "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (http_query(call->request, "sendInitialEvents")) {
        forbid(call, "sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
}

static void check_watch(struct api_call *call, const char *match)
{
    const char *next = http_query(call->request, "continue");
    bool initial = http_query(call->request, "sendInitialEvents");
    if (initial && !is(match, "NotOlderThan")) {
        forbid(call, "resourceVersionMatch",
               "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if (match && !initial) {
        forbid(call, "resourceVersionMatch",
               "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (match && !is(match, "NotOlderThan")) {
        not_one_of(call, "resourceVersionMatch", match, "\"NotOlderThan\"");
    }
    if (next && *next) {
        forbid(call, "resourceVersionMatch",
               "resourceVersionMatch is forbidden when continue is provided");
    }
}

int options_list(struct api_call *call, struct muster_err *err)
{
    const char *match = http_query(call->request, "resourceVersionMatch");
    const char *version = http_query(call->request, "resourceVersion");
    match = match && *match ? match : NULL;
    if (http_query_bool(call->request, "watch")) {
        check_watch(call, match);
    } else {
        check_list(call, match, version ? version : "");
    }
    return finish(call, "ListOptions", err);
}

/* ---- options of deletion ---- */

/* Makes a body from the query: a request without a body has its options there. */
static int body_of_query(struct api_call *call, struct muster_err *err)
{
    const char *grace = http_query(call->request, "gracePeriodSeconds");
    const char *policy = http_query(call->request, "propagationPolicy");
    int64_t grace_s = 0;
    char *end = NULL;
    errno = 0;
    if (grace && *grace) {
        grace_s = strtoll(grace, &end, 10);
        if (errno || *end) {
            return muster_fail(err, MUSTER_EINVAL, "gracePeriodSeconds must be a number: %.40s",
                               grace);
        }
    }
    call->body = json_object();
    bool failed = !call->body || (end && doc_set_int(call->body, "gracePeriodSeconds", grace_s)) ||
                  (policy && doc_set_text(call->body, "propagationPolicy", policy)) ||
                  (http_query(call->request, "orphanDependents") &&
                   doc_set(call->body, "orphanDependents",
                           json_boolean(http_query_bool(call->request, "orphanDependents"))));
    return failed ? err_no_memory(err) : 0;
}

static int check_types(const json_t *body, struct muster_err *err)
{
    const json_t *grace = doc_at(body, "gracePeriodSeconds");
    const json_t *orphan = doc_at(body, "orphanDependents");
    const char *kind = doc_text(body, "kind", "DeleteOptions");
    if (!json_is_object(body) || strcmp(kind, "DeleteOptions") != 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "the body of a deletion must be a JSON object of kind DeleteOptions");
    }
    if ((grace && !json_is_integer(grace) && !json_is_null(grace)) ||
        (orphan && !json_is_boolean(orphan) && !json_is_null(orphan))) {
        return muster_fail(err, MUSTER_EINVAL,
                           "of DeleteOptions gracePeriodSeconds must be a number, and "
                           "orphanDependents true or false");
    }
    return 0;
}

static void check_body_dry_run(struct api_call *call)
{
    const json_t *values = doc_at(call->body, "dryRun");
    size_t i;
    json_t *value;
    json_array_foreach (values, i, value) {
        call->dry_run = true;
        if (!is(json_string_value(value), "All")) {
            add(call, "dryRun", "FieldValueNotSupported",
                "Unsupported value: [\"%.40s\"]: supported values: \"All\"",
                json_string_value(value) ? json_string_value(value) : "");
        }
    }
}

static void check_propagation(struct api_call *call)
{
    const char *policy = doc_text(call->body, "propagationPolicy", "");
    if (json_is_boolean(doc_at(call->body, "orphanDependents")) && *policy) {
        add(call, "propagationPolicy", "FieldValueInvalid",
            "Invalid value: \"%.40s\": orphanDependents and deletionPropagation cannot be both set",
            policy);
    } else if (*policy && !is(policy, "Foreground") && !is(policy, "Background") &&
               !is(policy, "Orphan")) {
        not_one_of(call, "propagationPolicy", policy,
                   "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
    }
}

int options_delete(struct api_call *call, struct muster_err *err)
{
    int r = call->body ? 0 : body_of_query(call, err);
    r = r < 0 ? r : check_types(call->body, err);
    if (r < 0) {
        return r;
    }
    check_propagation(call);
    check_dry_run(call);
    check_body_dry_run(call);
    return finish(call, "DeleteOptions", err);
}

/* A collection is listed, then deleted. */
int options_delete_all(struct api_call *call, struct muster_err *err)
{
    int r = options_list(call, err);
    return r < 0 ? r : options_delete(call, err);
}

/* ---- resourceVersion ---- */

int options_version(struct api_call *call, int64_t *ret, struct muster_err *err)
{
    const char *text = http_query(call->request, "resourceVersion");
    char *end;
    if (!text || !*text) {
        return 0;
    }
    errno = 0;
    int64_t version = strtoll(text, &end, 10);
    if (errno || *end || !isdigit((unsigned char)*text)) {
        return muster_fail(err, MUSTER_EINVAL,
                           "invalid resource version: resourceVersion: Invalid value: \"%.40s\": "
                           "it must be a number from 0",
                           text);
    }
    *ret = version;
    return 0;
}

int options_not_older(struct api_call *call, int64_t version, struct muster_err *err)
{
    int64_t newest = store_version(call->api->store);
    if (version <= newest) {
        return 0;
    }
    call->refusal = REFUSED_VERSION;
    return muster_fail(err, MUSTER_ETIMEDOUT,
                       "Timeout: Too large resource version: %" PRId64 ", current: %" PRId64,
                       version, newest);
}
