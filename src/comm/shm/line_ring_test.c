/* Checks streams of lines: what is published, how much fits, the end of the memory, and two
 * threads. */
#include "comm/shm/line_ring.h"

#include "base/testing/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static struct stream_ring ring;
static struct line_ring_end in, out;

static int begin(void **state)
{
    (void)state;
    memset(&ring, 0, sizeof ring);
    in = out = line_ring_start(STREAM_BYTES);
    return 0;
}

/* Returns the byte at this place of a stream; the bytes of lines and of blocks differ. */
static char byte_at(size_t at)
{
    return (char)(at * 31 + at / SEGMENT_LINE * 7 + at / LINE_RING_BLOCK_BYTES * 3);
}

static void fill(char *data, size_t start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = byte_at(start + i);
    }
}

static bool is_filled(const char *data, size_t start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != byte_at(start + i)) {
            return false;
        }
    }
    return true;
}

static const char header[LINE_RING_HEADER_BYTES + 1] = "sixteen bytes ..";

static void what_fits_is_taken_as_a_whole(void **state)
{
    (void)state;
    static const char data[STREAM_BYTES];
    static const size_t most = STREAM_BYTES - 2 * SEGMENT_LINE; /* without it and the next header */
    assert_true(line_ring_fits(&ring, &out, 0));
    assert_true(line_ring_fits(&ring, &out, most));
    assert_false(line_ring_fits(&ring, &out, most + 1));
    assert_true(line_ring_begin(&ring, &out, "sixteen bytes .."));
    for (size_t done = 0; done < most;) {
        size_t n = line_ring_put(&ring, &out, data, most - done);
        assert_true(n > 0);
        done += n;
    }
    line_ring_publish(&ring, &out, true);
    assert_false(line_ring_fits(&ring, &out, 0));
}

static void nothing_comes_before_it_is_published(void **state)
{
    (void)state;
    char put[100], got[100] = {0}, read[LINE_RING_HEADER_BYTES];
    fill(put, 0, sizeof put);
    assert_true(line_ring_begin(&ring, &out, header));
    assert_int_equal(line_ring_put(&ring, &out, put, sizeof put), sizeof put);
    assert_false(line_ring_take_header(&ring, &in, read));
    line_ring_publish(&ring, &out, true);
    assert_int_equal(ring.written, 0); /* the header says how much was published */
    assert_true(line_ring_take_header(&ring, &in, read));
    assert_memory_equal(read, header, sizeof read);
    assert_int_equal(line_ring_get(&ring, &in, got, sizeof got, true), sizeof got);
    assert_true(is_filled(got, 0, sizeof got));
    line_ring_finish(&ring, &in);
    assert_int_equal(in.at, out.at);
    assert_int_equal(in.at % SEGMENT_LINE, 0);
    assert_false(line_ring_take_header(&ring, &in, read));
}

static void a_message_without_data(void **state)
{
    (void)state;
    char read[LINE_RING_HEADER_BYTES];
    for (int i = 0; i < 3 * STREAM_BYTES / SEGMENT_LINE; i++) {
        assert_true(line_ring_begin(&ring, &out, header));
        line_ring_publish(&ring, &out, true);
        assert_true(line_ring_take_header(&ring, &in, read));
        line_ring_finish(&ring, &in);
    }
    assert_false(line_ring_take_header(&ring, &in, read));
}

/* Old data in the place of the next header does not count as a header, even if every word of it
 * looks like one. */
static void old_data_is_no_header(void **state)
{
    (void)state;
    static uint64_t data[STREAM_BYTES / sizeof(uint64_t)];
    char read[LINE_RING_HEADER_BYTES], byte;
    for (size_t lines = 1; lines < 4; lines++) {
        begin(NULL);
        size_t bytes = STREAM_BYTES - (lines + 2) * SEGMENT_LINE;
        /* Fills each line with the stamp that its header would have one lap later. */
        for (size_t i = 0; i < bytes / sizeof *data; i++) {
            data[i] = STREAM_BYTES + (i / 8 + 1) * SEGMENT_LINE + 1;
        }
        assert_true(line_ring_begin(&ring, &out, header));
        for (size_t done = 0; done < bytes;) {
            done += line_ring_put(&ring, &out, (char *)data + done, bytes - done);
        }
        line_ring_publish(&ring, &out, true);
        assert_true(line_ring_take_header(&ring, &in, read));
        for (size_t done = 0; done < bytes;) {
            done += line_ring_get(&ring, &in, (char *)data + done, bytes - done, true);
        }
        line_ring_finish(&ring, &in);
        for (size_t i = 0; i < STREAM_BYTES / SEGMENT_LINE; i++) {
            assert_false(line_ring_take_header(&ring, &in, read));
            assert_true(line_ring_begin(&ring, &out, header));
            assert_int_equal(line_ring_put(&ring, &out, "x", 1), 1);
            line_ring_publish(&ring, &out, true);
            assert_true(line_ring_take_header(&ring, &in, read));
            assert_int_equal(line_ring_get(&ring, &in, &byte, 1, true), 1);
            line_ring_finish(&ring, &in);
        }
    }
}

/* The ring takes data until it is full, except for one line, which is cleared after a message. */
static void a_full_ring_takes_no_more(void **state)
{
    (void)state;
    static char block[LINE_RING_BLOCK_BYTES];
    char read[LINE_RING_HEADER_BYTES];
    size_t sum = SEGMENT_LINE, n;
    assert_true(line_ring_begin(&ring, &out, header));
    while ((n = line_ring_put(&ring, &out, block, sizeof block)) > 0) {
        line_ring_publish(&ring, &out, false);
        sum += n;
    }
    assert_int_equal(sum, STREAM_BYTES - SEGMENT_LINE);
    assert_true(line_ring_take_header(&ring, &in, read));
    assert_int_equal(line_ring_get(&ring, &in, block, SEGMENT_LINE, true), SEGMENT_LINE);
    /* The line of the header is free again, too. */
    assert_int_equal(line_ring_put(&ring, &out, block, sizeof block), SEGMENT_LINE);
    assert_int_equal(line_ring_put(&ring, &out, block, sizeof block), SEGMENT_LINE);
    line_ring_publish(&ring, &out, false);
    /* A line that was read only in part is not free yet; a writer that has looked looks again. */
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 0);
    assert_int_equal(line_ring_get(&ring, &in, block, 10, true), 10);
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 0);
    assert_int_equal(line_ring_get(&ring, &in, block, SEGMENT_LINE - 10, true), SEGMENT_LINE - 10);
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 1);
}

enum { STREAM = 3000000 };

/* Returns message lengths from 1 byte to several blocks. */
static size_t length_of(size_t message)
{
    return message * message * 37 % (3 * LINE_RING_BLOCK_BYTES) + 1;
}

/* Both ends wrap around within the part of the memory that they use. */
static void a_part_of_the_ring_is_a_ring(void **state)
{
    (void)state;
    enum { PART = STREAM_BYTES / 4 };
    static char data[LINE_RING_BLOCK_BYTES];
    char read[LINE_RING_HEADER_BYTES];
    in = out = line_ring_start(PART);
    out.ahead = true;
    for (size_t sent = 0; sent < 3 * PART; sent += sizeof data) {
        fill(data, sent, sizeof data);
        assert_true(line_ring_fits(&ring, &out, sizeof data));
        assert_true(line_ring_begin(&ring, &out, header));
        for (size_t done = 0; done < sizeof data;) {
            done += line_ring_put(&ring, &out, data + done, sizeof data - done);
        }
        line_ring_publish(&ring, &out, true);
        memset(data, 0, sizeof data);
        assert_true(line_ring_take_header(&ring, &in, read));
        for (size_t done = 0; done < sizeof data;) {
            done += line_ring_get(&ring, &in, data + done, sizeof data - done, true);
        }
        line_ring_finish(&ring, &in);
        assert_true(is_filled(data, sent, sizeof data));
    }
    assert_false(line_ring_fits(&ring, &out, PART - 2 * SEGMENT_LINE + 1));
    for (size_t at = PART; at < STREAM_BYTES; at++) {
        assert_int_equal(ring.data[at], 0);
    }
}

/* Messages are written and taken as a whole, also across the end of the memory, and mixed with
 * messages that are written in parts. */
static void whole_messages_are_written_and_taken(void **state)
{
    (void)state;
    enum { MOST = 9000, PART = 2 * LINE_RING_BLOCK_BYTES };
    static char put[MOST], got[MOST];
    char read[LINE_RING_HEADER_BYTES];
    in = out = line_ring_start(PART);
    for (size_t message = 0; message < 5000; message++) {
        size_t bytes = message * 37 % MOST;
        out.ahead = message / 3 % 2;
        fill(put, message, bytes);
        if (message % 3 == 0) {
            assert_true(line_ring_begin(&ring, &out, header));
            for (size_t done = 0; done < bytes;) {
                done += line_ring_put(&ring, &out, put + done, bytes - done);
            }
            line_ring_publish(&ring, &out, true);
        } else {
            assert_true((message % 3 == 1 ? line_ring_write
                                          : line_ring_write_puts)(&ring, &out, header, put, bytes));
        }
        assert_true(line_ring_take_header(&ring, &in, read));
        assert_memory_equal(read, header, sizeof read);
        assert_true(line_ring_has(&in, bytes));
        line_ring_take(&ring, &in, got, bytes, message % 2);
        assert_true(is_filled(got, message, bytes));
        assert_true(in.at == out.at && ring.read == in.at);
    }
    assert_false(line_ring_take_header(&ring, &in, read));
}

static void what_has_no_room_is_not_written(void **state)
{
    (void)state;
    static const char data[1000];
    size_t lines = (sizeof data + SEGMENT_LINE - 1) / SEGMENT_LINE + 1, written = 0;
    struct line_ring_end before = out;
    for (; line_ring_write(&ring, &out, header, data, sizeof data); written++) {
        before = out;
    }
    assert_int_equal(written, (STREAM_BYTES / SEGMENT_LINE - 1) / lines);
    assert_memory_equal(&before, &out, sizeof out);
    assert_false(line_ring_write_puts(&ring, &out, header, data, sizeof data));
    assert_memory_equal(&before, &out, sizeof out);
    char got[sizeof data], read[LINE_RING_HEADER_BYTES];
    assert_true(line_ring_take_header(&ring, &in, read));
    line_ring_take(&ring, &in, got, sizeof got, false);
    assert_true(line_ring_write(&ring, &out, header, data, sizeof data));
}

/* Fetching lines changes nothing: not unread data, and not lines beyond the end of the memory. */
static void lines_that_are_fetched_ahead_are_not_changed(void **state)
{
    (void)state;
    static struct stream_ring before;
    static const char data[LINE_RING_BLOCK_BYTES];
    size_t blocks = 0;
    for (size_t n = 1; n > 0; blocks++) {
        struct line_ring_end end = out;
        memcpy(&before, &ring, sizeof ring);
        line_ring_fetch(&ring, &out, STREAM_BYTES);
        line_ring_expect(&ring, &out);
        assert_memory_equal(&before, &ring, sizeof ring);
        assert_memory_equal(&end, &out, sizeof out);
        n = line_ring_begin(&ring, &out, header) ? line_ring_put(&ring, &out, data, sizeof data)
                                                 : 0;
        if (n > 0) {
            line_ring_publish(&ring, &out, true);
        }
    }
    assert_in_range(blocks, 2, STREAM_BYTES / sizeof data + 1);
}

static void *write_all(void *unused)
{
    (void)unused;
    static char data[3 * LINE_RING_BLOCK_BYTES + 1];
    for (size_t message = 0, sent = 0; sent < STREAM; message++) {
        size_t bytes = length_of(message);
        fill(data, sent, bytes);
        bool whole = message % 4 == 0;
        out.ahead = message / 8 % 2;
        while (whole ? !(message % 8 ? line_ring_write : line_ring_write_puts)(&ring, &out, header,
                                                                               data, bytes)
                     : !line_ring_begin(&ring, &out, header)) {
            (void)sched_yield();
        }
        for (size_t done = whole ? bytes : 0, n; done < bytes; done += n) {
            n = line_ring_put(&ring, &out, data + done, bytes - done);
            if (n > 0 || out.begun) {
                line_ring_publish(&ring, &out, done + n == bytes);
            } else {
                (void)sched_yield();
            }
        }
        sent += bytes;
    }
    return NULL;
}

static void two_threads_pass_all_bytes(void **state)
{
    (void)state;
    static char data[3 * LINE_RING_BLOCK_BYTES + 1];
    char read[LINE_RING_HEADER_BYTES];
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
    for (size_t message = 0, come = 0; come < STREAM; message++) {
        size_t bytes = length_of(message);
        while (!line_ring_take_header(&ring, &in, read)) {
            (void)sched_yield();
        }
        assert_memory_equal(read, header, sizeof read);
        bool whole = message % 5 != 0 && line_ring_has(&in, bytes);
        if (whole) {
            line_ring_take(&ring, &in, data, bytes, message % 2);
        }
        for (size_t done = whole ? bytes : 0, n; done < bytes; done += n) {
            /* Sometimes takes only a part of what is available. */
            size_t wanted = message % 3 ? bytes - done : (bytes - done + 1) / 2;
            n = line_ring_get(&ring, &in, data + done, wanted, message % 2);
            if (n == 0) {
                (void)sched_yield();
            }
        }
        if (!whole) {
            line_ring_finish(&ring, &in);
        }
        assert_true(is_filled(data, come, bytes));
        come += bytes;
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(in.at, out.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_fits_is_taken_as_a_whole, begin),
        cmocka_unit_test_setup(nothing_comes_before_it_is_published, begin),
        cmocka_unit_test_setup(a_full_ring_takes_no_more, begin),
        cmocka_unit_test_setup(a_part_of_the_ring_is_a_ring, begin),
        cmocka_unit_test_setup(a_message_without_data, begin),
        cmocka_unit_test_setup(whole_messages_are_written_and_taken, begin),
        cmocka_unit_test_setup(what_has_no_room_is_not_written, begin),
        cmocka_unit_test_setup(old_data_is_no_header, begin),
        cmocka_unit_test_setup(lines_that_are_fetched_ahead_are_not_changed, begin),
        cmocka_unit_test_setup(two_threads_pass_all_bytes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
