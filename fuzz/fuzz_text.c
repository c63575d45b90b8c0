/* The small languages: shell words, times, quantities, selectors, protobuf, cut text.
 *
 * The first byte chooses among them. Where one function writes what another reads, they must agree.
 */
#include "api/protobuf/protobuf.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/quantity.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "base/time/timestamp.h"
#include "invariant.h"
#include "pod/resolve_env.h"
#include "store/selector.h"

#include <string.h>

enum { QUOTED_BYTES_MAX = 1 << 20 };

/* Returns the text quoted, so that a shell reads it as one word. */
static char *quote(const char *text)
{
    struct buf out;
    buf_init(&out, QUOTED_BYTES_MAX);
    buf_text(&out, "'");
    for (const char *p = text; *p; p++) {
        buf_text(&out, *p == '\'' ? "'\\''" : (char[]){*p, '\0'});
    }
    buf_text(&out, "'");
    return buf_steal(&out);
}

static void try_words(const char *text)
{
    char **words = NULL;
    if (shell_split(text, &words, &(struct muster_err)MUSTER_ERR_INIT) < 0) {
        return;
    }
    for (char **word = words; *word; word++) {
        muster_auto(free) char *quoted = quote(*word);
        char **again = NULL;
        int r = shell_split(quoted, &again, NULL);
        invariant(r == 0 && again[0] && !again[1] && strcmp(again[0], *word) == 0,
                  "a quoted word is read as it was", quoted);
        shell_free(again);
    }
    shell_free(words);
}

static void try_stamp(const char *text)
{
    char shown[TIMESTAMP_BYTES];
    int64_t at = timestamp_read(text);
    if (at != TIMESTAMP_NONE) {
        invariant(timestamp_read(timestamp_text(at, shown)) == at,
                  "a time is read as it was written", shown);
    }
}

static void try_quantity(const char *text)
{
    invariant(quantity_milli(text) >= -1, "a quantity is not negative", text);
}

static void try_selector(const char *text)
{
    static const char object_text[] =
        "{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"b\",\"c/d\":\"\"}},"
        "\"status\":{\"phase\":\"Running\"}}";
    muster_auto(doc) json_t *object = NULL;
    struct selector selector;
    invariant(doc_parse(object_text, sizeof object_text - 1, &object, NULL) == 0, "it is JSON", "");
    if (selector_parse_labels(text, &selector, &(struct muster_err)MUSTER_ERR_INIT) == 0) {
        (void)selector_match_labels(&selector, object);
        selector_done(&selector);
    }
    if (selector_parse_fields(text, &selector, &(struct muster_err)MUSTER_ERR_INIT) == 0) {
        (void)selector_match_fields(&selector, object);
        selector_done(&selector);
    }
}

static void try_cut(const char *text)
{
    char room[16];
    size_t length = strlen(text);
    for (size_t max = 0; max <= length && max < 40; max++) {
        invariant(text_cut(text, max) <= max, "what is cut is not longer", text);
    }
    text_copy(room, sizeof room, text);
    invariant(strncmp(room, text, strlen(room)) == 0, "a copy begins like the text", text);
}

static void try_protobuf(const uint8_t *data, size_t size)
{
    json_t *object = NULL;
    if (protobuf_read((const char *)data, size, &object, &(struct muster_err)MUSTER_ERR_INIT) ==
        0) {
        invariant(json_is_object(object), "a message is an object", "");
        json_decref(object);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *) = {try_words, try_stamp, try_quantity,
                                                    try_selector, try_cut};
    enum { READERS = sizeof readers / sizeof readers[0] };
    if (size == 0) {
        return 0;
    }
    size_t which = data[0] % (READERS + 1);
    if (which == READERS) {
        try_protobuf(data + 1, size - 1);
        return 0;
    }
    muster_auto(free) char *text = strndup((const char *)data + 1, size - 1);
    readers[which](text);
    return 0;
}
