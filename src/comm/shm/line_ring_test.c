/* Streams of lines: what is published, room, the end of the memory, and two threads. */
#include "comm/shm/line_ring.h"

#include "base/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static struct stream_ring ring;
static struct line_ring_end in, out;

static int begin(void **state)
{
    (void)state;
    memset(&ring, 0, sizeof ring);
    in = out = (struct line_ring_end){0};
    return 0;
}

/* The byte at this place of a stream; lines and blocks differ. */
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

static void nothing_comes_before_it_is_published(void **state)
{
    (void)state;
    char put[100], got[100] = {0};
    fill(put, 0, sizeof put);
    assert_int_equal(line_ring_put(&ring, &out, put, 16), 16);
    line_ring_end_line(&out);
    assert_int_equal(line_ring_put(&ring, &out, put, sizeof put), sizeof put);
    assert_int_equal(line_ring_get(&ring, &in, got, 16, true), 0);
    line_ring_publish(&ring, &out);
    assert_int_equal(line_ring_get(&ring, &in, got, 16, true), 16);
    line_ring_skip(&ring, &in);
    assert_int_equal(line_ring_get(&ring, &in, got, sizeof got, true), sizeof got);
    assert_true(is_filled(got, 0, sizeof got));
    line_ring_skip(&ring, &in);
    assert_int_equal(in.at, out.at);
    assert_int_equal(in.at % SEGMENT_LINE, 0);
}

static void a_full_ring_takes_no_more(void **state)
{
    (void)state;
    static char block[LINE_RING_BLOCK_BYTES];
    size_t sum = 0, n;
    while ((n = line_ring_put(&ring, &out, block, sizeof block)) > 0) {
        line_ring_publish(&ring, &out);
        sum += n;
    }
    assert_int_equal(sum, STREAM_BYTES);
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 0);
    /* Part of a line that was read is no room yet, a line is. */
    assert_int_equal(line_ring_get(&ring, &in, block, 10, true), 10);
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 0);
    line_ring_skip(&ring, &in);
    assert_int_equal(line_ring_put(&ring, &out, block, 1), 1);
    line_ring_publish(&ring, &out);
    assert_int_equal(line_ring_get(&ring, &in, block, 10 + SEGMENT_LINE, true), 10 + SEGMENT_LINE);
    line_ring_skip(&ring, &in);
    assert_int_equal(line_ring_put(&ring, &out, block, sizeof block), 2 * SEGMENT_LINE);
}

/* Neither side writes into a line that the other may be writing: a claim that comes late would put
 * back what was there before. */
static void only_lines_that_were_published_are_claimed(void **state)
{
    (void)state;
    char byte = 'x', got;
    assert_int_equal(line_ring_put(&ring, &out, &byte, 1), 1);
    line_ring_publish(&ring, &out);
    assert_int_equal(ring.written, SEGMENT_LINE);
    assert_int_equal(line_ring_get(&ring, &in, &got, 1, true), 1);
    assert_int_equal(got, 'x');
    assert_true(ring.read <
                SEGMENT_LINE); /* the writer may not have the line before it is skipped */
    line_ring_skip(&ring, &in);
    assert_int_equal(ring.read, SEGMENT_LINE);
}

enum { STREAM = 3000000 };

/* Messages of all lengths up to some blocks. */
static size_t length_of(size_t message)
{
    return message * message * 37 % (3 * LINE_RING_BLOCK_BYTES) + 1;
}

static void *write_all(void *unused)
{
    (void)unused;
    static char data[3 * LINE_RING_BLOCK_BYTES + 1];
    for (size_t message = 0, sent = 0; sent < STREAM; message++) {
        size_t bytes = length_of(message);
        fill(data, sent, bytes);
        for (size_t done = 0, n; done < bytes; done += n) {
            n = line_ring_put(&ring, &out, data + done, bytes - done);
            if (n > 0) {
                line_ring_publish(&ring, &out);
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
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
    for (size_t message = 0, come = 0; come < STREAM; message++) {
        size_t bytes = length_of(message);
        for (size_t done = 0, n; done < bytes; done += n) {
            /* Not always as much as there is. */
            size_t wanted = message % 3 ? bytes - done : (bytes - done + 1) / 2;
            n = line_ring_get(&ring, &in, data + done, wanted, message % 2);
            if (n == 0) {
                (void)sched_yield();
            }
        }
        line_ring_skip(&ring, &in);
        assert_true(is_filled(data, come, bytes));
        come += bytes;
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(in.at, out.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_comes_before_it_is_published, begin),
        cmocka_unit_test_setup(a_full_ring_takes_no_more, begin),
        cmocka_unit_test_setup(only_lines_that_were_published_are_claimed, begin),
        cmocka_unit_test_setup(two_threads_pass_all_bytes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
