/* See wire/follow.h. */
#include "kube/wire/follow.h"

#include "base/doc.h"

#include <stdio.h>
#include <stdlib.h>

enum { HTTP_GONE = 410 };

void watch_follow_init(struct watch_follow *f)
{
    *f = (struct watch_follow){.how = WIRE_STREAM};
}

void watch_follow_done(struct watch_follow *f)
{
    free(f->next);
    f->next = NULL;
}

const char *watch_follow_from(const struct watch_follow *f)
{
    return f->how == WIRE_WATCH ? f->version : f->next ? f->next : "";
}

bool watch_follow_begins(struct watch_follow *f)
{
    bool begins = f->how != WIRE_WATCH && !f->began;
    f->began = f->began || begins;
    return begins;
}

static void list_again(struct watch_follow *f)
{
    f->how = f->no_streams ? WIRE_PAGE : WIRE_STREAM;
    f->began = false;
    free(f->next);
    f->next = NULL;
}

static void keep_version(struct watch_follow *f, const char *version)
{
    if (*version) {
        snprintf(f->version, sizeof f->version, "%s", version);
    }
}

static enum follow_news refused(struct watch_follow *f, const json_t *status)
{
    if (doc_int(status, "code", 0) == HTTP_GONE) {
        list_again(f);
    }
    f->failures++;
    return FOLLOW_BROKEN;
}

enum follow_news watch_follow_event(struct watch_follow *f, const struct watch_event *event)
{
    if (event->type == WATCH_ERROR) {
        return refused(f, event->object);
    }
    if (f->how == WIRE_STREAM && event->initial_end) {
        f->how = WIRE_WATCH;
        keep_version(f, event->version);
        f->failures = 0;
        return FOLLOW_SYNCED;
    }
    if (f->how == WIRE_STREAM) {
        /* A bookmark before the end of the listing means nothing yet. */
        return event->type == WATCH_BOOKMARK  ? FOLLOW_NOTHING
               : event->type == WATCH_DELETED ? FOLLOW_GONE
                                              : FOLLOW_OBJECT;
    }
    keep_version(f, event->version);
    f->failures = 0;
    return event->type == WATCH_BOOKMARK  ? FOLLOW_BOOKMARK
           : event->type == WATCH_DELETED ? FOLLOW_GONE
                                          : FOLLOW_OBJECT;
}

int watch_follow_page(struct watch_follow *f, const json_t *list, enum follow_news *ret)
{
    const char *next = doc_text(list, "metadata.continue", "");
    free(f->next);
    f->next = NULL;
    if (*next) {
        f->next = strdup(next);
        *ret = FOLLOW_NOTHING;
        return f->next ? 0 : MUSTER_ENOMEM;
    }
    f->how = WIRE_WATCH;
    keep_version(f, doc_text(list, "metadata.resourceVersion", "0"));
    f->failures = 0;
    *ret = FOLLOW_SYNCED;
    return 0;
}

/* Whether the server does not support streamed lists: then it refuses their parameters. An answer
 * that breaks off proves nothing. */
static bool refuses_streams(const struct watch_follow *f, long http_status)
{
    return f->how == WIRE_STREAM && (http_status == 400 || http_status == 422);
}

bool watch_follow_end(struct watch_follow *f, long http_status, bool complete, int64_t lasted_ms)
{
    bool refused = http_status >= 300;
    if (refuses_streams(f, http_status)) {
        f->no_streams = true;
        list_again(f);
        return false;
    }
    if (http_status == HTTP_GONE) {
        list_again(f);
    }
    if (f->how == WIRE_STREAM) {
        list_again(f); /* the listing is incomplete: begin it again */
    }
    if (!refused && complete && (f->how == WIRE_PAGE || lasted_ms >= FOLLOW_SHORT_MS)) {
        return false;
    }
    f->failures++;
    return true;
}
