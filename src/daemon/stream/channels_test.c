/* The meaning of the messages of exec's channels. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "daemon/stream/channels.h"

/* Input that arrives in pieces is handed on in pieces; a piece with the first byte only has no
 * data. */
static void test_standard_input(void **state)
{
    (void)state;
    struct channel_reader reader = {0};
    struct channel_data data;
    char bytes[] = {CHANNEL_STDIN, 'a', 'b'};
    const struct websocket_piece pieces[] = {{WEBSOCKET_BINARY, true, false, bytes, 1},
                                             {WEBSOCKET_BINARY, false, true, bytes + 1, 2},
                                             {WEBSOCKET_BINARY, true, true, bytes, 3}};
    assert_false(channel_read(&reader, &pieces[0], &data));
    assert_true(channel_read(&reader, &pieces[1], &data));
    assert_int_equal(data.count, 2);
    assert_true(channel_read(&reader, &pieces[2], &data));
    assert_int_equal(data.channel, CHANNEL_STDIN);
    assert_memory_equal(data.bytes, "ab", 2);
}

static void test_a_size_in_pieces(void **state)
{
    (void)state;
    struct channel_reader reader = {0};
    struct channel_data data;
    char bytes[] = "\4{\"Width\":132,\"Height\":43}";
    size_t whole = sizeof bytes - 1;
    const struct websocket_piece first = {WEBSOCKET_TEXT, true, false, bytes, 9};
    const struct websocket_piece rest = {WEBSOCKET_TEXT, false, true, bytes + 9, whole - 9};
    assert_false(channel_read(&reader, &first, &data));
    assert_true(channel_read(&reader, &rest, &data));
    muster_auto(doc) json_t *size = channel_size(&data);
    assert_int_equal(doc_int(size, "rows", 0), 43);
    assert_int_equal(doc_int(size, "columns", 0), 132);
}

static void test_the_end_of_the_input(void **state)
{
    (void)state;
    struct channel_reader reader = {0};
    struct channel_data data;
    char bytes[] = {(char)CHANNEL_CLOSE, CHANNEL_STDIN};
    const struct websocket_piece piece = {WEBSOCKET_BINARY, true, true, bytes, 2};
    assert_true(channel_read(&reader, &piece, &data));
    assert_int_equal(data.channel, CHANNEL_CLOSE);
    assert_int_equal(data.bytes[0], CHANNEL_STDIN);
}

/* Messages that are too long, empty, or on a channel on which clients do not write are cut or
 * ignored. */
static void test_what_says_nothing(void **state)
{
    (void)state;
    struct channel_reader reader = {0};
    struct channel_data data;
    static char many[4096];
    memset(many, CHANNEL_RESIZE, sizeof many);
    const struct websocket_piece flood = {WEBSOCKET_BINARY, true, true, many, sizeof many};
    assert_true(channel_read(&reader, &flood, &data));
    assert_int_equal(data.count, CHANNEL_TEXT_MAX);
    assert_null(channel_size(&data));
    const struct websocket_piece empty = {WEBSOCKET_BINARY, true, true, many, 0};
    assert_false(channel_read(&reader, &empty, &data));
    char status[] = {CHANNEL_STATUS, '{'};
    const struct websocket_piece theirs = {WEBSOCKET_BINARY, true, true, status, 2};
    assert_false(channel_read(&reader, &theirs, &data));
}

static void test_how_a_command_ended(void **state)
{
    (void)state;
    muster_auto(doc) json_t *good = channel_status(0);
    muster_auto(doc) json_t *bad = channel_status(3);
    assert_string_equal(doc_text(good, "status", ""), "Success");
    assert_string_equal(doc_text(bad, "reason", ""), "NonZeroExitCode");
    assert_string_equal(doc_text(bad, "details.causes.0.message", ""), "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard_input),       cmocka_unit_test(test_a_size_in_pieces),
        cmocka_unit_test(test_the_end_of_the_input), cmocka_unit_test(test_what_says_nothing),
        cmocka_unit_test(test_how_a_command_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
