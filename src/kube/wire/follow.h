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
    bool began;      /* the owner knows that the present listing has begun */
    bool no_streams; /* the server refused WIRE_STREAM */
    int failures;    /* in a row */
    char version[FOLLOW_VERSION_BYTES];
    char *next; /* token of the next page; NULL: the first page */
};

/* What the owner is told. */
enum follow_news {
    FOLLOW_NOTHING,
    FOLLOW_OBJECT,
    FOLLOW_GONE,
    FOLLOW_SYNCED,
    FOLLOW_BOOKMARK,
    FOLLOW_BROKEN, /* the answer cannot be used any more: end it */
};

void watch_follow_init(struct watch_follow *f);
void watch_follow_done(struct watch_follow *f);

/* Returns the `from` for wire_follow_path. */
const char *watch_follow_from(const struct watch_follow *f);

/* Returns true once for each listing, before anything else of it is reported. */
bool watch_follow_begins(struct watch_follow *f);

enum follow_news watch_follow_event(struct watch_follow *f, const struct watch_event *event);

/* Called after the objects of a page were reported; gives FOLLOW_SYNCED after the last page.
 * MUSTER_ENOMEM. */
int watch_follow_page(struct watch_follow *f, const json_t *list, enum follow_news *ret);

/* The request has ended. `http_status` 0: no server answered. `lasted_ms`: its duration. Returns
 * true if that was a failure, of which f->failures counts those in a row; false: continue at
 * once. */
bool watch_follow_end(struct watch_follow *f, long http_status, bool complete, int64_t lasted_ms);
