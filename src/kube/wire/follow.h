/* A watch as a machine: which request it makes next, and what an event or an end means for it.
 *
 *     STREAM  list and watch in one answer, where the server can do that
 *     PAGE    pages of the list, else
 *     WATCH   what comes after a version
 *
 *     STREAM, PAGE -> complete -> WATCH -> cut -> WATCH
 *                                 WATCH -> 410 -> STREAM or PAGE
 *
 * Layer: services, room kube/wire. Pure. Ownership: watch_follow_done.
 */
#pragma once

#include "kube/wire/request.h"
#include "kube/wire/watch_decoder.h"

enum { FOLLOW_VERSION_BYTES = 32, FOLLOW_SHORT_MS = 5000 };

struct watch_follow {
    enum wire_follow how;
    bool began;      /* the listing that is under way was told */
    bool no_streams; /* the server refused WIRE_STREAM */
    int failures;    /* in a row */
    char version[FOLLOW_VERSION_BYTES];
    char *next; /* the page after this one; NULL: the first */
};

/* What its owner is told. */
enum follow_news {
    FOLLOW_NOTHING,
    FOLLOW_OBJECT,
    FOLLOW_GONE,
    FOLLOW_SYNCED,
    FOLLOW_BOOKMARK,
    FOLLOW_BROKEN, /* the answer is of no use any more: end it */
};

void watch_follow_init(struct watch_follow *f);
void watch_follow_done(struct watch_follow *f);

/* What wire_follow_path wants as `from`. */
const char *watch_follow_from(const struct watch_follow *f);

/* True once for each listing, before anything else of it is told. */
bool watch_follow_begins(struct watch_follow *f);

enum follow_news watch_follow_event(struct watch_follow *f, const struct watch_event *event);

/* Called after the objects of a page were told: FOLLOW_SYNCED with the last one. MUSTER_ENOMEM. */
int watch_follow_page(struct watch_follow *f, const json_t *list, enum follow_news *ret);

/* The request ended. `http_status` 0: no server answered. `lasted_ms`: how long it did. True: that
 * was a failure, and f->failures says how many in a row; false: go on at once. */
bool watch_follow_end(struct watch_follow *f, long http_status, bool complete, int64_t lasted_ms);
