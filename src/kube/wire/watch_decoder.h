/* Decodes the answer to a watch, one JSON object per line, from pieces of any size.
 *
 * Layer: services, room kube/wire. Pure. Ownership: init/done, the caller's struct.
 *
 *     watch_decoder_feed(&d, bytes, count);
 *     while ((r = watch_decoder_next(&d, &event, &err)) > 0) { … json_decref(event.object); }
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>

enum watch_event_type {
    WATCH_ADDED,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK, /* `object` has only a version */
    WATCH_ERROR,    /* `object` is a Status */
};

struct watch_event {
    enum watch_event_type type;
    json_t *object;      /* a new reference */
    const char *version; /* the object's resourceVersion, "" if it has none; borrowed from it */
    bool initial_end;    /* the bookmark after which a streamed list is complete */
};

struct watch_decoder {
    struct buf bytes;
    size_t at;      /* where the next line to read begins */
    size_t scanned; /* up to here there is no end of that line */
    bool without_managers;
};

/* Without managers, metadata.managedFields is left out. */
void watch_decoder_init(struct watch_decoder *d, size_t line_bytes_max, bool without_managers);
void watch_decoder_done(struct watch_decoder *d);

/* Forgets what has arrived: a new answer begins. */
void watch_decoder_reset(struct watch_decoder *d);

void watch_decoder_feed(struct watch_decoder *d, const char *bytes, size_t count);

/* Returns 1: *ret is an event. 0: more bytes must be fed first. MUSTER_EPROTO: the bytes are not a
 * watch, or a line is too long; the stream cannot be read any further. */
int watch_decoder_next(struct watch_decoder *d, struct watch_event *ret, struct muster_err *err);
