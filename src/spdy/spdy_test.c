/* Frames that a client writes are read, in one piece and byte by byte; bytes that are not a frame
 * are refused; and a client can read the frames that we write. */
#include "base/testing/test.h"
#include "spdy/decoder.h"
#include "spdy/dictionary.h"
#include "spdy/encoder.h"

#include <stdio.h>
#define ZLIB_CONST
#include <zlib.h>

enum { ROOM = 1 << 16, TRACE_BYTES = 4096 };

/* A client: frames with compressed headers. */
struct client {
    z_stream zlib;
    char bytes[ROOM];
    size_t used;
};

static void put_number(char *into, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        into[i] = (char)(value >> (24 - 8 * i));
    }
}

static void client_init(struct client *c)
{
    unsigned char dictionary[SPDY_DICTIONARY_BYTES];
    *c = (struct client){0};
    spdy_dictionary(dictionary);
    assert_int_equal(deflateInit(&c->zlib, Z_BEST_COMPRESSION), Z_OK);
    assert_int_equal(deflateSetDictionary(&c->zlib, dictionary, sizeof dictionary), Z_OK);
}

static void client_done(struct client *c)
{
    (void)deflateEnd(&c->zlib);
}

static void add_number(struct client *c, uint32_t value)
{
    put_number(c->bytes + c->used, value);
    c->used += 4;
}

/* Appends a block of `count` bytes, compressed. */
static void add_packed(struct client *c, const char *plain, size_t count)
{
    c->zlib.next_in = (const unsigned char *)plain;
    c->zlib.avail_in = (uInt)count;
    c->zlib.next_out = (unsigned char *)c->bytes + c->used;
    c->zlib.avail_out = (uInt)(sizeof c->bytes - c->used);
    assert_int_equal(deflate(&c->zlib, Z_SYNC_FLUSH), Z_OK);
    c->used = sizeof c->bytes - c->zlib.avail_out;
}

/* Appends headers: name, value, name, value …, NULL. */
static void add_headers(struct client *c, const char *const *words)
{
    char plain[1024];
    size_t used = 4;
    uint32_t count = 0;
    for (; words[count]; count++) {
        put_number(plain + used, (uint32_t)strlen(words[count]));
        memcpy(plain + used + 4, words[count], strlen(words[count]));
        used += 4 + strlen(words[count]);
    }
    put_number(plain, count / 2);
    add_packed(c, plain, used);
}

static void end_frame(struct client *c, size_t begin)
{
    put_number(c->bytes + begin + 4, (uint32_t)(c->used - begin - SPDY_HEAD_BYTES) |
                                         (uint32_t)(unsigned char)c->bytes[begin + 4] << 24);
}

static void add_open(struct client *c, uint32_t stream, const char *const *words)
{
    size_t begin = c->used;
    add_number(c, 0x80030001);
    add_number(c, 0);
    add_number(c, stream);
    add_number(c, 0);
    c->bytes[c->used++] = 0;
    c->bytes[c->used++] = 0;
    add_headers(c, words);
    end_frame(c, begin);
}

static void add_data(struct client *c, uint32_t stream, const char *text, bool last)
{
    c->used += spdy_data_head(stream, strlen(text), last, c->bytes + c->used);
    memcpy(c->bytes + c->used, text, strlen(text));
    c->used += strlen(text);
}

/* ---- what was read, as text ---- */

static size_t trace(char *into, size_t used, const struct spdy_event *event)
{
    size_t room = TRACE_BYTES - used;
    char *at = into + used;
    int n = 0;
    switch (event->kind) {
    case SPDY_NOTHING: break;
    case SPDY_OPEN:
        n = snprintf(at, room, "open %u%s", event->stream, event->last ? " last" : "");
        for (size_t i = 0; i < event->headers->count; i++) {
            n += snprintf(at + n, room - (size_t)n, " %s=%s", event->headers->names[i],
                          event->headers->values[i]);
        }
        n += snprintf(at + n, room - (size_t)n, "\n");
        break;
    case SPDY_DATA: /* pieces of one frame are joined */
        n = snprintf(at, room, "%.*s%s", (int)event->count, event->bytes,
                     event->last ? " last\n" : "");
        break;
    case SPDY_RESET: n = snprintf(at, room, "reset %u\n", event->stream); break;
    case SPDY_PING: n = snprintf(at, room, "ping %u\n", event->stream); break;
    case SPDY_GOAWAY: n = snprintf(at, room, "goaway\n"); break;
    }
    return used + (size_t)n;
}

/* Returns the trace of reading in pieces of `step` bytes, ending with "refused" if they were
 * refused. */
static const char *read_all(const char *bytes, size_t count, size_t step)
{
    static char text[TRACE_BYTES];
    struct spdy_decoder *decoder = spdy_decoder_new();
    struct spdy_event event;
    size_t used = 0;
    text[0] = '\0';
    for (size_t at = 0; at < count;) {
        size_t piece = count - at < step ? count - at : step;
        long taken = spdy_decode(decoder, bytes + at, piece, &event);
        if (taken < 0) {
            (void)snprintf(text + used, sizeof text - used, "refused");
            break;
        }
        assert_in_range(taken, 1, piece);
        used = trace(text, used, &event);
        at += (size_t)taken;
    }
    spdy_decoder_free(decoder);
    return text;
}

static const char *const error_stream[] = {"streamtype", "error", "port", "8000",
                                           "requestid",  "0",     NULL};
static const char *const data_stream[] = {"Streamtype", "data", "port", "8000",
                                          "requestid",  "0",    NULL};

static void test_the_dictionary_is_everybodys(void **state)
{
    unsigned char dictionary[SPDY_DICTIONARY_BYTES];
    (void)state;
    spdy_dictionary(dictionary);
    assert_int_equal(adler32(adler32(0, NULL, 0), dictionary, sizeof dictionary), 0xe3c6a7c2);
}

/* The second block refers to the first one. */
static void test_a_connection_in_any_pieces(void **state)
{
    static const char expected[] = "open 1 streamtype=error port=8000 requestid=0\n"
                                   " last\n"
                                   "open 3 Streamtype=data port=8000 requestid=0\n"
                                   "hello, world last\n"
                                   "ping 1\nreset 3\ngoaway\n";
    struct client c;
    char frame[SPDY_FRAME_BYTES_MAX];
    (void)state;
    client_init(&c);
    add_open(&c, 1, error_stream);
    add_data(&c, 1, "", true);
    add_open(&c, 3, data_stream);
    add_data(&c, 3, "hello, ", false);
    add_data(&c, 3, "world", true);
    size_t n = spdy_ping(1, frame);
    memcpy(c.bytes + c.used, frame, n);
    c.used += n;
    n = spdy_reset(3, SPDY_PROTOCOL_ERROR, frame);
    memcpy(c.bytes + c.used, frame, n);
    c.used += n;
    memcpy(c.bytes + c.used, "\x80\x03\x00\x07\0\0\0\x08\0\0\0\x03\0\0\0\0", 16);
    c.used += 16;
    for (size_t step = 1; step < c.used; step++) {
        assert_string_equal(read_all(c.bytes, c.used, step), expected);
    }
    client_done(&c);
}

static void test_what_is_not_asked_is_passed_over(void **state)
{
    static const char bytes[] = "\x80\x03\x00\x04\0\0\0\x04\0\0\0\0"               /* SETTINGS */
                                "\x80\x03\x00\x09\0\0\0\x08\0\0\0\x01\0\0\x10\x00" /* window */
                                "\x80\x03\x00\x63\0\0\0\x01x"                      /* unknown */
                                "\x80\x03\x00\x06\0\0\0\x04\0\0\0\x07";
    (void)state;
    assert_string_equal(read_all(bytes, sizeof bytes - 1, sizeof bytes), "ping 7\n");
    assert_string_equal(read_all(bytes, sizeof bytes - 1, 1), "ping 7\n");
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
    } rows[] = {
        {"\x80\x02\x00\x06\0\0\0\x04\0\0\0\x07", 12},             /* version 2 */
        {"\x80\x03\x00\x06\0\0\0\x03\0\0\x07", 11},               /* a short PING */
        {"\x80\x03\x00\x01\0\xff\xff\xff", 8},                    /* 16 MiB of headers */
        {"\x80\x03\x00\x01\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0", 18}, /* no headers at all */
        {"\x80\x03\x00\x08\0\0\0\x08\0\0\0\x01rubb", 16},         /* not zlib */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(read_all(rows[i].bytes, rows[i].count, 1), "refused");
    }
}

/* A few bytes that expand to many; lengths that exceed the bytes. */
static void test_headers_that_lie(void **state)
{
    static const char zeros[SPDY_HEADER_BYTES_MAX];
    static const char beyond[] = "\0\0\0\x01\xff\xff\xff\xffxxxx";
    static const char many[] = "\0\1\0\0";
    const struct {
        const char *plain;
        size_t count;
    } rows[] = {{zeros, sizeof zeros},
                {beyond, sizeof beyond - 1},
                {many, sizeof many - 1},
                {"\0\0\0\0more", 8},
                {"\0\0", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client c;
        client_init(&c);
        add_number(&c, 0x80030008);
        add_number(&c, 0);
        add_number(&c, 1);
        add_packed(&c, rows[i].plain, rows[i].count);
        end_frame(&c, 0);
        assert_string_equal(read_all(c.bytes, c.used, c.used), "refused");
        client_done(&c);
    }
}

/* This is the inflater of a client, without our dictionary, because the stream does not ask for
 * one. */
static void test_replies_are_one_zlib_stream(void **state)
{
    struct spdy_encoder encoder = {0};
    z_stream zlib = {0};
    (void)state;
    assert_int_equal(inflateInit(&zlib), Z_OK);
    for (uint32_t stream = 1; stream < 9; stream += 2) {
        char frame[SPDY_FRAME_BYTES_MAX];
        unsigned char plain[16];
        size_t count = spdy_reply(&encoder, stream, frame);
        assert_memory_equal(frame, "\x80\x03\x00\x02\0\0\0", 7);
        assert_int_equal((unsigned char)frame[7], count - SPDY_HEAD_BYTES);
        assert_int_equal((unsigned char)frame[11], stream);
        zlib.next_in = (const unsigned char *)frame + 12;
        zlib.avail_in = (uInt)(count - 12);
        zlib.next_out = plain;
        zlib.avail_out = sizeof plain;
        assert_int_equal(inflate(&zlib, Z_SYNC_FLUSH), Z_OK);
        assert_int_equal(sizeof plain - zlib.avail_out, 4);
        assert_memory_equal(plain, "\0\0\0\0", 4);
        assert_memory_equal(frame + count - 5, "\0\0\0\xff\xff", 5); /* a flush, as Go needs it */
    }
    (void)inflateEnd(&zlib);
}

static void test_heads_of_data(void **state)
{
    char frame[SPDY_FRAME_BYTES_MAX];
    (void)state;
    assert_int_equal(spdy_data_head(5, 0x10203, true, frame), 8);
    assert_memory_equal(frame, "\0\0\0\x05\x01\x01\x02\x03", 8);
    assert_int_equal(spdy_window(5, 0x10203, frame), 16);
    assert_memory_equal(frame, "\x80\x03\0\x09\0\0\0\x08\0\0\0\x05\0\x01\x02\x03", 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_dictionary_is_everybodys),
        cmocka_unit_test(test_a_connection_in_any_pieces),
        cmocka_unit_test(test_what_is_not_asked_is_passed_over),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_headers_that_lie),
        cmocka_unit_test(test_replies_are_one_zlib_stream),
        cmocka_unit_test(test_heads_of_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
