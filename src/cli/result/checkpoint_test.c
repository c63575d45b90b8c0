/* Checks that paths of checkpoints are found in lines that training programs print. */
#include "cli/result/checkpoint.h"

#include "base/testing/test.h"

static void paths_are_found_in_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *paths[5];
    } cases[] = {
        {"saved runs/a/epoch3.pt", {"runs/a/epoch3.pt"}},
        {"Saved to /data/m.pth.\n", {"/data/m.pth"}},
        {"wrote (model.safetensors), next\n", {"model.safetensors"}},
        {"Saving model checkpoint to out/checkpoint-500/\n", {"out/checkpoint-500"}},
        {"out/checkpoint-500/optimizer.bin", {"out/checkpoint-500/optimizer.bin"}},
        {"path=a/b.ckpt", {"path=a/b.ckpt", "a/b.ckpt"}},
        {"x/epoch=3-step=100.ckpt", {"x/epoch=3-step=100.ckpt", "3-step=100.ckpt", "100.ckpt"}},
        {"'my runs/last one.pt'", {"my runs/last one.pt", "one.pt"}},
        {"{\"file\": \"a.pt\"}", {"a.pt"}},
        {"\033[32mruns/a.pt\033[0m done", {"runs/a.pt"}},
        {"a.pt b.pt\nc.pt", {"a.pt", "b.pt", "c.pt"}},
        {"file:a.pt", {"file:a.pt"}},
        {"nothing.ptx .pt x.py checkpoint- checkpoint-x mycheckpoint-1", {NULL}},
        {"", {NULL}},
        {"it's no 'quote\nof a.pt'", {"a.pt"}},
        {"\033", {NULL}},
        {"\033[", {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        const char *end = at + strlen(at);
        char path[CHECKPOINT_PATH_BYTES];
        size_t found = 0;
        while (checkpoint_next(&at, end, path)) {
            assert_in_range(found, 0, 4);
            assert_non_null(cases[i].paths[found]);
            assert_string_equal(path, cases[i].paths[found++]);
        }
        assert_null(cases[i].paths[found]);
        assert_ptr_equal(at, end);
    }
}

static void a_path_that_is_too_long_is_none(void **state)
{
    (void)state;
    static char text[2 * CHECKPOINT_PATH_BYTES];
    memset(text, 'a', sizeof text - 4);
    memcpy(text + sizeof text - 4, ".pt", 4);
    const char *at = text;
    char path[CHECKPOINT_PATH_BYTES];
    assert_false(checkpoint_next(&at, text + sizeof text - 1, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_found_in_lines),
        cmocka_unit_test(a_path_that_is_too_long_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
