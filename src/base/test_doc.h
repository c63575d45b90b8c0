/* Documents in tests, as readable text. Tests only. */
#pragma once

#include "base/doc.h"
#include "base/test.h"

#include <stdlib.h>

/* JSON with ' for ", so that tables stay readable; asserts that it parses. New reference. */
static inline json_t *parse(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *doc = NULL;
    struct muster_err err = {0};
    if (doc_parse(copy, strlen(copy), &doc, &err) != 0) {
        fail_msg("%s in %s", err.text, text);
    }
    free(copy);
    return doc;
}
