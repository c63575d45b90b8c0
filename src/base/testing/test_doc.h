/* Documents in tests, as readable text. Tests only. */
#pragma once

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/yaml/yaml.h"

#include <stdlib.h>

/* Parses JSON with ' for ", so that tables stay readable; asserts that it parses. New reference. */
static inline json_t *parse(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *doc = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (doc_parse(copy, strlen(copy), &doc, &err) != 0) {
        fail_msg("%s in %s", err.text, text);
    }
    free(copy);
    return doc;
}

/* Parses one YAML document, or JSON with its quotes. New reference. */
static inline json_t *parse_yaml(const char *text)
{
    struct yaml_stream stream = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (yaml_load(text, strlen(text), &yaml_limits_default, &stream, &err) < 0) {
        fail_msg("%s in %s", err.text, text);
    }
    assert_int_equal(stream.fault_count, 0);
    assert_int_equal(stream.document_count, 1);
    json_t *doc = json_incref(stream.documents[0].doc);
    yaml_done(&stream);
    return doc;
}
