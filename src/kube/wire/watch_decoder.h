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
    WATCH_BOOKMARK, /* `object` has nothing but a version */
    WATCH_ERROR,    /* `object` is a Status */
};

struct watch_event {
    enum watch_event_type type;
    json_t *object;      /* a new reference */
    const char *version; /* the object's resourceVersion, "" without one; borrowed from it */
    bool initial_end;    /* the bookmark after which a streamed list is complete */
};

struct watch_decoder {
    struct buf bytes;
    size_t at;      /* where the line that is read next begins */
    size_t scanned; /* before which there is no end of that line */
    bool without_managers;
};

/* Without managers, metadata.managedFields is left out. */
void watch_decoder_init(struct watch_decoder *d, size_t line_bytes_max, bool without_managers);
void watch_decoder_done(struct watch_decoder *d);

/* Forgets what came: a new answer begins. */
void watch_decoder_reset(struct watch_decoder *d);

void watch_decoder_feed(struct watch_decoder *d, const char *bytes, size_t count);

/* 1: *ret is an event. 0: more must be fed first. MUSTER_EPROTO: this is no watch, or a line is too
 * long; the stream cannot be read any further. */
int watch_decoder_next(struct watch_decoder *d, struct watch_event *ret, struct muster_err *err);
