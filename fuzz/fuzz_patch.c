/* Patches of all three kinds, the patch that `apply` sends, and the owners of fields in server-side
 * apply. Input: three lines of JSON: the document, the patch, the document as it was applied last.
 *
 * No argument is changed, and a merge patch applied twice has the same result as once. An owner may
 * apply the same again, which changes nothing; others cannot change its fields without notice. */
#include "api/patch/fields.h"
#include "api/patch/merge.h"
#include "api/patch/owners.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/submit/last_applied.h"
#include "invariant.h"

#include <string.h>

enum { LINES = 3, PROBLEMS_MAX = 8 };

typedef int patch_fn(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err);

static void try_patch(patch_fn *patch, const json_t *doc, const json_t *change, bool again)
{
    muster_auto(doc) json_t *doc_before = json_deep_copy(doc);
    muster_auto(doc) json_t *change_before = json_deep_copy(change);
    muster_auto(doc) json_t *once = NULL;
    muster_auto(doc) json_t *twice = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = patch(doc, change, &once, &err);
    invariant(json_equal(doc, doc_before) && json_equal(change, change_before),
              "what was passed in stays", "");
    invariant(r == 0 ? once != NULL : *err.text, "there is a result or a sentence", "");
    if (r == 0 && again) {
        invariant(patch(once, change, &twice, NULL) == 0 && json_equal(once, twice),
                  "twice is as once", "");
    }
}

/* ---- owners of fields ---- */

static const struct owner one = {"one", "Apply", "", "v1", "2026-01-01T00:00:00Z"};
static const struct owner two = {"two", "Apply", "", "v1", "2026-01-01T00:00:01Z"};
static const struct owner edit = {"edit", "Update", "", "v1", "2026-01-01T00:00:02Z"};

/* Applies an object to the document for `owner`; returns NULL if there were conflicts. */
static json_t *apply(const json_t *before, const json_t *applied, const struct owner *owner,
                     bool force)
{
    muster_auto(doc) json_t *before_copy = json_deep_copy(before);
    muster_auto(doc) json_t *applied_copy = json_deep_copy(applied);
    json_t *after = NULL;
    struct job_problems problems;
    struct muster_err err = MUSTER_ERR_INIT;
    job_problems_init(&problems, PROBLEMS_MAX);
    int r = owners_apply(before, applied, owner, force, &problems, &after, &err);
    invariant(json_equal(before, before_copy) && json_equal(applied, applied_copy),
              "what was passed in stays", "");
    invariant(r == 0 ? after != NULL : r == MUSTER_ECONFLICT && !force && *err.text,
              "it is applied, or others own it", err.text);
    invariant((r == 0) == (problems.errors == 0), "each conflict is named", err.text);
    job_problems_done(&problems);
    return after;
}

static void invariant_owner(const json_t *doc, const struct owner *owner, const json_t *fields)
{
    size_t i;
    json_t *entry;
    json_array_foreach (doc_at(doc, "metadata.managedFields"), i, entry) {
        muster_auto(doc) json_t *both = fields_in_both(doc_at(entry, "fieldsV1"), fields);
        invariant(strcmp(doc_text(entry, "manager", ""), owner->manager) == 0 ||
                      json_object_size(both) == 0,
                  "what was changed is nobody else's", owner->manager);
    }
}

static void update(const json_t *before, const json_t *patch)
{
    json_t *after = NULL;
    if (merge_patch(before, patch, &after, NULL) == 0 && json_is_object(after)) {
        muster_auto(doc) json_t *changed = fields_differing(after, before);
        invariant(owners_update(before, after, &edit) == 0, "an update is noted", "");
        invariant_owner(after, &edit, changed);
    }
    json_decref(after);
}

/* `one` creates the document, `two` applies to it, `one` takes its fields back, somebody edits. */
static void try_owners(const json_t *doc, const json_t *applied, const json_t *other)
{
    muster_auto(doc) json_t *begun = json_deep_copy(doc);
    json_object_del(doc_at(begun, "metadata"), "managedFields");
    invariant(owners_begin(begun, &one) == 0, "a new object has its owner", "");
    json_decref(apply(begun, applied, &two, false));
    muster_auto(doc) json_t *forced = apply(begun, applied, &two, true);
    muster_auto(doc) json_t *said = fields_without_nulls(applied);
    muster_auto(doc) json_t *changed = fields_not_covered(said, begun);
    invariant_owner(forced, &two, changed);
    muster_auto(doc) json_t *again = apply(forced, applied, &two, false);
    invariant(json_equal(forced, again), "twice is as once", "");
    json_decref(apply(forced, doc, &one, true));
    update(forced, other ? other : doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *docs[LINES] = {NULL};
    const char *at = (const char *)data;
    const char *end = at + size;
    for (size_t i = 0; i < LINES && at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        (void)doc_parse(at, (size_t)(stop - at), &docs[i], NULL);
        at = stop < end ? stop + 1 : end;
    }
    if (docs[0] && docs[1]) {
        try_patch(merge_patch, docs[0], docs[1], true);
        try_patch(json_patch, docs[0], docs[1], false);
        try_patch(strategic_patch, docs[0], docs[1], false);
        json_decref(last_applied_patch(docs[2], docs[0], docs[1]));
        if (json_is_object(docs[0]) && json_is_object(docs[1])) {
            try_owners(docs[0], docs[1], docs[2]);
        }
    }
    for (size_t i = 0; i < LINES; i++) {
        json_decref(docs[i]);
    }
    return 0;
}
