/* Frames, whole, in pieces, and broken. */
#include "process/wire/frame.h"

#include "base/testing/test.h"

#include <string.h>

static void what_is_written_is_read(void **state)
{
    (void)state;
    char bytes[FRAME_HEAD_BYTES + 300];
    struct frame frame;
    memset(bytes, 'x', sizeof bytes);
    frame_head(FRAME_STDERR, 300, bytes);
    for (size_t used = 0; used < sizeof bytes; used++) {
        assert_int_equal(frame_read(bytes, used, &frame), 0);
    }
    assert_int_equal(frame_read(bytes, sizeof bytes, &frame), sizeof bytes);
    assert_int_equal(frame.kind, FRAME_STDERR);
    assert_int_equal(frame.count, 300);
    assert_ptr_equal(frame.bytes, bytes + FRAME_HEAD_BYTES);
}

static void an_empty_frame_is_one(void **state)
{
    (void)state;
    char bytes[FRAME_HEAD_BYTES];
    struct frame frame;
    frame_head(FRAME_STDIN, 0, bytes);
    assert_int_equal(frame_read(bytes, sizeof bytes, &frame), FRAME_HEAD_BYTES);
    assert_int_equal(frame.count, 0);
}

static void nonsense_is_refused_at_once(void **state)
{
    (void)state;
    struct frame frame;
    assert_int_equal(frame_read("\x05", 1, &frame), -1);
    assert_int_equal(frame_read("\xff", 1, &frame), -1);
    assert_int_equal(frame_read("\x01\x7f\xff\xff\xff", 5, &frame), -1);
    assert_int_equal(frame_read("\x01\x00\x00\x80\x01", 5, &frame), -1); /* one byte too many */
    assert_int_equal(frame_read("\x01\x00\x00\x80\x00", 5, &frame), 0);  /* as many as allowed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(an_empty_frame_is_one),
        cmocka_unit_test(nonsense_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
