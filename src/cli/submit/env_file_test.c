/* Checks how a file of --env-file is read: docker's format, and the line number in messages. */
#include "cli/submit/env_file.h"

#include "base/buf.h"
#include "base/testing/test.h"

#include <stdlib.h>

static int note(void *data, const char *name, const char *value)
{
    buf_format(data, "%s[%s]", name, value ? value : "-");
    return 0;
}

/* Returns "NAME[VALUE]…", or the message of the error. The text has `count` bytes. */
static char *read_text(const char *bytes, size_t count)
{
    struct buf found;
    struct muster_err err = MUSTER_ERR_INIT;
    char *text = calloc(1, count + 1);
    memcpy(text, bytes, count);
    buf_init(&found, 4096);
    int r = env_file_read("f.env", text, count, note, &found, &err);
    free(text);
    if (r < 0) {
        assert_int_equal(r, MUSTER_EDATA);
        buf_clear(&found);
        buf_text(&found, err.text);
    }
    return buf_steal(&found);
}

static void lines_become_variables(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } table[] = {
        {"A=1\nB=b=c # not a comment\n", "A[1]B[b=c # not a comment]"},
        {"# A=1\n\n   # B\n  C=3", "C[3]"},
        {"A\nB \n", "A[-]B[-]"},
        {"A= spaces stay \n", "A[ spaces stay ]"},
        {"A=\"quoted\"\n", "A[\"quoted\"]"},
        {"A=\n", "A[]"},
        {"\xef\xbb\xbf"
         "A=1\r\nB=2\r\n",
         "A[1]B[2]"},
        {"A=\xff\xfe\n", "A[\xff\xfe]"},
        {"", ""},
        {"=secret\n", "f.env:1: there is no name before the '='"},
        {"A=1\nB C=secret\n",
         "f.env:2: white space in the name (docker's format: NAME=VALUE, nothing around the '=')"},
        {"B C\n",
         "f.env:1: white space in the name (docker's format: NAME=VALUE, nothing around the '=')"},
        {"#\n\nA =1\n",
         "f.env:3: white space in the name (docker's format: NAME=VALUE, nothing around the '=')"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *found = read_text(table[i].text, strlen(table[i].text));
        assert_string_equal(found ? found : "", table[i].expected);
        free(found);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    (void)state;
    static const char text[] = "A=1\nB=2\0x\n";
    char *found = read_text(text, sizeof text - 1);
    assert_string_equal(found, "f.env:2: a NUL byte");
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_variables),
        cmocka_unit_test(a_nul_byte_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
