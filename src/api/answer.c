/* Makes the answers of verbs: an object, a list, a Table of them, and warnings about what was
 * written.
 *
 * Layer: services.
 */
#include "api/fields.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WARNINGS_MAX = 10, WARNING_BYTES_MAX = 512 };

static int send_made(struct api_call *call, int status, json_t *answer, struct muster_err *err)
{
    if (!answer) {
        return err_no_memory(err);
    }
    api_send_json(call->reply, status, answer);
    return 0;
}

int call_send_object(struct api_call *call, int status, json_t *object, struct muster_err *err)
{
    return send_made(call, status, form_object(&call->form, call->route.resource, object), err);
}

/* ---- lists ---- */

static json_t *list_meta(const struct store_page *page)
{
    struct build b = {0};
    char version[24];
    (void)snprintf(version, sizeof version, "%" PRId64, page->version);
    json_t *meta = build_value(&b, json_object());
    build_text(&b, meta, "resourceVersion", version);
    build_text(&b, meta, "continue", page->next);
    return build_end(&b, meta);
}

int call_send_page(struct api_call *call, const struct store_page *page, struct muster_err *err)
{
    muster_auto(doc) json_t *meta = list_meta(page);
    json_t *list = meta ? form_list(&call->form, call->route.resource, page->items, meta) : NULL;
    return send_made(call, 200, list, err);
}

/* ---- warnings ---- */

static void word_warning(const struct job_problem *p, struct buf *out)
{
    if (p->strict) {
        fields_word(p, out);
    } else {
        buf_format(out, "%s%s%s", p->path, *p->path ? ": " : "", p->message);
    }
    if (p->hint) {
        buf_format(out, " (%s)", p->hint);
    }
}

/* Sends a warning as RFC 9111 defines it: 299 - "text", with quotes and backslashes escaped. */
static void send_warning(struct api_call *call, const struct job_problem *p)
{
    struct buf text;
    struct buf words;
    buf_init(&text, WARNING_BYTES_MAX);
    buf_init(&words, WARNING_BYTES_MAX);
    word_warning(p, &words);
    buf_text(&text, "299 - \"");
    for (const char *c = buf_str(&words); *c; c++) {
        buf_text(&text, *c == '"' || *c == '\\' ? "\\" : "");
        buf_add(&text, c, 1);
    }
    buf_text(&text, "\"");
    if (!buf_failed(&text) && !buf_failed(&words)) {
        http_reply_header(call->reply, "Warning", buf_str(&text));
    }
    buf_done(&text);
    buf_done(&words);
}

static void send_warnings(struct api_call *call)
{
    size_t sent = 0;
    for (size_t i = 0; i < call->problems.count && sent < WARNINGS_MAX; i++) {
        if (fields_warned(call, &call->problems.list[i])) {
            send_warning(call, &call->problems.list[i]);
            sent++;
        }
    }
}

int call_send_written(struct api_call *call, int status, json_t *object, struct muster_err *err)
{
    send_warnings(call);
    return call_send_object(call, status, object, err);
}
