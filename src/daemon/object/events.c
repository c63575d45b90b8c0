/* See events.h. */
#include "daemon/object/events.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

static int count_again(struct store *store, const json_t *old, int64_t now_unix_ms,
                       struct muster_err *err)
{
    muster_auto(doc) json_t *event = json_copy((json_t *)old);
    muster_auto(doc) json_t *again = event_count_again(old, now_unix_ms);
    if (!event || !again || json_object_update(event, again) < 0) {
        return err_no_memory(err);
    }
    return store_update(store, "events", event, STORE_ALL, NULL, err);
}

int event_record(struct store *store, const struct event_note *note, struct muster_err *err)
{
    muster_auto(free) char *name = event_name(note);
    if (!name) {
        return err_no_memory(err);
    }
    const struct store_key key = {"events", doc_text(note->about, "metadata.namespace", "default"),
                                  name};
    muster_auto(doc) json_t *old = NULL;
    int r = store_get(store, key, &old, err);
    if (r != MUSTER_ENOENT) {
        return r < 0 ? r : count_again(store, old, note->now_unix_ms, err);
    }
    muster_auto(doc) json_t *event = event_make(note, name);
    if (!event) {
        return err_no_memory(err);
    }
    return store_create(store, "events", event, NULL, err);
}
