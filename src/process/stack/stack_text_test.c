/* Where a process is, by the text of its stacks. */
#include "process/stack/text.h"

#include "base/testing/test.h"

#include <stdio.h>

static void expect(const char *stacks, const char *where)
{
    char text[256] = "";
    assert_int_equal(stack_text_where(stacks, text, sizeof text), where != NULL);
    assert_string_equal(text, where ? where : "");
}

static void a_plain_script(void **state)
{
    (void)state;
    expect("Current thread 0x00007f (most recent call first):\n"
           "  File \"/home/me/train.py\", line 17 in slow\n"
           "  File \"/home/me/train.py\", line 40 in <module>\n",
           "train.py:17 in slow");
}

static void a_collective_of_a_library(void **state)
{
    (void)state;
    expect(
        "Thread 0x01 (most recent call first):\n"
        "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
        "  File \"/usr/lib/python3.11/threading.py\", line 975 in _bootstrap\n"
        "\n"
        "Current thread 0x02 (most recent call first):\n"
        "  File \"/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line "
        "2501 in all_reduce\n"
        "  File \"/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py\", line 83 in "
        "wrapper\n"
        "  File \"train.py\", line 42 in main\n",
        "all_reduce at train.py:42 in main");
}

/* Only the outermost function below the user's line is what the user called. */
static void what_the_user_called(void **state)
{
    (void)state;
    expect("Current thread 0x02 (most recent call first):\n"
           "  File \"/v/site-packages/torch/_utils.py\", line 1 in poll\n"
           "  File \"/v/site-packages/torch/data.py\", line 2 in fetch\n"
           "  File \"/v/site-packages/torch/data.py\", line 3 in __next__\n"
           "  File \"a b.py\", line 4 in <module>\n",
           "fetch at a b.py:4 in <module>");
}

static void nothing_of_the_user(void **state)
{
    (void)state;
    expect("Thread 0x02 (most recent call first):\n"
           "  File \"/usr/lib/python3.11/runpy.py\", line 9 in run\n",
           "runpy.py:9 in run");
}

static void nothing_at_all(void **state)
{
    (void)state;
    expect("", NULL);
    expect("Thread 0x02 (most recent call first):\n  <no Python frame>\n", NULL);
    expect("Thread 0x02 (most recent call first):\n  File \"cut", NULL);
}

/* A name may have any length. */
static void long_names_are_cut(void **state)
{
    (void)state;
    char stacks[2048], name[1001], text[64] = "";
    memset(name, 'n', 1000);
    name[1000] = '\0';
    (void)snprintf(stacks, sizeof stacks,
                   "Thread 0x02 (most recent call first):\n  File \"t.py\", line 7 in %s\n", name);
    assert_true(stack_text_where(stacks, text, sizeof text));
    assert_memory_equal(text, "t.py:7 in nnn", 13);
    assert_int_equal(strlen(text), sizeof text - 1);
}

static void the_thread_that_was_asked_is_dropped(void **state)
{
    (void)state;
    static const char *const main_thread = "Thread 0x03 (most recent call first):\n"
                                           "  File \"t.py\", line 7 in main\n";
    static const char *const ours = "Current thread 0x02 (most recent call first):\n"
                                    "  File \"/m/sitecustomize.py\", line 9 in _wait_to_be_asked\n"
                                    "\n";
    static const char *const other = "Thread 0x01 (most recent call first):\n"
                                     "  File \"t.py\", line 8 in run\n\n";
    char text[1024], rest[1024];
    (void)snprintf(text, sizeof text, "%s%s%s", other, ours, main_thread);
    (void)snprintf(rest, sizeof rest, "%s%s", other, main_thread);
    stack_text_drop_asked(text);
    assert_string_equal(text, rest);
    stack_text_drop_asked(text);
    assert_string_equal(text, rest);
    (void)snprintf(text, sizeof text, "%s", ours);
    stack_text_drop_asked(text);
    assert_string_equal(text, "");
    stack_text_drop_asked(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_script),
        cmocka_unit_test(a_collective_of_a_library),
        cmocka_unit_test(what_the_user_called),
        cmocka_unit_test(nothing_of_the_user),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(the_thread_that_was_asked_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
