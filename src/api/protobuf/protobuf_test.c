/* Checks the reader with the bytes that kubectl sends for `kubectl create secret generic s
 * --from-literal=a=hi`, with the bytes of other clients, and with damaged bytes. */
#include "api/protobuf/protobuf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"

#include <stdio.h>
#include <stdlib.h>

#define SECRET                                                                                     \
    "k8s\0"                                                                                        \
    "\x0a\x0c\x0a\x02v1\x12\x06Secret"                                                             \
    "\x12\x2b\x0a\x16\x0a\x01s\x1a\x07"                                                            \
    "default\x5a\x08\x0a\x01l\x12\x03"                                                             \
    "red\x12\x07\x0a\x01"                                                                          \
    "a\x12\x02hi\x1a\x06Opaque\x28\x01"

static const char secret[] = SECRET;

static void a_secret_is_read(void **state)
{
    (void)state;
    muster_auto(doc) json_t *object = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (protobuf_read(secret, sizeof secret - 1, &object, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(doc_text(object, "kind", ""), "Secret");
    assert_string_equal(doc_text(object, "apiVersion", ""), "v1");
    assert_string_equal(doc_text(object, "metadata.name", ""), "s");
    assert_string_equal(doc_text(object, "metadata.namespace", ""), "default");
    assert_string_equal(doc_text(object, "metadata.labels.l", ""), "red");
    assert_string_equal(doc_text(object, "data.a", ""), "aGk=");
    assert_string_equal(doc_text(object, "type", ""), "Opaque");
    assert_true(doc_bool(object, "immutable", false));
}

/* client-go sends these bytes for Delete with a grace period of 0, a uid and a dry run. */
static void delete_options_are_read(void **state)
{
    static const char bytes[] = "k8s\0"
                                "\x0a\x13\x0a\x02v1\x12\x0d"
                                "DeleteOptions"
                                "\x12\x19\x08\x00\x12\x05\x0a\x03uid\x22\x0a"
                                "Foreground"
                                "\x2a\x02xy\x1a\x00\x22\x00";
    (void)state;
    muster_auto(doc) json_t *object = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (protobuf_read(bytes, sizeof bytes - 1, &object, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(doc_int(object, "gracePeriodSeconds", -1), 0);
    assert_string_equal(doc_text(object, "preconditions.uid", ""), "uid");
    assert_string_equal(doc_text(object, "propagationPolicy", ""), "Foreground");
    assert_string_equal(doc_text(object, "dryRun.0", ""), "xy");
}

static char *read_data(const char *name, const char *ending, size_t *ret_bytes)
{
    char path[512], *text = NULL;
    const char *source = getenv("MUSTER_SOURCE");
    struct muster_err err = MUSTER_ERR_INIT;
    snprintf(path, sizeof path, "%s/test/data/protobuf/%s.%s", source ? source : ".", name, ending);
    if (file_read(path, 1 << 20, &text, ret_bytes, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return text;
}

/* An object that a client in Go sends is read as the JSON that the same client writes for it. */
static void what_go_sends_is_what_it_means(void **state)
{
    static const char *const names[] = {"claim", "event", "pod", "service"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t count = 0, sent_count = 0;
        muster_auto(free) char *text = read_data(names[i], "json", &count);
        muster_auto(free) char *sent = read_data(names[i], "protobuf", &sent_count);
        muster_auto(doc) json_t *meant = NULL;
        muster_auto(doc) json_t *object = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(doc_parse(text, count, &meant, &err), 0);
        if (protobuf_read(sent, sent_count, &object, &err) < 0) {
            fail_msg("%s: %s", names[i], err.text);
        }
        muster_auto(free) char *shown = doc_print_pretty(object);
        if (!json_equal(object, meant)) {
            fail_msg("%s: %s", names[i], shown);
        }
    }
}

/* The bytes are cut anywhere, or any byte is changed: they are then read or refused, and the reader
 * never reads beyond their end. */
static void broken_bytes_are_refused(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof secret - 1; length++) {
        char *exact = malloc(length + 1);
        json_t *object = NULL;
        memcpy(exact, secret, length);
        exact = realloc(exact, length ? length : 1);
        if (protobuf_read(exact, length, &object, NULL) == 0) {
            json_decref(object);
        }
        free(exact);
    }
    for (size_t i = 0; i < sizeof secret - 1; i++) {
        for (int value = 0; value < 256; value += 5) {
            char copy[sizeof secret];
            json_t *object = NULL;
            memcpy(copy, secret, sizeof copy);
            copy[i] = (char)value;
            if (protobuf_read(copy, sizeof copy - 1, &object, NULL) == 0) {
                json_decref(object);
            }
        }
    }
    json_t *object = NULL;
    assert_int_equal(protobuf_read("{}", 2, &object, NULL), MUSTER_EINVAL);
    static const char job[] = "k8s\0\x0a\x0e\x0a\x08"
                              "batch/v1\x12\x02Jo";
    assert_int_equal(protobuf_read(job, sizeof job - 1, &object, NULL), MUSTER_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_read),
        cmocka_unit_test(delete_options_are_read),
        cmocka_unit_test(what_go_sends_is_what_it_means),
        cmocka_unit_test(broken_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
