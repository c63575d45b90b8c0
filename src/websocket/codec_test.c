/* The examples of RFC 6455 section 5.7, and bytes that are not a frame of a client. */
#include "base/testing/test.h"
#include "websocket/codec.h"

#include <string.h>

/* A masked text frame that says "Hello". */
static const unsigned char hello[] = {0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d,
                                      0x7f, 0x9f, 0x4d, 0x51, 0x58};

static void decodes(struct websocket_decoder *d, const unsigned char *bytes, size_t count,
                    struct websocket_piece *ret, char *buffer)
{
    memcpy(buffer, bytes, count);
    assert_int_equal(websocket_decode(d, buffer, count, ret), (long)count);
}

static void test_a_message_in_one_frame(void **state)
{
    (void)state;
    struct websocket_decoder d = {0};
    struct websocket_piece piece;
    char buffer[64];
    decodes(&d, hello, sizeof hello, &piece, buffer);
    assert_true(piece.first && piece.last);
    assert_int_equal(piece.count, 5);
    assert_memory_equal(piece.bytes, "Hello", 5);
}

/* The pieces together are the message, however its bytes arrive. */
static void test_a_message_that_comes_byte_by_byte(void **state)
{
    (void)state;
    struct websocket_decoder d = {0};
    char held[64], text[64] = "";
    size_t used = 0, written = 0, firsts = 0, lasts = 0;
    for (size_t i = 0; i < sizeof hello; i++) {
        struct websocket_piece piece;
        held[used++] = (char)hello[i];
        long taken = websocket_decode(&d, held, used, &piece);
        assert_true(taken >= 0);
        if (taken > 0) {
            memcpy(text + written, piece.bytes, piece.count);
            written += piece.count;
            firsts += piece.first;
            lasts += piece.last;
            used -= (size_t)taken;
            memmove(held, held + taken, used);
        }
    }
    assert_string_equal(text, "Hello");
    assert_int_equal(firsts, 1);
    assert_int_equal(lasts, 1);
}

/* "Hel" and "lo" with a ping between them; a mask of zeros. */
static void test_a_message_in_fragments(void **state)
{
    (void)state;
    static const unsigned char frames[] = {0x01, 0x83, 0, 0, 0, 0, 'H', 'e', 'l', /* text */
                                           0x89, 0x81, 0, 0, 0, 0, '?',           /* ping */
                                           0x80, 0x82, 0, 0, 0, 0, 'l', 'o'};
    struct websocket_decoder d = {0};
    struct websocket_piece piece;
    char buffer[64];
    memcpy(buffer, frames, sizeof frames);
    assert_int_equal(websocket_decode(&d, buffer, sizeof frames, &piece), 9);
    assert_true(piece.first && !piece.last && piece.count == 3);
    assert_int_equal(websocket_decode(&d, buffer + 9, sizeof frames - 9, &piece), 7);
    assert_int_equal(piece.opcode, WEBSOCKET_PING);
    assert_int_equal(websocket_decode(&d, buffer + 16, sizeof frames - 16, &piece), 8);
    assert_true(!piece.first && piece.last && piece.count == 2);
    assert_memory_equal(piece.bytes, "lo", 2);
}

static void test_what_is_no_frame_of_a_client(void **state)
{
    (void)state;
    static const unsigned char wrong[][14] = {
        {0x81, 0x05, 'H', 'e', 'l', 'l', 'o'},               /* no mask */
        {0xc1, 0x85},                                        /* a reserved bit */
        {0x83, 0x80},                                        /* an opcode without a meaning */
        {0x80, 0x80},                                        /* a continuation without a message */
        {0x09, 0x80},                                        /* a ping in fragments */
        {0x89, 0xfe, 0, 200},                                /* a long ping */
        {0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}, /* 2^63 bytes and more */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct websocket_decoder d = {0};
        struct websocket_piece piece;
        char buffer[14];
        memcpy(buffer, wrong[i], sizeof buffer);
        assert_int_equal(websocket_decode(&d, buffer, sizeof buffer, &piece), -1);
    }
}

static void test_lengths_of_a_head(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        unsigned char head[WEBSOCKET_HEAD_BYTES_MAX];
        size_t length;
    } cases[] = {
        {5, {0x82, 5}, 2},
        {125, {0x82, 125}, 2},
        {126, {0x82, 126, 0, 126}, 4},
        {65535, {0x82, 126, 0xff, 0xff}, 4},
        {65536, {0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char head[WEBSOCKET_HEAD_BYTES_MAX];
        assert_int_equal(websocket_head(WEBSOCKET_BINARY, cases[i].count, head), cases[i].length);
        assert_memory_equal(head, cases[i].head, cases[i].length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_in_one_frame),
        cmocka_unit_test(test_a_message_that_comes_byte_by_byte),
        cmocka_unit_test(test_a_message_in_fragments),
        cmocka_unit_test(test_what_is_no_frame_of_a_client),
        cmocka_unit_test(test_lengths_of_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
