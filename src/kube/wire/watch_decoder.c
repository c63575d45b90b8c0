/* See wire/watch_decoder.h. */
#include "kube/wire/watch_decoder.h"

#include "base/doc.h"
#include "kube/wire/managers.h"

#include <string.h>

void watch_decoder_init(struct watch_decoder *d, size_t line_bytes_max, bool without_managers)
{
    *d = (struct watch_decoder){.without_managers = without_managers};
    buf_init(&d->bytes, line_bytes_max);
}

void watch_decoder_done(struct watch_decoder *d)
{
    buf_done(&d->bytes);
}

void watch_decoder_reset(struct watch_decoder *d)
{
    size_t line_bytes_max = d->bytes.max;
    buf_done(&d->bytes);
    watch_decoder_init(d, line_bytes_max, d->without_managers);
}

void watch_decoder_feed(struct watch_decoder *d, const char *bytes, size_t count)
{
    if (d->at > 0) {
        buf_consume(&d->bytes, d->at);
        d->scanned -= d->at;
        d->at = 0;
    }
    buf_add(&d->bytes, bytes, count);
}

static bool is_initial_end(const json_t *object)
{
    const json_t *marks = doc_at(object, "metadata.annotations");
    const char *mark = json_string_value(json_object_get(marks, "k8s.io/initial-events-end"));
    return mark && strcmp(mark, "true") == 0;
}

static int broken(struct muster_err *err, const char *why)
{
    return muster_fail(err, MUSTER_EPROTO, "the answer to a watch cannot be read: %s", why);
}

static int read_event(const char *line, size_t bytes, struct watch_event *ret,
                      struct muster_err *err)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    json_t *event = NULL;
    if (doc_parse_last(line, bytes, &event, err) < 0) {
        return err && err->code == MUSTER_ENOMEM ? MUSTER_ENOMEM : broken(err, "no JSON object");
    }
    const char *type = doc_text(event, "type", "");
    json_t *object = json_object_get(event, "object");
    size_t i = 0;
    while (i <= WATCH_ERROR && strcmp(type, types[i]) != 0) {
        i++;
    }
    if (i > WATCH_ERROR || !json_is_object(object)) {
        json_decref(event);
        return broken(err, "no type, or no object");
    }
    *ret = (struct watch_event){.type = (enum watch_event_type)i, .object = json_incref(object)};
    json_decref(event);
    ret->version = doc_text(object, "metadata.resourceVersion", "");
    ret->initial_end = i == WATCH_BOOKMARK && is_initial_end(object);
    return 1;
}

int watch_decoder_next(struct watch_decoder *d, struct watch_event *ret, struct muster_err *err)
{
    if (buf_failed(&d->bytes)) {
        return broken(err, "a line is too long");
    }
    while (d->scanned < d->bytes.used) {
        char *line = d->bytes.data + d->at;
        size_t unseen = d->bytes.used - d->scanned;
        const char *end = memchr(d->bytes.data + d->scanned, '\n', unseen);
        if (!end) {
            d->scanned = d->bytes.used;
            return 0;
        }
        size_t length = (size_t)(end - line);
        d->at += length + 1;
        d->scanned = d->at;
        if (length > 0) {
            length = d->without_managers ? wire_drop_managers(line, length) : length;
            return read_event(line, length, ret, err);
        }
    }
    return 0;
}
