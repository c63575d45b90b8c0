/* Patches of all three kinds, and what `apply` sends. Input: three lines of JSON: the document, the
 * patch, the document as it was applied last.
 *
 * Nothing that was passed in changes, and a merge patch done twice does no more than once. */
#include "api/patch/merge.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/submit/last_applied.h"
#include "invariant.h"

#include <string.h>

enum { LINES = 3 };

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
    }
    for (size_t i = 0; i < LINES; i++) {
        json_decref(docs[i]);
    }
    return 0;
}
